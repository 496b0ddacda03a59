"""PRIVATE. The curator's rows: reading, encoding, packing, counting, drafting a schema from them.

Only engines, evaluation, baselines, paper, estimator and cli may import this room; import-linter
enforces it. Start reading at `table`, then `packed` and `counting`.
"""
