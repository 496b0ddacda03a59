"""Weighted counts against a walk over the rows, and what is no weight."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dualquery.base.errors import TableError
from dualquery.domain.attributes import Attribute
from dualquery.domain.language import parse
from dualquery.domain.schema import Schema
from dualquery.privacy.unit import Persons, Weight
from dualquery.rows import table as tables
from dualquery.rows.cells import OutOfDomain
from dualquery.rows.counting import count_rows
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.opening import open_table
from dualquery.rows.persons import ByPerson
from dualquery.rows.tabulation import tabulate
from dualquery.rows.weighed import FEW_WEIGHTS
from dualquery.rows.weights import ByWeight
from dualquery.workloads.marginals import Groups, Marginals
from dualquery.workloads.workload import Workload

SCHEMA = Schema((Attribute.categorical("ward", ["a", "b", "c"]), Attribute.binary("smoker")))
QUERIES = Workload.of(
    [
        parse(text, SCHEMA)
        for text in ("ward=a", "ward!=b & smoker=1", "parity(ward=a, smoker=1)", "smoker=0")
    ],
    SCHEMA,
)
PAIR = Marginals(Groups.single(SCHEMA), np.array([[0, 1]], dtype=np.int32))


def survey(rows: int = 700, kinds: int = 0, seed: int = 1) -> pd.DataFrame:
    """Rows with weights of a long tail, or with a few kinds of weights."""
    random = np.random.default_rng(seed)
    weights = np.exp(random.normal(0.0, 0.7, rows))
    if kinds:
        weights = random.integers(0, kinds, rows).astype(float)
    return pd.DataFrame(
        {
            "person": random.integers(0, rows // 3, rows),
            "w": weights,
            "ward": random.choice(["a", "b", "c"], rows),
            "smoker": random.integers(0, 2, rows),
        }
    )


def holds(frame: pd.DataFrame) -> np.ndarray:
    """The queries above, written out by hand."""
    a, smoker = frame.ward == "a", frame.smoker == 1
    return np.column_stack([a, (frame.ward != "b") & smoker, a == smoker, ~smoker]).astype(int)


@pytest.mark.parametrize("kinds", [0, 4, FEW_WEIGHTS + 5])
@pytest.mark.parametrize("form", ["frame", "csv", "parquet"])
@pytest.mark.parametrize("most", [None, 2])
def test_counts_agree_with_a_walk_over_the_rows(
    kinds: int, form: str, most: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "BLOCK_ROWS", 128)
    frame, weight = survey(kinds=kinds), Weight("w", 3.0)
    source: object = frame
    if form == "csv":
        frame.to_csv(tmp_path / "t.csv", index=False)
        source = tmp_path / "t.csv"
    elif form == "parquet":
        frame.to_parquet(tmp_path / "t.parquet", index=False)
        source = tmp_path / "t.parquet"
    persons = None if most is None else Persons("person", most)
    opened = open_table(source)
    table = ByWeight(opened, weight, persons)
    parts = np.array([round(min(w, 3.0) * weight.parts) for w in frame.w])
    if persons is not None:
        parts = np.where(ByPerson(opened, persons).strata.of_row == 0, 0, parts)
        assert (parts == 0).sum() > 50
    counted = count_rows(table, QUERIES)
    assert counted.counts.tolist() == (parts @ holds(frame)).tolist()
    assert counted.rows == parts.sum()
    cells = tabulate(EncodedRows.read(table, SCHEMA, [0, 1]), PAIR)
    frame["parts"] = parts
    twin = frame.pivot_table("parts", ["ward", "smoker"], aggfunc="sum").to_numpy().ravel()
    assert cells.tolist() == twin.tolist()


def test_what_is_cut_is_told() -> None:
    table = ByWeight(open_table(survey()), Weight("w", 1.0))
    cut = int((survey().w > 1.0).sum())
    assert table.notices() == [f"{cut:,} weights above 1 are cut to it"]
    assert ByWeight(open_table(survey()), Weight("w", 1000.0)).notices() == []


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([1.0, None], "weight = 'w': a cell is missing; every row needs its weight"),
        ([1.0, float("nan")], "weight = 'w': a cell is missing"),
        ([1.0, -0.5], "weight = 'w': a cell is missing or no weight; expected a number"),
        ([1.0, float("inf")], "weight = 'w': a cell is missing or no weight"),
        (["1", " 2,5"], "weight = 'w': a cell is missing or no weight"),
        (["1", ""], "weight = 'w': a cell is missing or no weight"),
        ([True, False], "weight = 'w': a cell is missing or no weight"),
    ],
)
def test_what_is_no_weight_is_refused(cells: list[object], message: str) -> None:
    table = pa.table({"w": cells, "ward": ["a", "b"], "smoker": [0, 1]})
    with pytest.raises(TableError, match=message):
        count_rows(ByWeight(open_table(table), Weight("w", 2.0)), QUERIES)


def test_weights_are_read_from_every_kind_of_number() -> None:
    from decimal import Decimal

    kinds: list[pa.Array] = [
        pa.array([1, 2, 0], pa.int8()),
        pa.array([1.0, 2.0, 0.0], pa.float32()),
        pa.array([" 1", "2.0", "0e0"]),
        pa.array(["1", "2", "0"]).dictionary_encode(),
        pa.array([Decimal("1.00"), Decimal("2.00"), Decimal("0.00")]),
    ]
    for cells in kinds:
        table = pa.table({"w": cells, "ward": ["a", "b", "c"], "smoker": [0, 1, 1]})
        counted = count_rows(ByWeight(open_table(table), Weight("w", 2.0)), QUERIES)
        assert counted.counts.tolist() == [500, 0, 0, 500]
        assert counted.rows == 1500


def test_an_absent_column_is_named() -> None:
    with pytest.raises(TableError, match=r"weight = 'wt': the table has no such column; it has"):
        count_rows(ByWeight(open_table(survey()), Weight("wt", 2.0)), QUERIES)


@pytest.mark.parametrize("treatment", [OutOfDomain.CLAMP, OutOfDomain.MISSING])
@pytest.mark.parametrize(
    "cells",
    [[1.0, None], [1.0, float("nan")], [1.0, -0.5], [1.0, float("inf")], ["1", " 2,5"], ["1", ""],
     ["1", None], ["1", "9" * 400]],
)  # fmt: skip
def test_whether_there_is_a_release_does_not_depend_on_one_weight(
    treatment: OutOfDomain, cells: list[object]
) -> None:
    """What is no weight weighs nothing, and the other row weighs what it did."""
    table = pa.table({"w": cells, "ward": ["a", "b"], "smoker": [0, 1]})
    weight = Weight("w", 2.0)
    counted = count_rows(ByWeight(open_table(table), weight, out_of_domain=treatment), QUERIES)
    alone = count_rows(ByWeight(open_table(table.slice(0, 1)), weight), QUERIES)
    assert counted.counts.tolist() == alone.counts.tolist()
    assert counted.rows == alone.rows


@pytest.mark.parametrize(
    ("kind", "odd"),
    [(pa.int64(), None), (pa.float64(), None), (pa.float64(), float("nan")),
     (pa.float64(), 2.0**60), (pa.string(), None)],
)  # fmt: skip
def test_whether_there_is_a_release_does_not_depend_on_one_id(
    kind: pa.DataType, odd: float | None
) -> None:
    """Rows that name nobody are left out, and the others count what they did."""
    calm = pa.Table.from_pandas(survey())
    ids = pa.chunked_array([calm["person"].cast(kind).combine_chunks(), pa.array([odd] * 3, kind)])
    more = pa.concat_tables([calm, calm.slice(0, 3)]).set_column(0, "person", ids)
    persons = Persons("person", 2)
    alone = ByPerson(open_table(calm), persons).strata
    found = ByPerson(open_table(more), persons, OutOfDomain.MISSING).strata
    assert found.weights == alone.weights
    assert found.of_row.tolist() == [*alone.of_row.tolist(), 0, 0, 0]
    with pytest.raises(TableError, match="person"):
        _ = ByPerson(open_table(more), persons).strata
