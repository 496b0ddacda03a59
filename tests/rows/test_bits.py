"""Cells of 0/1 marginals from packed rows, against a plain count."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dualquery.domain.attributes import Attribute
from dualquery.domain.language import parse
from dualquery.domain.schema import Schema
from dualquery.engines.local import LocalEngine
from dualquery.paper.datasets import BiasedTable
from dualquery.privacy.unit import Persons, Weigh
from dualquery.rows.bits import PackedOnes
from dualquery.rows.counting import Tally, count_by_popcounts
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.rows.packed import PackedRows
from dualquery.rows.persons import ByPerson
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.marginals import Groups, Marginals
from dualquery.workloads.workload import Literals, Workload

SETS = {
    1: [(3,), (0,), (40,)],
    2: [(0, 1), (40, 2), (3, 17)],
    3: [(5, 1, 40), (2, 3, 4), (0, 39, 7)],
}


@pytest.mark.parametrize("arity", [1, 2, 3])
@pytest.mark.parametrize("rows", [65, 70_001])
def test_cells_agree_with_a_plain_count(arity: int, rows: int) -> None:
    table = BiasedTable(rows, 41, seed=2)
    schema = table.schema
    marginals = Marginals(Groups.single(schema), np.array(SETS[arity], np.int32))
    codes = np.unpackbits(table.columns(np.arange(41)).view(np.uint8), axis=1, bitorder="little")
    records = codes[:, :rows].T.astype(np.int32)
    expected = np.concatenate(
        [np.bincount(marginals.cell_of(t, records), minlength=2**arity)
         for t in range(len(marginals))]
    )  # fmt: skip
    # Some columns are packed as "is 0", some as "is 1", some as both.
    literals = Literals.single(
        np.append(np.arange(41), [3, 40]), np.append(np.arange(41) % 2, [1, 1])
    )
    ones = PackedOnes.of(PackedRows.pack(table, schema, literals), schema)
    assert ones is not None
    assert ones.hold(marginals)
    np.testing.assert_array_equal(ones.tabulate(marginals), expected)


def test_other_attributes_are_counted_from_codes() -> None:
    schema = Schema((Attribute.binary("a"), Attribute.categorical("b", list("xyz"))))
    literals = Literals.of([(0, (1,)), (1, (0,))])
    packed = PackedRows(1, literals, (np.zeros((2, 1), np.uint64),), (1,))
    assert PackedOnes.of(packed, schema) is None
    both = Literals.of([(0, (0, 1))])
    assert PackedOnes.of(PackedRows(1, both, packed.blocks, (1,)), schema) is None


def test_the_engine_counts_from_what_it_packed() -> None:
    table = BiasedTable(500, 60, seed=3)
    schema, engine = table.schema, LocalEngine()
    asked = random_marginals(schema, 3, 50)
    marginals = Marginals(Groups.single(schema), np.array([(0, 1), (58, 59)], np.int32))
    fresh = LocalEngine().tabulate(table, schema, marginals, OutOfDomain.REFUSE)
    engine.count(table, asked, OutOfDomain.REFUSE)
    np.testing.assert_array_equal(
        engine.tabulate(table, schema, marginals, OutOfDomain.REFUSE), fresh
    )
    other = BiasedTable(500, 60, seed=4)
    np.testing.assert_array_equal(
        engine.tabulate(other, schema, marginals, OutOfDomain.REFUSE),
        LocalEngine().tabulate(other, schema, marginals, OutOfDomain.REFUSE),
    )


def test_a_few_conjunctions_of_a_wide_table_use_their_own_columns() -> None:
    table = BiasedTable(500, 60, seed=3)
    packed = PackedRows.pack(table, table.schema, Literals.single(np.arange(60), np.ones(60)))
    terms = np.array([(7, 118), (2, 5), (118, 40)], np.int32)
    bits = np.unpackbits(packed.blocks[0].view(np.uint8), axis=1, bitorder="little")[:, :500]
    expected = [
        sum(all(bits[t >> 1, row] != (t & 1) for t in query) for row in range(500))
        for query in terms
    ]
    np.testing.assert_array_equal(count_by_popcounts(Tally(packed), terms), expected)


def test_rows_of_persons_are_weighed() -> None:
    """Bits cannot say what a row weighs, so such tables are counted and tabulated by weight."""
    schema = Schema((Attribute.binary("a"), Attribute.binary("b")))
    frame = pd.DataFrame({"who": list("xxyz"), "a": [1, 1, 1, 0], "b": [0, 1, 0, 0]})
    persons = Persons("who", 2, Weigh.PERSON)
    table = ByPerson(open_table(frame), persons)
    engine = LocalEngine()
    asked = Workload.of([parse("a=1", schema), parse("a=1 & b=1", schema)], schema)
    counted = engine.count(table, asked, OutOfDomain.REFUSE)
    marginals = Marginals(Groups.single(schema), np.array([(0, 1)], np.int32))
    cells = engine.tabulate(table, schema, marginals, OutOfDomain.REFUSE)
    assert counted.rows == cells.sum() == 6  # three persons, two parts each
    np.testing.assert_array_equal(counted.counts, [4, 1])
    np.testing.assert_array_equal(cells, [2, 0, 3, 1])
