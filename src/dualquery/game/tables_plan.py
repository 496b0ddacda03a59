"""Which tables are measured and how the budget is split, from public quantities only.

One-way tables are always measured. Pairs are measured while their noise stays small beside the
number of records, and so are triples of narrow domains. What is left goes into a few rounds in
which draws name the queries that are answered worst, and their tables are measured: draws say
where, tables say what. The reasons are in docs/decisions/tables.md.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dualquery.base.stored import Document, Json
from dualquery.domain.schema import Schema
from dualquery.privacy.calibration import Budget
from dualquery.privacy.events import Events, Noise
from dualquery.privacy.measuring import batch_event
from dualquery.privacy.purse import COVERED, Purse
from dualquery.workloads.workload import Workload

Floats = npt.NDArray[np.float64]

FINE = 0.015
"""Tables are affordable if the noise of a cell is at most this share of the records."""

FINE_STARTED = 0.05
"""The same where a public start says what they may look like: noisy tables then tell how far it
can be trusted."""

NARROW = 3.0
"""Attributes with so few codes on average have triples worth measuring outright: a step from k-way
to (k+1)-way tables multiplies the precision of the k-way ones by (k + 1)/m, m codes each."""

ROUNDS, FINER_ROUNDS = 3, 6
"""Rounds of draws; more, of half as many draws, where the budget is large: few tables are then
wrong enough to be named, and it takes several rounds until all of them were."""

FEWEST_DRAWS, MOST_DRAWS = 10, 500
"""Per round."""

PURE_DRAWS = 5
"""Per round, where a pure budget is too small for all pairs."""

MOST_SETS = 20_000
"""Pairs, or triples, beyond which tables take too long to count and to fit."""

WIDEST = 2_000
"""Attributes beyond which pairs are far too many to be measured one and all."""

MEMBERS, COSTLY_MEMBERS = 8, 4
"""Mixtures that are averaged; fewer where a step of each is costly."""

COSTLY = 10_000_000
"""Steps are costly from this number of pairs of codes times components on."""

ROUND_MEMBERS = 2
"""Of them, so many are fitted between rounds, to say where the next tables are measured."""

FINER = 30_000.0
"""Resolution from which fits get more components and more steps."""

MOST_ENTRIES = 1_000_000
"""Entries of one mixture's tables."""


class Kind(StrEnum):
    """What one step of the plan releases."""

    ONE_WAY = "one-way tables"
    PAIRS = "pair tables"
    TRIPLES = "triple tables"
    DRAWS = "draws"
    NAMED = "named tables"


@dataclass(frozen=True)
class Step:
    """One step: what is released, for which share of the budget."""

    kind: Kind
    share: float
    tables: int = 0
    """How many tables are measured, at most."""
    draws: int = 0
    level: int = 0
    """Of pairs and triples: how much more, or less, the workload asks about these tables than
    about most; see `levels_of`."""


@dataclass(frozen=True)
class TablesPlan:
    """All steps of a run that measures tables, fixed before any private row is read.

    Attributes:
        budget: what the run may cost.
        steps: in order; their shares add up to one.
        resolution: R, how many records' worth of noise the budget is away from exact.
        components: of each mixture.
        members: how many mixtures are averaged.
        round_members: how many of them are fitted between rounds.
        first_steps: gradient steps of the first fit.
        round_steps: of the fits between rounds.
        last_steps: of the last fit.
        wide: whether pairs are so many that each is noisy; the tables then say whether the model
            needs more than independent attributes.
    """

    budget: Budget
    steps: tuple[Step, ...]
    resolution: float
    components: int
    members: int
    round_members: int
    first_steps: int
    round_steps: int
    last_steps: int
    wide: bool = False

    @cached_property
    def purse(self) -> Purse:
        return Purse(self.budget)

    def to_dict(self) -> Json:
        """The plan as it stands in a release, without the budget that stands beside it."""
        return {
            "steps": [asdict(step) | {"kind": str(step.kind)} for step in self.steps],
            **{name: getattr(self, name) for name in _SETTINGS},
        }

    @classmethod
    def from_dict(cls, budget: Budget, content: Document) -> TablesPlan:
        """The inverse of `to_dict`, also for the releases of earlier versions."""
        steps = tuple(Step(**{**step, "kind": Kind(step["kind"])}) for step in content["steps"])
        # At first every mixture was fitted between rounds, too, and no table was wide.
        known = {"round_members": content["members"], "wide": False, **content}
        return cls(budget, steps, **{name: known[name] for name in _SETTINGS})

    @property
    def draws(self) -> int:
        """Draws per round."""
        return max((step.draws for step in self.steps), default=0)

    @property
    def rounds(self) -> int:
        return sum(step.kind is Kind.DRAWS for step in self.steps)

    @property
    def temperature(self) -> float:
        """Of every round of draws; 0 where there is none."""
        for step in self.steps:
            if step.kind is Kind.DRAWS:
                return self.purse.temperature(step.share, step.draws)
        return 0.0

    @property
    def grouping_noise(self) -> float:
        """The noise of the tables that groups of codes should be seen through."""
        larger = (Kind.PAIRS, Kind.TRIPLES, Kind.NAMED)
        kind = next((s.kind for s in self.steps if s.kind in larger), Kind.ONE_WAY)
        chosen = max((s for s in self.steps if s.kind is kind), key=lambda step: step.tables)
        return self.purse.deviation(chosen.share, chosen.tables)

    @property
    def events(self) -> Events:
        """What the run will release, for the accountants; named tables at their most."""
        planned = Events.of_measurements()
        for step in self.steps:
            if step.kind is Kind.DRAWS:
                temperature = self.purse.temperature(step.share, step.draws)
                more = self.budget.events([temperature], [step.draws])
            else:
                scale = self.purse.scale(step.share, step.tables)
                event = batch_event(self.purse.noise, scale, step.tables, self.budget.unit)
                more = Events.of_measurements(event)
            planned = planned.then(more)
        return planned


_SETTINGS = (
    "resolution",
    "components",
    "members",
    "round_members",
    "first_steps",
    "round_steps",
    "last_steps",
    "wide",
)


def attribute_sets(workload: Workload, arity: int) -> npt.NDArray[np.int32]:
    """The sets of so many attributes that occur together in a query, in order."""
    return weighed_sets(workload, arity)[0]


def weighed_sets(
    workload: Workload, arity: int, weights: Floats | None = None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """The sets of so many attributes that occur together in a query, and the level of each.

    Args:
        workload: the queries.
        arity: how many attributes a set has.
        weights: how much each query counts; all of them alike where left out.
    """
    weights = np.ones(len(workload)) if weights is None else weights
    attribute = workload.literals.attribute[workload.terms >> 1].astype(np.int64)
    lengths = np.diff(workload.start)
    width = len(workload.schema)
    found: list[npt.NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    counted: list[Floats] = [np.empty(0)]
    for length in np.unique(lengths[lengths >= arity]).tolist():
        chosen = np.flatnonzero(lengths == length)
        sets = np.sort(attribute[workload.start[chosen][:, None] + np.arange(length)], axis=1)
        for part in combinations(range(length), arity):
            # One number per set: sorting numbers is many times faster than sorting rows.
            number = np.zeros(len(sets), dtype=np.int64)
            for place in part:
                number = number * width + sets[:, place]
            different, which = np.unique(number, return_inverse=True)
            found.append(different)
            counted.append(np.bincount(which, weights[chosen], len(different)).astype(np.float64))
    number, which = np.unique(np.concatenate(found), return_inverse=True)
    weight = np.bincount(which, np.concatenate(counted), len(number)).astype(np.float64)
    digits = []
    for _ in range(arity):
        number, digit = np.divmod(number, width)
        digits.append(digit)
    return np.stack(digits[::-1], axis=1).astype(np.int32), levels_of(weight, float(weights.min()))


def levels_of(weight: Floats, query: float) -> npt.NDArray[np.int64]:
    """How many powers of √10 a set counts more, or less, than the median; between −4 and 4.

    Sets of one level are measured alike. Ten queries are added to every set, so that the scatter
    of a few random queries makes no level.

    Args:
        weight: how much each set counts.
        query: how much a query counts at least.
    """
    if not len(weight):
        return np.empty(0, dtype=np.int64)
    median = np.quantile(weight, 0.5, method="lower")
    ratio = (weight + 10.0 * query) / (median + 10.0 * query)
    return np.clip(np.rint(2.0 * np.log10(ratio)), -4, 4).astype(np.int64)


@dataclass(frozen=True)
class Shape:
    """What a plan needs to know of a workload.

    Attributes:
        attributes: how many the queries name.
        codes: how many codes those have together.
        pairs: how many pairs of attributes occur together in a query.
        triples: how many triples do; 0 where there are more than 20,000 pairs.
        parities: whether any query is a parity, which no table answers.
        pair_levels: how many pairs have each level; see `levels_of`.
        triple_levels: how many triples have.
    """

    attributes: int
    codes: int
    pairs: int
    triples: int
    parities: bool = False
    pair_levels: tuple[tuple[int, int], ...] = ()
    triple_levels: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, workload: Workload, weights: Floats | None = None) -> Shape:
        """The shape of a workload; `weights` says how much each query counts."""
        used = np.unique(workload.literals.attribute[workload.terms >> 1])
        codes = int(workload.schema.sizes[used].sum())
        _, pairs = weighed_sets(workload, 2, weights)
        triples = weighed_sets(workload, 3, weights)[1] if len(pairs) <= MOST_SETS else pairs[:0]
        return cls(
            len(used),
            codes,
            len(pairs),
            len(triples),
            workload.has_parities,
            _tally(pairs),
            _tally(triples),
        )

    @classmethod
    def of_all(cls, schema: Schema, k: int) -> Shape:
        """All k-way marginals of a schema."""
        d = len(schema)
        pairs = math.comb(d, 2) if k >= 2 else 0
        triples = math.comb(d, 3) if k >= 3 and pairs <= MOST_SETS else 0
        return cls(d, int(schema.sizes.sum()), pairs, triples)


def _tally(levels: npt.NDArray[np.int64]) -> tuple[tuple[int, int], ...]:
    """How many sets have each level, the highest level first."""
    found, counts = np.unique(levels, return_counts=True)
    return tuple(zip(found[::-1].tolist(), counts[::-1].tolist(), strict=True))


def make_tables_plan(budget: Budget, shape: Shape, *, started: bool = False) -> TablesPlan | None:
    """The plan for a workload; None where whole tables are too noisy, or cannot serve it.

    Args:
        budget: what the run may cost.
        shape: of the asked queries.
        started: whether a public start says what tables may look like.
    """
    if budget.accountant not in COVERED or shape.parities or shape.attributes > WIDEST:
        return None
    purse = Purse(budget)
    resolution = budget.rows * math.sqrt(2.0) / purse.deviation(1.0, 1)
    fine = (FINE_STARTED if started else FINE) * budget.rows
    steps = _steps(purse, shape, resolution, fine)
    if steps is None:
        return None
    finer = resolution >= FINER
    components = _components(resolution, shape.codes)
    return TablesPlan(
        budget,
        steps,
        resolution,
        components=components,
        members=MEMBERS if components * shape.codes**2 <= COSTLY else COSTLY_MEMBERS,
        round_members=ROUND_MEMBERS,
        first_steps=500 if finer else 300,
        round_steps=200,
        last_steps=400 if finer else 300,
    )


def _components(resolution: float, codes: int) -> int:
    """More where more can be told apart, fewer where tables would grow too large."""
    components = 128 if resolution >= FINER else 64
    while components > 8 and components * codes > MOST_ENTRIES:
        components //= 2
    return components


def _steps(purse: Purse, shape: Shape, resolution: float, fine: float) -> tuple[Step, ...] | None:
    """What is measured, for which shares.

    Args:
        purse: the budget.
        shape: of the asked queries.
        resolution: of the whole run.
        fine: the most noise of a cell that is still worth measuring.
    """
    if not shape.pairs:
        return (Step(Kind.ONE_WAY, 1.0, shape.attributes),)
    if shape.pairs > MOST_SETS or purse.deviation(0.6, shape.pairs) > fine:
        return _few_tables(purse, shape, fine)
    narrow = shape.codes <= NARROW * shape.attributes
    rounds = FINER_ROUNDS if resolution >= FINER else ROUNDS
    draws = int(np.clip(0.6 * math.sqrt(resolution) / rounds, FEWEST_DRAWS, MOST_DRAWS))
    if narrow and 0 < shape.triples <= MOST_SETS and purse.deviation(0.6, shape.triples) <= fine:
        return (
            Step(Kind.ONE_WAY, 0.05, shape.attributes),
            *levelled(Kind.PAIRS, 0.15, shape.pairs, shape.pair_levels),
            *levelled(Kind.TRIPLES, 0.6, shape.triples, shape.triple_levels),
            *rounds_of_draws(0.05, 0.15, rounds, draws),
        )
    return (
        Step(Kind.ONE_WAY, 0.1, shape.attributes),
        *levelled(Kind.PAIRS, 0.6, shape.pairs, shape.pair_levels),
        *rounds_of_draws(0.1, 0.2, rounds, draws),
    )


def _few_tables(purse: Purse, shape: Shape, fine: float) -> tuple[Step, ...] | None:
    """One-way tables, and the few that draws name, under a pure budget.

    There T tables cost T times as much as one, not √T times. So all pairs are soon too many, while
    a few tables are still worth more than draws alone, whose costs add up in the same way.
    """
    if purse.noise is not Noise.LAPLACE:
        return None
    coarsest = max(
        purse.deviation(0.4, shape.attributes), purse.deviation(0.4 / ROUNDS, PURE_DRAWS)
    )
    if coarsest > fine:
        return None
    return (
        Step(Kind.ONE_WAY, 0.4, shape.attributes),
        *rounds_of_draws(0.2, 0.4, ROUNDS, PURE_DRAWS),
    )


def levelled(
    kind: Kind, share: float, tables: int, levels: tuple[tuple[int, int], ...]
) -> list[Step]:
    """One step per level of the tables.

    A sum Σ wσ under a fixed Σ 1/σ² is least if 1/σ² is proportional to w^{2/3}: a table that
    counts ten times as much gets 4.6 times the precision.

    Args:
        kind: of the tables.
        share: of the budget, for all of them.
        tables: how many there are.
        levels: per level, how many tables are on it; empty if all count alike.
    """
    if not levels:
        return [Step(kind, share, tables)]
    parts = [count * 10.0 ** (level / 3.0) for level, count in levels]
    return [
        Step(kind, share * part / sum(parts), count, level=level)
        for part, (level, count) in zip(parts, levels, strict=True)
    ]


def rounds_of_draws(drawn: float, named: float, rounds: int, draws: int) -> list[Step]:
    """Rounds of draws, each followed by the tables that they name.

    Args:
        drawn: the share of the budget for all draws.
        named: the share for all tables that they name.
        rounds: how many.
        draws: per round.
    """
    return [
        step
        for _ in range(rounds)
        for step in (
            Step(Kind.DRAWS, drawn / rounds, draws=draws),
            Step(Kind.NAMED, named / rounds, tables=draws),
        )
    ]
