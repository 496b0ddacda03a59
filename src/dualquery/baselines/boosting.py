"""Boosting for queries (Dwork, Rothblum and Vadhan 2010): many weak synopses and their median.

Private side: it reads counts. Each round draws some queries, those that earlier synopses answered
badly with the highest chance, and measures them. The synopsis of the round is the mixture of
records that is nearest to the noisy answers. It is found record by record with the data player's
best responses. The median of all synopses answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import positive, probability, whole
from dualquery.base.errors import ParameterError
from dualquery.baselines.baseline import Cost, Floats
from dualquery.baselines.charging import charged
from dualquery.baselines.choosing import choose_some, weighed
from dualquery.baselines.hull import Hull, nearest_in_hull, quick_oracle
from dualquery.baselines.product import Uniform
from dualquery.baselines.spending import noise_for, planned, stated, with_noise
from dualquery.oracles.oracle import Oracle
from dualquery.privacy.accountants.gaussian import mu_of
from dualquery.privacy.events import Events, MeasurementEvent, Noise
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.shards import Shard
from dualquery.privacy.sources import RandomSource
from dualquery.workloads.counts import Counted
from dualquery.workloads.workload import Workload

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Settings:
    """How boosting runs; nothing here costs privacy.

    Attributes:
        rounds: T, how many synopses.
        samples: k, queries that are drawn and measured per round.
        records: the most records of a synopsis.
        share: the part of the budget that the draws take.
        rate: η, by how much a badly answered query gains in the logarithm of its weight per round.

    The defaults were found on Adult (5,000 random 3-way marginals, ε = 1).
    """

    rounds: int = 15
    samples: int = 500
    records: int = 60
    share: float = 0.3
    rate: float = 1.0

    def __post_init__(self) -> None:
        for name in ("rounds", "samples", "records"):
            whole(name, getattr(self, name))
        probability("share", self.share)
        positive("rate", self.rate)


@dataclass(frozen=True)
class Prices:
    """What the draws and the measurements cost.

    Guarantee: a record moves the badness of a query in one synopsis by at most one, so after t
    rounds by at most t. k draws with weights exp(`slope`·badness/n) are k draws at temperature
    `slope`·t of the game. The k drawn counts are a measurement with Δ₁ = k and Δ₂ = √k.

    Attributes:
        slope: the factor of the badness, as a share of the rows, in the exponent.
        noise: Gaussian if δ > 0, else Laplace.
        scale: of the noise on a count.
        events: the whole run, as accountants read it.
    """

    slope: float
    noise: Noise
    scale: float
    events: Events

    @classmethod
    def of(cls, epsilon: float, delta: float, rows: int, settings: Settings) -> Prices:
        """Spend (ε, δ) on all rounds.

        Args:
            epsilon: the budget.
            delta: the budget's δ; 0 for pure ε.
            rows: the public number of rows.
            settings: rounds, samples, and the share of the draws.
        """
        rounds, samples = settings.rounds, settings.samples
        share = settings.share if rounds > 1 else 0.0
        epsilon, counts = planned(epsilon), rounds * samples
        budget = share * (epsilon if delta == 0.0 else mu_of(epsilon, delta) ** 2)
        noise, scale = noise_for(
            epsilon, delta, l1=float(counts), l2=math.sqrt(counts), share=1.0 - share
        )

        def drawn(slope: float) -> Events:
            # The first round has no badness yet: it is uniform and free.
            ramp = slope * np.arange(rounds, dtype=np.float64)
            return Events.of(ramp, samples, rows, Neighbours.REPLACE_ONE)

        def spent(slope: float) -> float:
            events = drawn(slope)
            if delta == 0.0:
                return float((events.draws * events.ranges).sum())
            return events.mu_squared

        slope = _largest(lambda slope: spent(slope) <= budget, rounds > 1)
        measured = MeasurementEvent(noise, scale, float(samples), math.sqrt(samples) * (1 + 1e-15))
        draws = drawn(slope)
        events = Events(
            draws.draws, draws.ranges, (measured,) * rounds, tuple(range(1, rounds + 1))
        )
        return cls(slope, noise, scale, events)

    def cost(self, delta: float, private: bool) -> Cost:
        """The statement of a run at these prices."""
        mechanism = f"exponential mechanism and exact {self.noise} noise"
        return stated(self.events, delta, mechanism, private=private)


def _largest(fits: Callable[[float], bool], needed: bool) -> float:
    """The largest number that fits, rounded down; 0 if none is needed."""
    if not needed:
        return 0.0
    low, high = 0.0, 1.0
    while fits(high):
        low, high = high, 4.0 * high
    while high - low > 1e-9 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fits(middle) else (low, middle)
        if high < 1e-12:
            raise ParameterError("epsilon is too small for so many draws; expected fewer of them")
    return low


@dataclass(frozen=True)
class Ramp:
    """How badly a synopsis answers a query, in whole records between 0 and `width`.

    Up to `accurate` records away it is not bad at all. From there badness grows by one per record.
    All numbers are whole, so rounding cannot break the proof.
    """

    accurate: int
    width: int

    @classmethod
    def of(cls, prices: Prices, rows: int, rate: float) -> Ramp:
        """What noise alone can do is accurate; the width is what `rate` and the slope leave.

        Args:
            prices: the noise, and the slope.
            rows: the public number of rows.
            rate: η, the gain of a query that is answered as badly as it gets.
        """
        accurate = min(rows, math.ceil(prices.scale))
        if prices.slope == 0.0:
            return cls(accurate, rows)
        return cls(accurate, max(1, min(rows, math.ceil(rate * rows / prices.slope))))

    def badness(self, table: Counted, answers: Floats) -> Ints:
        """Per query, how badly these public answers answer it. Private."""
        modelled = np.rint(table.rows * np.clip(answers, 0.0, 1.0)).astype(np.int64)
        found: Ints = np.clip(np.abs(table.counts - modelled) - self.accurate, 0, self.width)
        return found


@dataclass(frozen=True, eq=False)
class PrivatePart:
    """The part that reads the table. All else is computed from what this gives away."""

    table: Counted
    prices: Prices

    def weigh(self, badness: Ints) -> Shard:
        """The queries to draw from, given their badness in all synopses so far."""
        return weighed(self.prices.slope * (badness / self.table.rows))

    def draw(self, badness: Ints, samples: int, source: RandomSource) -> Ints:
        """Queries, the more probable the worse they are answered."""
        return choose_some(self.weigh(badness), samples, source)

    def measure(self, queries: Ints, source: RandomSource) -> Floats:
        """The noisy counts of some different queries, as shares of the table."""
        noisy = with_noise(self.table.counts[queries], self.prices.noise, self.prices.scale, source)
        shares: Floats = noisy / self.table.rows
        return shares


@dataclass(frozen=True, eq=False)
class Boosting:
    """The synopses of all rounds; their median answers.

    Attributes:
        synopses: per round, records with weights.
        workload: the queries it was fitted to.
        privacy: what it cost.
        name: what comparisons call it.
    """

    synopses: tuple[Hull, ...]
    workload: Workload
    privacy: Cost
    name: str = "boosting"

    @classmethod
    def fit(
        cls,
        answers: Counted,
        workload: Workload,
        *,
        epsilon: float,
        delta: float,
        source: RandomSource,
        settings: Settings | None = None,
        oracle: Oracle | None = None,
        observer: Callable[[int, int], None] = lambda done, total: None,
        ledger: str | Path | None = None,
    ) -> Boosting:
        """Run on the counts of a workload. The number of rows is public.

        Args:
            answers: the true counts.
            workload: the queries that were counted.
            epsilon: the budget.
            delta: the budget's δ; 0 for pure ε.
            source: the random source of draws and noise.
            settings: how to run; None for the defaults.
            oracle: finds records; None for the quick one.
            observer: told how many rounds are done, and of how many.
            ledger: a budget ledger that the run is charged to before its first draw.
        """
        settings = settings or Settings()
        prices = Prices.of(epsilon, delta, answers.rows, settings)
        private = PrivatePart(answers, prices)
        ramp = Ramp.of(prices, answers.rows, settings.rate)
        badness = np.zeros(len(workload), dtype=np.int64)
        synopses: list[Hull] = []
        with charged(ledger, prices.events, private=source.private, note=cls.name):
            for number in range(settings.rounds):
                here = source.for_round(number)
                drawn = np.unique(private.draw(badness, settings.samples, here))
                shares = private.measure(drawn, here)
                synopses.append(synopsis(workload.take(drawn), shares, settings.records, oracle))
                badness += ramp.badness(answers, synopses[-1].answers_to(workload))
                observer(number + 1, settings.rounds)
        return cls(tuple(synopses), workload, prices.cost(delta, source.private))

    def answers(self, workload: Workload) -> Floats:
        if workload.schema != self.workload.schema:
            raise ParameterError(
                "the workload has another schema than the one boosting was fitted on"
            )
        median: Floats = np.median([one.answers_to(workload) for one in self.synopses], axis=0)
        return median


def synopsis(asked: Workload, shares: Floats, records: int, oracle: Oracle | None = None) -> Hull:
    """The mixture of records that is nearest to noisy answers; public.

    Args:
        asked: the measured queries.
        shares: their noisy answers.
        records: the most records.
        oracle: finds records; None for the quick one.
    """
    return nearest_in_hull(
        asked,
        shares,
        Uniform().answers(asked),
        steps=records,
        oracle=oracle or quick_oracle(),
    )
