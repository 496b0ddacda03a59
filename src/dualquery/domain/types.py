"""Types of cells: what a cell of a column means, and how it is written.

The schema alone says which type a column has. A type that was read off the private table would
tell something about its rows.

A date, a timestamp and a time of day are *counted*: in days since 1970-01-01, in seconds since
then, in seconds since midnight. So every column with bins is a column of numbers inside.
Timestamps are wall-clock times, read to the second; a time zone is not kept.
"""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal
from enum import StrEnum

Number = int | float
Key = str | int | float
"""What equal cells have in common, however each of them is written."""

DAY = 86_400
"""Seconds of a day."""

_EPOCH = datetime.date(1970, 1, 1)
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)\Z", re.ASCII)
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?\Z", re.ASCII)
_STAMP = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)(?:[T ](?P<time>\d\d:\d\d(?::\d\d(?:\.\d+)?)?)"
    r"(?:Z|[+-]\d\d:?\d\d(?::\d\d)?)?)?\Z",
    re.ASCII,
)
_YES = frozenset({"1", "true", "yes", "y"})
_NO = frozenset({"0", "false", "no", "n"})


class Type(StrEnum):
    """What the cells of a column are."""

    TEXT = "text"
    WHOLE = "whole"
    DECIMAL = "decimal"
    YES_NO = "yes/no"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIME = "time"

    @property
    def is_temporal(self) -> bool:
        """Whether its cells are dates or times."""
        return self in (Type.DATE, Type.TIMESTAMP, Type.TIME)

    @property
    def is_counted(self) -> bool:
        """Whether only whole counts stand for a cell: days and seconds, or whole numbers."""
        return self.is_temporal or self is Type.WHOLE

    @property
    def noun(self) -> str:
        """One cell of this type, in words."""
        return _NOUNS[self][0]

    @property
    def plural(self) -> str:
        """Cells of this type, in words."""
        return _NOUNS[self][1]

    @property
    def example(self) -> str:
        """How a cell is written, for messages; empty where nobody needs to be told."""
        return _NOUNS[self][2]


_NOUNS = {
    Type.TEXT: ("a value", "values", ""),
    Type.WHOLE: ("a number", "numbers", ""),
    Type.DECIMAL: ("a number", "numbers", ""),
    Type.YES_NO: ("yes or no", "yes or no", ""),
    Type.DATE: ("a date", "dates", "2022-03-01"),
    Type.TIMESTAMP: ("a timestamp", "timestamps", "2022-03-01T12:30:00"),
    Type.TIME: ("a time of day", "times of day", "12:30:00"),
}


def type_of(cell: object) -> Type:
    """The type of one declared value or edge, as it was written."""
    if isinstance(cell, bool):
        return Type.YES_NO
    if isinstance(cell, int):
        return Type.WHOLE
    if isinstance(cell, float | Decimal):
        return Type.DECIMAL
    if isinstance(cell, datetime.datetime):
        return Type.TIMESTAMP
    if isinstance(cell, datetime.date):
        return Type.DATE
    return Type.TIME if isinstance(cell, datetime.time) else Type.TEXT


def number_of(kind: Type, cell: object) -> Number | None:
    """The number that stands for a cell of a type with numbers inside; None if it is no such cell.

    Args:
        kind: any type except text.
        cell: a value of Python, or a text such as a CSV file has; spaces around it do not count.
    """
    if isinstance(cell, str):
        return _read(kind, cell.strip())
    if kind is Type.DATE:
        if isinstance(cell, datetime.date):  # a timestamp is one too
            return (datetime.date(cell.year, cell.month, cell.day) - _EPOCH).days
        return None
    if kind is Type.TIMESTAMP:
        if isinstance(cell, datetime.datetime):
            return _seconds(cell.date(), cell.time())
        if isinstance(cell, datetime.date):
            return _seconds(cell, datetime.time())
        return None
    if kind is Type.TIME:
        return _since_midnight(cell) if isinstance(cell, datetime.time) else None
    if isinstance(cell, bool):
        return int(cell)
    if isinstance(cell, int | float | Decimal):
        return _plain_number(cell)
    return None


def key_of(kind: Type, cell: object) -> Key | None:
    """What equal cells have in common: 3, 3.0, "3" and " 3" are the same number.

    None if the cell is none of the type. Every cell is a text.
    """
    if kind is Type.TEXT:
        return text_of(cell)
    number = number_of(kind, cell)
    return int(number) if isinstance(number, float) and number.is_integer() else number


def text_of(cell: object) -> str:
    """A cell as text: a decimal number without decimals as a whole one.

    Frames of one library hold the same cell in several ways, so each way is written alike.
    """
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, Decimal) and cell.is_finite():
        whole = cell == cell.to_integral_value()
        return str(int(cell)) if whole else f"{cell.normalize():f}"
    if isinstance(cell, datetime.timedelta):
        return text_of(cell.total_seconds())
    return str(cell)


MOST_EXACT = 2**53
"""From here on, a decimal number stands for several whole ones."""


def has_lost_digits(cell: object) -> bool:
    """Whether a decimal number is so large that it no longer says which whole number it was."""
    return isinstance(cell, float) and MOST_EXACT <= abs(cell) < math.inf


def loose_text(cell: object) -> str:
    """A cell as text, with yes/no cells as 1 and 0: frames of different kinds spell them apart."""
    text = text_of(cell)
    return {"True": "1", "False": "0", "true": "1", "false": "0"}.get(text, text)


def spelled(kind: Type, number: Number) -> str:
    """The number that stands for a cell, as the query language and schema files write it."""
    if kind is Type.DATE:
        return (_EPOCH + datetime.timedelta(days=int(number))).isoformat()
    if kind is Type.TIMESTAMP:
        days, rest = divmod(int(number), DAY)
        return f"{spelled(Type.DATE, days)}T{spelled(Type.TIME, rest)}"
    if kind is Type.TIME:
        hours, rest = divmod(int(number), 3600)
        return f"{hours:02}:{rest // 60:02}:{rest % 60:02}"
    return repr(number) if isinstance(number, int) else repr(float(number))


def _read(kind: Type, text: str) -> Number | None:
    try:
        if kind is Type.YES_NO:
            word = text.lower()
            return 1 if word in _YES else 0 if word in _NO else _binary(text)
        if kind is Type.TIME:
            return _read_time(text)
        if kind.is_temporal:
            found = _STAMP.match(text)
            if found is None:
                return None
            day = number_of(kind, datetime.date(*_whole(_DATE, found["date"])))
            assert day is not None  # a date is a date and a timestamp
            if kind is Type.DATE or found["time"] is None:
                return day
            seconds = _read_time(found["time"])
            return None if seconds is None else day + seconds
        if "_" in text:  # Python reads 1_000, people do not
            return None
        if text in ("True", "False"):  # as Python writes what a column of booleans holds as 1 and 0
            return int(text == "True")
        return int(text) if text.lstrip("+-").isdecimal() else _plain_number(float(text))
    except (ValueError, OverflowError):
        return None


def _binary(text: str) -> int | None:
    """0.0 and 1.0, as a column of decimals with missing cells writes them."""
    number = float(text)
    return int(number) if number in (0.0, 1.0) else None


def _read_time(text: str) -> int | None:
    if text in ("24:00", "24:00:00"):
        return DAY
    found = _TIME.match(text)
    if found is None:
        return None
    hour, minute, second = (int(part) for part in found.groups("0"))
    return _since_midnight(datetime.time(hour, minute, second))


def _whole(pattern: re.Pattern[str], text: str) -> list[int]:
    found = pattern.match(text)
    return [] if found is None else [int(part) for part in found.groups()]


def _since_midnight(time: datetime.time) -> int:
    return 3600 * time.hour + 60 * time.minute + time.second


def _seconds(date: datetime.date, time: datetime.time) -> int:
    return DAY * (date - _EPOCH).days + _since_midnight(time)


def _plain_number(cell: int | float | Decimal) -> Number | None:
    if isinstance(cell, int):
        return cell
    if not math.isfinite(cell):
        return None
    if isinstance(cell, Decimal):
        return int(cell) if cell == cell.to_integral_value() else float(cell)
    return cell
