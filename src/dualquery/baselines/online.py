"""Private multiplicative weights online (Hardt and Rothblum 2010): answers to a stream of queries.

Private side: it reads counts. Queries arrive one by one, and each is answered before the next is
known. As long as a public distribution answers a query well, the answer costs next to nothing: a
noisy comparison says "well enough". Only where it says "not well" is the query measured, and the
distribution learns from it. The comparisons are the sparse vector technique.

The distribution is one over the universe where that fits, and the package's mixture where it does
not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from dualquery.base.checks import probability, whole
from dualquery.base.errors import ParameterError
from dualquery.baselines.baseline import Cost, Floats
from dualquery.baselines.charging import charged
from dualquery.baselines.mwem import Weights
from dualquery.baselines.mwem_model import Fitted
from dualquery.baselines.mwem_model import Settings as ModelSettings
from dualquery.baselines.noise import rational_scale
from dualquery.baselines.spending import planned, stated
from dualquery.baselines.universe import MEMORY, OnUniverse, fits
from dualquery.privacy.events import Events, MeasurementEvent, Noise
from dualquery.privacy.noise import discrete_laplace
from dualquery.privacy.sources import RandomSource
from dualquery.workloads.counts import Counted
from dualquery.workloads.workload import Workload

UPDATES = 20
PASSES = 10


class Hypothesis(Protocol):
    """The public distribution that answers as long as it can."""

    def answer(self, query: int) -> float:
        """The share of one query."""
        ...

    def learn(self, query: int, share: float) -> Hypothesis:
        """The distribution after a measurement."""
        ...

    def answers(self, workload: Workload) -> Floats:
        """The shares of all queries of a workload."""
        ...


@dataclass(frozen=True, eq=False)
class OnAllRecords:
    """A distribution over the universe, moved by multiplicative weights."""

    weights: Weights
    queries: OnUniverse
    passes: int

    def answer(self, query: int) -> float:
        indicator = self.queries.indicator(query)
        return float((self.weights.distribution * indicator).sum())

    def learn(self, query: int, share: float) -> OnAllRecords:
        moved = self.weights.learn(query, share, self.queries, self.passes)
        return OnAllRecords(moved, self.queries, self.passes)

    def answers(self, workload: Workload) -> Floats:
        return OnUniverse(workload).answers(self.weights.distribution)


@dataclass(frozen=True, eq=False)
class OnModel:
    """The package's mixture, fitted to all measurements so far."""

    fitted: Fitted
    variance: float

    def answer(self, query: int) -> float:
        asked = self.fitted.workload.take(np.array([query]))
        return float(self.fitted.mixture.answers(asked)[0])

    def learn(self, query: int, share: float) -> OnModel:
        steps = self.fitted.settings.steps
        return OnModel(self.fitted.learn(query, share, self.variance, steps), self.variance)

    def answers(self, workload: Workload) -> Floats:
        return self.fitted.mixture.answers(workload)


@dataclass(frozen=True)
class Prices:
    """What the comparisons between two updates cost, and what an update costs.

    Guarantee: replacing a record moves every score |c − n·a| by at most one. With Laplace noise of
    scale 2/ε₁ on the threshold and 4/ε₁ on each score, all comparisons up to and including the
    first "not well" are ε₁-private together, however many there are. The measurement has Laplace
    noise of scale 1/ε₂. T updates cost T·(ε₁ + ε₂), or less by an accountant with δ > 0.

    Attributes:
        comparing: ε₁.
        measuring: ε₂.
        updates: T, the most updates.
    """

    comparing: float
    measuring: float
    updates: int

    @classmethod
    def of(cls, epsilon: float, delta: float, updates: int, share: float = 0.5) -> Prices:
        """Spend (ε, δ) on so many updates.

        Args:
            epsilon: the budget.
            delta: the budget's δ; 0 for pure ε.
            updates: T.
            share: the part of an update's ε that the comparisons take.
        """
        probability("share", share)
        whole("updates", updates)
        low, high = 0.0, planned(epsilon)

        def priced(each: float) -> Prices:
            return cls(share * each, (1.0 - share) * each, updates)

        if delta == 0.0:
            return priced(high / updates)
        while high - low > 1e-9 * high:
            middle = 0.5 * (low + high)
            cheap = priced(middle).cost(delta, private=True).epsilon <= epsilon
            low, high = (middle, high) if cheap else (low, middle)
        return priced(low)

    @property
    def level_scale(self) -> float:
        return float(rational_scale(2.0 / self.comparing))

    @property
    def score_scale(self) -> float:
        return float(rational_scale(4.0 / self.comparing))

    @property
    def count_scale(self) -> float:
        return float(rational_scale(1.0 / self.measuring))

    @property
    def events(self) -> Events:
        """T comparisons and T measurements; both are pure, so Laplace noise of the same ε."""
        pair = Events.of_measurements(
            MeasurementEvent(Noise.LAPLACE, 1.0 / self.comparing, 1.0, 1.0),
            MeasurementEvent(Noise.LAPLACE, 1.0 / self.measuring, 1.0, 1.0),
        )
        events = pair
        for _ in range(self.updates - 1):
            events = events.then(pair)
        return events

    def cost(self, delta: float, private: bool) -> Cost:
        """The statement of a stream at these prices."""
        mechanism = "sparse vector and exact laplace noise"
        return stated(self.events, delta, mechanism, private=private)


@dataclass(frozen=True, eq=False)
class Comparisons:
    """The part that reads the table. All else is computed from what this gives away.

    All numbers are whole, so no rounding can break the proof: a score is the distance of a count
    from what the distribution answers, rounded to records.
    """

    table: Counted
    prices: Prices

    def score(self, query: int, played: float) -> int:
        """How badly a distribution answers a query, in records; a record moves it by one."""
        modelled = round(self.table.rows * min(max(played, 0.0), 1.0))
        return abs(int(self.table.counts[query]) - modelled)

    def noisy_level(self, level: int, source: RandomSource) -> int:
        """The threshold with noise: drawn once per update, and never shown."""
        return level + int(discrete_laplace(self.prices.level_scale, 1, source)[0])

    def exceeds(self, query: int, played: float, noisy_level: int, source: RandomSource) -> bool:
        """Whether a query is answered badly, by a noisy comparison.

        Args:
            query: which one.
            played: what the distribution answers.
            noisy_level: the noisy threshold, in records.
            source: the random source.
        """
        noise = int(discrete_laplace(self.prices.score_scale, 1, source)[0])
        return self.score(query, played) + noise >= noisy_level

    def measure(self, query: int, source: RandomSource) -> float:
        """The noisy count of a query, as a share of the table."""
        noise = int(discrete_laplace(self.prices.count_scale, 1, source)[0])
        return (int(self.table.counts[query]) + noise) / self.table.rows


@dataclass(frozen=True)
class Answered:
    """What a stream gives away about one query.

    Attributes:
        query: its place in the workload.
        share: the answer.
        updated: whether it was measured, and the distribution learnt from it.
    """

    query: int
    share: float
    updated: bool


class Stream:
    """Answers queries one by one; `answered` and `hypothesis` are public.

    Args:
        comparisons: what reads the table.
        hypothesis: the distribution to begin with.
        level: how many records an answer may be off before it is measured.
        source: the random source.
    """

    def __init__(
        self, comparisons: Comparisons, hypothesis: Hypothesis, level: int, source: RandomSource
    ) -> None:
        self.hypothesis = hypothesis
        self.updates = 0
        self._comparisons = comparisons
        self._level = whole("level", level, least=0)
        self._source = source
        self._noisy_level = comparisons.noisy_level(level, source)

    def ask(self, query: int) -> Answered:
        """The answer to the next query. Once all updates are spent, the distribution answers."""
        played = self.hypothesis.answer(query)
        left = self.updates < self._comparisons.prices.updates
        if not left or not self._comparisons.exceeds(
            query, played, self._noisy_level, self._source
        ):
            return Answered(query, played, updated=False)
        share = self._comparisons.measure(query, self._source)
        self.hypothesis = self.hypothesis.learn(query, share)
        self.updates += 1
        self._noisy_level = self._comparisons.noisy_level(self._level, self._source)
        return Answered(query, share, updated=True)


@dataclass(frozen=True, eq=False)
class OnlineWeights:
    """A workload that was answered as a stream, and the distribution at its end.

    Attributes:
        answered: the answers, in the order of the stream.
        hypothesis: the distribution at the end; it answers other queries.
        workload: the queries of the stream.
        privacy: what it cost, whether all updates were needed or not.
        name: what comparisons call it.
    """

    answered: tuple[Answered, ...]
    hypothesis: Hypothesis
    workload: Workload
    privacy: Cost
    name: str = "online multiplicative weights"

    @classmethod
    def fit(
        cls,
        answers: Counted,
        workload: Workload,
        *,
        epsilon: float,
        delta: float,
        source: RandomSource,
        updates: int = UPDATES,
        level: int | None = None,
        passes: int = PASSES,
        memory: int = MEMORY,
        ledger: str | Path | None = None,
    ) -> OnlineWeights:
        """Answer the queries of a workload one by one. The number of rows is public.

        Args:
            answers: the true counts.
            workload: the queries that were counted.
            epsilon: the budget.
            delta: the budget's δ; 0 for pure ε.
            source: the random source of all noise.
            updates: the most queries that are measured.
            level: how many records an answer may be off; None for what noise alone exceeds
                on no query of the stream, with probability 95 %.
            passes: how often the distribution goes over all measurements after each.
            memory: the most bytes that a universe may take; without room the model is used.
            ledger: a budget ledger that the run is charged to before its first draw.
        """
        prices = Prices.of(epsilon, delta, updates)
        if level is None:
            level = math.ceil(prices.score_scale * math.log(len(workload) / 0.05))
        start: Hypothesis
        if fits(workload.schema, memory):
            start = OnAllRecords(Weights.uniform(workload), OnUniverse(workload), passes)
        else:
            variance = 2.0 * (prices.count_scale / answers.rows) ** 2
            start = OnModel(Fitted.start(workload, ModelSettings()), variance)
        with charged(ledger, prices.events, private=source.private, note=cls.name):
            stream = Stream(Comparisons(answers, prices), start, level, source)
            found = tuple(stream.ask(query) for query in range(len(workload)))
        return cls(found, stream.hypothesis, workload, prices.cost(delta, source.private))

    def answers(self, workload: Workload) -> Floats:
        if workload.fingerprint == self.workload.fingerprint:
            return np.clip([one.share for one in self.answered], 0.0, 1.0)
        if workload.schema != self.workload.schema:
            raise ParameterError("the workload has another schema than the one of the stream")
        return np.clip(self.hypothesis.answers(workload), 0.0, 1.0)
