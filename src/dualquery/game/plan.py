"""The plan of a run: rounds, samples and temperatures, from public quantities only.

The reasons and the measurements behind the rules are in docs/decisions/plan.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import positive, whole
from dualquery.base.errors import ParameterError
from dualquery.domain.schema import Schema
from dualquery.game.free_tables import AfterTables, FreeTables, with_tables
from dualquery.game.tables_steps import Kind, TablesPlan
from dualquery.model.schedule import extent
from dualquery.privacy.calibration import (
    MOST_ROUNDS,
    SCALE_STEP,
    Budget,
    calibrate,
    largest_samples,
    last_that_fits,
    smallest_epsilon,
    too_small,
)
from dualquery.privacy.events import Events, record_player_temperatures
from dualquery.privacy.rounding import rounded_up
from dualquery.privacy.statement import figures_at

Temperatures = npt.NDArray[np.float64]


class Player(StrEnum):
    """Who answers the draws."""

    RECORD = "record"
    MODEL = "model"


FEWEST_DRAWS = 4
"""A model's rounds are never planned with fewer draws."""

WIDEST_MODEL = 300_000
"""Codes beyond which a model and its copies, one per round, are too much to keep."""

LONGEST_MODEL = 20_000_000
"""Queries beyond which the answers every round was drawn against are too much to keep."""


def default_player(schema: Schema, queries: int) -> Player:
    """The model, unless the table is so wide, or the queries so many, that it would not do."""
    fits = int(schema.sizes.sum()) <= WIDEST_MODEL and queries <= LONGEST_MODEL
    return Player.MODEL if fits else Player.RECORD


def temperatures_of(player: Player, eta: float, rounds: int) -> Temperatures:
    """β_t of every round.

    A record player's answers are means over t−1 records and β_t = η(t−1) is the paper's rule. A
    model starts out wrong almost everywhere, so its ramp β_t = η·t is entered geometrically, from 5
    by factors of 1.4: drawing sharply against a model that knows nothing yet would spend the early
    draws on the same few queries.
    """
    if player is Player.RECORD:
        return record_player_temperatures(eta, rounds)
    ramp: Temperatures = np.minimum(_entry(rounds), eta * np.arange(1, rounds + 1))
    return ramp


def _entry(rounds: int) -> Temperatures:
    entry: Temperatures = 5.0 * 1.4 ** np.minimum(np.arange(rounds), 100.0)
    return entry


@dataclass(frozen=True)
class Plan:
    """What a run will do, fixed before any private row is read."""

    budget: Budget
    player: Player
    rounds: int
    samples: int
    eta: float
    tables: TablesPlan | None = None
    """Where tables are measured: the steps, of which some are rounds of draws."""
    free: FreeTables | None = None
    """The tables that free attributes of records follow; None if they follow none."""

    @classmethod
    def of_tables(cls, tables: TablesPlan) -> Plan:
        """A plan that measures tables; `eta` is the temperature of its draws."""
        return cls(
            tables.budget,
            Player.MODEL,
            len(tables.steps),
            tables.draws,
            tables.temperature,
            tables,
        )

    @property
    def temperatures(self) -> Temperatures:
        if self.tables is not None:
            drawn = [self.eta if step.kind is Kind.DRAWS else 0.0 for step in self.tables.steps]
            return np.array(drawn)
        return temperatures_of(self.player, self.eta, self.rounds)

    @property
    def draws(self) -> npt.NDArray[np.int64]:
        return np.full(self.rounds, self.samples, dtype=np.int64)

    @property
    def events(self) -> Events:
        """What the run will release, for the accountants."""
        if self.tables is not None:
            return self.tables.events
        drawn = self.budget.events(self.temperatures, self.draws)
        return with_tables(drawn, None if self.free is None else self.free.event(self.budget))

    @property
    def epsilon(self) -> dict[str, float]:
        """The cost of the whole run, by accountant."""
        return figures_at(self.events, self.budget.delta)


def make_plan(
    budget: Budget,
    schema: Schema,
    *,
    player: Player,
    rounds: int | None = None,
    samples: int | None = None,
    eta: float | None = None,
    free: FreeTables | None = None,
) -> Plan:
    """Fill in what was not given, as large as the budget allows.

    With two of (rounds, samples, eta) given the third is maximal; with all three the budget is
    checked; with fewer, the player's rule supplies what is missing. No private row has a
    part in it.

    Args:
        budget: what the run may cost.
        schema: the declared domain.
        player: who answers the draws.
        rounds: of the game; None to plan them.
        samples: draws per round; None to plan them.
        eta: learning rate of the query player; None to plan it.
        free: the tables that free attributes of records follow; they are paid for first.
    """
    if free is not None:
        made = make_plan(
            AfterTables.of(budget, free),
            schema,
            player=player,
            rounds=rounds,
            samples=samples,
            eta=eta,
        )
        return replace(made, budget=budget, free=free)
    solve = _Solver(budget, player)
    if rounds is not None and samples is not None and eta is not None:
        return solve.checked(rounds, samples, eta)
    given = sum(value is not None for value in (rounds, samples, eta))
    if given < 2:
        rule = _record_rule if player is Player.RECORD else _model_rule
        return rule(solve, schema, rounds, samples, eta)
    if rounds is None and samples is not None and eta is not None:
        rounds = solve.rounds(samples, eta)
    elif samples is None and rounds is not None and eta is not None:
        samples = solve.samples(rounds, eta)
    elif eta is None and rounds is not None and samples is not None:
        eta = solve.eta(rounds, samples)
    return Plan(budget, player, rounds or 0, samples or 0, eta or 0.0)


class _Solver:
    """Two of (rounds, samples, eta) in, the largest third out."""

    def __init__(self, budget: Budget, player: Player) -> None:
        self.budget = budget
        self.player = player

    def events(self, rounds: int, samples: int, eta: float) -> Events:
        return self.budget.events(temperatures_of(self.player, eta, rounds), samples)

    def checked(self, rounds: int, samples: int, eta: float) -> Plan:
        cost = self.budget.cost(self.events(rounds, samples, eta))
        if cost > self.budget.epsilon:
            raise ParameterError(
                f"rounds={rounds}, samples={samples}, eta={eta:g} cost epsilon={rounded_up(cost)}, "
                f"more than epsilon={rounded_up(self.budget.epsilon)}"
            )
        return Plan(self.budget, self.player, rounds, samples, eta)

    def rounds(self, samples: int, eta: float) -> int:
        if self.player is Player.RECORD:
            return calibrate(self.budget, samples=samples, eta=eta).rounds
        positive("eta", eta)
        self._must_fit(2, whole("samples", samples), eta)
        return last_that_fits(
            lambda rounds: self.budget.allows(self.events(rounds, samples, eta)), 2, MOST_ROUNDS
        )

    def samples(self, rounds: int, eta: float) -> int:
        positive("eta", eta)
        whole("rounds", rounds, least=2)
        return largest_samples(self.budget, temperatures_of(self.player, eta, rounds))

    def eta(self, rounds: int, samples: int) -> float:
        if self.player is Player.RECORD:
            return calibrate(self.budget, rounds=rounds, samples=samples).eta
        low, high = 1e-12, float(_entry(whole("rounds", rounds, least=2))[-1])
        self._must_fit(rounds, whole("samples", samples), low)
        if self.budget.allows(self.events(rounds, samples, high)):
            return high  # the geometric entry is all there is
        while high > low * (1.0 + SCALE_STEP):
            middle = float(np.sqrt(low * high))
            fits = self.budget.allows(self.events(rounds, samples, middle))
            low, high = (middle, high) if fits else (low, middle)
        return low

    def _must_fit(self, rounds: int, samples: int, eta: float) -> None:
        events = self.events(rounds, samples, eta)
        if not self.budget.allows(events):
            cost = self.budget.cost(events)
            raise too_small(self.budget, cost, f"{rounds} rounds of samples={samples}")


def _record_rule(
    solve: _Solver, schema: Schema, rounds: int | None, samples: int | None, eta: float | None
) -> Plan:
    """η = 2, half a draw per bit (50 to 2,000), and as many rounds as the budget allows.

    Where that makes fewer than 20 or more than 400 rounds, the samples give way instead.
    """
    eta = 2.0 if eta is None else eta
    if rounds is not None:
        return Plan(solve.budget, solve.player, rounds, solve.samples(rounds, eta), eta)
    if samples is not None:
        return Plan(solve.budget, solve.player, solve.rounds(samples, eta), samples, eta)
    rate, wanted = eta, int(np.clip(schema.bit_counts.sum() // 2, 50, 2000))
    possible = _or_zero(lambda: solve.rounds(wanted, rate))
    if not 20 <= possible <= 400:
        possible = 400 if possible > 400 else 20
        wanted = _or_zero(lambda: solve.samples(possible, rate))
        if wanted < 10:
            possible, wanted = solve.rounds(10, rate), 10
    return Plan(solve.budget, solve.player, possible, wanted, rate)


def _model_rule(
    solve: _Solver, schema: Schema, rounds: int | None, samples: int | None, eta: float | None
) -> Plan:
    """3R/16 draws in all, or 30 for each unit of extent; 50 rounds, or fewer for eight draws each.

    R² is how many draws at temperature 1 the budget buys: R = nμ under replacement. An answer
    is known to about 1/R at best, so R is the resolution of the whole run. A linear ramp of N
    draws that spends R² ends at the temperature R·√(3/N). On wide tables N is what it takes to
    learn the one-way marginals. Where not even four draws per round are left, the temperatures
    give way.
    """
    plan = _model_plan(solve, schema, rounds, samples, eta)
    if plan is not None:
        return plan
    budget = solve.budget

    def suffices(epsilon: float) -> bool:
        richer = _Solver(replace(budget, epsilon=epsilon), solve.player)
        return _model_plan(richer, schema, rounds, samples, eta) is not None

    enough = smallest_epsilon(suffices, budget.epsilon)
    raise too_small(budget, enough, "a model's draws to tell anything")


def _model_plan(
    solve: _Solver, schema: Schema, rounds: int | None, samples: int | None, eta: float | None
) -> Plan | None:
    """What `_model_rule` says; None where the budget does not allow it."""
    budget = solve.budget
    if not budget.allows(budget.events(np.ones(1), 1)):
        return None
    resolution = float(np.sqrt(1.0 + largest_samples(budget, np.ones(1))))
    total = max(3.0 * resolution / 16.0, 30.0 * extent(schema))
    if rounds is None:
        rounds = int(np.clip(total / 8.0, 8, 50))
    if samples is not None:
        return Plan(budget, solve.player, rounds, samples, solve.eta(rounds, samples))
    if eta is not None:
        return Plan(budget, solve.player, rounds, solve.samples(rounds, eta), eta)
    rate, length = resolution * float(np.sqrt(3.0 / total)) / rounds, rounds
    samples = _or_zero(lambda: solve.samples(length, rate))
    if samples < FEWEST_DRAWS:
        samples, rate = FEWEST_DRAWS, solve.eta(rounds, FEWEST_DRAWS)
    if rate * rounds < 1.0:  # draws that hardly depend on the table are not worth their price
        return None
    return Plan(budget, solve.player, rounds, samples, rate)


def _or_zero(search: Callable[[], int]) -> int:
    try:
        return search()
    except ParameterError:
        return 0
