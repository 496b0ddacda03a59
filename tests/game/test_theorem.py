"""Algorithm 2 of the paper: its parameters, what they cost, and what a budget is promised."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dualquery as dq
from dualquery.base.errors import ParameterError
from dualquery.domain.schema import Schema
from dualquery.estimator.promise import promise_of
from dualquery.game.theorem import Theorem, smallest_rows
from dualquery.oracles.certificates import accuracy_guarantee
from dualquery.privacy.accountants import ACCOUNTANTS
from dualquery.privacy.calibration import Budget

THEOREM = Theorem(queries=500, log_universe=20 * math.log(2), beta=0.1)
BUDGET = Budget(1.0, 1e-6, 200_000)


def test_the_parameters_are_those_of_the_printed_algorithm() -> None:
    alpha = 0.3
    plan = THEOREM.plan(BUDGET, alpha)
    rounds = 16 * math.log(1000) / alpha**2  # the class holds 500 queries and their negations
    assert plan.rounds == math.ceil(rounds)
    assert plan.samples == math.ceil(48 * math.log(2 * 2**20 * plan.rounds / 0.1) / alpha**2)
    assert plan.eta == alpha / 4


def test_the_certificate_asks_for_the_same_parameters() -> None:
    alpha = 0.37
    plan = THEOREM.plan(BUDGET, alpha)

    def met(rounds: int, samples: int, eta: float) -> bool:
        return accuracy_guarantee(
            alpha=alpha, beta=0.1, rounds=rounds, samples=samples, eta=eta, queries=500,
            log_universe=THEOREM.log_universe, gaps=[0.0] * rounds,
        ).parameters_met  # fmt: skip

    assert met(plan.rounds, plan.samples, plan.eta)
    assert not met(plan.rounds - 1, plan.samples, plan.eta)
    assert not met(plan.rounds, plan.samples - 1, plan.eta)


def test_pure_cost_and_rows_are_the_papers_closed_form() -> None:
    plan = THEOREM.plan(BUDGET, 0.3)
    total = plan.eta * plan.rounds * (plan.rounds - 1) * plan.samples
    assert plan.epsilon["pure"] == pytest.approx(total / BUDGET.rows, rel=1e-3)
    assert smallest_rows(plan, "pure") == pytest.approx(total / BUDGET.epsilon, rel=1e-3)


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_the_smallest_table_keeps_the_budget_and_one_row_less_does_not(accountant: str) -> None:
    plan = THEOREM.plan(BUDGET, 0.3)
    rows = smallest_rows(plan, accountant)
    assert rows is not None

    def kept(size: int) -> bool:
        budget = replace(BUDGET, rows=size, accountant=accountant)
        return budget.cost(THEOREM.plan(budget, 0.3).events) <= budget.epsilon

    assert kept(rows)
    assert not kept(rows - 1)


@pytest.mark.parametrize("rows", [30_000, 300_000, 10_000_000])
def test_the_promised_alpha_fits_and_the_next_smaller_does_not(rows: int) -> None:
    budget = replace(BUDGET, rows=rows)
    alpha = THEOREM.promised(budget)
    assert alpha is not None
    assert budget.allows(THEOREM.plan(budget, alpha).events)
    assert not budget.allows(THEOREM.plan(budget, alpha - 1e-4).events)
    assert THEOREM.checked(budget, None).eta == alpha / 4


def test_the_promise_falls_with_the_cube_root_of_the_rows() -> None:
    """The paper's remark: α is of the order of (nε)^{−1/3}, up to logarithms."""
    near, far = (THEOREM.promised(replace(BUDGET, rows=rows)) for rows in (10**5, 10**8))
    assert near / far == pytest.approx(10.0, rel=0.1)


def test_a_budget_that_promises_nothing_says_so() -> None:
    poor = replace(BUDGET, rows=500)
    assert THEOREM.promised(poor) is None
    with pytest.raises(ParameterError, match="promise any alpha below 1"):
        THEOREM.checked(poor, None)


def test_what_does_not_fit_is_refused_with_what_would(schema: Schema, rows: pa.Table) -> None:
    job = dq.DualQuery(epsilon=1.0, delta=1e-6, player="record", alpha=0.2, queries=50)
    with pytest.raises(ParameterError) as found:
        job.fit(rows, schema=schema)
    assert "\n" not in str(found.value)
    promise = promise_of(job, len(rows), schema, 50, len(schema))
    assert f"rows={promise.smallest_rows['gaussian']} would be enough" in str(found.value)
    enough = promise.smallest_rows["gaussian"]
    assert job.plan(enough, schema).rounds == promise.plan.rounds
    assert not promise.fits
    assert promise_of(job, enough, schema, 50, len(schema)).fits


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"alpha": 0.5}, "need player = record"),
        ({"beta": 0.5, "player": "model"}, "need player = record"),
        ({"alpha": 0.5, "player": "record", "rounds": 5}, "leave out rounds"),
        ({"alpha": 1.0, "player": "record"}, "alpha = 1"),
        ({"beta": 0.0, "player": "record"}, "beta = 0"),
    ],
)
def test_bad_wishes(settings: dict[str, object], word: str, schema: Schema) -> None:
    job = dq.DualQuery(epsilon=1.0, delta=1e-3, **settings)
    for act in (lambda: job.fit(None, schema=schema), lambda: job.plan(1000, schema)):
        with pytest.raises(ParameterError, match=word):
            act()


@pytest.mark.parametrize("wish", [{"alpha": 0.9, "beta": 0.2}, {"beta": 0.2}])
def test_a_run_keeps_what_the_theorem_promises(
    wish: dict[str, float], schema: Schema, rows: pa.Table
) -> None:
    small = Schema(schema.attributes[:3])
    job = dq.DualQuery(
        epsilon=60.0, delta=1e-3, player="record", queries=5, k=1, seed=1, refit=False, **wish
    )
    planned = job.plan(len(rows), small)
    alpha = 4 * planned.eta
    made = replace(job, certify=round(alpha, 4)).fit(rows, schema=small)
    assert (made.parameters.rounds, made.parameters.samples) == (planned.rounds, planned.samples)
    assert made.privacy.epsilon <= 60.0
    found = made.certificate
    assert found.beta_used == 0.2
    assert found.guarantee.parameters_met
    assert found.guarantee.alpha == pytest.approx(alpha)
    error = dq.evaluate(made, rows)
    assert error.distance.max_error <= alpha


def test_the_promise_is_about_the_asked_queries_only(schema: Schema) -> None:
    """More queries and a larger universe ask for more rounds and more draws."""
    plans = [
        Theorem(queries, universe).plan(BUDGET, 0.5)
        for queries, universe in ((10, 5.0), (1000, 5.0), (10, 500.0))
    ]
    assert plans[0].rounds < plans[1].rounds
    assert plans[0].rounds == plans[2].rounds
    assert plans[0].samples < plans[2].samples
    assert np.all(plans[0].temperatures[1:] > 0.0)
