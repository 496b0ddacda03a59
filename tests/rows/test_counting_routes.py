"""Mixed workloads on every route of counting, against a twin that shares no code with the package.

Routes are taken in two ways: by the cost model itself, on tables large enough for each of them, and
by force, each route on every query that it accepts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from scipy import sparse

import dualquery as dq
from dualquery.domain.attributes import Attribute
from dualquery.domain.query import Literal, Query
from dualquery.domain.schema import Schema
from dualquery.engines.parts import add_parts, count_part, cut
from dualquery.rows import counting
from dualquery.rows import table as tables
from dualquery.rows.arrow import ParquetTable
from dualquery.rows.counting import Tally, count_packed
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.long import LongTable
from dualquery.rows.opening import open_table
from dualquery.rows.packed import PackedRows
from dualquery.workloads.workload import Literals, Workload
from tests.plain import (
    STYLES,
    Part,
    Twin,
    categorical,
    joined,
    part_of,
    probed,
    random_rows,
    some_queries,
    values_of,
    whole_tables,
)

ROUTES = {
    "popcounts": "count_by_popcounts",
    "lists": "count_by_lists",
    "tables": "count_by_tables",
    "singles": "_count_single",
    "parities": "count_parities",
}


def rare_queries(random: np.random.Generator, schema: Schema, length: int) -> Part:
    """Conjunctions of a rare code (the last of its attribute) and two literals of any kind."""
    queries = []
    for _ in range(length):
        rare, *others = random.permutation(len(schema))[:3].tolist()
        literals = [Literal(rare, (int(schema.sizes[rare]) - 1,))]
        for position in others:
            size = int(schema.sizes[position])
            codes = random.permutation(size)[: int(random.integers(1, size + 1))]
            literals.append(
                Literal(position, tuple(sorted(codes.tolist())), bool(random.integers(0, 2)))
            )
        queries.append(Query("conjunction", tuple(literals[i] for i in random.permutation(3))))
    return part_of(queries, schema)


# What is counted


def pack(source: Any, workload: Workload) -> PackedRows:
    table = open_table(source)
    assert table.bind(workload.schema) == workload.schema
    return PackedRows.pack(table, workload.schema, workload.literals)


class Calls:
    """How many queries each route has counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.queries = dict.fromkeys(ROUTES, 0)
        for route, name in ROUTES.items():
            monkeypatch.setattr(counting, name, self._counted(route, getattr(counting, name)))

    def _counted(self, route: str, function: Any) -> Any:
        def wrapped(*arguments: Any) -> Any:
            self.queries[route] += len(arguments[-1])
            return function(*arguments)

        return wrapped


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(monkeypatch)


def accepted(part: Part, schema: Schema) -> Iterator[tuple[str, np.ndarray]]:
    """Per route and arity, the queries it accepts, by the twin's own reading of them."""
    arity = np.array([len(q.terms) for q in part.plain])
    parity = np.array([q.parity for q in part.plain])
    negated = np.array([[t.negated for t in q.terms].count(True) for q in part.plain])
    longest = np.array([max(len(t.values) for t in q.terms) for q in part.plain])
    levels = {a.name: len(values_of(a)) + 1 for a in schema.attributes}
    cells = np.array([float(prod(levels[t.column] for t in q.terms)) for q in part.plain])
    plain = ~parity
    for k in np.unique(arity):
        of = arity == k
        yield "parities", np.flatnonzero(of & parity)
        yield "popcounts", np.flatnonzero(of & plain)
        yield "lists", np.flatnonzero(of & plain & (negated < arity) & (k > 1))
        fits = (negated == 0) & (longest == 1) & (cells <= counting.MOST_CELLS)
        yield "tables", np.flatnonzero(of & plain & fits)
        if k == 1:
            yield "singles", np.flatnonzero(of & plain)


def check_forced(packed: PackedRows, part: Part, expected: np.ndarray) -> set[str]:
    """Every route on everything it accepts; which routes had anything to count."""
    workload, taken = part.workload, set()
    tally = Tally(packed)
    for route, chosen in accepted(part, workload.schema):
        if not len(chosen):
            continue
        taken.add(route)
        k = len(part.plain[chosen[0]].terms)
        terms = workload.terms[workload.start[chosen][:, None] + np.arange(k)]
        function = getattr(counting, ROUTES[route])
        if route == "tables":
            found = function(tally, workload, terms)
        elif route == "singles":
            found = function(tally, terms[:, 0])
        else:
            found = function(tally, terms)
        np.testing.assert_array_equal(found, expected[chosen], err_msg=route)
    return taken


# The example of the report


def test_cells_keep_their_counts_beside_sets() -> None:
    schema = Schema(tuple(Attribute.categorical(c, list("ghijklmnopqrstu")) for c in "abc"))
    random = np.random.default_rng(0)
    rows = random_rows(random, schema, 1000)
    cells = whole_tables(schema, 3)
    extra = part_of([dq.parse("a in {q, r, s}", schema)], schema)
    expected = Twin(rows).count(cells.plain)
    assert expected.sum() == 1000
    for parts in ([cells], [cells, extra], [extra, cells]):
        part = joined(parts)
        found = count_packed(pack(pa.table(rows), part.workload), part.workload).counts
        np.testing.assert_array_equal(found, Twin(rows).count(part.plain))


# Small tables: everything by force


@settings(max_examples=150)
@given(st.data())
def test_every_route_by_force(data: st.DataObject) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), label="seed"))
    schema = categorical(*data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    kinds = data.draw(st.lists(st.sampled_from([*STYLES, "whole"]), min_size=1, max_size=4))
    parts = [
        whole_tables(schema, int(random.integers(1, len(schema) + 1)))
        if kind == "whole"
        else some_queries(random, schema, kind, int(random.integers(1, 12)))
        for kind in kinds
    ]
    part = joined(parts)
    if data.draw(st.booleans(), label="probes"):
        part = probed(part, int(random.integers(0, 5)))
        # A thousand two-way probes would be too many: a part of all queries, in random order.
        keep = random.permutation(len(part.plain))[:200]
        part = Part(part.workload.take(keep), [part.plain[i] for i in keep])
    rows = random_rows(random, schema, data.draw(st.integers(1, 300), label="rows"))
    block = data.draw(st.sampled_from([64, 128, 1 << 16]), label="rows of a block")
    expected = Twin(rows).count(part.plain)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "BLOCK_ROWS", block)
        packed = pack(pa.table(rows), part.workload)
    assert packed.rows == len(rows["c0"])
    np.testing.assert_array_equal(count_packed(packed, part.workload).counts, expected)
    check_forced(packed, part, expected)


# Larger tables: routes as the cost model takes them


def everything(random: np.random.Generator, schema: Schema, k: int) -> Part:
    """All kinds of queries, in parts in random order, then the probes; enough for all routes."""
    parts = [
        whole_tables(schema, k),
        *(some_queries(random, schema, style, int(random.integers(5, 60))) for style in STYLES),
        rare_queries(random, schema, 400),
        # Without these, rare queries would be too few for lists beside the probes' literals.
        rare_queries(random, schema, int(random.integers(300, 600))),
    ]
    part = joined([parts[i] for i in random.permutation(len(parts))])
    return probed(part, int(random.integers(0, 1000)))


def check_taken(packed: PackedRows, part: Part, expected: np.ndarray, calls: Calls) -> None:
    """The counts, by the routes of the cost model, all of which are taken, and by all others."""
    calls.queries = dict.fromkeys(ROUTES, 0)
    np.testing.assert_array_equal(count_packed(packed, part.workload).counts, expected)
    assert all(calls.queries.values()), calls.queries
    assert check_forced(packed, part, expected) == set(ROUTES)


LARGE = settings(
    max_examples=4,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
"""A seed says it all: a smaller one is no smaller example, so none is looked for."""

seeds = st.integers(0, 2**32 - 1)
ragged = st.integers(64 * 60, 64 * 120).filter(lambda rows: rows % 64 != 0)


@LARGE
@given(seeds, ragged, st.sampled_from([64 * 25, 1 << 16]))
def test_dense_tables(calls: Calls, seed: int, rows: int, block: int) -> None:
    random = np.random.default_rng(seed)
    schema = categorical(*random.permutation([2, 3, 10, 10, 11]).tolist())
    part = everything(random, schema, 3)
    cells = random_rows(random, schema, rows, rare=0.5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "BLOCK_ROWS", block)
        packed = pack(pa.table(cells), part.workload)
    assert len(packed.blocks) == -(-rows // block)
    check_taken(packed, part, Twin(cells).count(part.plain), calls)


BITS = 11
"""A table of 0/1 columns must have this many of them to be worth its pass."""


@LARGE
@given(seeds, ragged, st.sampled_from([64 * 25, 1 << 16]), st.booleans())
def test_sparse_and_long_tables(
    calls: Calls, seed: int, rows: int, block: int, pairs: bool
) -> None:
    random = np.random.default_rng(seed)
    schema = categorical(*[2] * BITS)
    part = everything(random, schema, BITS)
    cells = random_rows(random, schema, rows, rare=0.5)
    for name in random.choice(schema.names, 3, replace=False).tolist():
        cells[name] = (random.random(rows) < random.random()).astype(int).tolist()
    matrix = np.array([cells[name] for name in schema.names], dtype=np.int8).T
    if pairs:
        row, item = np.nonzero(matrix)
        order = random.permutation(len(row))
        who, what = row[order], np.array(schema.names)[item[order]]
        # Rows are numbered as they appear and those without an item come last.
        source: Any = LongTable(
            pa.table({"who": who, "what": what}), "who", "what", declared_rows=rows
        )
    else:
        source = sparse.csr_matrix(matrix)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "BLOCK_ROWS", block)
        packed = pack(source, part.workload)
    assert len(packed.blocks) == -(-rows // block)
    check_taken(packed, part, Twin(cells).count(part.plain), calls)


def test_a_table_of_several_whole_blocks(calls: Calls) -> None:
    """Blocks of their real size, of which the last is short and ends within a word."""
    random = np.random.default_rng(0)
    schema = categorical(10, 3, 10, 2, 10)
    part = everything(random, schema, 3)
    cells = random_rows(random, schema, 2 * (1 << 16) + 64 * 3 + 5, rare=0.1)
    packed = pack(pa.table(cells), part.workload)
    assert packed.block_rows == (1 << 16, 1 << 16, 64 * 3 + 5)
    check_taken(packed, part, Twin(cells).count(part.plain), calls)


@settings(LARGE, max_examples=4)
@given(seeds, st.integers(1, 7))
def test_parts_of_a_folder(
    calls: Calls, tmp_path_factory: pytest.TempPathFactory, seed: int, wanted: int
) -> None:
    random = np.random.default_rng(seed)
    schema = categorical(10, 3, 10, 10, 2)
    part = everything(random, schema, 3)
    rows = 12_000 + int(random.integers(0, 64))
    cells = random_rows(random, schema, rows, rare=0.1)
    folder = tmp_path_factory.mktemp("parts")
    whole, cuts = pa.table(cells), sorted(random.integers(1, rows, 2).tolist())
    for number, (first, last) in enumerate(pairwise([0, *cuts, rows])):
        parquet.write_table(
            whole.slice(first, last - first), folder / f"{number}.parquet", row_group_size=2_500
        )
    pieces = cut(ParquetTable(folder), wanted)
    assert len(pieces) >= min(wanted, 4)
    calls.queries = dict.fromkeys(ROUTES, 0)
    counted = [count_part(piece, part.workload, OutOfDomain.REFUSE) for piece in pieces]
    found = add_parts(counted).open()
    assert found.rows == rows
    assert all(calls.queries.values()), calls.queries
    np.testing.assert_array_equal(found.counts, Twin(cells).count(part.plain))


# What the tables must not mix up


def by_hand(schema: Schema, codes: np.ndarray, literals: Literals) -> PackedRows:
    """Packed rows of a matrix of codes, in one block, packed here."""
    rows = len(codes)
    flags = np.zeros((len(literals), -(-rows // 64) * 64), dtype=bool)
    for i in range(len(literals)):
        flags[i, :rows] = np.isin(codes[:, literals.attribute[i]], literals.codes_of(i))
    bits = np.packbits(flags, axis=1, bitorder="little").view("<u8").astype(np.uint64)
    return PackedRows(rows, literals, (bits,), (rows,))


def test_a_literal_that_is_there_twice_is_one_level() -> None:
    """`+` and `of` never make such a workload; arrays from elsewhere may be one."""
    schema = categorical(3, 3)
    literals = Literals.of([(0, (1,)), (1, (0,)), (0, (1,)), (0, (0, 2)), (1, (2,)), (0, (2,))])
    pairs = np.array([[0, 1], [2, 1], [2, 4], [0, 4], [5, 1]], dtype=np.int32)
    workload = Workload(
        schema,
        literals,
        2 * np.arange(len(pairs) + 1, dtype=np.int64),
        2 * pairs.reshape(-1),
        np.zeros(len(pairs), dtype=bool),
    )
    codes = np.random.default_rng(0).integers(0, 3, (300, 2))
    expected = [
        ((codes[:, 0] == a) & (codes[:, 1] == b)).sum()
        for a, b in ((1, 0), (1, 0), (1, 2), (1, 2), (2, 0))
    ]
    tally = Tally(by_hand(schema, codes, literals))
    found = counting.count_by_tables(tally, workload, 2 * pairs)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("form", ["matrix", "pairs"])
def test_a_literal_that_is_there_twice_is_packed_twice(form: str) -> None:
    schema = categorical(2, 2)
    literals = Literals.of([(0, (1,)), (1, (0,)), (0, (1,)), (1, (0,)), (0, (0, 1)), (1, (1,))])
    workload = Workload(
        schema,
        literals,
        np.arange(7, dtype=np.int64),
        2 * np.arange(6, dtype=np.int32),
        np.zeros(6, dtype=bool),
    )
    cells = np.random.default_rng(0).integers(0, 2, (100, 2))
    if form == "matrix":
        source: Any = sparse.csr_matrix(cells)
    else:
        row, item = np.nonzero(cells)
        pairs = pa.table({"who": row, "what": np.array(schema.names)[item]})
        source = LongTable(pairs, "who", "what", declared_rows=100)
    ones = cells.sum(axis=0)
    expected = [ones[0], 100 - ones[1], ones[0], 100 - ones[1], 100, ones[1]]
    np.testing.assert_array_equal(count_packed(pack(source, workload), workload).counts, expected)


def test_an_attribute_that_a_query_names_twice() -> None:
    schema = categorical(4, 3)
    literals = Literals.of([(0, (0,)), (0, (3,)), (1, (1,)), (0, (0, 3))])
    terms = 2 * np.array([[0, 0, 2], [0, 1, 2], [1, 2, 1], [2, 0, 2]], dtype=np.int32)
    workload = Workload(
        schema,
        literals,
        3 * np.arange(len(terms) + 1, dtype=np.int64),
        terms.reshape(-1),
        np.zeros(len(terms), dtype=bool),
    )
    codes = np.random.default_rng(0).integers(0, [4, 3], (300, 2))
    one, other = codes.T
    expected = [
        ((one == 0) & (other == 1)).sum(),
        0,
        ((one == 3) & (other == 1)).sum(),
        ((one == 0) & (other == 1)).sum(),
    ]
    tally = Tally(by_hand(schema, codes, literals))
    np.testing.assert_array_equal(counting.count_by_tables(tally, workload, terms), expected)


@pytest.mark.parametrize("size", [(1 << 16) - 1, 1 << 16, (1 << 16) + 1, 70_000])
def test_more_levels_than_sixteen_bits_hold(size: int) -> None:
    schema = Schema(
        (Attribute.categorical("many", list(range(size))), Attribute.categorical("few", [*"abc"]))
    )
    codes = np.random.default_rng(0).integers(0, schema.sizes, (40, 2))
    codes[:6, 0] = [0, 1, size - 1, size - 2, 65_535 % size, 65_536 % size]
    # Every code except the last is asked for: its rows are in the level of all others, which with
    # sixteen bits would be the level of the first code.
    many = np.repeat(np.arange(size - 1), 2)
    literals = Literals(
        np.repeat(np.array([0, 1], dtype=np.int32), [size - 1, 2]),
        np.arange(size + 2, dtype=np.int64),
        np.concatenate([np.arange(size - 1), [0, 2]]).astype(np.int32),
    )
    terms = 2 * np.column_stack([many, np.tile([size - 1, size], size - 1)]).astype(np.int32)
    workload = Workload(
        schema,
        literals,
        2 * np.arange(len(terms) + 1, dtype=np.int64),
        terms.reshape(-1),
        np.zeros(len(terms), dtype=bool),
    )
    packed = PackedRows.pack(
        open_table(pa.table({"many": codes[:, 0], "few": np.array([*"abc"])[codes[:, 1]]})),
        schema,
        literals,
    )
    expected = np.zeros((size, 3), dtype=np.int64)
    np.add.at(expected, (codes[:, 0], codes[:, 1]), 1)
    found = counting.count_by_tables(Tally(packed), workload, terms)
    np.testing.assert_array_equal(found, expected[many, np.tile([0, 2], size - 1)])


def test_a_table_of_too_many_cells_is_not_chosen_and_refused(calls: Calls) -> None:
    """Enough queries share five attributes for a table to pay, except for its size."""
    schema = categorical(*[20] * 5)
    random = np.random.default_rng(0)
    asked = random.integers(0, 20, (2000, 5)).tolist()
    queries = [
        Query("conjunction", tuple(Literal(a, (code,)) for a, code in enumerate(cell)))
        for cell in asked
    ]
    part = joined([part_of(queries, schema), some_queries(random, schema, "sets", 50)])
    rows = random_rows(random, schema, 640)
    packed = pack(pa.table(rows), part.workload)
    found = count_packed(packed, part.workload).counts
    np.testing.assert_array_equal(found, Twin(rows).count(part.plain))
    assert calls.queries["tables"] == 0
    terms = part.workload.terms[:10_000].reshape(2000, 5)
    with pytest.raises(ValueError, match="a table of 4084101 cells; expected at most 1048576"):
        counting.count_by_tables(Tally(packed), part.workload, terms)


def test_sets_beside_cells_do_not_make_their_tables_too_large(calls: Calls) -> None:
    """The bound counts levels of cells. When it counted other literals too, no table was chosen."""
    schema = categorical(12, 12, 12)
    random = np.random.default_rng(0)
    sets = some_queries(random, schema, "sets", 600)
    part = joined([whole_tables(schema, 3), sets])
    assert np.prod(1.0 + np.bincount(part.workload.literals.attribute)) > counting.MOST_CELLS
    rows = random_rows(random, schema, 640)
    found = count_packed(pack(pa.table(rows), part.workload), part.workload).counts
    np.testing.assert_array_equal(found, Twin(rows).count(part.plain))
    assert calls.queries["tables"] >= 12**3
