"""All records of one person, enumerated: every small table, every neighbour, the exact weights.

A person has one to three records over {0,1}², of which at most two count. Tables go through the
package's own cap, weights, counting and query player, so a cap that is ignored, a factor that is
forgotten or weights that add up to more than one exceed what is claimed.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import pandas as pd
import pytest

from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.unit import Persons, Unit, Weigh
from dualquery.rows.opening import open_table
from dualquery.rows.persons import ByPerson

from .units import (
    Seen,
    assert_choices_move_as_charged,
    assert_tables_move_as_charged,
    assert_the_range_is_reached,
    counted,
)

RECORDS = ((0, 0), (0, 1), (1, 1))
CONTENTS = [c for k in (1, 2, 3) for c in product(RECORDS, repeat=k)]
OTHERS = [(), ((0, 1),), ((1, 1), (0, 0), (1, 1))]
UNITS = [Unit(n, Persons("who", 2, w)) for n in Neighbours for w in Weigh]


@cache
def seen(persons: Persons, contents: tuple[tuple[tuple[int, int], ...], ...]) -> Seen:
    rows = [(name, *record) for name, own in zip("xyz", contents, strict=False) for record in own]
    frame = pd.DataFrame(rows, columns=["who", "a", "b"])
    return counted(ByPerson(open_table(frame), persons))


def neighbours(unit: Unit) -> list[Seen]:
    """Tables that differ from one another in what person x has; one of them may be without x."""
    assert unit.persons is not None
    return [seen(unit.persons, (own, others)) for others in OTHERS for own in CONTENTS]


def pairs(unit: Unit) -> list[tuple[Seen, Seen]]:
    assert unit.persons is not None
    found = []
    for others in OTHERS:
        with_x = [seen(unit.persons, (own, others)) for own in CONTENTS]
        if unit.neighbours is Neighbours.REPLACE_ONE:
            found += [(one, other) for one in with_x for other in with_x]
        elif others:
            without = seen(unit.persons, ((), others))
            found += [(one, without) for one in with_x]
    return found


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_draw_tells_no_more_of_a_person_than_its_range(unit: Unit) -> None:
    assert_the_range_is_reached(unit, pairs(unit))


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_person_moves_a_table_no_further_than_is_charged(unit: Unit) -> None:
    assert_tables_move_as_charged(unit, pairs(unit))


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_person_moves_a_choice_of_tables_no_further_than_is_charged(unit: Unit) -> None:
    assert_choices_move_as_charged(unit, pairs(unit))


def test_a_record_alone_is_a_unit_of_one_part() -> None:
    for relation in Neighbours:
        unit = Unit(relation)
        assert (unit.influence, unit.parts) == (1, 1)
        assert unit.table_l1 == relation.table_l1
        assert unit.table_l2 == relation.table_l2
        assert unit.draw_range(2.0, 50) == relation.draw_range(2.0, 50)
        assert unit.size_is_public is (relation is Neighbours.REPLACE_ONE)
