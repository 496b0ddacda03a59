"""What the enumerations of persons and of weighted records share: a small world, and two claims."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from dualquery.domain.attributes import Attribute
from dualquery.domain.language import parse
from dualquery.domain.schema import Schema
from dualquery.game.query_player import QueryPlayer
from dualquery.privacy.choosing import FINENESS, Against, choice_range, scores_of
from dualquery.privacy.sources import SystemSource
from dualquery.privacy.unit import Unit
from dualquery.rows.counting import count_rows
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.table import Table
from dualquery.rows.tabulation import tabulate
from dualquery.workloads.counts import Counted
from dualquery.workloads.marginals import Groups, Marginals
from dualquery.workloads.workload import Workload

from .enumerated import log_weights

SCHEMA = Schema([Attribute.binary("a"), Attribute.binary("b")])
WORKLOAD = Workload.of([parse(text, SCHEMA) for text in ("a=1", "a=0 & b=0", "a=1 & b=1")], SCHEMA)
PAIR = Marginals(Groups.single(SCHEMA), np.array([[0, 1]], dtype=np.int32))
BETA, REFERENCE = 3.0, 4

Seen = tuple[Counted, NDArray[np.int64]]


def counted(table: Table) -> Seen:
    """What is counted of a table: the queries, and the cells of a marginal."""
    return count_rows(table, WORKLOAD), tabulate(EncodedRows.read(table, SCHEMA, [0, 1]), PAIR)


def assert_the_range_is_reached(unit: Unit, pairs: Iterable[tuple[Seen, Seen]]) -> None:
    """No pair of neighbours moves the exponents by more than is charged, and one moves them so."""
    rows = REFERENCE * unit.parts
    answers = np.array([0.3, 0.6, 0.1])
    exponents: dict[tuple[int, ...], NDArray[np.float64]] = {}

    def weights(found: Counted) -> NDArray[np.float64]:
        key = (found.rows, *found.counts.tolist())
        if key not in exponents:
            player = QueryPlayer(found, found.rows if unit.size_is_public else rows)
            player.draw(BETA, answers, 1, SystemSource())
            exponents[key] = log_weights(player._shard)
        return exponents[key]

    largest = 0.0
    for (one, _), (other, _) in pairs:
        if unit.size_is_public and one.rows != other.rows:
            raise AssertionError("the number of parts was called public, and neighbours differ")
        size = one.rows if unit.size_is_public else rows
        moved = weights(one) - weights(other)
        largest = max(largest, float(np.ptp(moved)) / float(unit.draw_range(BETA, size)))
    assert 0.999 < largest <= 1.0


def assert_tables_move_as_charged(unit: Unit, pairs: Iterable[tuple[Seen, Seen]]) -> None:
    """No pair moves the cells further than is charged, and one moves them as far."""
    moved = np.array([one - other for (_, one), (_, other) in pairs], dtype=np.float64)
    assert np.abs(moved).sum(axis=1).max() == unit.table_l1
    l2 = np.sqrt((moved**2).sum(axis=1)).max()
    assert 0.999999 * unit.table_l2 < l2 <= unit.table_l2


def assert_choices_move_as_charged(unit: Unit, pairs: Iterable[tuple[Seen, Seen]]) -> None:
    """Scores against different expectations move apart by what is charged, and no further.

    A candidate of the same attributes that a model expects otherwise is like another table.
    """
    shares = [*np.eye(4), np.full(4, 0.25), np.array([0.7, 0.1, 0.1, 0.1])]
    against = [
        Against(lambda marginals, a=a: a, float(10 * unit.influence), 1.0).of(PAIR) for a in shares
    ]
    largest = 0.0
    for (_, one), (_, other) in pairs:
        moved = [int((scores_of(one, PAIR, e) - scores_of(other, PAIR, e))[0]) for e in against]
        assert max(map(abs, moved)) <= FINENESS * unit.table_l1
        largest = max(largest, BETA * (max(moved) - min(moved)) / FINENESS)
    charged = choice_range(BETA, unit)
    assert 0.999 * charged < largest <= charged
