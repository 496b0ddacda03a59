"""FEM (Vietri, Tian, Bun, Steinke and Wu 2020): the paper's descendant with a perturbed leader.

Private side: it reads counts. One query per round is drawn by the exponential mechanism, from the
queries and their negations. The data player follows the perturbed leader: it answers *all* draws so
far with several records, each a best response after random weights were put on single values. The
perturbation keeps it from jumping about, so one draw per round is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import positive, whole
from dualquery.base.errors import ParameterError
from dualquery.baselines.baseline import Cost, Floats
from dualquery.baselines.charging import charged
from dualquery.baselines.product import Uniform
from dualquery.baselines.spending import accountant_of, stated
from dualquery.game.query_player import QueryPlayer
from dualquery.oracles.annealing import Annealing
from dualquery.oracles.oracle import Oracle
from dualquery.oracles.problem import Problem
from dualquery.privacy.calibration import Budget, largest_scale
from dualquery.privacy.events import Events
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sources import RandomSource
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import every_code
from dualquery.workloads.matching import mean_answers
from dualquery.workloads.workload import Workload

UNIT = 1000
"""The weight of one draw: perturbations are rounded to a thousandth of it."""


@dataclass(frozen=True)
class Settings:
    """How FEM runs; nothing here costs privacy.

    Attributes:
        rounds: T, the number of draws.
        records: that the data player answers each round with.
        perturbation: the mean size of the weight on each value, in draws.

    The defaults were found on Adult (5,000 random 3-way marginals, ε = 1): few records per round
    leave a large error, because no answer is finer than one record.
    """

    rounds: int = 200
    records: int = 50
    perturbation: float = 1.0

    def __post_init__(self) -> None:
        whole("rounds", self.rounds)
        whole("records", self.records)
        positive("perturbation", self.perturbation)


MOST_SECONDS = 3600.0
SECONDS_PER_VALUE = 1.5e-6
"""Time of one best response per perturbed value, on one thread."""


def require_time(workload: Workload, settings: Settings | None = None) -> None:
    """Refuse what would take more than about an hour; reads no data.

    Args:
        workload: the queries; each value of an attribute that they name is perturbed.
        settings: how to run; None for the defaults.
    """
    settings = settings or Settings()
    used = np.unique(workload.literals.attribute)
    values = int(workload.schema.sizes[used].sum())
    responses = settings.rounds * settings.records
    seconds = SECONDS_PER_VALUE * values * responses
    if seconds > MOST_SECONDS:
        raise ParameterError(
            f"FEM would find {responses:,} records with {values:,} perturbed values each, which "
            f"takes about {seconds / 60.0:.0f} minutes; ask for fewer columns or fewer rounds"
        )


@dataclass(frozen=True)
class Price:
    """One draw per round, at one temperature.

    Guarantee: a round is the event of one draw at temperature β, as in the game itself: its bounded
    range is 2β/n plus the rounding charge. For single draws the zero-concentrated accountant is
    tighter than the Gaussian one, so it sets β and states ε.
    """

    temperature: float
    events: Events

    @classmethod
    def of(cls, epsilon: float, delta: float, rows: int, rounds: int) -> Price:
        """Spend (ε, δ) evenly over the rounds.

        Args:
            epsilon: the budget.
            delta: the budget's δ; 0 for pure ε.
            rows: the public number of rows.
            rounds: how many draws.
        """
        accountant = accountant_of(delta, "zcdp")
        budget = Budget(epsilon, delta, rows, Neighbours.REPLACE_ONE, accountant)
        temperature = largest_scale(budget, np.ones(rounds), 1)
        return cls(temperature, budget.events(np.full(rounds, temperature), 1))

    def cost(self, delta: float, private: bool) -> Cost:
        """The statement of a run at this price."""
        return stated(
            self.events, delta, "exponential mechanism", private=private, accountant="zcdp"
        )


def perturbed_problem(
    workload: Workload,
    singles: Workload,
    drawn: npt.NDArray[np.int64],
    signs: npt.NDArray[np.int64],
    noise: Floats,
) -> Problem:
    """Maximise the draws that a record satisfies, plus the perturbation of each of its values.

    Args:
        workload: the queries.
        singles: one query per value that is perturbed.
        drawn: all draws so far.
        signs: 1, or −1 for a negation.
        noise: the perturbation of each value, in draws.
    """
    queries, place = np.unique(drawn, return_inverse=True)
    net = UNIT * np.bincount(place, signs, len(queries)).astype(np.int64)
    kept = np.flatnonzero(net)
    asked = workload.take(queries[kept]) + singles if len(kept) else singles
    weights = np.concatenate([net[kept], np.rint(UNIT * noise).astype(np.int64)])
    return Problem(
        asked,
        weights,
        int(-weights[weights < 0].sum()),
        int(np.abs(weights).sum()),
        workload.schema.defaults,
        workload.schema.constraints,
    )


class Leader:
    """The data player: a function of the draws, and of public randomness.

    Args:
        workload: the queries.
        settings: how many records per round, and the perturbation.
        oracle: finds records; None for annealing at the size of these weights.
    """

    def __init__(self, workload: Workload, settings: Settings, oracle: Oracle | None) -> None:
        used = np.unique(workload.literals.attribute)
        values = every_code(workload.schema, used)
        self.singles = Workload.conjunctions(
            workload.schema, values, 2 * np.arange(len(values))[:, None]
        )
        self._workload = workload
        self._settings = settings
        self._oracle = oracle or Annealing(runs=4, agree=2, unanimous=2, hot=0.8 * UNIT, cold=100)

    def noise(self, number: int) -> npt.NDArray[np.float64]:
        """The perturbations of a round, one row per record."""
        generator = np.random.default_rng([0, number])  # public randomness
        shape = (self._settings.records, len(self.singles))
        return self.law(generator, shape)

    def law(self, generator: np.random.Generator, shape: tuple[int, int]) -> Floats:
        """Perturbations of single values; exponential, so never negative."""
        return generator.exponential(self._settings.perturbation, shape)

    def respond(self, drawn: list[tuple[int, int]]) -> npt.NDArray[np.int32]:
        """The records of the round after these draws."""
        queries = np.array([query for query, _ in drawn], dtype=np.int64)
        signs = np.array([sign for _, sign in drawn], dtype=np.int64)
        generator = np.random.default_rng([1, len(drawn)])
        found = []
        for noise in self.noise(len(drawn)):
            problem = perturbed_problem(self._workload, self.singles, queries, signs, noise)
            found.append(self._oracle(problem, generator=generator).record)
        return np.array(found, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class Fem:
    """The records of all rounds.

    Attributes:
        records: one row of codes each.
        workload: the queries it was fitted to.
        privacy: what it cost.
        drawn: the draws, as (query, sign).
        name: what comparisons call it.
    """

    records: npt.NDArray[np.int32]
    workload: Workload
    privacy: Cost
    drawn: tuple[tuple[int, int], ...]
    name: str = "fem"

    leader: ClassVar[type[Leader]] = Leader

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
    ) -> Self:
        """Run on the counts of a workload. The number of rows is public.

        Args:
            answers: the true counts.
            workload: the queries that were counted.
            epsilon: the budget.
            delta: the budget's δ; 0 for pure ε.
            source: the random source of the draws.
            settings: how to run; None for the defaults.
            oracle: finds records; None for annealing at the size of these weights.
            observer: told how many rounds are done, and of how many.
            ledger: a budget ledger that the run is charged to before its first draw.
        """
        settings = settings or Settings()
        price = Price.of(epsilon, delta, answers.rows, settings.rounds)
        player = QueryPlayer(answers)
        leader = cls.leader(workload, settings, oracle)
        drawn: list[tuple[int, int]] = []
        played, found = Uniform().answers(workload), []
        with charged(ledger, price.events, private=source.private, note=cls.name):
            for number in range(settings.rounds):
                one = player.draw(price.temperature, played, 1, source.for_round(number))
                drawn.append((int(one.queries[0]), -1 if one.negated[0] else 1))
                records = leader.respond(drawn)
                played = mean_answers(workload, records)
                found.append(records)
                observer(number + 1, settings.rounds)
        cost = price.cost(delta, source.private)
        return cls(np.concatenate(found), workload, cost, tuple(drawn))

    def answers(self, workload: Workload) -> Floats:
        if workload.schema != self.workload.schema:
            raise ParameterError("the workload has another schema than the one FEM was fitted on")
        return mean_answers(workload, self.records)
