"""One-way tables for free attributes: measured with the first draws, for a share of the budget.

The paper sets attributes that no drawn query names to 0, or at random. Its footnote says that a
more principled way would cost a little privacy. This is that way: the shares of all attributes are
measured once, and free attributes of all records follow them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import probability, whole
from dualquery.base.errors import ReleaseError
from dualquery.domain.free import MeasuredShares
from dualquery.domain.schema import Schema
from dualquery.privacy.calibration import Budget
from dualquery.privacy.events import Events, MeasurementEvent
from dualquery.privacy.measuring import Measurement, batch_event, measure
from dualquery.privacy.purse import Purse
from dualquery.privacy.rare import Measured
from dualquery.privacy.sources import RandomSource
from dualquery.workloads.marginals import Groups, Marginals
from dualquery.workloads.workload import Workload

SHARE = 0.05
"""The share of the budget that the tables take, if no other is given."""


@dataclass(frozen=True)
class FreeTables:
    """What is measured for free attributes.

    Attributes:
        share: of what adds up under the accountant: μ², ρ or ε.
        tables: how many one-way tables are measured.
    """

    share: float
    tables: int

    def __post_init__(self) -> None:
        probability("free_share", self.share)
        whole("tables", self.tables)

    def scale(self, budget: Budget) -> float:
        """The scale of the noise in a cell."""
        return Purse(budget).scale(self.share, self.tables)

    def event(self, budget: Budget) -> MeasurementEvent:
        """What the tables cost, as accountants read it."""
        return batch_event(Purse(budget).noise, self.scale(budget), self.tables, budget.unit)


@dataclass(frozen=True)
class AfterTables(Budget):
    """A budget of which tables take a part: whatever is drawn is counted together with them."""

    measured: MeasurementEvent | None = None

    @classmethod
    def of(cls, budget: Budget, tables: FreeTables) -> AfterTables:
        return cls(
            budget.epsilon,
            budget.delta,
            budget.rows,
            budget.neighbours,
            budget.accountant,
            budget.persons,
            budget.weight,
            tables.event(budget),
        )

    def events(self, temperatures: npt.ArrayLike, draws: npt.ArrayLike) -> Events:
        return with_tables(super().events(temperatures, draws), self.measured)


def with_tables(drawn: Events, measured: MeasurementEvent | None) -> Events:
    """Draws, with tables that are measured after those of the first round."""
    if measured is None:
        return drawn
    return Events(drawn.draws, drawn.ranges, (measured,), (1,))


@dataclass(frozen=True, eq=False)
class Measuring:
    """Measures the tables of a run, or takes them up from its journal.

    Attributes:
        plan: what is measured.
        budget: of the whole run.
        marginals: the one-way tables.
        tabulate: counts their cells over the private rows.
    """

    plan: FreeTables
    budget: Budget
    marginals: Marginals
    tabulate: Callable[[Marginals], npt.NDArray[np.int64]]

    def __call__(self, source: RandomSource) -> Measurement:
        """The noisy tables. Nothing else of the counts leaves this."""
        noise, scale = Purse(self.budget).noise, self.plan.scale(self.budget)
        return measure(self.tabulate(self.marginals), self.marginals, noise, scale, source)

    def checked(self, found: Measured | None) -> Measurement:
        """What a journal holds, if it is what this run releases: it is paid for as it stands."""
        if (
            not isinstance(found, Measurement)
            or not np.array_equal(found.marginals.attributes, self.marginals.attributes)
            or found.noise is not Purse(self.budget).noise
            or found.scale != self.plan.scale(self.budget)
        ):
            raise ReleaseError(
                "what the journal holds of round 1 is not what the plan of this run releases "
                "there; the run cannot be resumed"
            )
        return found


def named_tables(asked: Workload) -> Marginals:
    """The one-way table of every attribute that a query names."""
    named = np.unique(asked.literals.attribute).astype(np.int32)
    return Marginals(Groups.single(asked.schema), named[:, None])


def shares_of(schema: Schema, measurement: Measurement) -> MeasuredShares:
    """What free attributes take, by their noisy tables."""
    return MeasuredShares.of(schema, measurement.marginals.attributes[:, 0], measurement.counts)
