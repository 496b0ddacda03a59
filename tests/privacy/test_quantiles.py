"""Private quantiles, enumerated: every small table, every neighbour, the exact weights."""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.quantiles import (
    Candidates,
    Cumulated,
    candidates,
    draw_quantiles,
    level_range,
    levels_of,
    steps_of,
    temperature_for,
)
from dualquery.privacy.sampler import draw
from dualquery.privacy.sources import SeededSource
from dualquery.privacy.unit import Persons, Unit, Weigh

CELLS, STEPS = 4, 2
UNITS = [Unit(n) for n in Neighbours] + [Unit(n, Persons("who", 2)) for n in Neighbours]
PARTITIONS = [(0, 8), (0, 3, 8), (0, 2, 5, 8)]
"""Borders that earlier levels may have drawn, in steps; a border may cut a cell."""


def counts_of(records: tuple[int, ...]) -> np.ndarray:
    return np.bincount(np.array(records, dtype=np.int64), minlength=CELLS)


def pairs(unit: Unit) -> list[tuple[np.ndarray, np.ndarray]]:
    """Counts of tables that differ in one unit of up to as many records as it may have."""
    most = unit.influence
    own = [c for k in range(most + 1) for c in combinations_with_replacement(range(CELLS), k)]
    found = []
    for others in ((), (0,), (1, 3), (0, 0, 2), (3, 3, 1), (0,) * 4 + (3,) * 4, (1, 1, 2, 2)):
        base = counts_of(others)
        if unit.neighbours is Neighbours.ADD_REMOVE:
            found += [(base, base + counts_of(one)) for one in own]
        else:
            found += [(base + counts_of(one), base + counts_of(two)) for one in own for two in own]
    return found


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_level_tells_no_more_of_a_unit_than_its_range(unit: Unit) -> None:
    temperature, largest = 0.7, 0.0

    @cache
    def weights(counts: tuple[int, ...], low: int, high: int) -> np.ndarray:
        within = Cumulated(np.array(counts), STEPS)
        return candidates(within, low, high, temperature).log_weights()

    for one, other in pairs(unit):
        for borders in PARTITIONS:
            moved = 0.0  # the medians of all parts are drawn together: their changes add up
            for low, high in pairwise(borders):
                mine, theirs = (weights(tuple(c.tolist()), low, high) for c in (one, other))
                moved += float(np.ptp(mine - theirs))
            claimed = level_range(temperature, len(borders) - 2, unit)
            largest = max(largest, moved / claimed)
    assert 0.999 < largest <= 1.0


def test_candidates_are_drawn_in_proportion_to_their_weights() -> None:
    falls = np.log(np.array([1.0, 0.5, 0.25, 0.2, 0.05]))
    drawn = draw(Candidates(falls), 200_000, SeededSource(3))
    shares = np.bincount(drawn.queries, minlength=5) / 200_000
    assert not drawn.negated.any()
    assert np.abs(shares - np.exp(falls) / np.exp(falls).sum()).max() < 0.005


def test_far_candidates_stay_possible() -> None:
    weights = Candidates(np.array([0.0, -5000.0])).log_weights()
    assert weights[1] == pytest.approx(-600.0)


def test_quantiles_are_found_also_where_many_share_a_value() -> None:
    random = np.random.default_rng(0)
    values = np.where(random.random(20_000) < 0.4, 0, random.integers(0, 1000, 20_000))
    counts = np.bincount(values, minlength=1000)
    drawn = np.array(draw_quantiles(counts, 8, 0.05, SeededSource(1)))
    below = Cumulated(counts, steps_of(1000)).below(drawn) / (steps_of(1000) * 20_000)
    assert np.abs(below - np.arange(1, 8) / 8).max() < 0.005


def test_a_column_without_rows_is_cut_somewhere() -> None:
    drawn = draw_quantiles(np.zeros(5, dtype=np.int64), 4, 1.0, SeededSource(2))
    assert len(drawn) == 3
    assert draw_quantiles(np.zeros(1, dtype=np.int64), 8, 1.0, SeededSource(2), steps=2) == [1]


def test_the_temperature_is_the_largest_that_the_range_allows() -> None:
    for unit in UNITS:
        found = temperature_for(0.01, 3, unit)
        assert level_range(found, 3, unit) <= 0.01 < level_range(1.000001 * found, 3, unit)
    persons = Unit(Neighbours.ADD_REMOVE, Persons("who", 4, Weigh.PERSON))
    # A person's weight is cut into 12 parts; per person it costs as much as a record would.
    assert 12 * temperature_for(0.01, 3, persons) == pytest.approx(
        temperature_for(0.01, 3, Unit(Neighbours.ADD_REMOVE))
    )


def test_bins_are_a_power_of_two() -> None:
    assert levels_of(8) == 3
    with pytest.raises(ParameterError, match="bins = 10; expected a power of two"):
        levels_of(10)
    with pytest.raises(ParameterError, match="too small"):
        temperature_for(1e-12, 3, UNITS[0])
