"""PRIVATE. The whole job: a private table in, a release out.

`job` has what a user calls, `settings` what decides the promise and what does not, `stages` the
four stages of a job, `run` the journal and the ledger that make it survive a crash. Only the
paper's experiments and the command line may import this room. Start reading at `stages`.
"""

from dualquery.estimator.job import DualQuery

__all__ = ["DualQuery"]
