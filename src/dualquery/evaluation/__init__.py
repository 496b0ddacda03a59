"""PRIVATE. A release against the private table, for the curator's eyes alone.

Nothing computed here may be published, and everything it writes says so. Errors (`figures`), what
became of relations (`relations`, `coverage`) and the curator's page (`page`). The paper's
experiments and the command line may import this room. Start reading at `figures`.
"""
