"""One cell of a column of Python objects must not change how the others are read."""

from __future__ import annotations

import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dualquery as dq
from dualquery.rows.counting import count_rows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table

UTC, TOKYO = datetime.UTC, ZoneInfo("Asia/Tokyo")
DAY, EVENING, MORNING = (
    datetime.date(2020, 1, 1),
    datetime.datetime(2020, 1, 1, 23, 30),
    datetime.datetime(2020, 1, 2, 8, 30),
)
NUMERIC = dq.Attribute.numeric
ATTRIBUTES = {
    "text": dq.Attribute.categorical("c", ["1", "2", "1.0", "True", "2020-01-01"], missing=True),
    "whole": NUMERIC("c", [0, 2, 10], type="whole", missing=True),
    "decimal": NUMERIC("c", [0.0, 1.5, 10.0], type="decimal", missing=True),
    "yes/no": dq.Attribute.binary("c", type="yes/no", missing=True),
    "date": NUMERIC("c", ["2019-01-01", "2020-01-02", "2021-01-01"], type="date", missing=True),
    "timestamp": NUMERIC(
        "c",
        ["2019-01-01 00:00", "2020-01-01 16:00", "2020-01-02 00:00", "2021-01-01 00:00"],
        type="timestamp",
        missing=True,
    ),
    "time": NUMERIC("c", ["00:00", "06:00", "24:00"], type="time", missing=True),
}
COLUMNS: dict[str, list[object]] = {
    "whole": [1, 2, 1, 2],
    "decimal": [1.0, 2.5, 2.0, 1.0],
    "exact": [Decimal(1), Decimal("2.50"), Decimal(2)],
    "yes/no": [True, False, True],
    "text": ["1", "2", "1.0", "True"],
    "date": [DAY, DAY],
    "timestamp": [EVENING, MORNING, EVENING],
    "elsewhere": [EVENING.replace(tzinfo=TOKYO), MORNING.replace(tzinfo=TOKYO)],
    "time": [datetime.time(5, 30), datetime.time(23, 0)],
}
ODD: list[object] = [
    1, 2.5, 7**40, True, None, float("nan"), "x", b"1", Decimal("1e-20"), DAY, EVENING,
    EVENING.replace(tzinfo=UTC), EVENING.replace(tzinfo=TOKYO), datetime.time(8, 30),
    datetime.timedelta(1), pd.NaT, pd.NA, [1], {"a": 1}, np.float32(1.5), np.int8(1), object(),
]  # fmt: skip


def objects(cells: list[object]) -> pd.DataFrame:
    held = np.empty(len(cells), dtype=object)
    held[:] = cells
    return pd.DataFrame({"c": held})


def counted(table: object, attribute: dq.Attribute) -> np.ndarray:
    asked = dq.all_marginals(dq.Schema((attribute,)), 1)
    return count_rows(open_table(table), asked, OutOfDomain.MISSING).counts


@pytest.mark.parametrize("kind", list(ATTRIBUTES))
@pytest.mark.parametrize("column", list(COLUMNS))
def test_one_cell_moves_its_own_row_only(kind: str, column: str) -> None:
    attribute, cells = ATTRIBUTES[kind], COLUMNS[column]
    for odd in ODD:
        for place in (0, len(cells)):
            before, after = ([*cells[:place], one, *cells[place:]] for one in (cells[0], odd))
            for made in (objects, lambda held: {"c": held}):
                moved = np.abs(counted(made(before), attribute) - counted(made(after), attribute))
                assert moved.sum() <= 2, (odd, place)


def test_each_timestamp_is_read_on_the_clock_of_its_own_zone() -> None:
    cells = [EVENING.replace(tzinfo=zone) for zone in (TOKYO, UTC, TOKYO, UTC)]
    for table in (
        objects(cells),
        {"c": cells},
        pl.DataFrame({"c": pl.Series(cells, dtype=pl.Object)}),
    ):
        assert list(counted(table, ATTRIBUTES["timestamp"])) == [0, 4, 0, 0]


@pytest.mark.parametrize("kind", ["date", "timestamp", "time"])
def test_a_decimal_number_is_no_day_and_no_time(kind: str) -> None:
    # Whole numbers were refused; decimal ones counted as days or seconds since 1970 or midnight.
    with pytest.raises(dq.TableError, match=r"column 'c'"):
        count_rows(
            open_table(pd.DataFrame({"c": [18262.0, 18263.0]})),
            dq.all_marginals(dq.Schema((ATTRIBUTES[kind],)), 1),
            OutOfDomain.REFUSE,
        )
