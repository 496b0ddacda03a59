"""Projection: noise on all answers, then the nearest table.

By Nikolov, Talwar and Zhang (2013), and Dwork, Nikolov and Talwar (2014). Private side: it reads
counts. The paper says of this approach that it merits an empirical evaluation, and that it gives no
synthetic data. With Frank–Wolfe it does: the nearest point is found as a mean of records.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import whole
from dualquery.base.errors import ParameterError
from dualquery.baselines.baseline import Cost, Floats, public_rows
from dualquery.baselines.charging import charged
from dualquery.baselines.hull import EXCHANGES, Hull, nearest_in_hull, quick_oracle
from dualquery.baselines.product import Uniform
from dualquery.baselines.reach import reach
from dualquery.baselines.spending import noise_for, planned, stated, with_noise
from dualquery.oracles.oracle import Oracle
from dualquery.privacy.events import Events, MeasurementEvent
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sources import RandomSource
from dualquery.workloads.counts import Counted
from dualquery.workloads.workload import Workload

STEPS = 500
"""Records of the nearest table on narrow tables, if no other number is given."""

FEWEST, NARROW = 100, 1_000
"""Beyond `NARROW` columns there are fewer records, but `FEWEST` at least."""

FEW_EXCHANGES = 10
"""With many records few exchanges per record do: the next steps go on with them."""


def steps_for(workload: Workload) -> int:
    """How many records are worth their time; a best response takes longer the wider the table.

    With 100 records in place of 500 the average error on 15 biased bits is ten times as large: a
    mean of few records is far from every table that is spread over many.
    """
    columns = len(np.unique(workload.literals.attribute))
    return max(FEWEST, min(STEPS, STEPS * NARROW // columns))


@dataclass(frozen=True)
class AllCounts:
    """Exact noise on all counts of a workload.

    Guarantee: if no neighbour moves more than m counts, each by at most one, counts move by at most
    m in L1 and √m in L2. Gaussian noise of scale √m/μ is μ-GDP; Laplace noise of scale m/ε is
    ε-private.
    """

    event: MeasurementEvent

    @classmethod
    def of(cls, moved: int, epsilon: float, delta: float) -> AllCounts:
        """Spend (ε, δ) on all counts.

        Args:
            moved: m, how many of them a neighbour moves at most.
            epsilon: the budget.
            delta: the budget's δ; 0 for pure ε.
        """
        l1, l2 = float(moved), math.sqrt(moved) * (1.0 + 1e-15)
        noise, scale = noise_for(planned(epsilon), delta, l1=l1, l2=l2)
        return cls(MeasurementEvent(noise, scale, l1, l2))

    def release(self, counts: npt.NDArray[np.int64], source: RandomSource) -> npt.NDArray[np.int64]:
        """The noisy counts. All else is computed from them."""
        return with_noise(counts, self.event.noise, self.event.scale, source)

    def cost(
        self, delta: float, private: bool, neighbours: Neighbours = Neighbours.REPLACE_ONE
    ) -> Cost:
        """The statement of one such release."""
        events = Events.of_measurements(self.event)
        mechanism = f"exact {self.event.noise} noise on every answer"
        return stated(events, delta, mechanism, private=private, neighbours=neighbours)


@dataclass(frozen=True, eq=False)
class Projection:
    """The table that is nearest to the noisy answers, as records with weights.

    Attributes:
        hull: the records and their weights.
        privacy: what it cost.
        name: what comparisons call it.
    """

    hull: Hull
    privacy: Cost
    name: str = "projection"

    @classmethod
    def fit(
        cls,
        answers: Counted,
        workload: Workload,
        *,
        epsilon: float,
        delta: float,
        source: RandomSource,
        neighbours: Neighbours = Neighbours.REPLACE_ONE,
        reference: int | None = None,
        steps: int | None = None,
        oracle: Oracle | None = None,
        observer: Callable[[int, int], None] = lambda done, total: None,
        ledger: str | Path | None = None,
    ) -> Projection:
        """Add noise to all counts and find the nearest table.

        Args:
            answers: the true counts.
            workload: the queries that were counted; one that is asked twice is measured once.
            epsilon: the budget.
            delta: the budget's δ; 0 for pure ε.
            source: the random source of the noise.
            neighbours: which tables the promise compares.
            reference: the public number of rows under add-remove neighbours.
            steps: how many records at most; None for the usual number.
            oracle: finds records; None for the quick one.
            observer: told how many steps are done, and of how many.
            ledger: a budget ledger that the run is charged to before its first draw.
        """
        steps = steps_for(workload) if steps is None else whole("steps", steps)
        first, _ = workload.different
        different = workload.take(first)
        rows = public_rows(answers.rows, neighbours, reference)
        noise = AllCounts.of(reach(different, neighbours), epsilon, delta)
        events = Events.of_measurements(noise.event)
        with charged(ledger, events, private=source.private, note=cls.name, neighbours=neighbours):
            noisy = noise.release(answers.counts[first], source)
        hull = nearest_in_hull(
            different,
            noisy / rows,
            Uniform().answers(different),
            steps=steps,
            oracle=oracle or quick_oracle(),
            exchanges=FEW_EXCHANGES if steps > FEWEST else EXCHANGES,
            observer=observer,
        )
        return cls(hull, noise.cost(delta, source.private, neighbours))

    def answers(self, workload: Workload) -> Floats:
        if workload.schema != self.hull.workload.schema:
            raise ParameterError("the workload has another schema than the projected one")
        return self.hull.answers_to(workload)

    def sample(self, rows: int) -> npt.NDArray[np.int32]:
        """So many records, each repeated in proportion to its weight."""
        edges = np.rint(np.cumsum(self.hull.weights) * whole("rows", rows)).astype(np.int64)
        return np.repeat(self.hull.records, np.diff(edges, prepend=0), axis=0)
