"""Types of columns: declared, read from every form, and kept on the way out."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import dualquery as dq
from dualquery.base.errors import DualQueryError, ParameterError, SchemaError, TableError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.domain.types import Type
from dualquery.release.frames import FrameStyle, decode, decode_column, write_table
from dualquery.rows.encoding import OutOfDomain, encode_column
from dualquery.rows.opening import open_table
from tests.strategies import attributes

FILE = """
[attributes.city]
values = ["x", "04847"]
[attributes.age]
edges = [0, 50, 100]
[attributes.cost]
edges = [0, 100, 1000]
type = "decimal"
missing = true
[attributes.visits]
values = [1, 2, 3]
missing = true
[attributes.smoker]
binary = true
type = "yes/no"
missing = true
[attributes.flag]
binary = true
[attributes.admitted]
edges = [2022-01-01, 2022-07-01, 2023-01-01]
missing = true
[attributes.seen]
edges = [2022-01-01T00:00:00, 2022-07-01T12:00:00, 2023-01-01T00:00:00]
missing = true
[attributes.wakes]
edges = [00:00:00, 06:30:00, "24:00"]
missing = true
[attributes.wave]
values = [2021-05-01, 2022-05-01]
"""


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    path = tmp_path_factory.mktemp("typed") / "schema.toml"
    path.write_text(FILE)
    return Schema.load(path)


@pytest.fixture(scope="module")
def codes(typed: Schema) -> np.ndarray:
    drawn = np.random.default_rng(1).integers(0, typed.sizes, (400, len(typed)), np.int32)
    for place, size in enumerate(typed.sizes):  # every code occurs
        drawn[:size, place] = np.arange(size)
    return drawn


def encoded(source: object, schema: Schema) -> np.ndarray:
    table = open_table(source)
    bound = table.bind(schema)
    block = next(iter(table.blocks(bound, range(len(bound)), OutOfDomain.REFUSE)))
    return np.column_stack([block.codes(a) for a in range(len(bound))])


def test_types_are_declared_and_survive_the_file(tmp_path: Path, typed: Schema) -> None:
    assert [a.type.value for a in typed.attributes] == [
        "text", "whole", "decimal", "whole", "yes/no", "whole", "date", "timestamp", "time", "date",
    ]  # fmt: skip
    typed.save(tmp_path / "again.toml")
    assert Schema.load(tmp_path / "again.toml") == typed
    assert "edges = [2022-01-01, 2022-07-01, 2023-01-01]" in (tmp_path / "again.toml").read_text()
    assert Schema.from_dict(typed.to_dict()) == typed


def test_arrow_types_follow_from_the_schema(typed: Schema, codes: np.ndarray) -> None:
    table = decode(codes, typed, np.random.default_rng(0))
    assert table.schema.types == [
        pa.string(), pa.int64(), pa.float64(), pa.int64(), pa.bool_(), pa.int64(), pa.date32(),
        pa.timestamp("us"), pa.time64("us"), pa.date32(),
    ]  # fmt: skip
    whole = decode(codes[:3], typed, np.random.default_rng(0))
    assert whole.schema == table.schema  # whatever the cells are
    np.testing.assert_array_equal(encoded(table, typed), codes)


def test_types_of_pandas(typed: Schema, codes: np.ndarray) -> None:
    frame = FrameStyle.named("pandas").frame(decode(codes, typed), typed)
    kinds = {name: str(kind) for name, kind in frame.dtypes.items()}
    assert kinds["age"] == "int64"
    assert kinds["cost"] == "float64"
    assert kinds["visits"] == "Int64"
    assert kinds["smoker"] == "boolean"
    assert kinds["admitted"].startswith("datetime64")
    assert kinds["seen"].startswith("datetime64")
    assert isinstance(frame["wakes"].dropna().iloc[0], datetime.time)
    np.testing.assert_array_equal(encoded(frame, typed), codes)
    nanoseconds = frame.astype({"admitted": "datetime64[ns]", "seen": "datetime64[ns]"})
    np.testing.assert_array_equal(encoded(nanoseconds, typed), codes)
    words = frame.astype({"cost": object, "admitted": object, "seen": object})
    np.testing.assert_array_equal(encoded(words, typed), codes)


def test_types_of_polars(typed: Schema, codes: np.ndarray) -> None:
    frame = FrameStyle.named("polars").frame(decode(codes, typed), typed)
    assert frame.schema["smoker"] == pl.Boolean
    assert frame.schema["admitted"] == pl.Date
    assert isinstance(frame.schema["seen"], pl.Datetime)
    assert frame.schema["wakes"] == pl.Time
    np.testing.assert_array_equal(encoded(frame, typed), codes)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_types_in_files(tmp_path: Path, ending: str, typed: Schema, codes: np.ndarray) -> None:
    path = tmp_path / f"rows.{ending}"
    table = decode(codes, typed, np.random.default_rng(2))
    write_table(table, path)
    np.testing.assert_array_equal(encoded(path, typed), codes)
    if ending == "parquet":
        assert parquet.read_table(path).schema.types == table.schema.types
    else:
        cells = pd.read_csv(path, dtype=str)
        assert cells["seen"].dropna().str.fullmatch(r"2022-\d\d-\d\d \d\d:\d\d:\d\d").all()
        assert set(cells["smoker"].dropna()) == {"true", "false"}
        assert set(cells["visits"].dropna()) == {"1", "2", "3"}


def test_another_kind_after_reading(tmp_path: Path) -> None:
    schema = Schema((Attribute.numeric("day", ["2022-01-01", "2022-02-01"], type="date"),))
    schema = Schema((*schema.attributes, Attribute.binary("b", type="yes/no")))
    rows = decode(np.array([[0, 1], [0, 0]] * 50), schema)
    job = dq.DualQuery(epsilon=1.0, delta=1e-6, queries=4, k=1, errors=False)
    job.release(rows, tmp_path / "out", schema=schema)
    read = dq.load(tmp_path / "out")
    assert isinstance(read.sample(3), pa.Table)
    assert str(read.sample(3, kind="pandas")["day"].dtype).startswith("datetime64")
    assert read.sample(3, kind="polars").schema == {"day": pl.Date, "b": pl.Boolean}
    with pytest.raises(ParameterError, match="kind = 'excel'; expected one of pandas"):
        read.sample(3, kind="excel")


@given(st.data())
def test_no_cell_leaves_its_bin(data: st.DataObject) -> None:
    attribute = data.draw(attributes("c"))
    codes = np.repeat(np.arange(attribute.size), 5)
    seed = data.draw(st.sampled_from([0.0, 0.5, np.nextafter(1.0, 0.0)]))

    class Extreme(np.random.Generator):
        def random(self, size: int) -> np.ndarray:  # type: ignore[override]
            return np.full(size, seed)

    cells = decode_column(codes, attribute, Extreme(np.random.PCG64(0)))
    np.testing.assert_array_equal(encode_column(cells, attribute), codes)


NUMBER = Attribute.categorical("c", [1, 3])


@pytest.mark.parametrize("cell", ["3", "3.0", " 3", "3 ", "+3", "3e0", 3, 3.0])
def test_one_number_in_any_spelling(cell: object) -> None:
    assert encode_column(pa.array([cell]), NUMBER).tolist() == [1]
    assert encode_column(pa.array([cell]), Attribute.numeric("c", [0, 3, 5])).tolist() == [1]


@pytest.mark.parametrize("yes", ["True", "true", "yes", "YES", "1", "1.0", " y ", True, 1, 1.0])
@pytest.mark.parametrize("kind", ["yes/no", "whole"])
def test_yes_in_any_spelling(yes: object, kind: str) -> None:
    attribute = Attribute.binary("c", type=kind)
    assert encode_column(pa.array([yes]), attribute).tolist() == [1]


def test_text_stays_text() -> None:
    codes = Attribute.categorical("c", ["04847", "4847", "1e3"])
    assert encode_column(pa.array(["4847", "04847", "1e3"]), codes).tolist() == [1, 0, 2]
    assert encode_column(pa.array([4847]), codes).tolist() == [1]
    with pytest.raises(TableError, match="column 'c': a cell is outside"):
        encode_column(pa.array(["1000"]), codes)
    assert decode_column(np.array([0, 1]), codes).to_pylist() == ["04847", "4847"]


DAYS = Attribute.numeric("c", [datetime.date(2022, 1, 1), datetime.date(2022, 7, 1)])
STAMPS = Attribute.numeric("c", [datetime.datetime(2022, 1, 1), datetime.datetime(2022, 7, 1)])
TIMES = Attribute.numeric("c", ["08:00", "16:00"], type="time")


@pytest.mark.parametrize(
    ("attribute", "array", "message"),
    [
        (DAYS, pa.array(["01/03/2022"]), "a cell is not a date; .* such as 2022-03-01"),
        (DAYS, pa.array(["2022-02-30"]), "a cell is not a date"),
        (DAYS, pa.array([20220301]), "a cell is not a date"),
        (DAYS, pa.array(["2022-08-01"]), "a cell is outside .*dates from 2022-01-01 to 2022"),
        (DAYS, pa.array([datetime.date(2021, 1, 1)]), "a cell is outside"),
        (
            STAMPS,
            pa.array(["2022-03-01 25:00"]),
            "a cell is not a timestamp; .*2022-03-01T12:30:00",
        ),
        (STAMPS, pa.array([datetime.datetime(2023, 1, 1)]), "a cell is outside"),
        (
            TIMES,
            pa.array(["8 o'clock"]),
            "a cell is not a time of day; .* from 08:00:00 to 16:00:00",
        ),
        (TIMES, pa.array([datetime.time(7)]), "a cell is outside"),
        (Attribute.binary("c"), pa.array(["perhaps"]), "a cell is outside"),
        (NUMBER, pa.array(["3.5"]), "a cell is outside"),
        (NUMBER, pa.array(["1_0"]), "a cell is outside"),
    ],
)
def test_refusals_name_what_would_be_right(attribute, array, message) -> None:
    with pytest.raises(TableError, match=f"column 'c': .*{message}"):
        encode_column(array, attribute)


def test_what_dates_and_timestamps_have_in_common() -> None:
    stamp = datetime.datetime(2022, 3, 1, 12, 30, 59, 999_999)
    for cell in (stamp, stamp.date(), "2022-03-01", " 2022-03-01 12:30 ", "2022-03-01T12:30:00Z"):
        assert encode_column(pa.array([cell]), DAYS).tolist() == [0]
        assert encode_column(pa.array([cell]), STAMPS).tolist() == [0]
    before = pa.array([datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999)])
    old = Attribute.numeric("c", ["1969-12-31", "1970-01-01", "1970-01-02"], type="date")
    assert encode_column(before, old).tolist() == [0]  # the second before midnight, not after it
    zoned = pa.array([datetime.datetime(2022, 6, 30, 23)], pa.timestamp("us")).cast(
        pa.timestamp("us", "UTC")
    )
    cut = Attribute.numeric("c", ["2022-01-01", "2022-07-01", "2023-01-01"], type="date")
    assert encode_column(zoned, cut).tolist() == [0]
    paris = zoned.cast(pa.timestamp("us", "Europe/Paris"))
    assert encode_column(paris, cut).tolist() == [1]  # on the clock of its zone


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"edges": [0, 1.5], "type": "whole"}, "edge 1.5 is not a whole number, as type"),
        ({"edges": [0, 1], "type": "date"}, "edge 0 is not a date such as 2022-03-01"),
        ({"edges": ["2022-01-01", "soon"], "type": "date"}, "edge 'soon' is not a date"),
        ({"edges": [datetime.date(2022, 1, 1), 5]}, "edges mix dates and numbers; expected one"),
        ({"edges": [0, 1], "type": "integer"}, "type = 'integer'; expected text, whole, decimal"),
        ({"values": ["a"], "type": "whole"}, "value 'a' is not a whole number"),
        ({"values": ["x"], "type": "date"}, "value 'x' is not a date"),
        ({"binary": True, "type": "text"}, 'expected "yes/no"'),
        (
            {"edges": [datetime.datetime(2022, 1, 1, tzinfo=datetime.UTC)] * 2},
            "has a time zone; expected wall-clock",
        ),
    ],
)  # fmt: skip
def test_bad_types_are_refused(entry, message) -> None:
    with pytest.raises(SchemaError, match=f"'c'.*{message}"):
        Attribute.from_dict("c", entry)


def test_whole_edges_of_a_decimal_column() -> None:
    attribute = Attribute.numeric("c", [0, 10], type="decimal")
    assert attribute.type is Type.DECIMAL
    cells = decode_column(np.zeros(50, dtype=int), attribute, np.random.default_rng(0))
    assert cells.type == pa.float64()
    assert any(cell != int(cell) for cell in cells.to_pylist())


def test_queries_about_dates(typed: Schema) -> None:
    query = dq.parse("admitted>=2022-07-01 & wakes<06:30 & smoker=yes", typed)
    text = dq.format_query(query, typed)
    assert text == "admitted>=2022-07-01 & wakes<06:30:00 & smoker=1"
    assert dq.parse(text, typed) == query
    assert dq.format_query(dq.parse("seen in [2022-01-01,2022-07-01T12:00)", typed), typed)
    with pytest.raises(DualQueryError, match=r"2022-07-02 is not a bin edge .*2022-07-01"):
        dq.parse("admitted>=2022-07-02", typed)
    with pytest.raises(DualQueryError, match=r"'July' .* is not a date \(such as 2022-03-01\)"):
        dq.parse("admitted>=July", typed)
