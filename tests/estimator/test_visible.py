"""What a plan says will be visible, beside simulated measurements and choices."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.estimator.visible import SCORE, visible_relation
from dualquery.game.tables_steps import Kind, Step, TablesPlan
from dualquery.privacy.calibration import Budget
from dualquery.privacy.neighbours import Neighbours

ROWS, CODES, COLUMNS = 10_000, 5, 12
PAIRS = COLUMNS * (COLUMNS - 1) // 2
SCHEMA = Schema(tuple(Attribute.categorical(f"a{i}", list(range(CODES))) for i in range(COLUMNS)))


def plan_of(*steps: Step) -> TablesPlan:
    budget = Budget(
        epsilon=1.0, delta=1e-6, rows=ROWS, neighbours=Neighbours.REPLACE_ONE, accountant="gaussian"
    )
    return TablesPlan(budget, steps, 1000.0, 4, 2, 2, 20, 20, 20)


def test_where_all_pairs_are_measured_noise_exceeds_it_in_5_of_100_cases() -> None:
    plan = plan_of(Step(Kind.ONE_WAY, 0.1, COLUMNS), Step(Kind.PAIRS, 0.9, PAIRS))
    found = visible_relation(plan, SCHEMA)
    assert found is not None
    noise = plan.purse.deviation(0.9, PAIRS)
    rank = (np.arange(CODES) - (CODES - 1) / 2.0) / np.arange(CODES).std()
    random = np.random.default_rng(1)
    tables = noise * random.standard_normal((20_000, CODES, CODES)) / ROWS
    seen = np.abs(rank @ tables @ rank)
    assert float((seen > found).mean()) == pytest.approx(0.05, abs=0.006)


def test_where_draws_choose_pairs_such_a_relation_is_chosen_in_95_of_100_cases() -> None:
    chosen = 20
    plan = plan_of(
        Step(Kind.ONE_WAY, 0.1, COLUMNS),
        Step(Kind.CHOICE, 0.002, chosen),
        Step(Kind.NAMED, 0.898, chosen),
    )
    found = visible_relation(plan, SCHEMA)
    assert found is not None
    assert found > 1.96 * plan.purse.deviation(0.898, chosen) * CODES / ROWS  # choosing decides
    scores = np.zeros(PAIRS)
    scores[0] = SCORE * ROWS * found
    temperature = plan.purse.choice_temperature(0.002, chosen)
    random = np.random.default_rng(2)
    kept = random.gumbel(size=(20_000, PAIRS)) + temperature * scores
    place = (kept > kept[:, :1]).sum(axis=1)
    assert float((place < chosen).mean()) == pytest.approx(0.95, abs=0.02)


def test_nothing_is_promised_without_measured_pairs() -> None:
    assert visible_relation(None, SCHEMA) is None
    assert visible_relation(plan_of(Step(Kind.ONE_WAY, 1.0, COLUMNS)), SCHEMA) is None


def test_more_rows_and_more_budget_show_weaker_relations() -> None:
    steps = Step(Kind.ONE_WAY, 0.1, COLUMNS), Step(Kind.PAIRS, 0.9, PAIRS)
    small = visible_relation(plan_of(*steps), SCHEMA)
    budget = Budget(
        epsilon=2.0, delta=1e-6, rows=2 * ROWS, neighbours=Neighbours.REPLACE_ONE,
        accountant="gaussian",
    )  # fmt: skip
    large = visible_relation(TablesPlan(budget, steps, 1000.0, 4, 2, 2, 20, 20, 20), SCHEMA)
    assert small is not None
    assert large is not None
    assert math.isclose(small / large, 4.0, rel_tol=0.15)
