"""PRIVATE. A release against the private table, for the curator's eyes alone.

Nothing computed here may be published, and everything it writes says so. Start at `figures`.
"""
