"""What is printed is never below what is true."""

from __future__ import annotations

import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.privacy.accountants.gaussian import (
    delta_of_mu,
    epsilon_of_mu,
    exceeds_at_most,
    measurement_exceeds,
    mu_of,
)
from dualquery.privacy.rounding import decimals_up, rounded_up

numbers = st.floats(0.0, 1e30) | st.floats(-300.0, 300.0).map(lambda power: 10.0**power)
epsilons = st.floats(-3.0, 2.0).map(lambda power: 10.0**power)
deltas = st.floats(-12.0, math.log10(0.5)).map(lambda power: 10.0**power)


@given(value=numbers, digits=st.integers(1, 9))
@settings(max_examples=500)
def test_printed_figures_are_never_below(value: float, digits: int) -> None:
    read = float(rounded_up(value, digits))
    assert read >= value
    assert read <= value * (1.0 + 10.0 ** (1 - digits)) or read == 0.0 or value < 1e-300
    assert float(decimals_up(min(value, 1e12), digits).replace(",", "")) >= min(value, 1e12)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1e-6, "1e-06"), (0.1, "0.1"), (0.3, "0.3"), (1e-3, "0.001"), (1.23456749e-7, "1.23457e-07"),
     (1.2345611e-7, "1.23457e-07"), (0.0, "0"), (math.inf, "inf"), (999999.5, "1e+06")],
)  # fmt: skip
def test_what_needs_no_rounding_stays(value: float, shown: str) -> None:
    assert rounded_up(value) == shown


def test_g_rounds_down_where_this_rounds_up() -> None:
    assert float(f"{1.2345611e-7:g}") < 1.2345611e-7 <= float(rounded_up(1.2345611e-7))


# Twins in fifty digits.


def exact_delta(mu: mpmath.mpf, epsilon: mpmath.mpf) -> mpmath.mpf:
    upper = mpmath.ncdf(-epsilon / mu + mu / 2)
    return upper - mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mu - mu / 2)


@given(epsilon=epsilons, delta=deltas)
@settings(max_examples=100, deadline=None)
def test_mu_of_is_never_above_what_is_allowed(epsilon: float, delta: float) -> None:
    with mpmath.workdps(50):
        mu = mpmath.mpf(mu_of(epsilon, delta))
        assert exact_delta(mu, mpmath.mpf(epsilon)) <= mpmath.mpf(delta)
        # And not far below: a relative 10⁻⁸ more would be too much.
        assert exact_delta(mu * (1 + mpmath.mpf(10) ** -8), mpmath.mpf(epsilon)) > delta


@given(epsilon=epsilons, delta=deltas)
@settings(max_examples=50, deadline=None)
def test_figures_of_a_found_mu_are_within_the_budget(epsilon: float, delta: float) -> None:
    assert epsilon_of_mu(mu_of(epsilon, delta), delta) <= epsilon


def test_a_small_mu_is_found_to_its_last_digits() -> None:
    """An absolute tolerance of 2e-12, the solver's own, is far too wide here."""
    with mpmath.workdps(50):
        for epsilon, delta in (
            (0.0012413812649651192, 1.136679750070387e-07),
            (0.0018900365399323964, 0.0018163233035881797),
            (0.0003321811544336053, 2.694733271477085e-12),
            (1e-6, 1e-12),
        ):
            mu = mpmath.mpf(mu_of(epsilon, delta))
            assert exact_delta(mu, mpmath.mpf(epsilon)) <= mpmath.mpf(delta)


@given(mu=st.floats(-2.0, 1.0).map(lambda power: 10.0**power), epsilon=epsilons)
@settings(max_examples=60, deadline=None)
def test_chances_of_a_loss_above_epsilon(mu: float, epsilon: float) -> None:
    """Against their definitions in fifty digits, never below them."""
    with mpmath.workdps(50):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        if mpmath.ncdf(-e / m + m / 2) < mpmath.mpf(10) ** -290:
            return
        measured, bound = measurement_exceeds(mu, epsilon), exceeds_at_most(mu, epsilon)
        exact = mpmath.ncdf(-e / m + m / 2)
        assert exact <= measured <= exact * (1 + mpmath.mpf(10) ** -8)
        assert delta_of_mu(mu, epsilon) <= measured * (1 + 1e-9)
        assert measured <= bound * (1 + 1e-12)
        # Where the threshold is, p = e^ε·q; a threshold beyond it has p < e^ε·q.
        if bound < 1.0:
            z = _quantile(mpmath.mpf(bound)) - m
            assert mpmath.mpf(bound) <= mpmath.exp(e) * mpmath.ncdf(z) * (1 + mpmath.mpf(10) ** -30)
            nearer = _quantile(mpmath.mpf(bound) * (1 - mpmath.mpf(10) ** -5))
            assert mpmath.ncdf(nearer) > mpmath.exp(e) * mpmath.ncdf(nearer - m)


def _quantile(p: mpmath.mpf) -> mpmath.mpf:
    low, high = mpmath.mpf(-50), mpmath.mpf(20)
    for _ in range(130):
        middle = (low + high) / 2
        low, high = (middle, high) if mpmath.ncdf(middle) < p else (low, middle)
    return low


@pytest.mark.parametrize(
    ("delta", "times", "at_most"), [(1e-3, "8.6", "21.1"), (1e-6, "20.1", "52.1")]
)
def test_the_reference_figures_at_epsilon_one(delta: float, times: str, at_most: str) -> None:
    mu = mu_of(1.0, delta)
    assert f"{measurement_exceeds(mu, 1.0) / delta:.1f}" == times
    assert f"{exceeds_at_most(mu, 1.0) / delta:.1f}" == at_most


def test_a_threshold_exceeds_more_often_than_the_measurement() -> None:
    """Why the figure of the Gaussian measurement is no bound for every μ-GDP mechanism."""
    mu = mu_of(1.0, 1e-3)
    bound = exceeds_at_most(mu, 1.0)
    with mpmath.workdps(30):
        z = _quantile(mpmath.mpf(bound) * mpmath.mpf("0.999")) - mpmath.mpf(mu)
        p, q = mpmath.ncdf(z + mpmath.mpf(mu)), mpmath.ncdf(z)
        assert mpmath.log(p / q) > 1.0  # the loss, whenever "above" is published
        assert p > 2 * measurement_exceeds(mu, 1.0)


def test_nothing_released_exceeds_nothing() -> None:
    assert measurement_exceeds(0.0, 0.5) == exceeds_at_most(0.0, 0.5) == 0.0
    assert exceeds_at_most(1.0, 0.0) == 1.0
