"""Whatever a table holds: codes of the declared domain, or one line that names the column."""

from __future__ import annotations

import datetime
import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from dualquery.base.errors import DualQueryError, TableError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.rows.csv_file import CsvTable
from dualquery.rows.drafting import draft_schema
from dualquery.rows.encoding import OutOfDomain, encode_column
from dualquery.rows.long import LongTable
from dualquery.rows.opening import open_table

EXAMPLES = int(os.environ.get("DUALQUERY_EXAMPLES", "120"))
"""Cases of each property; set the variable to look longer."""

ATTRIBUTES = (
    Attribute.binary("c"),
    Attribute.binary("c", missing=True),
    Attribute.numeric("c", [0, 5, 10]),
    Attribute.numeric("c", [-1.5, 0.0, 2.0**62], missing=True),
    Attribute.categorical("c", ["a", "b", "1", "2020-01-01"]),
    Attribute.categorical("c", [1, 2, 2**62], missing=True, default=2),
    Attribute.categorical("c", [False, True]),
)

WHOLE = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
NATURAL = [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


def integers(kind: pa.DataType) -> st.SearchStrategy[int]:
    bits = kind.bit_width
    if kind in NATURAL:
        return st.integers(0, 2**bits - 1) | st.integers(0, 2)
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) | st.integers(0, 2)


def cells_of(kind: pa.DataType) -> st.SearchStrategy[object]:
    """Cells that Arrow can hold in a column of this type."""
    if kind in WHOLE + NATURAL:
        return integers(kind)
    if pa.types.is_floating(kind):
        width = {pa.float16(): 16, pa.float32(): 32}.get(kind, 64)
        return st.floats(width=width) | st.sampled_from([0.0, 1.0, float("nan"), float("inf")])
    if pa.types.is_decimal(kind):
        return st.decimals(-999, 999, places=2, allow_nan=False, allow_infinity=False)
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_date(kind):
        return st.dates()
    if pa.types.is_time(kind):
        return st.times().map(lambda t: t.replace(microsecond=0))
    if pa.types.is_timestamp(kind):
        return st.integers(-(2**62), 2**62)
    if pa.types.is_duration(kind):
        return st.integers(-(2**62), 2**62)
    if "binary" in str(kind):
        return st.binary(max_size=4) | st.sampled_from([b"a", b"1"])
    if "string" in str(kind):
        return st.text(max_size=4) | st.sampled_from(["a", "1", "0", "true", "nan", "1e400", ""])
    raise AssertionError(kind)


FLAT = [
    *WHOLE, *NATURAL, pa.float16(), pa.float32(), pa.float64(), pa.bool_(),
    pa.decimal128(12, 2), pa.decimal256(40, 2), pa.date32(), pa.date64(), pa.time32("s"),
    pa.time64("us"), pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", "Europe/Paris"),
    pa.duration("s"), pa.duration("ns"), pa.string(), pa.large_string(), pa.string_view(),
    pa.binary(), pa.large_binary(), pa.binary_view(),
]  # fmt: skip


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    """One column of any type."""
    kind = draw(st.sampled_from(FLAT))
    cells = draw(st.lists(st.none() | cells_of(kind), max_size=6))
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        array = pa.array(cells, pa.int64()).cast(kind)
    else:
        array = pa.array(cells, kind)
    shape = draw(st.sampled_from(["plain", "dictionary", "chunked", "runs", "list", "struct"]))
    if shape == "dictionary":
        places = st.none() | st.integers(0, max(0, len(array) - 1))
        drawn = draw(st.lists(places, max_size=6)) if len(array) else [None]
        width = draw(st.sampled_from([pa.int8(), pa.uint32(), pa.int64()]))
        return pa.DictionaryArray.from_arrays(pa.array(drawn, width), array)
    if shape == "chunked":
        return pa.chunked_array([array, array.slice(0, 1), array.slice(1)])
    if shape == "runs" and len(array) and "view" not in str(kind):
        ends = pa.array(np.arange(1, len(array) + 1), pa.int32())
        return pa.RunEndEncodedArray.from_arrays(ends, array)
    if shape == "list":
        return pa.ListArray.from_arrays(pa.array([0, len(array)], pa.int32()), array)
    if shape == "struct":
        return pa.StructArray.from_arrays([array], names=["x"])
    return array


@contextmanager
def suppress_one_line(*names: str) -> Iterator[None]:
    """A refusal is fine if it is one line that names one of these columns."""
    try:
        yield
    except TableError as error:
        text = str(error)
    else:
        return
    assert "\n" not in text
    assert any(f"column {name}" in text for name in names)
    assert len(text) < 400


@given(columns(), st.sampled_from(ATTRIBUTES), st.sampled_from(list(OutOfDomain)))
@settings(max_examples=EXAMPLES)
def test_any_column_is_encoded_or_refused(column, attribute, treatment) -> None:
    with suppress_one_line("'c'"):
        codes = encode_column(column, attribute, treatment)
        assert codes.dtype == np.int32
        assert len(codes) == len(column)
        assert not len(codes) or (codes.min() >= 0 and codes.max() < attribute.size)


OBJECTS = st.one_of(
    st.none(), st.integers(), st.floats(), st.text(max_size=3), st.booleans(),
    st.binary(max_size=2), st.just(pd.NA), st.just(pd.NaT), st.decimals(allow_nan=True),
    st.just([1]), st.just({"x": 1}), st.complex_numbers(), st.datetimes(), st.timedeltas(),
)  # fmt: skip


@given(st.lists(OBJECTS, max_size=5), st.sampled_from(ATTRIBUTES))
@settings(max_examples=EXAMPLES)
def test_any_objects_of_pandas_are_encoded_or_refused(cells, attribute) -> None:
    frame = pd.DataFrame({"c": pd.Series(cells, dtype=object)})
    with suppress_one_line("'c'"):
        table = open_table(frame)
        for block in table.blocks(table.bind(Schema((attribute,))), [0], OutOfDomain.REFUSE):
            block.codes(0)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (pa.array([{"x": 1}]), r"column 'c' holds struct in a cell; expected one value"),
        (pa.array([[1, 2]]), "column 'c' holds list in a cell"),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), "column 'c' holds map in"),
        (pa.array([2**62]), "column 'c': a cell is outside"),
        (pa.array([2**63], pa.uint64()), "column 'c': a cell is outside"),
        (pa.array([2**32 - 1], pa.uint32()), "column 'c': a cell is outside"),
        (pa.array([float("inf")]), "column 'c': a cell is outside"),
        (pa.array([datetime.timedelta(1)]), "column 'c': a cell is outside"),
        (pa.array([b"x"]), "column 'c': a cell is not a number"),
        (pa.array(["x" * 9999]), "column 'c': a cell is not a number"),
        (pa.array([Decimal("11.5")]), "column 'c': a cell is outside"),
    ],
)  # fmt: skip
def test_what_a_column_of_numbers_cannot_hold(array, message) -> None:
    with pytest.raises(TableError, match=message):
        encode_column(array, Attribute.numeric("c", [0, 5, 10]))


def test_whole_numbers_of_any_size_are_values_too() -> None:
    large = Attribute.categorical("c", [1, 2**62])
    assert encode_column(pa.array([2**62, 1]), large).tolist() == [1, 0]
    assert encode_column(pa.array([Decimal("1.00")]), large).tolist() == [0]
    with pytest.raises(TableError, match="column 'c': a cell is outside"):
        encode_column(pa.array([2**62 + 1]), large)
    with pytest.raises(TableError, match="column 'c': a cell is outside"):
        encode_column(pa.array([2**62]), Attribute.binary("c"))
    with pytest.raises(TableError, match="column 'c': a cell is outside"):
        encode_column(pa.array([2**32 - 1], pa.uint32()), Attribute.binary("c"))


def test_a_dictionary_is_judged_by_the_cells_that_are_used() -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0, 0, None]), ["3", "Jones", None])
    number = Attribute.numeric("c", [0, 5, 10], missing=True)
    assert encode_column(words, number).tolist() == [0, 0, 2]
    holed = pa.DictionaryArray.from_arrays(pa.array([0, 2]), ["3", "Jones", None])
    assert encode_column(holed, number).tolist() == [0, 2]
    used = pa.DictionaryArray.from_arrays(pa.array([0, 1]), ["3", "Jones", None])
    with pytest.raises(TableError, match="a cell is not a number"):
        encode_column(used, number)
    assert encode_column(used, number, OutOfDomain.MISSING).tolist() == [0, 2]


def test_files_that_disagree(tmp_path: Path) -> None:
    schema = Schema((Attribute.numeric("c", [0, 5, 10]),))
    parquet.write_table(pa.table({"c": [1]}), tmp_path / "0.parquet")
    parquet.write_table(pa.table({"c": ["2"]}), tmp_path / "1.parquet")
    table = open_table(tmp_path)
    with pytest.raises(TableError, match=r"column 'c' is int64 in one .* string in another"):
        list(table.blocks(table.bind(schema), [0], OutOfDomain.REFUSE))
    parquet.write_table(pa.table({"d": [2]}), tmp_path / "1.parquet")
    table = open_table(tmp_path)
    with pytest.raises(DualQueryError, match=r"no column|cannot read|different"):
        list(table.blocks(table.bind(schema), [0], OutOfDomain.REFUSE))


def test_odd_frames() -> None:
    schema = Schema((Attribute.binary("0"), Attribute.binary("1")))
    numbered = pd.DataFrame({0: [0, 1], 1: [1, 1]})
    table = open_table(numbered)
    block = next(iter(table.blocks(table.bind(schema), [0, 1], OutOfDomain.REFUSE)))
    assert [block.codes(a).tolist() for a in (0, 1)] == [[0, 1], [1, 1]]
    twice = pd.DataFrame([[0, 1]], columns=["0", "0"])
    with pytest.raises(DualQueryError, match="two columns named '0'"):
        open_table(twice).bind(schema)
    mixed = pd.DataFrame({0: [0], "0": [1], "1": [1]})
    with pytest.raises(DualQueryError, match="two columns named '0'"):
        open_table(mixed).bind(schema)
    for empty in (pd.DataFrame(), pl.DataFrame(), pa.table({})):
        with pytest.raises(DualQueryError, match="no column '0'"):
            open_table(empty).bind(schema)


@pytest.mark.parametrize(
    "array", [pa.array([{"x": 1}]), pa.array([[1]]), pa.array([None]), pa.array([2**62])]
)
def test_odd_pairs(array) -> None:
    """Tables in long format: ids and items of any type."""
    schema = Schema((Attribute.binary("1"),))
    for pairs in ({"r": array, "i": [1]}, {"r": [1], "i": array}):
        table = LongTable(pa.table(pairs), "r", "i")
        with suppress_one_line("'r'", "'i'"):
            list(table.blocks(table.bind(schema), [0], OutOfDomain.REFUSE))


@pytest.mark.parametrize("array", [pa.array([{"x": 1}]), pa.array([[1]])])
def test_a_draft_of_what_no_schema_can_declare(array) -> None:
    with pytest.raises(TableError, match="column 'c' holds"):
        draft_schema(pa.table({"c": array}))


@pytest.mark.parametrize(
    ("text", "header"),
    [
        (b"sex;age;b\nM;1;0\nF;2;1\n", ["sex", "age", "b"]),
        (b"\xef\xbb\xbfsex;age\r\nM;1\r\n", ["sex", "age"]),
        (b'"sex;age"\nM\n', ["sex;age"]),
        (b"sex,a;b\nM,1\n", ["sex", "a;b"]),
        (b"sex\nM;1\n", ["sex"]),
    ],
)
def test_semicolons_separate_cells_if_the_header_says_so(
    tmp_path: Path, text: bytes, header: list[str]
) -> None:
    """Rows have no say: a cell with semicolons in a file of one column stays a cell."""
    for name, written in (("t.csv", text), ("t.csv.gz", gzip.compress(text))):
        (tmp_path / name).write_bytes(written)
        opened = CsvTable(tmp_path / name)
        assert list(opened.header) == header
        rows = pa.Table.from_batches(opened.batches(header))
        assert rows.num_rows == text.count(b"\n") - 1
        assert rows.column(0)[0].as_py() in ("M", "M;1")
