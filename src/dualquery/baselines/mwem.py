"""MWEM (Hardt, Ligett, McSherry 2012): multiplicative weights over every possible record.

Private side: it reads counts. It holds one number per possible record, so it can run on narrow
tables only. There it is the method to beat.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import one_of, positive, probability, whole
from dualquery.base.errors import ParameterError
from dualquery.baselines.baseline import SEEDED, Cost, Floats
from dualquery.baselines.choosing import choose, weighed
from dualquery.baselines.noise import discrete_laplace, rational_scale
from dualquery.baselines.universe import MEMORY, OnUniverse, require_memory
from dualquery.privacy.events import Events, MeasurementEvent, Noise
from dualquery.privacy.ledger import Ledger
from dualquery.privacy.neighbours import Neighbours, rounding_charge
from dualquery.privacy.shards import Shard
from dualquery.privacy.sources import RandomSource
from dualquery.workloads.counts import Counted
from dualquery.workloads.workload import Workload

Positions = npt.NDArray[np.int64]

OUTPUTS = ("average", "last")


@dataclass(frozen=True)
class Settings:
    """How MWEM runs. The defaults are the published algorithm; no improvement costs privacy.

    Attributes:
        rounds: queries that are chosen and measured.
        passes: how many times per round the multiplicative weights go over all measurements so far.
            Published is one step for the newest measurement, which is passes = 0.
        output: "average" answers from the average of the distributions that queries were chosen
            against, A_0 to A_{T−1}, which the published theorem bounds; "last" answers from the
            last distribution.
        repeats: whether a query may be measured twice although others are left.
        share: the part of a round's budget that the choice of the query takes; published is half.
    """

    rounds: int = 15
    passes: int = 0
    output: str = "average"
    repeats: bool = True
    share: float = 0.5

    def __post_init__(self) -> None:
        whole("rounds", self.rounds)
        whole("passes", self.passes, least=0)
        one_of("output", self.output, OUTPUTS)
        probability("share", self.share)


IMPROVED = Settings(passes=20, output="last", repeats=False)
"""All improvements together, as the implementations in use have them."""


@dataclass(frozen=True)
class Rates:
    """What a round spends on its choice and on its measurement.

    Guarantee: replacing a record moves every count, hence every score |c − n·a|, by at most one.
    A choice with probability proportional to exp(`choice`·score) then has bounded range
    2·`choice`, plus the rounding charge of the exact draw; a count with discrete Laplace noise of
    scale `scale` is (1/`scale`)-private. T rounds of both cost `epsilon` at most.
    """

    choice: float
    scale: float
    epsilon: float

    @classmethod
    def of(cls, epsilon: float, rows: int, settings: Settings) -> Rates:
        each = positive("epsilon", epsilon) / settings.rounds
        ideal = settings.share * each / 2.0
        charge = float(rounding_charge(ideal * rows))
        choice = ideal - charge / 2.0
        if choice <= 0.0:
            raise ParameterError(f"epsilon={epsilon:g} is too small for {settings.rounds} rounds")
        scale = float(rational_scale(1.0 / (each * (1.0 - settings.share))))
        spent = settings.rounds * (2.0 * choice + charge + 1.0 / scale)
        return cls(choice, scale, spent)


@dataclass(frozen=True, eq=False)
class PrivatePart:
    """The part of MWEM that reads the table. All else is computed from what this gives away.

    A query is chosen by the exponential mechanism, with the package's exact draw: query q with
    probability exactly proportional to exp(choice·|score|).
    """

    table: Counted
    rates: Rates

    def weigh(self, played: Floats, allowed: Positions) -> Shard:
        """The exponents of the allowed queries, given what the distribution answers."""
        modelled = self.table.rows * np.clip(played[allowed], 0.0, 1.0)
        return weighed(self.rates.choice * np.abs(self.table.counts[allowed] - modelled))

    def choose(self, played: Floats, allowed: Positions, source: RandomSource) -> int:
        """A query, the more probable the worse the distribution answers it."""
        return int(allowed[choose(self.weigh(played, allowed), source)])

    def measure(self, query: int, source: RandomSource) -> float:
        """The noisy count of a query, as a share of the table."""
        noise = discrete_laplace(self.rates.scale, source)
        return (int(self.table.counts[query]) + noise) / self.table.rows


@dataclass(frozen=True, eq=False)
class Weights:
    """The distribution over the universe, and the measurements it was fitted to."""

    distribution: Floats
    measured: tuple[tuple[int, float], ...] = ()

    @classmethod
    def uniform(cls, workload: Workload) -> Weights:
        shape = tuple(int(size) for size in workload.schema.sizes)
        return cls(np.full(shape, 1.0 / math.prod(shape)))

    def learn(self, query: int, share: float, queries: OnUniverse, passes: int) -> Weights:
        """The state after one more measurement, by multiplicative weights as published.

        The step is A(x) ← A(x)·exp(q(x)·(measured − q(A))/2), in shares of the table.

        Args:
            query: the query that was measured.
            share: its noisy answer.
            queries: the workload on the universe.
            passes: how many times to repeat the step for all measurements so far.
        """
        measured = (*self.measured, (query, share))
        distribution = self.distribution.copy()
        _pull(distribution, query, share, queries)
        for _ in range(passes):
            for past, target in measured:
                _pull(distribution, past, target, queries)
        return Weights(distribution, measured)


def _pull(distribution: Floats, query: int, target: float, queries: OnUniverse) -> None:
    """One step, in place. The query's own marginal table gives the new total."""
    indicator = queries.indicator(query)
    view, shape = _merged(distribution, indicator.shape)
    indicator = indicator.reshape(shape)
    axes = tuple(axis for axis, size in enumerate(shape) if size == 1)
    table = view.sum(axis=axes, keepdims=True)
    factor = np.exp(indicator * (target - float((table * indicator).sum())) / 2.0)
    view *= factor / float((table * factor).sum())


def _merged(distribution: Floats, shape: tuple[int, ...]) -> tuple[Floats, tuple[int, ...]]:
    """The distribution, with neighbouring axes that the query does not name merged into one.

    A pass over few long axes is several times faster than one over many short ones.
    """
    whole: list[int] = []
    asked: list[int] = []
    for size, part in zip(distribution.shape, shape, strict=True):
        if part == 1 and asked and asked[-1] == 1:
            whole[-1] *= size
        else:
            whole.append(size)
            asked.append(part)
    return distribution.reshape(whole), tuple(asked)


def pure_events(epsilon: float) -> Events:
    """What a ledger counts for a run that is ε-private as a whole.

    The accountants use of a Laplace measurement only that its privacy loss lies in [−ε, ε]
    (``docs/proofs/discrete_laplace.md``), and so does that of such a run.
    """
    return Events.of_measurements(MeasurementEvent(Noise.LAPLACE, 1.0, epsilon, epsilon))


@dataclass(frozen=True, eq=False)
class Mwem:
    """The distribution MWEM ends with; it answers any query over its schema."""

    distribution: Floats
    privacy: Cost
    measured: tuple[tuple[int, float], ...] = field(default=())
    name: str = "mwem"

    @classmethod
    def fit(
        cls,
        answers: Counted,
        workload: Workload,
        *,
        epsilon: float,
        source: RandomSource,
        settings: Settings | None = None,
        memory: int = MEMORY,
        name: str = "mwem",
        observer: Callable[[int, int], None] = lambda done, total: None,
        ledger: str | Path | None = None,
        note: str = "mwem",
    ) -> Mwem:
        """Run MWEM on the counts of a workload. The number of rows is public.

        Args:
            answers: the true counts.
            workload: the queries that were counted.
            epsilon: the budget; δ is 0, and neighbours replace one record.
            source: the random source of draws and noise.
            settings: how to run; None for the published algorithm.
            memory: the most bytes that the universe may take.
            name: what comparisons call the result.
            observer: told how many rounds are done, and of how many.
            ledger: a budget ledger that the run is charged to before its first draw.
            note: what the ledger says of it.
        """
        settings = settings or Settings()
        require_memory(workload.schema, memory)
        rates = Rates.of(epsilon, answers.rows, settings)
        private = PrivatePart(answers, rates)
        book, entry = None if ledger is None else Ledger(ledger), uuid4().hex
        if book is not None:
            book.reserve(
                entry,
                pure_events(rates.epsilon),
                neighbours=Neighbours.REPLACE_ONE,
                private=source.private,
                note=note,
            )
        queries = OnUniverse(workload)
        state = Weights.uniform(workload)
        total = np.zeros_like(state.distribution)
        every = allowed = np.arange(len(workload))
        for number in range(settings.rounds):
            here = source.for_round(number)
            total += state.distribution
            query = private.choose(queries.answers(state.distribution), allowed, here)
            state = state.learn(query, private.measure(query, here), queries, settings.passes)
            if not settings.repeats:
                which = workload.different[1]
                others = allowed[which[allowed] != which[query]]
                allowed = others if len(others) else every
            observer(number + 1, settings.rounds)
        if book is not None:
            book.spend(entry)
        distribution = state.distribution if settings.output == "last" else total / total.sum()
        cost = Cost(
            rates.epsilon,
            0.0,
            Neighbours.REPLACE_ONE,
            "exponential mechanism and discrete Laplace noise",
            "" if source.private else SEEDED,
        )
        return cls(distribution, cost, state.measured, name)

    def answers(self, workload: Workload) -> Floats:
        shape = tuple(int(size) for size in workload.schema.sizes)
        if shape != self.distribution.shape:
            raise ParameterError("the workload has another schema than the one MWEM was fitted on")
        return np.clip(OnUniverse(workload).answers(self.distribution), 0.0, 1.0)
