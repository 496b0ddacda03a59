"""Reading files: what counts as a row, and what cannot be read, said in one line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.base.errors import TableError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.rows.csv_file import CsvTable
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table

SINGLE = Schema((Attribute.categorical("x", ["a", "b"], missing=True),))
PAIR = Schema((*SINGLE.attributes, Attribute.categorical("y", ["a", "b"], missing=True)))
ENDINGS = [".csv", ".tsv", ".csv.gz", ".tsv.gz"]


def write(path: Path, text: str) -> Path:
    content = text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def codes(path: Path, schema: Schema) -> list[list[int]]:
    """All codes, one list per attribute."""
    table = open_table(path)
    bound = table.bind(schema)
    found: list[list[int]] = [[] for _ in bound.names]
    for block in table.blocks(bound, range(len(bound)), OutOfDomain.REFUSE):
        for position in range(len(bound)):
            found[position].extend(block.codes(position).tolist())
    return found


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("line", ["\n", "\r\n"])
def test_a_blank_line_of_one_column_is_a_missing_cell(tmp_path, ending, line) -> None:
    for cells in (["a", "", "b"], ["", "a", "b"], ["a", "b", ""], ["", "", ""], ["a", '""', "b"]):
        path = write(tmp_path / f"one{ending}", "".join(cell + line for cell in ["x", *cells]))
        expected = [{"a": 0, "b": 1}.get(cell, 2) for cell in cells]
        assert codes(path, SINGLE) == [expected]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_blank_line_of_several_columns_is_no_row(tmp_path, ending) -> None:
    """There a row of missing cells is a line of separators."""
    mark = "\t" if "tsv" in ending else ","
    lines = [f"x{mark}y", f"a{mark}b", "", mark, f"b{mark}", "", ""]
    path = write(tmp_path / f"two{ending}", "\n".join(lines) + "\n")
    assert codes(path, PAIR) == [[0, 2, 1], [1, 2, 2]]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_last_row_must_end(tmp_path, ending) -> None:
    """If it need not, a missing last cell would look like the end of the file."""
    with pytest.raises(TableError, match="no line end after its last row"):
        codes(write(tmp_path / f"one{ending}", "x\na\nb"), SINGLE)
    with pytest.raises(TableError, match="begins with a blank line"):
        codes(write(tmp_path / f"two{ending}", "\nx\na\nb\n"), SINGLE)
    mark = "\t" if "tsv" in ending else ","
    path = write(tmp_path / f"three{ending}", f"x{mark}y\na{mark}b")
    assert codes(path, PAIR) == [[0], [1]]


@pytest.mark.parametrize("place", [0, 49, 99])
def test_the_number_of_rows_does_not_depend_on_a_cell(tmp_path, place) -> None:
    """Replace-one neighbours have the same published number of records."""
    job = DualQuery(epsilon=5.0, delta=1e-3, queries=3, k=1, rounds=2, samples=2, refit=False)
    sizes = set()
    for cell in ("a", "b", ""):
        cells = ["a"] * 100
        cells[place] = cell
        path = write(tmp_path / "one.csv", "".join(f"{line}\n" for line in ["x", *cells]))
        job.release(path, tmp_path / "out", schema=SINGLE, overwrite=True)
        told = json.loads((tmp_path / "out" / "release.json").read_text())
        sizes.add((told["privacy"]["rows"], told["parameters"]["table_size"]))
    assert sizes == {(100, 100)}


@given(cells=st.lists(st.sampled_from(["", "a", "b"]), max_size=80), block=st.integers(6, 40))
def test_blank_lines_survive_the_borders_of_blocks(cells, block) -> None:
    from pyarrow import csv

    text = "".join(f"{line}\n" for line in ["x", *cells])
    read = csv.open_csv(
        pa.BufferReader(text.encode()),
        read_options=csv.ReadOptions(block_size=block),
        parse_options=csv.ParseOptions(ignore_empty_lines=False),
        convert_options=csv.ConvertOptions(
            column_types={"x": pa.string()}, null_values=[""], strings_can_be_null=True
        ),
    ).read_all()
    assert read.column("x").to_pylist() == [cell or None for cell in cells]


def test_a_file_of_one_column_is_known_by_its_header(tmp_path) -> None:
    table = open_table(write(tmp_path / "one.csv", "x\n\n"))
    assert isinstance(table, CsvTable)
    assert table.single
    assert table.header == ("x",)
