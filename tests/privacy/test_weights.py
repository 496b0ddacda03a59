"""Weights of records, enumerated: every small table, every neighbour, the exact exponents.

A record has one of three contents and one of six weights, of which two are above the bound. Tables
go through the package's own cut, counting and query player, so a bound that is ignored, a weight
that is not cut or a factor that is forgotten exceeds what is claimed.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.base.errors import ParameterError
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.unit import BOUND_PARTS, Persons, Unit, Weigh, Weight
from dualquery.rows.opening import open_table
from dualquery.rows.weights import ByWeight

from .units import (
    Seen,
    assert_choices_move_as_charged,
    assert_tables_move_as_charged,
    assert_the_range_is_reached,
    counted,
)

WEIGHT = Weight("w", 2.5)
Record = tuple[float, int, int]
RECORDS: list[Record] = [
    (w, a, b) for w in (0.0, 0.4, 1.0, 2.5, 2.6, 40.0) for a, b in ((0, 0), (0, 1), (1, 1))
]
OTHERS: list[tuple[Record, ...]] = [((1.0, 0, 1),), ((2.5, 1, 1), (0.3, 0, 0), (9.0, 1, 1))]
CAPPED = Persons("who", 2, Weigh.RECORD)
UNITS = [Unit(n, p, WEIGHT) for n in Neighbours for p in (None, CAPPED)]


@cache
def seen(persons: Persons | None, own: tuple[Record, ...], others: tuple[Record, ...]) -> Seen:
    rows = [("x", *record) for record in own]
    rows += [(f"y{number}", *record) for number, record in enumerate(others)]
    frame = pd.DataFrame(rows, columns=["who", "w", "a", "b"])
    return counted(ByWeight(open_table(frame), WEIGHT, persons))


def pairs(unit: Unit) -> list[tuple[Seen, Seen]]:
    """Pairs of neighbours: x has other records, or x is not there."""
    found = []
    contents = [(record,) for record in RECORDS]
    if unit.persons is not None:  # up to three records, of which two count
        contents = [*product(RECORDS[9::4], repeat=2), *product(RECORDS[9::4], repeat=3)]
    for others in OTHERS:
        with_x = [seen(unit.persons, own, others) for own in contents]
        if unit.neighbours is Neighbours.REPLACE_ONE:
            found += [(one, other) for one in with_x for other in with_x]
        else:
            found += [(one, seen(unit.persons, (), others)) for one in with_x]
    return found


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_draw_tells_no_more_of_a_weighted_record_than_its_range(unit: Unit) -> None:
    assert_the_range_is_reached(unit, pairs(unit))


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_weighted_record_moves_a_table_no_further_than_is_charged(unit: Unit) -> None:
    assert_tables_move_as_charged(unit, pairs(unit))


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_weighted_record_moves_a_choice_of_tables_no_further_than_is_charged(unit: Unit) -> None:
    assert_choices_move_as_charged(unit, pairs(unit))


def test_the_sum_of_weights_is_private_under_both_kinds_of_neighbours() -> None:
    for unit in UNITS:
        assert not unit.size_is_public
        assert len({one.rows for (one, _), _ in pairs(unit)}) > 1


@given(bound=st.floats(1e-6, 1e6), weight=st.floats(0.0, 1e12))
def test_a_weight_never_has_more_parts_than_the_bound(bound: float, weight: float) -> None:
    declared = Weight("w", bound)
    (parts,) = declared.in_parts(np.array([weight]))
    assert 0 <= parts <= declared.influence
    # The influence is the bound in parts, to half a part, and a part is small.
    assert abs(declared.influence - bound * declared.parts) <= 0.5 + 1e-6
    assert declared.influence >= 0.6 * BOUND_PARTS
    assert abs(parts - min(weight, bound) * declared.parts) <= 0.5 + 1e-6


@pytest.mark.parametrize("bound", [1, 2, 5, 7, 20, 300])
def test_whole_weights_are_exact(bound: int) -> None:
    declared = Weight("w", bound)
    whole = np.arange(bound + 1, dtype=np.float64)
    assert declared.in_parts(whole).tolist() == (whole * declared.parts).tolist()


@pytest.mark.parametrize(
    ("column", "bound", "message"),
    [
        ("", 1.0, "weight = ''; expected the column"),
        ("w", 0.0, "weight_bound = 0; expected a number above 0"),
        ("w", float("inf"), "weight_bound"),
        ("w", 2e6, r"weight_bound = 2e\+06; expected between 1e-06 and 1,000,000"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(column: str, bound: float, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Weight(column, bound)


def test_persons_who_weigh_the_same_have_no_weights() -> None:
    with pytest.raises(ParameterError, match="weigh = person makes all persons weigh the same"):
        Unit(Neighbours.REPLACE_ONE, Persons("who", 2, Weigh.PERSON), WEIGHT)
