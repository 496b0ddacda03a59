"""The same rows from every kind of source give the same counts, however they are cut."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from scipy import sparse

from dualquery.base.errors import ParameterError, SchemaError, TableError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.rows import sparse as streams
from dualquery.rows import table as tables
from dualquery.rows.arrow import batch_rows
from dualquery.rows.counting import count_rows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.long import LongTable
from dualquery.rows.opening import open_table
from dualquery.rows.packed import PackedRows
from dualquery.workloads.generators import all_marginals, parities, random_marginals
from dualquery.workloads.workload import Workload

WIDTH, ROWS = 7, 1000


@pytest.fixture
def schema() -> Schema:
    return Schema(tuple(Attribute.binary(f"x{i}") for i in range(WIDTH)))


@pytest.fixture
def cells() -> np.ndarray:
    return (np.random.default_rng(2).random((ROWS, WIDTH)) < 0.2).astype(np.int8)


@pytest.fixture
def workload(schema: Schema) -> Workload:
    return random_marginals(schema, 3, 100) + all_marginals(schema, 2) + parities(schema, 3, 20)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks, batches and pieces so small that every seam is crossed."""
    monkeypatch.setattr(tables, "BLOCK_ROWS", 256)
    monkeypatch.setattr(tables, "BATCH_CELLS", 64 * WIDTH)
    monkeypatch.setattr(streams, "BATCH", 50)


def counts(source: object, workload: Workload) -> np.ndarray:
    table = open_table(source)
    assert table.bind(workload.schema) == workload.schema
    answers = count_rows(table, workload)
    assert answers.rows == ROWS
    return answers.counts


@pytest.fixture
def expected(cells: np.ndarray, workload: Workload) -> np.ndarray:
    held = cells[:, workload.literals.attribute] == workload.literals.codes
    total = []
    for q in range(len(workload)):
        terms = workload.terms[workload.start[q] : workload.start[q + 1]]
        holds = held[:, terms >> 1] != (terms & 1)
        parity = workload.is_parity[q]
        total.append((holds.sum(axis=1) % 2 == 0).sum() if parity else holds.all(axis=1).sum())
    return np.array(total)


def frame(cells: np.ndarray) -> pa.Table:
    return pa.table({f"x{i}": cells[:, i] for i in range(cells.shape[1])})


def test_frames_and_files(cells, workload, expected, tmp_path: Path) -> None:
    wide = frame(cells)
    parquet.write_table(wide, tmp_path / "one.parquet", row_group_size=300)
    csv.write_csv(wide, tmp_path / "one.csv")
    folder = tmp_path / "folder"
    folder.mkdir()
    for part, first in enumerate(range(0, ROWS, 333)):
        parquet.write_table(wide.slice(first, 333), folder / f"{part}.parquet")
    for source in (wide, tmp_path / "one.parquet", tmp_path / "one.csv", folder):
        np.testing.assert_array_equal(counts(source, workload), expected)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_sparse_matrices_and_files(kind, cells, workload, expected, tmp_path: Path) -> None:
    matrix = sparse.csr_matrix(cells).asformat(kind)
    before = matrix.copy()
    np.testing.assert_array_equal(counts(matrix, workload), expected)
    assert (matrix != before).nnz == 0
    for name, form in (("m", matrix), ("a", sparse.coo_array(cells).asformat(kind))):
        sparse.save_npz(tmp_path / f"{name}.npz", form)
        np.testing.assert_array_equal(counts(tmp_path / f"{name}.npz", workload), expected)


def test_stored_zeros_and_disorder_do_not_count(cells, workload, expected) -> None:
    matrix = sparse.csc_matrix(cells)
    matrix.data[::3] = 0
    on = cells.copy()
    on[matrix.tocoo().row[::3], matrix.tocoo().col[::3]] = 0
    clean = counts(sparse.csc_matrix(on), workload)
    np.testing.assert_array_equal(counts(matrix, workload), clean)
    assert matrix.nnz == cells.sum()  # the caller's matrix is as it was


def test_a_sparse_file_of_other_numbers_is_refused(workload, cells, tmp_path: Path) -> None:
    matrix = sparse.csc_matrix(cells.astype(np.int64))
    matrix.data[60] = 2
    sparse.save_npz(tmp_path / "m.npz", matrix)
    with pytest.raises(TableError, match=r"column \d of the sparse matrix holds another number"):
        counts(tmp_path / "m.npz", workload)
    (tmp_path / "bad.npz").write_bytes(b"no archive")
    with pytest.raises(TableError, match="as a sparse matrix"):
        open_table(tmp_path / "bad.npz")


@pytest.mark.parametrize("ids", ["numbers", "names"])
def test_long_format(ids, cells, workload, expected, tmp_path: Path) -> None:
    row, item = np.nonzero(cells)
    order = np.random.default_rng(0).permutation(len(row))  # in no order, and some pairs twice
    order = np.concatenate([order, order[:30]])
    record = row[order] * 7 + 3 if ids == "numbers" else [f"p{r}" for r in row[order]]
    pairs = pa.table({"who": record, "stars": np.ones(len(order)), "what": item[order]})
    parquet.write_table(pairs, tmp_path / "p.parquet")
    csv.write_csv(pairs, tmp_path / "p.csv")
    for source in (pairs, tmp_path / "p.parquet", tmp_path / "p.csv"):
        table = LongTable(source, "who", "what", prefix="x", declared_rows=ROWS)
        np.testing.assert_array_equal(counts(table, workload), expected)
    found = PackedRows.pack(
        LongTable(pairs, "who", "what", prefix="x"), workload.schema, workload.literals
    )
    assert found.rows == cells.any(axis=1).sum()


def test_long_format_is_declared(schema: Schema, workload: Workload) -> None:
    pairs = pa.table({"who": ["a", "a", "b"], "what": ["x0", "x9", "x1"]})
    with pytest.raises(TableError, match="an item is not declared"):
        PackedRows.pack(LongTable(pairs, "who", "what"), schema, workload.literals)
    left_out = PackedRows.pack(
        LongTable(pairs, "who", "what"), schema, workload.literals, OutOfDomain.MISSING
    )
    assert left_out.rows == 2
    with pytest.raises(TableError, match="no column 'item'"):
        LongTable(pairs, "who", "item")
    one = LongTable(pairs, "who", "what", declared_rows=1)
    with pytest.raises(TableError, match="more rows than the 1 that were declared"):
        PackedRows.pack(one, schema, workload.literals)
    gap = LongTable(pa.table({"who": ["a", None], "what": ["x0", "x1"]}), "who", "what")
    with pytest.raises(TableError, match="a cell is missing"):
        PackedRows.pack(gap, schema, workload.literals)
    with pytest.raises(SchemaError, match="is not binary"):
        LongTable(pairs, "who", "what").bind(Schema((Attribute.categorical("c", ["a"]),)))
    with pytest.raises(TableError, match="no rows"):
        PackedRows.pack(LongTable(pairs.slice(0, 0), "who", "what"), schema, workload.literals)


def test_batches_shrink_with_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert batch_rows(1) == tables.BLOCK_ROWS
    for columns in (100, 1000, 20_000, 10**7):
        rows = batch_rows(columns)
        assert tables.BLOCK_ROWS % rows == 0
        assert rows == 64 or rows * columns <= tables.BATCH_CELLS


def test_a_declared_number_of_records_is_refused_under_add_remove() -> None:
    """It fills the table up with empty records: adding one replaces one, at twice the price."""
    pairs = pa.table({"who": [1, 1, 2], "what": ["a", "b", "a"]})
    schema = Schema((Attribute.binary("a"), Attribute.binary("b")))
    job = DualQuery(
        epsilon=9.0, delta=1e-3, rounds=2, samples=2, eta=0.1, queries=4, k=1, player="record",
        refit=False,
    )  # fmt: skip
    table = LongTable(pairs, "who", "what", declared_rows=50)
    job.fit(table, schema=schema)
    with pytest.raises(ParameterError, match="records declares the number of records"):
        replace(job, neighbours="add-remove", rows=50).fit(table, schema=schema)


def test_the_number_of_records_that_occur_is_not_published() -> None:
    """Person 2 may have no item instead: a neighbour under replacement, with one id less."""
    schema = Schema((Attribute.binary("a"), Attribute.binary("b")))
    job = DualQuery(
        epsilon=9.0, delta=1e-3, rounds=2, samples=2, eta=0.1, queries=4, k=1, player="record",
        refit=False,
    )  # fmt: skip
    stated = set()
    for who, what in (([1, 1, 2], ["a", "b", "a"]), ([1, 1], ["a", "b"])):
        pairs = pa.table({"who": who, "what": what})
        with pytest.raises(ParameterError, match=r"pairs do not show records.*declared_rows=N"):
            job.fit(LongTable(pairs, "who", "what"), schema=schema)
        made = job.fit(LongTable(pairs, "who", "what", declared_rows=2), schema=schema)
        stated.add(made.privacy.rows)
        hidden = replace(job, neighbours="add-remove", rows=7)
        assert hidden.fit(LongTable(pairs, "who", "what"), schema=schema).privacy.rows == 7
    assert stated == {2}
