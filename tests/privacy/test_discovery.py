"""Private discovery, enumerated: which sets of values are published, and by how much a unit shows.

A published set has a chance that is known exactly: a product over the values that occur. So the
distance between neighbours is a sum over all sets, and is compared with what is claimed.
"""

from __future__ import annotations

import math
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from dualquery.base.errors import ParameterError
from dualquery.privacy.accountants.gaussian import delta_of_mu
from dualquery.privacy.discovery import cut_noise, discover, slack_of, threshold_for
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.schema_plan import SchemaPlan, plan_schema
from dualquery.privacy.sources import SeededSource
from dualquery.privacy.unit import Persons, Unit, Weigh

VALUES = 3
UNITS = [Unit(n) for n in Neighbours] + [Unit(n, Persons("who", 3)) for n in Neighbours]
SIGMA, THRESHOLD = 1.5, 5


def published_alone(count: int, threshold: int, sigma: float) -> float:
    """The chance that round(σ·N) is at least τ − count, given that it is below τ."""
    reached, never = (float(ndtr(-(threshold - 0.5 - k) / sigma)) for k in (count, 0))
    return (reached - never) / (1.0 - never)


def published(counts: np.ndarray) -> dict[frozenset[int], float]:
    """The chance of every set of published values."""
    there = np.flatnonzero(counts)
    chance = {int(v): published_alone(int(counts[v]), THRESHOLD, SIGMA) for v in there}
    return {
        frozenset(kept): math.prod(p if v in kept else 1.0 - p for v, p in chance.items())
        for size in range(len(there) + 1)
        for kept in combinations(chance, size)
    }


def pairs(unit: Unit) -> list[tuple[np.ndarray, np.ndarray]]:
    own = [
        np.bincount(np.array(c, dtype=int), minlength=VALUES)
        for k in range(unit.influence + 1)
        for c in combinations_with_replacement(range(VALUES), k)
    ]
    bases = [np.array(b) for b in ((0, 0, 0), (4, 0, 0), (2, 1, 0), (6, 0, 3))]
    if unit.neighbours is Neighbours.ADD_REMOVE:
        return [pair for b in bases for o in own for pair in ((b + o, b), (b, b + o))]
    return [(b + one, b + two) for b in bases for one in own for two in own]


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_neighbours_are_no_further_apart_than_is_claimed(unit: Unit) -> None:
    slack = slack_of(THRESHOLD, SIGMA, unit)
    mu = unit.table_l2 / SIGMA
    reached = 0.0
    for epsilon in (0.1, 0.5, 1.0, 3.0, 8.0, 14.0):
        claimed = slack + (1.0 - slack) * delta_of_mu(mu, epsilon)
        for one, other in pairs(unit):
            first, second = published(one), published(other)
            apart = math.fsum(
                max(0.0, p - math.exp(epsilon) * second.get(kept, 0.0)) for kept, p in first.items()
            )
            assert apart <= claimed * (1.0 + 1e-9)
            reached = max(reached, apart / claimed)
    assert reached > 0.9  # at large ε only the value that one unit alone holds is left


def test_the_slack_is_the_largest_over_all_ways_to_spread_a_unit() -> None:
    def ways(parts: int, most: int) -> list[tuple[int, ...]]:
        if not parts:
            return [()]
        firsts = range(1, min(parts, most) + 1)
        return [(k, *rest) for k in firsts for rest in ways(parts - k, k)]

    for most in (1, 2, 3, 6, 9):
        unit = Unit(Neighbours.ADD_REMOVE, Persons("who", most))
        for threshold, sigma in ((10, 0.5), (10, 3.0), (12, 9.0), (40, 12.0)):
            brute = max(
                math.fsum(published_alone(k, threshold, sigma) for k in way)
                for parts in range(1, most + 1)
                for way in ways(parts, parts)
            )
            assert slack_of(threshold, sigma, unit) == pytest.approx(min(1.0, brute), rel=1e-9)


def test_persons_who_weigh_the_same_move_one_person() -> None:
    unit = Unit(Neighbours.ADD_REMOVE, Persons("who", 4, Weigh.PERSON))
    assert unit.influence == 12
    assert slack_of(60, 10.0, unit) == pytest.approx(published_alone(12, 60, 10.0), rel=1e-9)


def test_noise_is_cut_below_the_threshold_and_nowhere_else() -> None:
    noise = cut_noise(3.0, 4, 40_000, SeededSource(4))
    assert noise.max() == 3
    assert noise.min() < -8
    inside = float(ndtr(3.5 / 3.0))
    for z in (-6, -1, 0, 3):
        chance = float(ndtr((z + 0.5) / 3.0) - ndtr((z - 0.5) / 3.0)) / inside
        assert np.mean(noise == z) == pytest.approx(chance, abs=0.01)


def test_half_of_a_normal_variable_is_no_easier_to_tell_apart() -> None:
    # The theorem behind the price: shifted normal variables, both cut at the same place, are as
    # hard to tell apart as without the cut.
    for cut in (-1.0, 0.0, 1.5, 4.0):
        for shift in (0.1, 0.7, 2.0):
            for at in np.linspace(cut - 5.0, cut - 0.01, 40):
                low, high = (
                    float((ndtr(cut - m) - ndtr(at - m)) / ndtr(cut - m)) for m in (0.0, shift)
                )
                assert ndtri(high) <= ndtri(low) + shift + 1e-9


def test_the_threshold_is_the_smallest_that_is_safe() -> None:
    for unit in UNITS:
        found = threshold_for(1e-7, 20.0, unit)
        assert slack_of(found, 20.0, unit) <= 1e-7 < slack_of(found - 1, 20.0, unit)
    assert slack_of(3, 20.0, UNITS[2]) == 1.0  # three records alone reach the threshold


def test_values_above_the_threshold_are_published() -> None:
    counts = np.array([1, 500, 99, 1000])
    assert discover(counts, 5.0, 100, SeededSource(1)).tolist()[::3] == [False, True]
    with pytest.raises(ParameterError, match="without any record"):
        discover(np.array([0]), 5.0, 100, SeededSource(1))


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_plan_costs_what_it_may_and_hardly_less(unit: Unit) -> None:
    for cut, open_ in ((3, 0), (0, 2), (3, 2)):
        plan = plan_schema(0.5, 1e-6, unit, cut=cut, discovered=open_, bins=8)
        assert plan.epsilon <= 0.5
        assert plan.slack <= 0.5e-6
        assert plan.epsilon > 0.49
        assert by_hand(plan) == pytest.approx(plan.events.mu_squared, rel=1e-6)


def by_hand(plan: SchemaPlan) -> float:
    """μ² of all contrasts of all rounds and columns, and of all counts together."""
    replaced = plan.unit.neighbours is Neighbours.REPLACE_ONE
    ends = [np.zeros(8, dtype=int), *plan.contrasts.rows.T]
    apart = max(
        int(((one - other) ** 2).sum())
        for one in ends
        for other in (ends if replaced else ends[:1])
    )
    largest = plan.unit.influence**2
    cost = plan.cut * largest * apart * sum(1.0 / sigma**2 for sigma in plan.sigmas)
    if not plan.discovered:
        return cost
    return cost + plan.discovered * (2.0 if replaced else 1.0) * largest / plan.sigma**2


def test_every_open_column_may_fail() -> None:
    plan = plan_schema(0.5, 1e-6, UNITS[0], cut=0, discovered=4, bins=8)
    assert plan.slack == pytest.approx(4 * slack_of(plan.threshold, plan.sigma, UNITS[0]))


def test_nothing_to_find_costs_nothing() -> None:
    with pytest.raises(ParameterError, match="costs nothing"):
        plan_schema(1.0, 1e-6, UNITS[0], cut=0, discovered=0, bins=8)


@pytest.mark.slow
def test_no_value_of_a_single_person_is_published_in_many_repetitions() -> None:
    plan = plan_schema(0.2, 1e-7, UNITS[0], cut=2, discovered=1, bins=8)
    repetitions = 100_000
    assert plan.slack * repetitions < 0.005  # computed: one in two hundred such tests would fail
    small = np.array([1, 2000, 5000])  # one person alone, and two common values
    source = SeededSource(7)
    counts = np.tile(small, repetitions)
    found = discover(counts, plan.sigma, plan.threshold, source).reshape(-1, len(small))
    assert found.sum(axis=0).tolist() == [0, repetitions, repetitions]


@pytest.mark.slow
def test_lone_values_are_published_as_often_as_was_computed() -> None:
    plan = plan_schema(0.2, 2e-3, UNITS[0], cut=0, discovered=1, bins=8)
    tries = 2_000_000
    seen = int(
        discover(np.ones(tries, dtype=np.int64), plan.sigma, plan.threshold, SeededSource(8)).sum()
    )
    expected = tries * plan.slack
    assert abs(seen - expected) < 5.0 * math.sqrt(expected)
