"""Whole marginals counted from codes, against a plain twin that looks at one row at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from dualquery.base.errors import ParameterError, TableError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.paper.datasets import BiasedTable
from dualquery.rows import table as tables
from dualquery.rows import tabulation
from dualquery.rows._tabulation_kernels import count_marked, mark_codes
from dualquery.rows.counting import count_packed
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.opening import open_table
from dualquery.rows.packed import PackedRows
from dualquery.rows.tabulation import tabulate
from dualquery.workloads.marginals import Groups, Marginals


def twin(rows: EncodedRows, marginals: Marginals, number: int) -> np.ndarray:
    """The cells of one marginal, one row at a time."""
    counts: dict[tuple[int, ...], int] = {}
    for row in range(rows.rows):
        cell = tuple(
            int(marginals.groups.of_attribute(a)[int(rows.columns[a][row])])
            for a in marginals.attributes[number].tolist()
        )
        counts[cell] = counts.get(cell, 0) + 1
    return np.array([counts.get(cell, 0) for cell in np.ndindex(*marginals.shapes[number])])


def of(groups: Groups, *attributes: tuple[int, ...]) -> Marginals:
    return Marginals(groups, np.array(attributes, dtype=np.int32))


@pytest.fixture
def schema() -> Schema:
    sizes = {"few": 2, "some": 7, "many": 300, "most": 70_000}
    return Schema(tuple(Attribute.categorical(n, list(range(s))) for n, s in sizes.items()))


@pytest.fixture
def frame(schema: Schema) -> pa.Table:
    random = np.random.default_rng(3)
    return pa.table(
        {
            a.name: np.minimum(random.geometric(min(0.5, 4 / a.size), 999) - 1, a.size - 1)
            for a in schema.attributes
        }
    )


def test_codes_take_the_smallest_type_that_holds_them(schema: Schema, frame: pa.Table) -> None:
    rows = EncodedRows.read(open_table(frame), schema, range(4))
    assert [rows.columns[a].dtype for a in range(4)] == [np.uint8, np.uint8, np.uint16, np.uint32]
    for attribute in range(4):
        assert rows.columns[attribute].tolist() == frame.column(attribute).to_pylist()


ROUTES = {"the cheaper": tabulation.ROW_NS, "row by row": -1e9, "popcounts": 1e9}
"""What entering a row is said to cost, so that one route is taken or the other."""


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("tile", [1, 64, 1000, 1 << 14])
def test_all_marginals_agree_with_the_twin(
    schema: Schema, frame: pa.Table, tile: int, route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tabulation, "TILE", tile)
    monkeypatch.setattr(tabulation, "MARKED_WORDS", max(1, tile // 64))
    monkeypatch.setattr(tabulation, "ROW_NS", ROUTES[route])
    monkeypatch.setattr(tables, "BLOCK_ROWS", 128)
    rows = EncodedRows.read(open_table(frame), schema, range(4))
    random = np.random.default_rng(1)
    groups = Groups.single(schema)
    mixed = np.append(np.arange(5), random.integers(0, 5, 295)).astype(np.int32)
    coarse = groups.merged(2, mixed).merged(3, (np.arange(70_000) // 10_000).astype(np.int32))
    for marginals in (
        of(groups, (1,), (3,), (0,)),
        of(groups, (2, 0), (1, 2)),
        of(coarse, (1, 2, 3), (3, 0, 1)),
        of(coarse, (3, 2, 1, 0)),
        of(coarse, (0, 2), (3, 1), (1, 2), (0, 1), (2, 3)),
        of(groups.merged(1, np.array([6, 0, 5, 1, 4, 2, 3], np.int32)), (1, 0), (2, 1)),
    ):
        counted = tabulate(rows, marginals)
        for number in range(len(marginals)):
            part = counted[marginals.start[number] : marginals.start[number + 1]]
            assert part.sum() == 999
            np.testing.assert_array_equal(part, twin(rows, marginals, number))


def test_small_tables_are_counted_by_popcounts_and_large_ones_row_by_row(schema: Schema) -> None:
    groups = Groups.single(schema)
    pairs = of(groups, (0, 1), (1, 2), (0, 3))
    assert tabulation._worth_marks(pairs).tolist() == [True, False, False]
    # The marks of 20 codes are too dear for one table, but not if they are made for eight.
    columns = Schema(tuple(Attribute.categorical(f"c{i}", list(range(20))) for i in range(9)))
    single = Groups.single(columns)
    assert not tabulation._worth_marks(of(single, (0, 1))).any()
    every = of(single, *((i, j) for i in range(9) for j in range(i)))
    assert tabulation._worth_marks(every).all()


def test_both_routes_take_part_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabulation, "MARKED_WORDS", 1)
    columns = Schema(tuple(Attribute.categorical(f"c{i}", list(range(5 + i))) for i in range(5)))
    large = Attribute.categorical("large", list(range(200)))
    whole = Schema((*columns.attributes, large))
    random = np.random.default_rng(5)
    frame = pa.table({a.name: random.integers(0, a.size, 5_003) for a in whole.attributes})
    rows = EncodedRows.read(open_table(frame), whole, range(6))
    marginals = of(Groups.single(whole), *((i, j) for i in range(6) for j in range(i)))
    marked = tabulation._worth_marks(marginals)
    assert marked.any()
    assert not marked.all()
    counted = tabulate(rows, marginals)
    for number in range(len(marginals)):
        part = counted[marginals.start[number] : marginals.start[number + 1]]
        np.testing.assert_array_equal(part, twin(rows, marginals, number))


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 640, 1000])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32])
def test_marks_are_the_rows_of_each_code(rows: int, kind: type) -> None:
    codes: np.ndarray = np.random.default_rng(rows).integers(0, 7, rows).astype(kind)
    words = -(-rows // 64)
    bits = np.full((9, words + 1), 12345, dtype=np.uint64)
    mark_codes(codes, 7, bits, 1)
    found = np.unpackbits(bits[1:8, :words].copy().view(np.uint8), axis=1, bitorder="little")
    np.testing.assert_array_equal(found[:, :rows], codes == np.arange(7)[:, None])
    assert not found[:, rows:].any()
    assert (bits[[0, 8]] == 12345).all()
    assert (bits[:, words:] == 12345).all()


@pytest.mark.parametrize("arity", [1, 2, 3, 4])
def test_marked_rows_are_counted_as_bits_one_by_one(arity: int) -> None:
    random = np.random.default_rng(arity)
    sizes = np.array([2, 5, 4, 3, 9])
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    bits = random.integers(0, 1 << 63, (23, 12), dtype=np.uint64)
    on = np.unpackbits(bits[:, :11].copy().view(np.uint8), axis=1, bitorder="little").astype(int)
    chosen = np.array([random.permutation(5)[:arity] for _ in range(6)])
    shapes = sizes[chosen]
    start = np.concatenate([[0], np.cumsum(shapes.prod(axis=1))])
    counted = np.full(start[-1] + 1, 1000)
    count_marked(bits, 11, first[chosen], shapes, start, counted)
    for table, attributes in enumerate(chosen):
        cells = np.ones((1, on.shape[1]), dtype=int)
        for a in attributes:
            marks = on[first[a] : first[a] + sizes[a]]
            cells = (cells[:, None] * marks[None]).reshape(-1, on.shape[1])
        part = counted[start[table] : start[table + 1]]
        np.testing.assert_array_equal(part, 1000 + cells.sum(axis=1))
    assert counted[-1] == 1000


def test_cells_agree_with_the_same_cells_as_queries(schema: Schema, frame: pa.Table) -> None:
    groups = Groups.single(schema).merged(2, (np.arange(300) % 9).astype(np.int32))
    marginals = of(groups, (2, 1), (0, 2))
    queries = marginals.queries(schema)
    packed = PackedRows.pack(open_table(frame), schema, queries.literals)
    rows = EncodedRows.read(open_table(frame), schema, (0, 1, 2))
    np.testing.assert_array_equal(tabulate(rows, marginals), count_packed(packed, queries).counts)


def test_sparse_and_generated_tables_have_codes_too() -> None:
    random = np.random.default_rng(0)
    dense = random.random((500, 6)) < 0.3
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(6)))
    rows = EncodedRows.read(open_table(sparse.csr_matrix(dense)), schema, (5, 2))
    assert sorted(rows.columns) == [2, 5]
    for attribute, codes in rows.columns.items():
        np.testing.assert_array_equal(codes, dense[:, attribute])
    generated = BiasedTable(300, 10)
    bound = generated.bind(Schema(tuple(Attribute.binary(f"a{i}") for i in range(10))))
    made = EncodedRows.read(generated, bound, (0, 9))
    pair = of(Groups.single(bound), (0, 9))
    np.testing.assert_array_equal(tabulate(made, pair), twin(made, pair, 0))


def test_a_table_without_rows_and_a_marginal_without_end_are_refused(
    schema: Schema, frame: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TableError, match="no rows"):
        EncodedRows.read(open_table(frame.slice(0, 0)), schema, range(4))
    monkeypatch.setattr(tabulation, "MOST_CELLS", 100)
    rows = EncodedRows.read(open_table(frame), schema, (2,))
    with pytest.raises(ParameterError, match="300 cells"):
        tabulate(rows, of(Groups.single(schema), (2,)))
