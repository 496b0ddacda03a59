"""The paper's experiments, one file each. Every run that they make is seeded and NOT PRIVATE.

`experiment` says what an experiment is, `bench` what it runs on, `series` how a workload is
answered, `store` how runs are kept. Start reading at `experiment`, then at `accuracy`.
"""

from __future__ import annotations

NAMES = ("accuracy", "queries", "attributes", "mwem", "parities", "accountants")
