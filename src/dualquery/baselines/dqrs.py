"""DQRS (Vietri, Tian, Bun, Steinke and Wu 2020): the paper's game with draws that are used again.

Private side: it reads counts. From one round to the next the distribution of the draws changes
little. So most draws of a round can serve in the next one. Each is kept with a chance that makes
what is kept a draw of the new round: rejection sampling. Keeping costs little, and only the draws
that replace rejected ones are paid for in full.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import positive, whole
from dualquery.base.errors import ParameterError
from dualquery.baselines.baseline import Cost, Floats
from dualquery.baselines.charging import charged
from dualquery.baselines.spending import stated
from dualquery.domain.schema import Schema
from dualquery.game.query_player import QueryPlayer
from dualquery.oracles.annealing import Annealing
from dualquery.oracles.oracle import Oracle, Record
from dualquery.oracles.problem import Problem
from dualquery.privacy.events import Events
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sampler import Draws
from dualquery.privacy.shards import MANTISSA_BITS, mantissas
from dualquery.privacy.sources import RandomSource
from dualquery.workloads.counts import Counted
from dualquery.workloads.matching import add_matches, mean_answers, share
from dualquery.workloads.workload import Workload

Bools = npt.NDArray[np.bool_]

LARGEST_ETA = 16.0
"""Beyond it nothing would be kept, and the bound on rounding would not hold."""

MOST_ROUNDS = 100_000
"""With more rounds the chance to be rejected would be too small for the bound on rounding."""

COIN_CHARGE = 2.0**-40
"""What rounding can add to the change of ln p, p the chance to be kept."""

_SHORT = 1.0 - 1e-9


@dataclass(frozen=True)
class Settings:
    """How DQRS runs; nothing here costs privacy.

    Attributes:
        rounds: T, one record each.
        samples: s, draws that a record answers.
        payoff: the mean payoff of a kept draw is taken to be at least minus this when the number of
            new draws is planned. If it is lower, some rounds have a few draws fewer.

    The defaults were found on Adult (5,000 random 3-way marginals, ε = 1).
    """

    rounds: int = 200
    samples: int = 100
    payoff: float = 0.5

    def __post_init__(self) -> None:
        whole("rounds", self.rounds, least=2)
        whole("samples", self.samples)
        positive("payoff", self.payoff)
        if self.rounds > MOST_ROUNDS:
            raise ParameterError(f"rounds={self.rounds}; expected at most {MOST_ROUNDS}")

    @classmethod
    def of(cls, schema: Schema) -> Settings:
        """The defaults, with half a draw per bit on wide tables, up to 4,000."""
        return cls(samples=int(np.clip(schema.bit_counts.sum() // 2, cls.samples, 4000)))


def least_rejection(number: int) -> float:
    """γ: the chance that every draw of round t has to be rejected: (2t²)^(−1/3).

    A coin of chance p near 1 tells neighbours apart by its rare side. With p ≤ 1 − γ its range is
    at most 1/γ times the change of ln p. Published is ½·t^(−2/3); this has the same order, and the
    factor that makes the sum of both prices least.
    """
    return float((2.0 * number * number) ** (-1.0 / 3.0))


@dataclass(frozen=True)
class Step:
    """The way from round t to round t + 1.

    Attributes:
        temperature: of the new draws, η·t.
        coins: how many draws may be kept; 0 if all are drawn anew.
        fresh: how many are drawn anew.
        gamma: the least chance of rejection.
        coin_range: the bounded range of one coin.
        fresh_range: that of one new draw.
    """

    temperature: float
    coins: int
    fresh: int
    gamma: float
    coin_range: float
    fresh_range: float

    @classmethod
    def of(cls, number: int, eta: float, rows: int, settings: Settings) -> Step:
        """The cheaper way: keep what can be kept, or draw all anew as the paper's game does.

        Args:
            number: t, the round that was played.
            eta: the learning rate.
            rows: the public number of rows.
            settings: the samples per round, and what is planned for.
        """
        samples, gamma = settings.samples, least_rejection(number)
        temperature = eta * number
        fresh_range = float(Neighbours.REPLACE_ONE.draw_range(temperature, rows))
        coin_range = (eta / rows + COIN_CHARGE) / gamma * (1.0 + 2.0**-30)
        rejected = 1.0 - (1.0 - gamma) * math.exp(-eta * (1.0 + settings.payoff))
        fresh = min(samples, math.ceil(samples * rejected))
        reused = samples * coin_range**2 + fresh * fresh_range**2
        if reused >= samples * fresh_range**2:
            return cls(temperature, 0, samples, gamma, coin_range, fresh_range)
        return cls(temperature, samples, fresh, gamma, coin_range, fresh_range)


@dataclass(frozen=True)
class Plan:
    """A learning rate, and the steps between rounds.

    Guarantee: the first round is uniform and free. A coin that keeps a draw has the chance
    p = (1 − γ)·exp(−η·(1 − payoff)), and a record moves a payoff by at most 1/n. So its range is
    at most η/(n·γ), plus rounding. The new draws of a round cost what draws of the game cost.
    """

    eta: float
    rows: int
    settings: Settings

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        return tuple(
            Step.of(number, self.eta, self.rows, self.settings)
            for number in range(1, self.settings.rounds)
        )

    @property
    def events(self) -> Events:
        """All coins and draws. Coins are events of their own: no two have the same chances."""
        draws = [np.append(np.ones(one.coins, dtype=np.int64), one.fresh) for one in self.steps]
        ranges = [
            np.append(np.full(one.coins, one.coin_range), one.fresh_range) for one in self.steps
        ]
        return Events(np.concatenate(draws), np.concatenate(ranges))

    @classmethod
    def of(cls, epsilon: float, delta: float, rows: int, settings: Settings) -> Plan:
        """The largest learning rate that (ε, δ) allows.

        Args:
            epsilon: the budget.
            delta: the budget's δ; 0 for pure ε.
            rows: the public number of rows.
            settings: rounds and samples.
        """
        positive("epsilon", epsilon)
        low, high = 0.0, LARGEST_ETA
        if cls(high, rows, settings).epsilon(delta) <= epsilon:
            return cls(high, rows, settings)
        while high - low > 1e-7 * high:
            middle = 0.5 * (low + high)
            cheap = cls(middle, rows, settings).epsilon(delta) <= epsilon * _SHORT
            low, high = (middle, high) if cheap else (low, middle)
            if high < 1e-12:
                raise ParameterError(
                    f"epsilon={epsilon:g} is too small for {settings.rounds} rounds of "
                    f"{settings.samples} draws"
                )
        return cls(low, rows, settings)

    def epsilon(self, delta: float) -> float:
        """ε at δ, by the accountant that is tightest for single coins and draws."""
        return self.cost(delta, private=True).epsilon

    def cost(self, delta: float, private: bool) -> Cost:
        """The statement of a run of this plan."""
        mechanism = "exponential mechanism and rejection sampling"
        return stated(self.events, delta, mechanism, private=private, accountant="zcdp")


@dataclass(frozen=True, eq=False)
class Slots:
    """The draws of a round; a slot that is not alive has none."""

    queries: npt.NDArray[np.int64]
    negated: Bools
    alive: Bools

    @classmethod
    def of(cls, draws: Draws) -> Slots:
        return cls(draws.queries, draws.negated, np.ones(len(draws), dtype=np.bool_))

    def refreshed(self, kept: Bools, fresh: Draws, generator: np.random.Generator) -> Slots:
        """The draws of the next round.

        New draws go to slots that are empty. If there are more, they replace kept draws, which
        public randomness picks: both have the same distribution.

        Args:
            kept: which draws are kept.
            fresh: the new draws.
            generator: public randomness.
        """
        queries, negated, alive = self.queries.copy(), self.negated.copy(), kept.copy()
        empty = np.flatnonzero(~kept)[: len(fresh)]
        held = np.flatnonzero(kept)
        more = generator.permutation(held)[: len(fresh) - len(empty)]
        places = np.concatenate([empty, more])
        queries[places], negated[places] = fresh.queries, fresh.negated
        alive[places] = True
        return Slots(queries, negated, alive)


@dataclass(frozen=True, eq=False)
class Coins:
    """The part that keeps or rejects draws; it reads the table."""

    table: Counted
    eta: float

    def log_chances(self, slots: Slots, record_holds: Bools, gamma: float) -> Floats:
        """ln p of every slot: ln(1 − γ) − η·(1 − payoff), and never above ln(1 − γ). Private.

        Args:
            slots: the draws.
            record_holds: per query, whether the last record satisfies it.
            gamma: the least chance of rejection.
        """
        rows = self.table.rows
        away = self.table.counts[slots.queries] - rows * record_holds[slots.queries].astype(
            np.int64
        )
        payoff = np.where(slots.negated, -away, away) / rows
        chances: Floats = math.log1p(-gamma) - self.eta * (1.0 - payoff)
        return chances

    def keep(self, slots: Slots, record_holds: Bools, gamma: float, source: RandomSource) -> Bools:
        """Which draws are kept. A coin compares a uniform integer with an integer.

        Args:
            slots: the draws.
            record_holds: per query, whether the last record satisfies it.
            gamma: the least chance of rejection.
            source: the random source.
        """
        bits, scaled = exact_chances(self.log_chances(slots, record_holds, gamma))
        first, second = source.words(2 * len(bits)).reshape(2, -1)
        # A shift by all 64 bits is undefined, so it is split in two.
        zeros = ((first >> (63 - bits).astype(np.uint64)) >> np.uint64(1)) == 0
        below = (second >> np.uint64(64 - MANTISSA_BITS)) < scaled
        kept: Bools = slots.alive & zeros & below
        return kept


def exact_chances(
    logs: Floats,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Chances e^x as rational numbers scaled·2^(−bits−53); x is 0 or less."""
    bits = np.floor(-logs / math.log(2.0)).astype(np.int64)
    return bits, mantissas(logs, bits)


@dataclass(frozen=True, eq=False)
class Dqrs:
    """The records of all rounds.

    Attributes:
        records: one row of codes each.
        workload: the queries it was fitted to.
        privacy: what it cost.
        plan: the learning rate and the steps.
        name: what comparisons call it.
    """

    records: npt.NDArray[np.int32]
    workload: Workload
    privacy: Cost
    plan: Plan
    name: str = "dqrs"

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
    ) -> Dqrs:
        """Run on the counts of a workload. The number of rows is public.

        Args:
            answers: the true counts.
            workload: the queries that were counted.
            epsilon: the budget.
            delta: the budget's δ; 0 for pure ε.
            source: the random source of draws and coins.
            settings: how to run; None for the defaults of this schema.
            oracle: finds records; None for annealing.
            observer: told how many rounds are done, and of how many.
            ledger: a budget ledger that the run is charged to before its first draw.
        """
        settings = settings or Settings.of(workload.schema)
        plan = Plan.of(epsilon, delta, answers.rows, settings)
        player, coins = QueryPlayer(answers), Coins(answers, plan.eta)
        oracle = oracle or Annealing()
        matches = np.zeros(len(workload), dtype=np.int32)
        records: list[Record] = []
        with charged(ledger, plan.events, private=source.private, note=cls.name):
            uniform = player.draw(0.0, share(matches, 1), settings.samples, source.for_round(0))
            slots = Slots.of(uniform)
            for number in range(1, settings.rounds + 1):
                records.append(best_record(workload, slots, oracle, records, number))
                before = matches.copy()
                add_matches(workload, records[-1], matches)
                observer(number, settings.rounds)
                if number == settings.rounds:
                    break
                step, here = plan.steps[number - 1], source.for_round(number)
                kept = np.zeros(settings.samples, dtype=np.bool_)
                if step.coins:
                    kept = coins.keep(slots, matches > before, step.gamma, here)
                played = share(matches, number)
                fresh = player.draw(step.temperature, played, step.fresh, here)
                slots = slots.refreshed(kept, fresh, np.random.default_rng([2, number]))
        cost = plan.cost(delta, source.private)
        return cls(np.array(records, dtype=np.int32), workload, cost, plan)

    def answers(self, workload: Workload) -> Floats:
        if workload.schema != self.workload.schema:
            raise ParameterError("the workload has another schema than the one DQRS was fitted on")
        return mean_answers(workload, self.records)


def best_record(
    workload: Workload, slots: Slots, oracle: Oracle, earlier: list[Record], number: int
) -> Record:
    """The data player's record: it satisfies as many draws as the oracle finds.

    Args:
        workload: the queries.
        slots: the draws of the round.
        oracle: finds records.
        earlier: the records so far.
        number: the round.
    """
    problem = Problem.of(
        workload,
        slots.queries[slots.alive],
        1 - 2 * slots.negated[slots.alive].astype(np.int8),
        defaults=workload.schema.defaults,
        constraints=workload.schema.constraints,
    )
    generator = np.random.default_rng([1, number])  # public randomness
    found = oracle(problem, warm_starts=earlier[-4:], generator=generator)
    return found.record.astype(np.int32)
