"""The paper's experiments, one file each; every run they make is seeded and NOT PRIVATE."""

from __future__ import annotations

NAMES = ("accuracy", "queries", "attributes", "mwem", "parities", "accountants")
