from __future__ import annotations

import math

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.privacy.events import Events, record_player_temperatures
from dualquery.privacy.neighbours import Neighbours


def test_a_constant_eta_gives_eta_times_rounds_before() -> None:
    assert record_player_temperatures(0.5, 4).tolist() == [0.0, 0.5, 1.0, 1.5]


def test_a_varying_eta_cumulates_and_starts_free() -> None:
    assert record_player_temperatures([1.0, 2.0, 4.0]).tolist() == [0.0, 1.0, 3.0]


def test_events_before_a_run_equal_events_after_it() -> None:
    """One number for all rounds, or one per round as a transcript has them: the same events."""
    temperatures = record_player_temperatures(2.0, 5)
    before = Events.of(temperatures, 7, 100)
    after = Events.of(list(temperatures), [7] * 5, 100, Neighbours.REPLACE_ONE)
    assert before == after
    assert before != Events.of(temperatures, 7, 100, Neighbours.ADD_REMOVE)
    assert len(before) == 5


def test_free_rounds_and_rounds_without_draws_cost_nothing() -> None:
    events = Events(np.array([5, 0, 2]), np.array([0.0, 1.0, 0.5]))
    draws, ranges = events.costly
    assert draws.tolist() == [2.0]
    assert ranges.tolist() == [0.5]
    assert events.mu_squared == 3 * 0.25 / 4
    assert events.rho == 2 * 0.25 / 8


def test_composition_concatenates() -> None:
    one = Events(np.array([3]), np.array([0.1]))
    two = one.then(one)
    assert two.mu_squared == pytest.approx(2 * one.mu_squared)
    assert one.replaced().rho == pytest.approx(4 * one.rho)


def test_events_are_values() -> None:
    events = Events(np.array([3]), np.array([0.1]))
    with pytest.raises(ValueError, match="read-only"):
        events.draws[0] = 4


@pytest.mark.parametrize(
    ("draws", "ranges", "named"),
    [
        ([-1], [0.1], "samples = -1"),
        ([1.5], [0.1], "samples = 1.5"),
        ([math.nan], [0.1], "samples = nan"),
        ([math.inf], [0.1], "samples = inf"),
        ([1], [math.nan], "range = nan"),
        ([1], [math.inf], "range = inf"),
        ([1], [-0.1], "range = -0.1"),
        ([1, 2], [0.1], "shape"),
    ],
)
def test_bad_events_are_named(draws: list[float], ranges: list[float], named: str) -> None:
    with pytest.raises(ParameterError, match=named):
        Events(np.array(draws), np.array(ranges))


@pytest.mark.parametrize("eta", [0.0, -1.0, math.nan, math.inf])
def test_a_bad_eta_is_named(eta: float) -> None:
    with pytest.raises(ParameterError, match=f"eta = {eta:g}"):
        record_player_temperatures(eta, 3)


@pytest.mark.parametrize("rounds", [0, -1, 2.5])
def test_bad_rounds_are_named(rounds: float) -> None:
    with pytest.raises(ParameterError, match=f"rounds = {rounds:g}"):
        record_player_temperatures(1.0, rounds)  # type: ignore[arg-type]


def test_one_eta_per_round() -> None:
    with pytest.raises(ParameterError, match="2 values of eta for rounds = 3"):
        record_player_temperatures([1.0, 2.0], 3)
