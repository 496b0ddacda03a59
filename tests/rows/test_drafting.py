"""Drafts that help: what is left out and why, readable edges, types, what to review."""

from __future__ import annotations

import datetime
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.base.errors import ParameterError, TableError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.domain.types import Type
from dualquery.rows import profiles
from dualquery.rows.checking import check
from dualquery.rows.drafting import draft, draft_schema
from dualquery.rows.long import LongTable
from dualquery.rows.readable import readable_edges
from tests.messy import messy_table


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return messy_table()


def test_what_is_left_out_and_why(frame: pd.DataFrame) -> None:
    made = draft(frame)
    assert made.left_out == {
        "patient_id": "looks like an identifier: 2,000 different cells in 2,000",
        "row": "looks like an identifier: 2,000 different cells in 2,000",
        "note": "looks like free text: 2,000 different cells in 2,000",
        "site": "is constant: every cell is the same",
        "fax": "is empty: every cell is missing",
    }
    text = "\n".join(made.header())
    assert "Review first:\n  icd: 90 values were seen" in text
    assert "Left out; to use one" in text
    assert made.schema["icd"].group is not None
    assert made.schema["icd"].group.rule == "prefix:1"
    assert made.schema.draft


def test_types_of_a_draft(frame: pd.DataFrame, tmp_path) -> None:
    wanted = {
        "admitted": "date", "discharged": "date", "seen": "timestamp", "wakes": "time",
        "icd": "text", "zip": "text", "cost": "decimal", "age": "whole", "height": "decimal",
        "visits": "whole", "smoker": "yes/no", "insured": "yes/no", "grade": "text",
        "city": "text", "alive": "whole",
    }  # fmt: skip
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for source in (frame, tmp_path / "t.csv", tmp_path / "t.parquet", pl.from_pandas(frame)):
        schema = draft_schema(source)
        assert {a.name: a.type.value for a in schema.attributes} == wanted
        assert schema["age"].missing
        assert schema["visits"].missing
        assert not schema["cost"].missing
        assert schema["height"].missing_words == ("NA",)
        assert check(source, schema).problems == ()  # what was seen fits
    assert draft_schema(frame)["grade"].values == ("low", "mid", "high")
    assert draft_schema(frame)["grade"].ordered


def test_some_columns_only(frame: pd.DataFrame) -> None:
    assert draft_schema(frame, columns=["city", "age"]).names == ("city", "age")
    assert "age" not in draft_schema(frame, exclude=["age"]).names
    with pytest.raises(ParameterError, match="columns: the table has no column 'agee'; did you"):
        draft_schema(frame, columns=["agee"])
    with pytest.raises(ParameterError, match="exclude: the table has no column 'x'"):
        draft_schema(frame, exclude=["x"])
    with pytest.raises(TableError, match="column 'fax' is empty"):
        draft_schema(frame, columns=["fax"])
    with pytest.raises(TableError, match="two columns named 'a'"):
        draft_schema(pa.Table.from_arrays([pa.array([1])] * 2, names=["a", "a"]))


def test_skewed_columns_get_quantile_like_edges(frame: pd.DataFrame) -> None:
    made = draft(frame)
    cost = made.schema["cost"]
    assert made.review["cost"].startswith("the edges follow quantiles")
    counts, _ = np.histogram(frame["cost"], cost.edges)
    assert counts.max() < 0.2 * len(frame)
    assert all(float(f"{edge:.2g}") == edge for edge in cost.edges)  # two digits each
    assert "age" not in made.review  # an even column has round edges


def test_debts_do_not_share_a_bin_with_zeros() -> None:
    """A few negative amounts among many zeros and a long tail."""
    random = np.random.default_rng(3)
    amounts = np.round(random.lognormal(3.5, 1.4, 2000), 2)
    amounts[:160], amounts[160:165] = 0.0, -amounts[160:165]
    edges = draft(pa.table({"a": amounts, "b": ["x", "y"] * 1000})).schema["a"].edges
    assert edges[0] < 0.0
    assert edges[1] == 0.0
    above = draft(pa.table({"a": np.abs(amounts), "b": ["x", "y"] * 1000})).schema["a"].edges
    assert above[0] == 0.0


def test_values_that_differ_in_blanks_or_capitals_are_pointed_out() -> None:
    made = draft(pa.table({"plan": ["Pro ", " Pro", "basic", "Team"] * 9, "b": ["x", "y"] * 18}))
    assert made.schema["plan"].values == (" Pro", "Pro ", "Team", "basic")
    assert "(' Pro', 'Pro ') are different values" in made.review["plan"]
    assert "b" not in made.review
    many = draft(pa.table({"plan": ["Pro ", "Pro", "basic", "Basic"] * 9, "b": ["x", "y"] * 18}))
    assert ", and 1 more)" in many.review["plan"]


def test_odd_cells_of_a_column_of_numbers() -> None:
    cells = [str(n) for n in range(200)] + ["twelve", " n/a "]
    made = draft(pa.table({"c": cells}))
    assert made.schema["c"].is_numeric
    assert made.schema["c"].missing_words == ("n/a", "twelve")
    assert "'n/a', 'twelve'" in made.review["c"]
    assert check(pa.table({"c": cells}), made.schema).ok


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ([{"x": 1}], "holds struct"),
        ([None, None], "is empty"),
    ],
)
def test_reasons(cells: list[object], reason: str) -> None:
    table = pa.table({"c": pa.array(cells), "d": (["x", "y"] * 50)[: len(cells)]})
    if len(cells) == 1:
        table = pa.table({"c": pa.array(cells * 2), "d": ["x", "y"]})
    made = draft(table)
    assert reason in made.left_out["c"]


def test_whole_numbers_that_pandas_made_decimal() -> None:
    rows = pd.DataFrame({"holed": [1.0, None, 3.0] * 20, "plain": [1.0, 2.0, 3.5] * 20})
    schema = draft_schema(rows)
    assert schema["holed"].type is Type.WHOLE
    assert schema["plain"].type is Type.DECIMAL


def test_days_and_clocks_of_a_zone() -> None:
    """A cell with a zone is read on the clock of its zone: these are midnights in Berlin."""
    utc = [datetime.datetime(2022, 1, 1 + day % 28, 23) for day in range(60)]
    seen = pa.array(utc, pa.timestamp("s", tz="UTC")).cast(pa.timestamp("s", tz="Europe/Berlin"))
    table = pa.table({"seen": seen, "utc": pa.array(utc), "day": pa.array([t.date() for t in utc])})
    schema = draft_schema(table)
    assert [one.type for one in schema.attributes] == [Type.DATE, Type.TIMESTAMP, Type.DATE]


def test_numbers_beyond_those_that_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a column with very many different cells the range is still the whole range."""
    monkeypatch.setattr(profiles, "MOST_COUNTED", 20)
    cells = np.random.default_rng(1).permutation(np.repeat(np.arange(500), 4)).astype(float)
    edges = draft_schema(pa.table({"cost": cells + 0.5}))["cost"].edges
    assert edges[0] <= 0.5
    assert edges[-1] >= 499.5


def test_thousands_of_numbered_binaries(tmp_path) -> None:
    columns = {f"m{i}": [0, 1] for i in range(1200)}
    made = draft(pa.table({**columns, "sex": ["f", "m"]}))
    made.save(tmp_path / "wide.toml")
    text = (tmp_path / "wide.toml").read_text()
    assert 'prefix = "m"\ncount = 1200' in text
    assert len(text) < 1500
    assert Schema.load(tmp_path / "wide.toml") == made.schema


def test_pairs() -> None:
    numbered = LongTable(pa.table({"u": [1, 1, 2], "i": [0, 3, 2]}), "u", "i", prefix="movie_")
    assert draft_schema(numbered).names == ("movie_0", "movie_1", "movie_2", "movie_3")
    named = LongTable(pa.table({"u": [1, 1], "i": ["b", "a"]}), "u", "i")
    assert draft_schema(named).names == ("a", "b")


KINDS = [Type.WHOLE, Type.DECIMAL, Type.DATE, Type.TIMESTAMP]


@given(
    st.sampled_from(KINDS),
    st.lists(st.integers(-20_000, 900_000), min_size=2, max_size=60, unique=True),
    st.integers(1, 20),
    st.sampled_from([1, 1000]),
)
def test_readable_edges_cover_the_cells(
    kind: Type, cells: list[int], bins: int, scale: int
) -> None:
    numbers = np.array(cells, dtype=float) * (scale if kind is not Type.DATE else 1)
    if kind is Type.DECIMAL:
        numbers /= 7.0
    edges, _ = readable_edges(kind, numbers, bins)
    assert all(low < high for low, high in pairwise(edges))
    assert edges[0] <= numbers.min()
    assert numbers.max() <= edges[-1]
    by_month = 2.4 * bins + 1 if kind in (Type.DATE, Type.TIMESTAMP) else 0
    assert len(edges) <= max(max(bins, 5) + 4, by_month)
    if kind is not Type.DECIMAL:
        assert all(isinstance(edge, int) for edge in edges)
    Attribute.numeric("c", edges) if not kind.is_temporal else None


def test_readable_edges_of_times() -> None:
    day = datetime.date(2022, 3, 1).toordinal() - datetime.date(1970, 1, 1).toordinal()
    edges, _ = readable_edges(Type.DATE, np.array([day, day + 5.0]), 10)
    assert edges == list(range(day, day + 7)) or edges[0] == day
    seconds = np.array([28_800.0, 61_200.0])
    edges, _ = readable_edges(Type.TIME, seconds, 10)
    assert edges[0] == 0
    assert edges[-1] == 86_400


@pytest.mark.parametrize("name", ["weight", "pweight", "final_wt", "WGT", "person weight", "wt1"])
def test_weights_are_asked_about(name: str) -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {name: np.round(random.lognormal(0.0, 0.5, 200), 3), "sex": ["f", "m"] * 100}
    )
    told = draft(frame).review[name]
    assert told.startswith("a survey weight? Then leave it out, and release with --weight")
    for other in (
        frame.rename(columns={name: "weighted_mean"}),
        frame.assign(**{name: -frame[name]}),
    ):
        assert "survey weight" not in str(draft(other).review)
