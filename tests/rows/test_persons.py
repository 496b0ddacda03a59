"""Rows of persons: the cap, the weights, and counts against a twin that reads raw rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.base.errors import ParameterError, TableError
from dualquery.domain.attributes import Attribute
from dualquery.domain.language import parse
from dualquery.domain.schema import Schema
from dualquery.privacy.unit import MOST_PARTS, Persons, Weigh
from dualquery.rows import sparse
from dualquery.rows import table as tables
from dualquery.rows.arrow import ArrowTable
from dualquery.rows.counting import count_rows
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.ids import coded_ids
from dualquery.rows.long import LongTable
from dualquery.rows.opening import open_table
from dualquery.rows.persons import ByPerson, weigh_rows
from dualquery.rows.tabulation import tabulate
from dualquery.workloads.marginals import Groups, Marginals
from dualquery.workloads.workload import Workload

SCHEMA = Schema(
    (
        Attribute.categorical("ward", ["a", "b", "c"]),
        Attribute.binary("smoker"),
        Attribute.numeric("age", [0, 30, 60, 100]),
    )
)
QUERIES = Workload.of(
    [
        parse(text, SCHEMA)
        for text in (
            "ward=a",
            "ward!=b & smoker=1",
            "age>=30 & ward in {a, c} & smoker=0",
            "parity(ward=a, smoker=1)",
            "smoker!=1 & age<60",
        )
    ],
    SCHEMA,
)


def visits(rows: int = 900, persons: int = 150, seed: int = 1) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    who = random.integers(0, persons, rows) ** 2 // persons  # some come often
    return pd.DataFrame(
        {
            "patient": [f"p{i}" for i in who],
            "ward": random.choice(["a", "b", "c"], rows),
            "smoker": random.integers(0, 2, rows),
            "age": random.integers(0, 100, rows),
        }
    )


def weights_of(frame: pd.DataFrame, persons: Persons) -> npt.NDArray[np.int64]:
    """What each row weighs, 0 for one that is left out."""
    strata = weigh_rows(coded_ids(pa.array(frame[persons.column]), "p", "missing"), persons)
    return np.array((0, *strata.weights))[strata.of_row]


def holds(row: pd.Series) -> list[bool]:
    """The queries above, written out by hand."""
    return [
        row.ward == "a",
        row.ward != "b" and row.smoker == 1,
        row.age >= 30 and row.ward in "ac" and row.smoker == 0,
        (row.ward == "a") == (row.smoker == 1),
        row.smoker != 1 and row.age < 60,
    ]


@pytest.mark.parametrize("weigh", list(Weigh))
@pytest.mark.parametrize("most", [1, 3, 20])
@pytest.mark.parametrize("form", ["frame", "csv", "parquet"])
def test_counts_agree_with_a_walk_over_the_rows(
    weigh: Weigh, most: int, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "BLOCK_ROWS", 128)
    frame, persons = visits(), Persons("patient", most, weigh)
    source: object = frame
    if form == "csv":
        frame.to_csv(tmp_path / "t.csv", index=False)
        source = tmp_path / "t.csv"
    elif form == "parquet":
        frame.to_parquet(tmp_path / "t.parquet", index=False)
        source = tmp_path / "t.parquet"
    table = ByPerson(open_table(source), persons)
    weights = weights_of(frame, persons)
    expected = weights @ np.array([holds(row) for row in frame.itertuples()], dtype=np.int64)
    counted = count_rows(table, QUERIES)
    assert counted.counts.tolist() == expected.tolist()
    assert counted.rows == weights.sum()
    encoded = EncodedRows.read(table, SCHEMA, [0, 1], OutOfDomain.REFUSE)
    cells = tabulate(encoded, Marginals(Groups.single(SCHEMA), np.array([[0, 1]], dtype=np.int32)))
    frame["weight"] = weights
    twin = frame.pivot_table("weight", ["ward", "smoker"], aggfunc="sum").to_numpy().ravel()
    assert cells.tolist() == twin.tolist()


@pytest.mark.parametrize("weigh", list(Weigh))
@pytest.mark.parametrize("most", [1, 2, 7, 16, 17, 30])
def test_nobody_has_more_than_the_cap(weigh: Weigh, most: int) -> None:
    frame, persons = visits(), Persons("patient", most, weigh)
    frame["weight"] = weights_of(frame, persons)
    kept = frame[frame.weight > 0].groupby("patient").size()
    assert (kept <= most).all()
    assert (kept == np.minimum(frame.groupby("patient").size(), most)).all()
    parts = frame.groupby("patient").weight.sum()
    assert (parts <= persons.influence).all()
    if weigh is Weigh.PERSON:
        assert (parts == persons.parts).all()
        spread = frame[frame.weight > 0].groupby("patient").weight.agg(lambda w: w.max() - w.min())
        assert spread.max() <= (0 if most <= 16 else 1)
    else:
        assert set(frame.weight) <= {0, 1}


@given(
    owners=st.lists(st.integers(0, 4), min_size=1, max_size=25),
    gone=st.integers(0, 4),
    most=st.integers(1, 5),
    weigh=st.sampled_from(Weigh),
)
def test_a_person_changes_nothing_for_the_others(
    owners: list[int], gone: int, most: int, weigh: Weigh
) -> None:
    """Without one person, every other row weighs what it weighed before."""
    frame = pd.DataFrame({"patient": owners})
    persons = Persons("patient", most, weigh)
    before = weights_of(frame, persons)
    others = frame.patient != gone
    if others.any():
        after = weights_of(frame[others].reset_index(drop=True), persons)
        assert before[others].tolist() == after.tolist()


def test_parts_divide_evenly_up_to_sixteen_records() -> None:
    for most in range(1, 17):
        parts = Persons("p", most, Weigh.PERSON).parts
        assert all(parts % k == 0 for k in range(1, most + 1))
    assert Persons("p", 500, Weigh.PERSON).parts == MOST_PARTS


def test_a_long_table_of_persons(tmp_path: Path) -> None:
    """Baskets of shoppers: pairs in any order, a basket belongs to one shopper."""
    random = np.random.default_rng(3)
    schema = Schema(tuple(Attribute.binary(f"item_{i}") for i in range(6)))
    pairs = pd.DataFrame(
        {"basket": random.integers(0, 200, 800), "item": random.integers(0, 6, 800)}
    )
    pairs["shopper"] = pairs.basket % 37
    persons = Persons("shopper", 3, Weigh.PERSON)
    table = ByPerson(LongTable(pairs, "basket", "item", prefix="item_"), persons)
    baskets = pairs.drop_duplicates("basket")[["basket", "shopper"]].reset_index(drop=True)
    weights = weights_of(baskets, persons)
    has = pairs.drop_duplicates().pivot_table(
        "shopper", "basket", "item", aggfunc="size", fill_value=0
    )
    has = has.loc[baskets.basket].to_numpy() > 0
    workload = Workload.of(
        [parse("item_0=1 & item_2=0", schema), parse("item_5=1", schema)], schema
    )
    expected = [weights @ (has[:, 0] & ~has[:, 2]), weights @ has[:, 5]]
    counted = count_rows(table, workload)
    assert counted.counts.tolist() == expected
    assert counted.rows == weights.sum() == 37 * persons.parts


def test_refusals_name_the_column() -> None:
    frame = visits(50, 10)
    with pytest.raises(TableError, match=r"unit = 'nobody': the table has no such column; it has"):
        _ = ByPerson(open_table(frame), Persons("nobody", 2)).strata
    frame.loc[3, "patient"] = None
    with pytest.raises(TableError, match=r"unit = 'patient': a cell is missing"):
        _ = ByPerson(open_table(frame), Persons("patient", 2)).strata
    with pytest.raises(ParameterError, match=r"most_records = 0"):
        Persons("patient", 0)
    pairs = pd.DataFrame({"basket": [1, 1], "item": [0, 1], "shopper": [1, 2]})
    with pytest.raises(TableError, match=r"belongs to two persons"):
        _ = ByPerson(LongTable(pairs, "basket", "item"), Persons("shopper", 2)).strata


def test_rows_of_a_long_table_keep_their_persons_over_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Rows come back in later batches, in any order, and persons have rows in several of them.
    monkeypatch.setattr(sparse, "BATCH", 4)  # a batch of pairs is joined from tiny ones
    random = np.random.default_rng(2)
    row = random.integers(0, 30, 400)
    pairs = pa.table({"visit": row, "who": [f"p{r % 7}" for r in row], "item": row % 5})
    table = LongTable(_InPieces(pairs, 13), "visit", "item")
    _, first = np.unique(row, return_index=True)
    expected = [f"p{row[place] % 7}" for place in np.sort(first)]
    assert table.owners("who").to_pylist() == expected
    assert table.owners("visit").to_pylist() == [str(r) for r in row[np.sort(first)]]
    wrong = pairs.set_column(1, "who", pa.array(["p0"] * 399 + ["p9"]))
    with pytest.raises(TableError, match="belongs to two persons"):
        LongTable(_InPieces(wrong, 13), "visit", "item").owners("who")


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("weigh", Weigh)
def test_layers_of_a_long_table_over_batches_and_blocks(
    weigh: Weigh, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Layers of several blocks, batches that end inside a row, and rows that are left out.

    Pairs of a row stand together, so that their runs are kept, or they come in any order.
    """
    monkeypatch.setattr(sparse, "BATCH", 160)
    monkeypatch.setattr(tables, "BLOCK_ROWS", 64)
    random = np.random.default_rng(4)
    pairs = pd.DataFrame(
        {"visit": random.integers(0, 900, 4_000), "item": random.integers(0, 5, 4_000)}
    )
    pairs["who"] = np.minimum(random.geometric(0.2, 900) * 30 + np.arange(900) % 30, 250)[
        pairs.visit
    ]
    if together:
        pairs = pairs.sort_values("visit", kind="stable").reset_index(drop=True)
    schema = Schema(tuple(Attribute.binary(f"i{i}") for i in range(5)))
    persons = Persons("who", 4, weigh)
    source = LongTable(_InPieces(pa.table(dict(pairs)), 13), "visit", "item", prefix="i")
    table = ByPerson(source, persons)
    visits = pairs.drop_duplicates("visit")[["visit", "who"]].reset_index(drop=True)
    weights = weights_of(visits.rename(columns={"who": "patient"}), Persons("patient", 4, weigh))
    assert (weights == 0).any()
    assert np.unique(weights[weights > 0], return_counts=True)[1].max() > 128
    has = np.zeros((900, 5), dtype=bool)
    has[pairs.visit, pairs.item] = True
    has = has[visits.visit]
    workload = Workload.of(
        [parse(text, schema) for text in ("i0=1 & i2=0", "i4=1", "i1=0 & i3=0")], schema
    )
    expected = [
        weights @ (has[:, 0] & ~has[:, 2]),
        weights @ has[:, 4],
        weights @ ~(has[:, 1] | has[:, 3]),
    ]
    for _ in range(2):  # the second time runs are there already
        counted = count_rows(table, workload)
        assert counted.counts.tolist() == expected
        assert counted.rows == weights.sum()
    assert (source._kept is not None) == together


def test_pairs_that_changed_between_two_readings_are_refused() -> None:
    whole = pa.table({"visit": [1, 1, 2, 3], "who": [1, 1, 2, 2], "item": [0, 1, 0, 1]})
    schema = Schema((Attribute.binary("i0"), Attribute.binary("i1")))
    workload = Workload.of([parse("i0=1", schema)], schema)
    for other in (whole.slice(0, 3), pa.concat_tables([whole, whole])):
        pieces = _InPieces(whole, 2)
        table = ByPerson(LongTable(pieces, "visit", "item", prefix="i"), Persons("who", 2))
        _ = table.strata
        pieces._table = other
        with pytest.raises(TableError, match="changed while they were read"):
            count_rows(table, workload)


def test_a_query_whose_order_may_change_is_read_again() -> None:
    import polars as pl

    frame = pl.DataFrame({"visit": [1, 1, 2], "who": [1, 1, 2], "item": [0, 1, 0]})
    for source, kept in ((frame, True), (frame.lazy(), False)):
        table = LongTable(source, "visit", "item", prefix="i")
        assert table.owners("who").to_pylist() == ["1", "2"]
        assert (table._kept is not None) == kept


class _InPieces(ArrowTable):
    """A table whose batches are small."""

    def __init__(self, table: pa.Table, rows: int) -> None:
        super().__init__(table.column_names)
        self._table, self._piece = table, rows

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return iter(self._table.select(list(names)).to_batches(self._piece))
