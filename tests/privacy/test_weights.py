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
from numpy.typing import NDArray

from dualquery.base.errors import ParameterError
from dualquery.domain.attributes import Attribute
from dualquery.domain.language import parse
from dualquery.domain.schema import Schema
from dualquery.game.query_player import QueryPlayer
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sources import SystemSource
from dualquery.privacy.unit import BOUND_PARTS, Persons, Unit, Weigh, Weight
from dualquery.rows.counting import count_rows
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.opening import open_table
from dualquery.rows.tabulation import tabulate
from dualquery.rows.weights import ByWeight
from dualquery.workloads.counts import Counted
from dualquery.workloads.marginals import Groups, Marginals
from dualquery.workloads.workload import Workload

from .enumerated import log_weights

SCHEMA = Schema([Attribute.binary("a"), Attribute.binary("b")])
WORKLOAD = Workload.of([parse(text, SCHEMA) for text in ("a=1", "a=0 & b=0", "a=1 & b=1")], SCHEMA)
PAIR = Marginals(Groups.single(SCHEMA), np.array([[0, 1]], dtype=np.int32))
WEIGHT = Weight("w", 2.5)
Record = tuple[float, int, int]
RECORDS: list[Record] = [
    (w, a, b) for w in (0.0, 0.4, 1.0, 2.5, 2.6, 40.0) for a, b in ((0, 0), (0, 1), (1, 1))
]
OTHERS: list[tuple[Record, ...]] = [((1.0, 0, 1),), ((2.5, 1, 1), (0.3, 0, 0), (9.0, 1, 1))]
CAPPED = Persons("who", 2, Weigh.RECORD)
UNITS = [Unit(n, p, WEIGHT) for n in Neighbours for p in (None, CAPPED)]
BETA, REFERENCE = 3.0, 4


@cache
def seen(
    persons: Persons | None, own: tuple[Record, ...], others: tuple[Record, ...]
) -> tuple[Counted, NDArray[np.int64]]:
    """What is counted of a table: the queries, and the cells of a marginal."""
    rows = [("x", *record) for record in own]
    rows += [(f"y{number}", *record) for number, record in enumerate(others)]
    frame = pd.DataFrame(rows, columns=["who", "w", "a", "b"])
    table = ByWeight(open_table(frame), WEIGHT, persons)
    return count_rows(table, WORKLOAD), tabulate(EncodedRows.read(table, SCHEMA, [0, 1]), PAIR)


def pairs(unit: Unit) -> list[tuple[tuple[Counted, NDArray[np.int64]], ...]]:
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
        moved = weights(one) - weights(other)
        largest = max(largest, float(np.ptp(moved)) / float(unit.draw_range(BETA, rows)))
    assert 0.999 < largest <= 1.0


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_weighted_record_moves_a_table_no_further_than_is_charged(unit: Unit) -> None:
    moved = np.array([one - other for (_, one), (_, other) in pairs(unit)], dtype=np.float64)
    assert np.abs(moved).sum(axis=1).max() == unit.table_l1
    l2 = np.sqrt((moved**2).sum(axis=1)).max()
    assert 0.999999 * unit.table_l2 < l2 <= unit.table_l2


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
