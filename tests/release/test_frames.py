"""Cells to codes and back, through every kind of frame."""

from __future__ import annotations

from pathlib import Path

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.base.errors import TableError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.release.frames import FrameStyle, decode, decode_column, write_table
from dualquery.rows.encoding import OutOfDomain, encode_column
from dualquery.rows.opening import open_table
from tests.strategies import code_matrices, schemas


@given(st.data())
def test_decode_then_encode_gives_the_codes_back(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    codes = data.draw(code_matrices(schema))
    generator = data.draw(st.sampled_from([None, np.random.default_rng(0)]))
    table = decode(codes, schema, generator)
    assert table.column_names == list(schema.names)
    for position, attribute in enumerate(schema.attributes):
        found = encode_column(table.column(position), attribute)
        np.testing.assert_array_equal(found, codes[:, position])


@given(st.data())
def test_a_bin_decodes_to_a_value_inside_it(data: st.DataObject) -> None:
    edges = sorted(data.draw(st.lists(st.integers(-99, 99), min_size=2, max_size=5, unique=True)))
    attribute = Attribute.numeric("x", edges)
    codes = np.arange(attribute.size)
    cells = decode_column(codes, attribute, np.random.default_rng(1)).to_numpy()
    assert cells.dtype == np.int64
    assert (cells >= edges[:-1]).all()
    assert (cells[:-1] < edges[1:-1]).all()
    assert cells[-1] <= edges[-1]  # the last bin is closed


BACKENDS = {
    "pandas": lambda table: table.to_pandas(),
    "polars": pl.from_arrow,
    "pyarrow": lambda table: table,
}


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_same_kind_of_frame_comes_back(backend, schema: Schema, rows: pa.Table) -> None:
    frame = BACKENDS[backend](rows)
    source = open_table(frame)
    bound = source.bind(schema)
    block = next(iter(source.blocks(bound, range(len(bound)), OutOfDomain.REFUSE)))
    codes = np.column_stack([block.codes(a) for a in range(len(bound))])
    back = FrameStyle.of(frame, like_input=True).frame(decode(codes, bound), bound)
    assert type(back) is type(frame)
    assert list(back.columns if backend != "pyarrow" else back.column_names) == list(
        frame.columns if backend != "pyarrow" else frame.column_names
    )
    if backend == "pandas":
        assert back.dtypes.equals(frame.dtypes)
    else:
        assert back.schema == frame.schema
    again = open_table(back)
    block = next(iter(again.blocks(bound, range(len(bound)), OutOfDomain.REFUSE)))
    np.testing.assert_array_equal(
        codes, np.column_stack([block.codes(a) for a in range(len(bound))])
    )


def test_column_types_of_pandas_are_kept_on_request() -> None:
    schema = Schema(
        (
            Attribute.binary("flag"),
            Attribute.numeric("age", [0, 50, 100]),
            Attribute.categorical("city", ["x", "y"]),
            Attribute.categorical("level", [1, 2, 3]),
        )
    )
    frame = pd.DataFrame(
        {
            "flag": pd.array([True, False, True], dtype="bool"),
            "age": pd.array([1.5, 50.0, 99.0], dtype="float32"),
            "city": pd.Categorical(["x", "y", "x"]),
            "level": pd.array([1, 3, 2], dtype="Int8"),
        }
    )
    codes = np.array([[1, 0, 0, 0], [0, 1, 1, 2]], dtype=np.int32)
    back = FrameStyle.of(frame, like_input=True).frame(decode(codes, schema), schema)
    assert back.dtypes.equals(frame.dtypes)
    assert back["flag"].tolist() == [True, False]
    assert back["city"].tolist() == ["x", "y"]


def test_equal_cells_of_other_types_are_the_same_value() -> None:
    binary = Attribute.binary("b")
    for cells in ([0, 1], [0.0, 1.0], ["0", "1"], [False, True], ["false", "true"]):
        assert encode_column(pa.array(cells), binary).tolist() == [0, 1]
    levels = Attribute.categorical("l", [1, 2])
    assert encode_column(pa.array([2.0, 1.0]), levels).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("attribute", "cells", "message"),
    [
        (Attribute.categorical("c", ["x"]), ["x", "zebra"], "column 'c': a cell is outside"),
        (Attribute.categorical("c", ["x"]), ["x", None], "column 'c': a cell is missing"),
        (Attribute.numeric("n", [0, 1]), [0.5, 7.0], "column 'n': a cell is outside"),
        (Attribute.numeric("n", [0, 1]), ["0.5", "seven"], "column 'n': a cell is not a number"),
        (Attribute.numeric("n", [0, 1]), ["0.5", "7"], "column 'n': a cell is outside"),
        (Attribute.numeric("n", [0, 1]), [0.5, None], "column 'n': a cell is missing"),
        (Attribute.numeric("n", [0, 1]), [0.5, float("nan")], "column 'n': a cell is missing"),
        (Attribute.binary("b"), [0, 2], "column 'b': a cell is outside"),
    ],
)
def test_a_cell_outside_its_domain_is_named(attribute, cells, message) -> None:
    with pytest.raises(TableError, match=message):
        encode_column(pa.array(cells), attribute)


def test_cells_outside_the_domain_on_request() -> None:
    numbers = Attribute.numeric("n", [0, 1, 2], missing=True)
    cells = pa.array([-5.0, 0.5, 9.0])
    assert encode_column(cells, numbers, OutOfDomain.CLAMP).tolist() == [0, 0, 1]
    assert encode_column(cells, numbers, OutOfDomain.MISSING).tolist() == [2, 0, 2]
    words = Attribute.categorical("w", ["a", "b"], missing=True, default="b")
    cells = pa.array(["a", "z"])
    assert encode_column(cells, words, OutOfDomain.CLAMP).tolist() == [0, 1]
    assert encode_column(cells, words, OutOfDomain.MISSING).tolist() == [0, 2]
    # Without a bucket, whether a release is made must not depend on one cell: the default takes it.
    plain = Attribute.categorical("w", ["a", "b"], default="b")
    assert encode_column(pa.array(["z"]), plain, OutOfDomain.MISSING).tolist() == [1]


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_files_give_the_same_codes(tmp_path, ending, schema: Schema, rows: pa.Table) -> None:
    path = tmp_path / f"rows{ending}"
    write_table(rows, path)
    codes = {}
    for source in (path, rows):
        table = open_table(source)
        bound = table.bind(schema)
        block = next(iter(table.blocks(bound, range(len(bound)), OutOfDomain.REFUSE)))
        codes[str(type(source))] = np.column_stack([block.codes(a) for a in range(len(bound))])
    first, second = codes.values()
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.parquet", b"PAR1nonsense", r"t\.parquet"),
        ("t.csv", b"", r"t\.csv"),
        ("t.npz", b"PK", r"t\.npz"),
        ("t.xls", b"", r"t\.xls"),
    ],
)
def test_damaged_files_are_named(tmp_path, name, content, message) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TableError, match=message):
        open_table(path)


def test_what_is_not_a_table() -> None:
    with pytest.raises(TableError, match="list"):
        open_table([1, 2, 3])
    with pytest.raises(TableError, match="no such table"):
        open_table("nowhere.csv")


def test_categories_come_from_the_schema_not_from_the_table() -> None:
    """A frame's own categories list what occurs in it, even cells that were clamped away."""
    schema = Schema((Attribute.categorical("c", ["x", "y", "z"]),))
    private = pd.DataFrame({"c": pd.Categorical(["x", "John Smith"])})
    style = FrameStyle.of(private, like_input=True)
    assert "John" not in repr(style)
    codes = np.array([[0], [1], [2]], dtype=np.int32)
    back = style.frame(decode(codes, schema), schema)
    assert back["c"].tolist() == ["x", "y", "z"]
    assert list(back["c"].dtype.categories) == ["x", "y", "z"]
    enum = pl.DataFrame({"c": pl.Series(["x"], dtype=pl.Enum(["x", "John Smith"]))})
    style = FrameStyle.of(enum, like_input=True)
    assert "John" not in repr(style)
    back = style.frame(decode(codes, schema), schema)
    assert back["c"].to_list() == ["x", "y", "z"]
    assert back["c"].dtype == pl.Enum(["x", "y", "z"])
    block = next(iter(open_table(enum).blocks(schema, [0], OutOfDomain.REFUSE)))
    assert block.codes(0).tolist() == [0]


TYPED = Schema(
    (
        Attribute.categorical("word", ["a", "b", "c"], missing=True),
        Attribute.categorical("level", [1, 2, 300], missing=True),
        Attribute.numeric("whole", [0, 10, 20], missing=True),
        Attribute.numeric("decimal", [0.0, 0.5, 1.0], missing=True),
        Attribute.binary("flag", missing=True),
        Attribute.categorical("said", [False, True], missing=True),
        Attribute.categorical("always", ["x", "y"]),
        Attribute.numeric("age", [0, 50, 100]),
        Attribute.binary("b"),
    )
)
ARROW_TYPES = {
    "word": pa.string(),
    "level": pa.int64(),
    "whole": pa.int64(),
    "decimal": pa.float64(),
    "flag": pa.int64(),
    "said": pa.bool_(),
    "always": pa.string(),
    "age": pa.int64(),
    "b": pa.int64(),
}
PANDAS_TYPES = {
    "word": "str",
    "level": "Int64",
    "whole": "Int64",
    "decimal": "float64",
    "flag": "Int64",
    "said": "boolean",
    "always": "str",
    "age": "int64",
    "b": "int64",
}


def private_tables() -> list[pa.Table]:
    """Tables that differ in what a reader infers: missing cells, categories, widths."""
    full = decode(np.zeros((3, len(TYPED)), dtype=np.int32), TYPED)
    holed = decode(
        np.array([[a.size - 1 for a in TYPED.attributes], [0] * 9, [0] * 9], np.int32), TYPED
    )
    words = ["word", "always"]
    narrow = pa.table(
        {
            n: full.column(n).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))
            if n in words
            else full.column(n)
            for n in full.column_names
        }
    )
    wide = pa.table(
        {
            n: pa.DictionaryArray.from_arrays(pa.array([2, 2, 1], pa.int64()), ["c", "b", "a"])
            if n == "word"
            else full.column(n).cast(pa.float32())
            if n in ("whole", "age", "level")
            else full.column(n)
            for n in full.column_names
        }
    )
    return [full, holed, narrow, wide]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("holed", [False, True])
def test_types_follow_from_the_schema_alone(backend, holed: bool) -> None:
    """Neither the private table nor the rows that happen to be sampled change a type."""
    codes = np.zeros((4, len(TYPED)), dtype=np.int32)
    if holed:
        codes[1] = TYPED.sizes - 1
    table = decode(codes, TYPED)
    assert dict(zip(table.column_names, table.schema.types, strict=True)) == ARROW_TYPES
    found = []
    for private in private_tables():
        style = FrameStyle.of(BACKENDS[backend](private))
        back = style.frame(table, TYPED)
        assert type(back) is type(BACKENDS[backend](private))
        found.append(dict(back.dtypes) if backend == "pandas" else back.schema)
        if backend == "pandas":
            assert {name: str(kind) for name, kind in back.dtypes.items()} == PANDAS_TYPES
            if holed:
                assert back["whole"].isna().tolist() == [False, True, False, False]
        if backend == "polars":
            assert dict(back.schema) == dict(pl.from_arrow(table).schema)
    assert all(kinds == found[0] for kinds in found)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_type_that_cannot_hold_the_cells_is_left(backend) -> None:
    schema = Schema((Attribute.categorical("n", [1, 300]), Attribute.categorical("w", ["a", "b"])))
    frame = BACKENDS[backend](pa.table({"n": pa.array([1], pa.int8()), "w": [1]}))
    table = decode(np.array([[1, 1], [0, 0]], dtype=np.int32), schema)
    back = FrameStyle.of(frame, like_input=True).frame(table, schema)
    assert nw.from_native(back, eager_only=True)["n"].to_list() == [300, 1]


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.parquet"])
def test_a_file_is_whole_or_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = tmp_path / name
    write_table(pa.table({"x": [1, 2]}), path)
    before = path.read_bytes()

    def stopped(table, stream, *more):
        (stream.write if hasattr(stream, "write") else Path(stream).write_bytes)(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pyarrow.csv.write_csv", stopped)
        patch.setattr("pyarrow.parquet.write_table", stopped)
        with pytest.raises(KeyboardInterrupt):
            write_table(pa.table({"x": [3, 4]}), path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == [name]
