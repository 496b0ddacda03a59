"""Every kind of table that people have gives the same codes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import dualquery as dq
from dualquery.base.errors import DualQueryError, TableError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.release.frames import FrameStyle
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.opening import open_table

SCHEMA = Schema(
    (
        Attribute.categorical("sex", ["f", "m"]),
        Attribute.numeric("age", [0, 50, 100], missing=True),
    )
)
ROWS = pa.table({"id": [1, 2, 3, 4], "age": [30, None, 60, 99], "sex": ["f", "m", "m", "f"]})
CODES = [[0, 0], [1, 2], [1, 1], [0, 1]]


class Relation:
    """What a DuckDB relation offers; a query may be run only once."""

    def __init__(self, table: pa.Table) -> None:
        self.table, self.runs = table, 0

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        self.runs += 1
        return self.table.__arrow_c_stream__(requested_schema)


class FaceDataset:
    """What a data set of `datasets` offers."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.column_names = table.column_names
        self.num_rows = table.num_rows

    def with_format(self, kind: str) -> FaceDataset:
        assert kind == "arrow"
        return self

    def __getitem__(self, rows: slice) -> pa.Table:
        return self.table.slice(rows.start, rows.stop - rows.start)


def folder(path: Path, ending: str) -> Path:
    place = path / f"folder-{ending}"
    place.mkdir()
    for number, part in enumerate((ROWS.slice(0, 3), ROWS.slice(3))):
        write = csv.write_csv if ending == "csv" else parquet.write_table
        write(part, place / f"part-{number}.{ending}")
    return place


SOURCES = {
    "pyarrow": lambda path: ROWS,
    "pandas": lambda path: ROWS.to_pandas(),
    "polars": lambda path: pl.from_arrow(ROWS),
    "lazy": lambda path: pl.from_arrow(ROWS).lazy().filter(pl.col("id") > 0),
    "batch": lambda path: ROWS.to_batches()[0],
    "reader": lambda path: ROWS.to_reader(),
    "stream": lambda path: Relation(ROWS),
    "data set": lambda path: FaceDataset(ROWS),
    "dictionary": lambda path: ROWS.to_pydict(),
    "arrays": lambda path: {n: np.array(c.to_pylist(), object) for n, c in zip(
        ROWS.column_names, ROWS.columns, strict=True)},
    "csv folder": lambda path: folder(path, "csv"),
    "parquet folder": lambda path: folder(path, "parquet"),
}  # fmt: skip


@pytest.mark.parametrize("kind", SOURCES)
def test_the_same_codes_from_every_kind(kind: str, tmp_path: Path) -> None:
    source = SOURCES[kind](tmp_path)
    table = open_table(source)
    for _ in range(2):  # a table is read in several passes
        found = EncodedRows.read(table, table.bind(SCHEMA), [0, 1])
        assert np.column_stack([found.columns[0], found.columns[1]]).tolist() == CODES
    assert sum(batch.num_rows for batch in table.batches(["id"])) == 4
    assert dq.check(
        SOURCES[kind](tmp_path / "again") if "folder" not in kind else source, SCHEMA
    ).ok


def test_a_stream_is_run_once() -> None:
    source = Relation(ROWS)
    table = open_table(source)
    list(table.batches(["sex"]))
    list(table.batches(["age"]))
    assert source.runs == 1


def test_a_lazy_frame_gives_polars_back() -> None:
    assert FrameStyle.of(pl.DataFrame({"a": [1]}).lazy()).backend == "polars"
    assert FrameStyle.of({"a": [1]}).backend == "pyarrow"


def bad_folder(path: Path, *names: str) -> Path:
    place = path / "bad"
    place.mkdir()
    for number, name in enumerate(names):
        (place / name).write_text(f"a,b{number}\n1,2\n")
    return place


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (lambda path: {"a": [1], "b": [1, 2]}, "column 'a' has 1 cells and column 'b' has 2"),
        (lambda path: {"a": "text"}, "column 'a' is str; expected a sequence"),
        (lambda path: {"a": 1}, "column 'a' is int"),
        (lambda path: {"train": FaceDataset(ROWS)}, "splits 'train'; pass one of them"),
        (lambda path: pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns named 'a'"),
        (lambda path: ROWS.select(["id", "id"]), "two columns named 'id'"),
        (lambda path: Relation(ROWS.select(["id", "id"])), "two columns named 'id'"),
        (lambda path: bad_folder(path, "x.csv", "y.csv"), "different columns: only one .* 'b0'"),
        (lambda path: bad_folder(path, "x.csv", "y.parquet"), "CSV and Parquet files"),
        (lambda path: bad_folder(path, "x.txt"), "has no .csv and no .parquet file"),
        (lambda path: 5, "Arrow stream, a dictionary of columns, .* found int"),
    ],
)  # fmt: skip
def test_one_line_about_what_is_wrong(source, message: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=message) as error:
        open_table(source(tmp_path))
    assert "\n" not in str(error.value)


def test_a_csv_with_two_columns_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,age,sex\n1,2,f\n")
    with pytest.raises(DualQueryError, match="two columns named 'age'"):
        open_table(tmp_path / "t.csv").bind(SCHEMA)


def test_a_lazy_frame_that_fails() -> None:
    lazy = pl.DataFrame({"sex": ["f"], "age": ["x"]}).lazy().with_columns(pl.col("age").cast(int))
    table = open_table(lazy)
    with pytest.raises(TableError, match="cannot collect the lazy frame"):
        EncodedRows.read(table, table.bind(SCHEMA), [0, 1])
