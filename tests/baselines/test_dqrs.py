"""DQRS: its promise by enumeration, what it keeps against a plain twin, and what it saves."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.baselines.dqrs import (
    Coins,
    Dqrs,
    Plan,
    Settings,
    Slots,
    Step,
    exact_chances,
    least_rejection,
)
from dualquery.baselines.product import Uniform
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.game import query_player
from dualquery.game.query_player import QueryPlayer
from dualquery.privacy.accountants import get_accountant
from dualquery.privacy.events import Events
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sampler import Draws
from dualquery.privacy.sources import SeededSource, SystemSource
from dualquery.workloads.counts import Counted
from tests.baselines.exact import hockey_stick
from tests.baselines.test_mwem import ASKED, ROWS, TABLES, counts_of, neighbours, wide
from tests.privacy.test_enumeration import log_weights

ACTIONS = [(query, negated) for query in range(len(ASKED)) for negated in (False, True)]
PLAYED = np.array([0.5, 0.25, 0.25])
HOLDS = np.array([False, True, False])
"""What the last record answered; the mean of all of them is `PLAYED`."""


def slots_of(*actions: tuple[int, bool]) -> Slots:
    queries, negated = zip(*actions, strict=True)
    return Slots(np.array(queries), np.array(negated), np.ones(len(actions), dtype=np.bool_))


def log_coin(table: tuple[int, ...], step: Step, eta: float, slots: Slots) -> np.ndarray:
    """ln of the exact chances that each slot is kept, and that it is rejected."""
    logs = Coins(counts_of(table), eta).log_chances(slots, HOLDS, step.gamma)
    bits, scaled = exact_chances(logs)
    chance = scaled.astype(np.float64) * 2.0 ** (-bits - 53.0)
    return np.log([chance, 1.0 - chance])


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch):
    """Log-probabilities of a new draw, by the package's own weights."""
    seen: list[np.ndarray] = []

    def capture(shard: object, samples: int, source: object) -> Draws:
        seen.append(log_weights(shard))
        return Draws(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=bool))

    monkeypatch.setattr(query_player, "draw", capture)

    @cache
    def logs(table: tuple[int, ...], temperature: float) -> np.ndarray:
        QueryPlayer(counts_of(table)).draw(temperature, PLAYED, 1, SystemSource())
        found = seen.pop()
        return found - np.logaddexp.reduce(found)

    return logs


def log_outcomes(table: tuple[int, ...], step: Step, eta: float, slots: Slots, fresh):
    """Log-probability of every pattern of two coins, with every new draw."""
    coins = log_coin(table, step, eta, slots)
    drawn = fresh(table, step.temperature)
    patterns = product(range(2), repeat=len(slots.queries))
    return np.concatenate(
        [sum(coins[side, place] for place, side in enumerate(one)) + drawn for one in patterns]
    )


def events_of(step: Step) -> Events:
    return Events(np.array([1, 1, 1]), np.array([step.coin_range] * 2 + [step.fresh_range]))


PAIRS = [slots_of(one, other) for one, other in product(ACTIONS, repeat=2)][::9]


def worst_loss(step: Step, eta: float, fresh) -> float:
    worst = 0.0
    for slots in PAIRS:
        logs = [log_outcomes(table, step, eta, slots, fresh) for table in TABLES]
        worst = max(worst, *(float(np.max(logs[i] - logs[j])) for i, j in neighbours()))
    return worst


def test_no_outcome_of_a_step_tells_neighbours_apart_by_more_than_stated(fresh) -> None:
    step = Step.of(12, 0.1, ROWS, Settings(samples=40))
    assert step.coins == 40 > step.fresh
    stated = get_accountant("pure").epsilon(events_of(step), 0.0)
    assert stated == pytest.approx(2 * 0.1 / ROWS / least_rejection(12) + 2 * 1.2 / ROWS)
    assert 0.7 * stated <= worst_loss(step, 0.1, fresh) <= stated
    assert worst_loss(replace(step, gamma=step.gamma / 3), 0.1, fresh) > stated
    assert worst_loss(replace(step, temperature=2 * step.temperature), 0.1, fresh) > stated


def test_the_divergence_of_neighbours_is_below_the_delta_of_both_accountants(fresh) -> None:
    step = Step.of(12, 0.1, ROWS, Settings(samples=40))
    for slots in PAIRS[:3]:
        logs = [log_outcomes(table, step, 0.1, slots, fresh) for table in TABLES]
        for epsilon in (0.1, 0.4):
            largest = max(hockey_stick(logs[i], logs[j], epsilon) for i, j in neighbours())
            for accountant in ("zcdp", "gaussian"):
                allowed = get_accountant(accountant).delta(events_of(step), epsilon)
                assert largest <= allowed * (1 + 1e-9)


def test_what_is_kept_is_a_draw_of_the_next_round(fresh) -> None:
    """Old chances times chances to be kept are proportional to the new chances."""
    number, eta = 4, 0.7
    before = (number * PLAYED - HOLDS) / (number - 1)  # what was played before the last record
    for table in TABLES[::4]:
        truth = counts_of(table).counts / ROWS
        signs = np.array([-1.0 if negated else 1.0 for _, negated in ACTIONS])
        asked = np.array([query for query, _ in ACTIONS])
        old = signs * eta * (number - 1) * (truth - before)[asked]
        kept = Coins(counts_of(table), eta).log_chances(slots_of(*ACTIONS), HOLDS, 0.2)
        assert np.all(kept <= math.log(0.8) + 1e-15)
        found = old + kept
        np.testing.assert_allclose(
            found - np.logaddexp.reduce(found), fresh(table, eta * number), atol=1e-9
        )


def test_coins_fall_with_their_chances() -> None:
    counted = Counted(np.array([30, 30], dtype=np.int64), 100)
    many = Slots(np.repeat([0, 1], 20_000), np.zeros(40_000, bool), np.ones(40_000, bool))
    many.alive[:100] = False
    coins = Coins(counted, 2.0)
    kept = coins.keep(many, np.array([False, True]), 0.1, SeededSource(1))
    for query, payoff in ((0, 0.3), (1, -0.7)):
        chance = 0.9 * math.exp(-2.0 * (1.0 - payoff))
        found = kept[(many.queries == query) & many.alive].mean()
        assert found == pytest.approx(chance, abs=4.5 * math.sqrt(chance / 20_000))
    assert not kept[:100].any()


def test_new_draws_fill_empty_slots_first_and_then_replace_kept_ones() -> None:
    slots = Slots.of(Draws(np.arange(6), np.zeros(6, dtype=bool)))
    kept = np.array([True, False, True, True, False, True])
    few = slots.refreshed(kept, Draws(np.array([9]), np.array([True])), np.random.default_rng(0))
    assert few.alive.tolist() == [True, True, True, True, False, True]
    assert (few.queries[1], few.negated[1]) == (9, True)
    four = Draws(np.full(4, 9), np.zeros(4, dtype=bool))
    many = slots.refreshed(kept, four, np.random.default_rng(0))
    assert many.alive.all()
    assert (many.queries == 9).sum() == 4
    assert many.queries[1] == many.queries[4] == 9


def test_the_plan_spends_the_budget_and_saves_against_the_game() -> None:
    settings = Settings(rounds=200, samples=100)
    plan = Plan.of(1.0, 1e-6, 30_000, settings)
    assert 1.0 - 1e-6 <= plan.cost(1e-6, private=True).epsilon <= 1.0
    drawn = [one.fresh for one in plan.steps]
    assert max(drawn) <= 100
    assert sum(drawn) < 0.7 * 100 * 199
    game = Events.of(plan.eta * np.arange(200), 100, 30_000, Neighbours.REPLACE_ONE)
    assert get_accountant("zcdp").epsilon(game, 1e-6) > 1.2
    pure = Plan.of(1.0, 0.0, 30_000, Settings(rounds=20, samples=10))
    assert 1.0 - 1e-6 <= pure.cost(0.0, private=True).epsilon <= 1.0
    with pytest.raises(ParameterError, match="too small"):
        Plan.of(1e-9, 0.0, 10, settings)


def test_every_coin_and_every_new_draw_is_an_event() -> None:
    plan = Plan(0.3, 30_000, Settings(rounds=20, samples=30))
    events, steps = plan.events, plan.steps
    assert events.draws.sum() == sum(one.coins + one.fresh for one in steps)
    rho = sum(one.coins * one.coin_range**2 + one.fresh * one.fresh_range**2 for one in steps) / 8
    assert events.rho == pytest.approx(rho)
    assert steps[-1].coins == 30


def test_wide_tables_get_more_draws_per_round() -> None:
    schemas = [
        Schema(tuple(Attribute.binary(f"x{i}") for i in range(width))) for width in (20, 1000, 9000)
    ]
    assert [Settings.of(schema).samples for schema in schemas] == [100, 500, 4000]


def test_it_learns() -> None:
    _, workload, counted = wide(8, 5000, 200)
    truth = counted.counts / counted.rows
    made = Dqrs.fit(
        counted, workload, epsilon=3.0, delta=1e-6, source=SeededSource(1),
        settings=Settings(rounds=60, samples=60),
    )  # fmt: skip
    error = np.abs(made.answers(workload) - truth).mean()
    assert error < 0.5 * np.abs(Uniform().answers(workload) - truth).mean()
    assert made.records.shape == (60, 8)
    assert "NOT PRIVATE" in made.privacy.text()
    with pytest.raises(ParameterError, match="another schema"):
        made.answers(ASKED)
