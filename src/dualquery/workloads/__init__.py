"""Many queries at once, as arrays, and whole marginals, made from a schema and never from rows.

Workloads and their generators, marginals, what the query player may draw (`actions`, `probes`), and
queries evaluated on public records (`matching`). Every room except `base` and `domain` may import
this one. Start reading at `workload`.
"""
