"""Many queries at once, as arrays, and whole marginals: made from a schema, never from rows.

Workloads and their generators, the query player's actions and probes, marginals, and what public
records answer. Start reading at `workload`.
"""
