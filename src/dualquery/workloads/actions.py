"""What the query player may draw: the asked queries, and possibly probes as well."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dualquery.workloads.workload import Workload


@dataclass(frozen=True, eq=False)
class Actions:
    """The asked queries, then the probes, each with a prior weight.

    Attributes:
        queries: the asked queries, then the probes.
        asked: the number of asked queries.
        log_prior: the logarithm of each query's prior weight, which its negation shares. Prior
            weights are public, so they change what is drawn but not what a draw may cost.
    """

    queries: Workload
    asked: int
    log_prior: npt.NDArray[np.float64]

    @classmethod
    def plain(cls, workload: Workload) -> Actions:
        """The asked queries alone, with equal prior weights."""
        return cls(workload, len(workload), np.zeros(len(workload)))

    @classmethod
    def weighted(cls, workload: Workload, weights: npt.NDArray[np.float64]) -> Actions:
        """The asked queries alone, each with a weight of its own."""
        return cls(workload, len(workload), np.log(weights / weights.max()))

    def __len__(self) -> int:
        return len(self.queries)

    def expected_distinct(self, samples: int) -> float:
        """The expected number of different queries in `samples` draws by prior weights alone."""
        weights = np.exp(self.log_prior - self.log_prior.max())
        share = weights / weights.sum()
        # A single query has share 1. The bound keeps log1p(−1) from warning.
        missed = np.exp(samples * np.log1p(-np.minimum(share, 1.0 - 1e-12)))
        return float(np.sum(1.0 - missed))

    @cached_property
    def named(self) -> npt.NDArray[np.bool_]:
        """Per attribute, whether any query here names it."""
        found = np.zeros(len(self.queries.schema), dtype=bool)
        found[self.queries.literals.attribute[self.queries.terms >> 1]] = True
        return found

    @property
    def untouched(self) -> tuple[str, ...]:
        """The attributes that no query names."""
        return tuple(self.queries.schema.names[a] for a in np.flatnonzero(~self.named))

    @property
    def workload(self) -> Workload:
        """The asked queries."""
        if self.asked == len(self.queries):
            return self.queries
        everything = self.queries
        end = everything.start[self.asked]
        return Workload(
            everything.schema,
            everything.literals,
            everything.start[: self.asked + 1],
            everything.terms[:end],
            everything.is_parity[: self.asked],
        )
