from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.base.errors import ParameterError
from dualquery.privacy.accountants import ACCOUNTANTS
from dualquery.privacy.accountants.gaussian import mu_of
from dualquery.privacy.calibration import (
    Budget,
    calibrate,
    largest_rounds,
    largest_samples,
    largest_scale,
    share_of_releases,
)
from dualquery.privacy.events import Events, MeasurementEvent, record_player_temperatures
from dualquery.privacy.ledger import BudgetExceededError, Ledger
from dualquery.privacy.neighbours import Neighbours

budgets = st.builds(
    Budget,
    epsilon=st.floats(0.05, 20.0),
    delta=st.sampled_from([1e-9, 1e-6, 1e-3]),
    rows=st.integers(5_000, 10**6),
    neighbours=st.sampled_from(list(Neighbours)),
    accountant=st.sampled_from(list(ACCOUNTANTS)),
)


def classical(budget: Budget, rounds: int, samples: int, eta: float) -> float:
    return budget.cost(budget.events(record_player_temperatures(eta, rounds), samples))


@given(budget=budgets, samples=st.integers(1, 2000), eta=st.floats(0.1, 4.0))
@settings(max_examples=60, deadline=None)
def test_rounds_are_maximal(budget: Budget, samples: int, eta: float) -> None:
    if classical(budget, 2, samples, eta) > budget.epsilon:
        with pytest.raises(ParameterError, match="would be enough"):
            largest_rounds(budget, samples=samples, eta=eta)
        return
    rounds = largest_rounds(budget, samples=samples, eta=eta)
    assert classical(budget, rounds, samples, eta) <= budget.epsilon
    assert classical(budget, rounds + 1, samples, eta) > budget.epsilon


@given(budget=budgets, rounds=st.integers(2, 60), eta=st.floats(0.05, 1.0))
@settings(max_examples=60, deadline=None)
def test_samples_are_maximal(budget: Budget, rounds: int, eta: float) -> None:
    if classical(budget, rounds, 1, eta) > budget.epsilon:
        return
    samples = calibrate(budget, rounds=rounds, eta=eta).samples
    assert classical(budget, rounds, samples, eta) <= budget.epsilon
    assert classical(budget, rounds, samples + 1, eta) > budget.epsilon


@given(budget=budgets, rounds=st.integers(2, 60), samples=st.integers(1, 5000))
@settings(max_examples=60, deadline=None)
def test_eta_is_maximal(budget: Budget, rounds: int, samples: int) -> None:
    eta = calibrate(budget, rounds=rounds, samples=samples).eta
    assert classical(budget, rounds, samples, eta) <= budget.epsilon
    assert classical(budget, rounds, samples, eta * (1 + 1e-9)) > budget.epsilon


@pytest.mark.parametrize(
    ("rows", "accountant", "rounds"),
    [
        (30162, "gaussian", 47),
        (30162, "advanced", 16),
        (494021, "gaussian", 302),
        (494021, "advanced", 99),
    ],
)
def test_rounds_the_theorems_allow(rows: int, accountant: str, rounds: int) -> None:
    """The paper's theorem allows 16 and 99 rounds; the Gaussian one three times as many."""
    budget = Budget(1.0, 1e-3, rows, accountant=accountant)
    assert calibrate(budget, samples=1000, eta=2.0).rounds == rounds


@pytest.mark.parametrize(("rows", "rounds"), [(30162, 47), (494021, 302)])
def test_those_rounds_in_high_precision(rows: int, rounds: int) -> None:
    """δ(1) crosses 10⁻³ exactly between these rounds and one more, rounding charge or not."""

    def delta(rounds: int) -> mpmath.mpf:
        squares = sum((mpmath.mpf(4) * k / rows) ** 2 for k in range(1, rounds))
        mu = mpmath.sqrt(1001 * squares) / 2
        return mpmath.ncdf(-1 / mu + mu / 2) - mpmath.e * mpmath.ncdf(-1 / mu - mu / 2)

    with mpmath.workdps(40):
        assert delta(rounds) <= mpmath.mpf("1e-3") < delta(rounds + 1)


def test_a_ramp_of_any_shape() -> None:
    budget = Budget(1.0, 1e-3, 30162)
    shape = np.arange(1, 31) / 30
    factor = largest_scale(budget, shape, 579)
    assert factor == pytest.approx(150.0, rel=0.02)
    assert budget.allows(budget.events(factor * shape, 579))
    assert not budget.allows(budget.events(factor * (1 + 1e-9) * shape, 579))
    assert largest_samples(budget, factor * shape) == 579


def test_draws_may_vary_by_round() -> None:
    budget = Budget(1.0, 1e-3, 30162)
    draws = [100, 0, 300]
    factor = largest_scale(budget, [1.0, 5.0, 2.0], draws)
    assert not budget.allows(budget.events(factor * (1 + 1e-9) * np.array([1.0, 5.0, 2.0]), draws))


def test_pure_needs_no_delta() -> None:
    assert calibrate(Budget(1.0, 0.0, 30162, accountant="pure"), samples=35, eta=0.4).rounds == 46


def test_too_small_a_budget_says_what_would_be_enough() -> None:
    budget = Budget(1e-4, 1e-6, 100)
    with pytest.raises(ParameterError, match=r"epsilon=0\.0001 is too small for two rounds") as why:
        largest_rounds(budget, samples=50, eta=2.0)
    enough = float(str(why.value).rpartition("epsilon=")[2].split()[0])
    larger = Budget(enough, 1e-6, 100)
    assert largest_rounds(larger, samples=50, eta=2.0) >= 2


def test_too_small_a_budget_for_one_draw() -> None:
    with pytest.raises(ParameterError, match=r"one draw in each of 40 rounds.*table is too small"):
        calibrate(Budget(1e-3, 1e-6, 100), rounds=40, eta=2.0)


def test_even_the_rounding_charge_can_be_too_much() -> None:
    with pytest.raises(ParameterError, match=r"at any temperature.*would be enough"):
        calibrate(Budget(1e-6, 1e-6, 100, accountant="pure"), rounds=1000, samples=10**6)


def test_a_huge_table_allows_more_rounds_than_anyone_can_play() -> None:
    with pytest.raises(ParameterError, match="allows more than"):
        largest_rounds(Budget(1000.0, 0.5, 10**15), samples=1, eta=1e-6)


@pytest.mark.parametrize("given_", [{}, {"rounds": 3}, {"rounds": 3, "samples": 2, "eta": 1.0}])
def test_exactly_two_must_be_given(given_: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="expected exactly two of them"):
        calibrate(Budget(1.0, 1e-6, 100), **given_)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", ["epsilon", "delta", "rows"])
def test_a_bad_budget_is_named(name: str, bad: float) -> None:
    values: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "rows": 100, name: bad}
    with pytest.raises(ParameterError, match=f"{name} = {bad:g}"):
        Budget(**values)


def test_delta_of_one_is_named() -> None:
    with pytest.raises(ParameterError, match="delta = 1"):
        Budget(1.0, 1.0, 100)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf])
@pytest.mark.parametrize("name", ["rounds", "samples", "eta"])
def test_bad_parameters_are_named(name: str, bad: float) -> None:
    values: dict[str, Any] = {"rounds": 3, "samples": 2, "eta": 1.0, name: bad}
    del values["samples" if name != "samples" else "rounds"]
    with pytest.raises(ParameterError, match=f"{name} = {bad:g}"):
        calibrate(Budget(1.0, 1e-6, 100), **values)


def test_one_round_has_nothing_to_calibrate() -> None:
    with pytest.raises(ParameterError, match="rounds = 1; expected 2 or more"):
        calibrate(Budget(1.0, 1e-6, 100), rounds=1, samples=3)


def test_a_ramp_of_zeros_is_refused() -> None:
    with pytest.raises(ParameterError, match="every temperature is 0"):
        largest_scale(Budget(1.0, 1e-6, 100), [0.0, 0.0], 3)
    with pytest.raises(ParameterError, match="expected draws"):
        largest_scale(Budget(1.0, 1e-6, 100), [0.0, 1.0], [3, 0])


@pytest.mark.parametrize("releases", [1, 2, 12, 365])
def test_releases_of_equal_cost_fill_a_ledger(releases: int, tmp_path: Path) -> None:
    """As many fit as were asked for, and not one more."""
    each = share_of_releases(1.0, 1e-6, releases)
    scale = math.sqrt(2.0) / mu_of(each, 1e-6)
    events = Events.of_measurements(MeasurementEvent.gaussian(scale))
    book = Ledger.create(tmp_path / "year.ledger", epsilon=1.0, delta=1e-6)
    for number in range(min(releases, 12)):
        book.reserve(str(number), events, neighbours=Neighbours.REPLACE_ONE)
    # A tenth of δ is kept for slack.
    assert releases * events.mu_squared == pytest.approx(mu_of(1.0, 9e-7) ** 2, rel=1e-6)
    if releases <= 12:
        with pytest.raises(BudgetExceededError):
            book.reserve("more", events, neighbours=Neighbours.REPLACE_ONE)
