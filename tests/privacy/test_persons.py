"""All records of one person, enumerated: every small table, every neighbour, the exact weights.

A person has one to three records over {0,1}², of which at most two count. Tables go through the
package's own cap, weights, counting and query player, so a cap that is ignored, a factor that is
forgotten or weights that add up to more than one exceed what is claimed.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from dualquery.domain.attributes import Attribute
from dualquery.domain.language import parse
from dualquery.domain.schema import Schema
from dualquery.game.query_player import QueryPlayer
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sources import SystemSource
from dualquery.privacy.unit import Persons, Unit, Weigh
from dualquery.rows.counting import count_rows
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.opening import open_table
from dualquery.rows.persons import ByPerson
from dualquery.rows.tabulation import tabulate
from dualquery.workloads.counts import Counted
from dualquery.workloads.marginals import Groups, Marginals
from dualquery.workloads.workload import Workload

from .enumerated import log_weights

SCHEMA = Schema([Attribute.binary("a"), Attribute.binary("b")])
WORKLOAD = Workload.of([parse(text, SCHEMA) for text in ("a=1", "a=0 & b=0", "a=1 & b=1")], SCHEMA)
PAIR = Marginals(Groups.single(SCHEMA), np.array([[0, 1]], dtype=np.int32))
RECORDS = ((0, 0), (0, 1), (1, 1))
CONTENTS = [c for k in (1, 2, 3) for c in product(RECORDS, repeat=k)]
OTHERS = [(), ((0, 1),), ((1, 1), (0, 0), (1, 1))]
BETA, REFERENCE = 3.0, 4
UNITS = [Unit(n, Persons("who", 2, w)) for n in Neighbours for w in Weigh]


@cache
def seen(
    persons: Persons, contents: tuple[tuple[tuple[int, int], ...], ...]
) -> tuple[Counted, NDArray[np.int64]]:
    """What is counted of a table: the queries, and the cells of a marginal."""
    rows = [(name, *record) for name, own in zip("xyz", contents, strict=False) for record in own]
    frame = pd.DataFrame(rows, columns=["who", "a", "b"])
    table = ByPerson(open_table(frame), persons)
    return count_rows(table, WORKLOAD), tabulate(EncodedRows.read(table, SCHEMA, [0, 1]), PAIR)


def neighbours(unit: Unit) -> list[tuple[Counted, NDArray[np.int64]]]:
    """Tables that differ from one another in what person x has; one of them may be without x."""
    assert unit.persons is not None
    return [seen(unit.persons, (own, others)) for others in OTHERS for own in CONTENTS]


def pairs(unit: Unit) -> list[tuple[tuple[Counted, NDArray[np.int64]], ...]]:
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
    rows = REFERENCE * unit.parts
    answers = np.array([0.3, 0.6, 0.1])
    exponents: dict[tuple[int, ...], NDArray[np.float64]] = {}

    def weights(counted: Counted) -> NDArray[np.float64]:
        key = (counted.rows, *counted.counts.tolist())
        if key not in exponents:
            player = QueryPlayer(counted, counted.rows if unit.size_is_public else rows)
            player.draw(BETA, answers, 1, SystemSource())
            exponents[key] = log_weights(player._shard)
        return exponents[key]

    largest = 0.0
    for (one, _), (other, _) in pairs(unit):
        if unit.size_is_public and one.rows != other.rows:
            raise AssertionError("the number of parts was called public, and neighbours differ")
        size = one.rows if unit.size_is_public else rows
        moved = weights(one) - weights(other)
        claimed = float(unit.draw_range(BETA, size))
        largest = max(largest, float(np.ptp(moved)) / claimed)
    assert 0.999 < largest <= 1.0


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_person_moves_a_table_no_further_than_is_charged(unit: Unit) -> None:
    moved = np.array([one - other for (_, one), (_, other) in pairs(unit)], dtype=np.float64)
    assert np.abs(moved).sum(axis=1).max() == unit.table_l1
    l2 = np.sqrt((moved**2).sum(axis=1)).max()
    assert 0.999999 * unit.table_l2 < l2 <= unit.table_l2


def test_a_record_alone_is_a_unit_of_one_part() -> None:
    for relation in Neighbours:
        unit = Unit(relation)
        assert (unit.influence, unit.parts) == (1, 1)
        assert unit.table_l1 == relation.table_l1
        assert unit.table_l2 == relation.table_l2
        assert unit.draw_range(2.0, 50) == relation.draw_range(2.0, 50)
        assert unit.size_is_public is (relation is Neighbours.REPLACE_ONE)
