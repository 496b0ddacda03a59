"""Private quantiles, enumerated: every small table, every neighbour, what is measured of it."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.privacy import quantiles
from dualquery.privacy.contrasts import Contrasts, contrasts_for
from dualquery.privacy.density import Density, Measured, fitted
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.noise import LARGEST_SIGMA
from dualquery.privacy.quantiles import (
    Cumulated,
    find_quantiles,
    measure_parts,
    round_shares,
    steps_of,
)
from dualquery.privacy.sources import SeededSource
from dualquery.privacy.unit import Persons, Unit, Weigh

CELLS, STEPS = 4, 2
UNITS = [Unit(n) for n in Neighbours] + [Unit(n, Persons("who", 2)) for n in Neighbours]
BORDERS = [(3,), (2, 5), (2, 4, 6), (1, 1, 7)]
"""Borders that earlier rounds may have led to, in steps; a border may cut a cell."""


def counts_of(records: tuple[int, ...]) -> np.ndarray:
    return np.bincount(np.array(records, dtype=np.int64), minlength=CELLS)


def pairs(unit: Unit) -> list[tuple[np.ndarray, np.ndarray]]:
    """Counts of tables that differ in one unit of up to as many records as it may have."""
    most = unit.influence
    own = [c for k in range(most + 1) for c in combinations_with_replacement(range(CELLS), k)]
    found = []
    for others in ((), (0,), (1, 3), (0,) * 4 + (3,) * 4):
        base = counts_of(others)
        if unit.neighbours is Neighbours.ADD_REMOVE:
            found += [(base, base + counts_of(one)) for one in own]
        else:
            found += [(base + counts_of(one), base + counts_of(two)) for one in own for two in own]
    return found


class Silent:
    """A source of which nothing is asked: the noise is left out."""

    private = False


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_unit_moves_what_is_measured_no_further_than_is_charged(
    unit: Unit, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def nothing(sigma: float, size: int, source: object) -> np.ndarray:
        asked.append(sigma)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(quantiles, "rounded_gaussian", nothing)
    for borders in BORDERS:
        contrasts, largest = contrasts_for(len(borders) + 1, unit.neighbours), 0.0
        for tables in pairs(unit):
            one, other = (
                measure_parts(Cumulated(counts, STEPS), np.array(borders), contrasts, 3.0, Silent())
                for counts in tables
            )
            # The noise is scaled as the counts are, so distances are compared per unit of noise.
            moved = float(np.linalg.norm(one - other)) / asked[-1]
            largest = max(largest, moved / (contrasts.distance(unit) / 3.0))
        assert largest <= 1.0
        assert largest > 0.999 or borders == (1, 1, 7)  # there a part is always empty


def test_noise_has_the_scale_of_what_is_measured() -> None:
    contrasts, counts = contrasts_for(4, Neighbours.REPLACE_ONE), np.array([5, 0, 7, 9])
    within, borders, source = Cumulated(counts, 8), np.array([8, 15, 30]), SeededSource(3)
    exact = contrasts.of(within.parts(borders))
    many = [measure_parts(within, borders, contrasts, 20.0, source) - exact for _ in range(500)]
    assert np.std(many) == pytest.approx(8 * 20.0, rel=0.08)  # eight steps stand for one part
    assert abs(np.mean(many)) < 16.0


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_contrasts_tell_more_than_the_counts_of_all_parts(neighbours: Neighbours) -> None:
    for bins in (2, 3, 8, 16):
        found = contrasts_for(bins, neighbours)
        unit = Unit(neighbours)
        assert found.rows.shape == (bins, bins)
        assert len(set(found.rows[-1].tolist())) == 1  # the total
        parts = Contrasts(np.eye(bins, dtype=np.int64))
        assert found.deviations(unit).max() <= 1.05 * parts.deviations(unit).max()
    best = contrasts_for(8, neighbours).deviations(Unit(neighbours))
    known = 1.59 if neighbours is Neighbours.REPLACE_ONE else 0.99  # found by general minimisation
    assert best.max() < 1.05 * known


def test_the_distance_is_rounded_up() -> None:
    rows = Contrasts(np.array([[1, 0], [0, 1]]))
    for unit in UNITS:
        for columns in (1, 3, 7):
            squared = 2 if unit.neighbours is Neighbours.REPLACE_ONE else 1
            exact = columns * squared * unit.influence**2
            found = rows.distance(unit, columns)
            assert exact <= found**2 * (1 + 1e-15)
            assert found == pytest.approx(math.sqrt(exact), rel=1e-15)
    persons = Unit(Neighbours.ADD_REMOVE, Persons("who", 4, Weigh.PERSON))
    assert rows.distance(persons) == 12.0  # a person's weight is cut into 12 parts


def noise_of(mu: float, unit: Unit, bins: int = 8) -> tuple[Contrasts, list[float]]:
    contrasts = contrasts_for(bins, unit.neighbours)
    distance = contrasts.distance(unit)
    return contrasts, [distance / (mu * math.sqrt(share)) for share in round_shares()]


def test_rounds_share_the_whole_budget() -> None:
    assert math.fsum(round_shares()) == pytest.approx(1.0, rel=1e-12)
    assert round_shares() == tuple(sorted(round_shares()))


def test_quantiles_are_as_near_as_the_noise_allows() -> None:
    random = np.random.default_rng(0)
    values = np.clip(np.exp(random.normal(0.0, 1.0, 20_000)), 0.0, 99.99)
    counts = np.bincount((values * 100).astype(int), minlength=10_000)
    contrasts, sigmas = noise_of(0.02, UNITS[0])
    away = []
    for seed in range(4):
        found = np.array(find_quantiles(counts, contrasts, sigmas, SeededSource(seed)))
        below = Cumulated(counts, steps_of(10_000)).below(found) / steps_of(10_000)
        away.append(below - 20_000 * np.arange(1, 8) / 8)
    # If the borders were known, the standard deviation would be 1.62/μ.
    assert np.sqrt(np.mean(np.square(away))) < 2.0 * 1.62 / 0.02


def test_quantiles_are_found_also_where_many_share_a_value() -> None:
    random = np.random.default_rng(0)
    values = np.where(random.random(20_000) < 0.4, 0, random.integers(0, 1000, 20_000))
    counts = np.bincount(values, minlength=1000)
    contrasts, sigmas = noise_of(0.1, UNITS[0])
    found = np.array(find_quantiles(counts, contrasts, sigmas, SeededSource(1)))
    below = Cumulated(counts, steps_of(1000)).below(found) / (steps_of(1000) * 20_000)
    assert np.abs(below - np.arange(1, 8) / 8).max() < 0.005


def test_a_column_without_rows_is_cut_somewhere() -> None:
    contrasts, sigmas = noise_of(0.1, UNITS[0], 4)
    found = find_quantiles(np.zeros(5, dtype=np.int64), contrasts, sigmas, SeededSource(2))
    assert 1 <= len(found) <= 3
    one = np.zeros(1, dtype=np.int64)
    assert find_quantiles(one, contrasts, sigmas, SeededSource(2), steps=2) == [1]
    assert find_quantiles(one, contrasts, sigmas, SeededSource(2), steps=1) == []


def test_steps_leave_room_for_the_noise() -> None:
    assert steps_of(1000) == 256
    assert steps_of(2**15) == 4
    assert steps_of(1000, LARGEST_SIGMA / 8) == 8
    assert steps_of(1000, LARGEST_SIGMA) == 1


def test_a_density_is_fitted_to_what_was_measured() -> None:
    borders, rows = np.array([10, 20, 50]), np.eye(4)
    measured = [Measured(borders, rows, np.array([100.0, 400.0, 100.0, 0.0]))]
    made = fitted(Density.flat(100, 600.0).refined(borders), measured)
    assert np.abs(made.weights - measured[0].found).max() < 3.0
    assert made.quantiles(np.array([0.5])).tolist() == [15]
    # Where nothing was measured, neighbours say what is likely.
    smooth = fitted(made.refined(np.array([5, 15])), measured)
    assert smooth.weights[1] == pytest.approx(smooth.weights[0], rel=0.5)


def test_bins_are_few() -> None:
    for bins, told in ((1, "bins = 1"), (65, "at most 64")):
        with pytest.raises(ParameterError, match=told):
            contrasts_for(bins, Neighbours.REPLACE_ONE)
