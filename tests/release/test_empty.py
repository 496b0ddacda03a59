"""A table without rows: refused where the number of rows is public, released where it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dualquery as dq
from dualquery.base.errors import TableError
from dualquery.rows.long import LongTable

SCHEMA = dq.Schema((dq.Attribute.binary("a"), dq.Attribute.categorical("b", ["x", "y", "z"])))
SETTINGS: dict[str, Any] = {
    "epsilon": 1.0, "delta": 1e-6, "queries": 20, "neighbours": "add-remove", "rows": 500,
    "errors": False, "seed": 1,
}  # fmt: skip
EMPTY = pd.DataFrame({"who": [], "a": [], "b": []})
PERSONS = {"unit": "who", "most_records": 2}


@pytest.mark.parametrize(
    "changes",
    [{}, {"player": "record", "rounds": 3, "samples": 5}, PERSONS, {**PERSONS, "weigh": "person"}],
    ids=str,
)
def test_nobody_sees_that_there_is_nobody(changes: dict[str, Any], tmp_path: Path) -> None:
    """Were it refused, whether there is a release would tell no rows from one row."""
    EMPTY.to_csv(tmp_path / "empty.csv", index=False)
    for table in (EMPTY, tmp_path / "empty.csv"):
        made = dq.DualQuery(**(SETTINGS | changes)).fit(table, schema=SCHEMA)
        assert 0.0 <= made.answer("a=1") <= 1.0


def test_pairs_of_nobody() -> None:
    schema = dq.Schema(tuple(dq.Attribute.binary(f"x{i}") for i in range(3)))
    pairs = LongTable(pd.DataFrame({"who": [], "item": []}), "who", "item", prefix="x")
    for changes in ({}, {**PERSONS, "weigh": "person"}):
        made = dq.DualQuery(**(SETTINGS | changes)).fit(pairs, schema=schema)
        assert 0.0 <= made.answer("x1") <= 1.0


def test_a_public_number_of_rows_may_be_refused() -> None:
    public = SETTINGS | {"neighbours": "replace-one", "rows": None}
    with pytest.raises(TableError, match="the table has no rows"):
        dq.DualQuery(**public).fit(EMPTY, schema=SCHEMA)
    with pytest.raises(TableError, match="the table has no rows"):
        dq.DualQuery(**public, **PERSONS, weigh="person").fit(EMPTY, schema=SCHEMA)
