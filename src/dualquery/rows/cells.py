"""One function from a cell to its code. Private side.

Every proof begins with "one record moves a count by at most 1". That is a statement about the
reader: the code of a cell may depend on that cell, its attribute and the treatment of cells outside
their domain, and on nothing else in the table. `CellReader.code` is that function. What reads many
cells at once (`rows.encoding`) gives the same codes, and tests hold it to that.
"""

from __future__ import annotations

import datetime
import math
from bisect import bisect_right
from collections.abc import Iterable
from decimal import Decimal
from enum import StrEnum
from functools import cached_property

import numpy as np
import pyarrow as pa

from dualquery.base.checks import choice
from dualquery.base.errors import TableError
from dualquery.domain.answers import split
from dualquery.domain.attributes import Attribute
from dualquery.domain.types import (
    MOST_EXACT,
    Key,
    Type,
    key_of,
    loose_text,
    number_of,
    text_of,
)
from dualquery.rows.refusals import MISSING_CELL, OUTSIDE, UNFIT


class OutOfDomain(StrEnum):
    """What to do with a cell outside its declared domain."""

    REFUSE = "refuse"
    CLAMP = "clamp"
    MISSING = "missing"

    @classmethod
    def parse(cls, name: str) -> OutOfDomain:
        """The treatment of that name, or an error that lists the names."""
        return choice("out_of_domain", name, cls)


class Unreadable:
    """Stands for a cell that Arrow holds and Python cannot, such as a day of the year 10000."""

    def __str__(self) -> str:
        return "a cell that cannot be read"


UNREADABLE = Unreadable()


class CellReader:
    """The code of one cell, by its attribute and by the treatment of cells outside their domain.

    Attributes:
        missing: the code of a missing cell.
        outside: the code of a value that was not declared.
        unfit: the code of a cell that is not of the declared type.
        below: the code of a number below the first edge.
        above: the code of a number above the last edge.

    Under `refuse` they are marks of `rows.refusals`, except that of a missing cell whose attribute
    has a bucket for it. Under `clamp` and `missing` no cell is refused, because a release whose
    existence depends on one cell tells about that cell: a cell that has no other place takes the
    attribute's default.
    """

    def __init__(self, attribute: Attribute, treatment: OutOfDomain) -> None:
        self.attribute = attribute
        self.refuses = treatment is OutOfDomain.REFUSE
        bucket, default = attribute.missing_code, attribute.default
        gone = default if bucket is None else bucket
        if self.refuses:
            self.missing = MISSING_CELL if bucket is None else bucket
            self.outside = self.below = self.above = OUTSIDE
            self.unfit = UNFIT
        else:
            clamps = treatment is OutOfDomain.CLAMP
            self.missing = self.unfit = gone
            self.outside = default if clamps else gone
            self.below = 0 if clamps else gone
            self.above = attribute.proper_size - 1 if clamps else gone
        self.words = frozenset(attribute.missing_words)

    @cached_property
    def missing_numbers(self) -> tuple[float, ...]:
        """The numbers that stand for a missing cell, however a cell writes them."""
        return tuple(n for n in map(self.number, self.words) if n is not None)

    @cached_property
    def _known(self) -> dict[str | int | float, int]:
        return self.attribute.value_keys()

    @cached_property
    def _missing_keys(self) -> frozenset[object]:
        kind = self.attribute.cell_type
        keys = () if kind is Type.TEXT else (self._key(kind, word) for word in self.words)
        return frozenset(key for key in keys if key is not None)

    @cached_property
    def is_exact(self) -> bool:
        """Whether some declared value is a whole number that decimal numbers cannot tell apart."""
        numbers = (number_of(Type.WHOLE, value) for value in self.attribute.values)
        return any(n is not None and abs(n) >= MOST_EXACT for n in numbers)

    def code(self, cell: object) -> int:
        """The code of a cell, or a mark if the cell is refused."""
        if isinstance(cell, datetime.timedelta):
            cell = cell.total_seconds()  # as its text says, which is all that objects have
        if self.attribute.answer is not None:
            return self._code_of_answers(cell)
        if cell is None or (isinstance(cell, float | Decimal) and cell != cell):
            return self.missing
        if self.words and text_of(cell).strip() in self.words:
            return self.missing
        return self._bin(cell) if self.attribute.is_numeric else self._value(cell)

    def _bin(self, cell: object) -> int:
        number = self.number(cell)
        if number is None:
            return self.unfit
        if number in self.missing_numbers:
            return self.missing
        edges = self.attribute.edges
        if number < edges[0]:
            return self.below
        if number > edges[-1]:
            return self.above
        return min(bisect_right(edges, number), self.attribute.proper_size) - 1

    def number(self, cell: object) -> float | None:
        """The number that stands for a cell of a column with bins; None if it is no such cell.

        An infinite number, and one that is too large for a double, is above or below all edges.
        """
        kind = self.attribute.type
        if isinstance(cell, float) and not kind.is_temporal:
            return cell
        cell = self.attribute.spelling.plain(kind, cell)
        try:
            number = number_of(kind, cell)
            if number is None and isinstance(cell, str) and not kind.is_temporal:
                return _infinite(cell)
            return None if number is None else float(number)
        except OverflowError:  # a whole number of more than 300 digits
            return math.inf if number is None or number > 0 else -math.inf

    def _value(self, cell: object) -> int:
        kind = self.attribute.cell_type
        if cell is UNREADABLE:
            return self.outside
        key = self._key(kind, cell)
        if key is not None and key in self._missing_keys:
            return self.missing
        code = None if key is None else self._known.get(key)
        if code is None and kind is Type.TEXT:
            code = self._known.get(loose_text(cell))
        return self.outside if code is None else code

    def _key(self, kind: Type, cell: object) -> Key | None:
        read = self.attribute.spelling.plain(kind, cell)
        return None if read is None else key_of(kind, read)

    def _code_of_answers(self, cell: object) -> int:
        """Whether a cell holds the answer; a missing cell holds none.

        Where cells outside the domain are not refused, an undeclared answer counts as not given.
        """
        answer = self.attribute.answer
        assert answer is not None  # the caller has looked
        text = "" if cell is None else text_of(cell)
        gone = text.strip() in answer.missing_words
        given = [] if gone else split(text, answer.separator, answer.values)
        if self.refuses and not set(answer.values).issuperset(given):
            return OUTSIDE
        return int(answer.value in given)


def _infinite(text: str) -> float | None:
    """A number that is too large for a double, or infinite; None for any other text."""
    try:
        number = float(text) if "_" not in text else math.nan
    except ValueError:
        return None
    return number if math.isinf(number) else None


def lost_digits(column: str) -> TableError:
    """The error of a column whose whole numbers were turned into decimal ones."""
    return TableError(
        f"column {column!r}: decimal numbers of 2^53 and more no longer say which whole number "
        "they were; keep the column as text or as whole numbers"
    )


def python_cells(cells: pa.Array) -> list[object]:
    """Cells as Python holds them, each one for itself; `UNREADABLE` where it cannot."""
    try:
        found = list(cells.to_pylist())
    except (pa.ArrowException, OverflowError, ValueError):
        found = [_python_cell(cell) for cell in cells]
    if pa.types.is_timestamp(cells.type) or pa.types.is_duration(cells.type):
        # With nanoseconds, Arrow's smallest one is what pandas marks a missing one with.
        return [None if is_no_cell(cell) else cell for cell in found]
    return found


def _python_cell(cell: pa.Scalar) -> object:
    try:
        return cell.as_py()
    except (pa.ArrowException, OverflowError, ValueError):
        return UNREADABLE


OBJECTS = pa.struct([("text", pa.string()), ("is_text", pa.bool_())])
"""The type of a column of objects: each cell as text, and whether it was one."""


class Written(str):
    """A number as a file writes it that has numbers and texts apart: a text that is no text."""

    __slots__ = ()


def column_of_objects(cells: Iterable[object]) -> pa.StructArray:
    """Python objects as an Arrow column of texts (`OBJECTS`), one cell at a time.

    Arrow would find one type for all of them. One cell could then change how all others are read:
    a date among whole numbers turns every number into text that is no date, and the time zone of
    the first timestamp moves all others to its clock. As text, each is judged by the schema, as
    those of a CSV file are. What was no text is not spelled as the schema may say that texts are:
    the number 1.234 stays one where the text "1.234" is a thousand.
    """
    held = list(cells)
    texts = [None if is_no_cell(cell) else _text(cell) for cell in held]
    is_text = pa.array([type(cell) is str for cell in held], pa.bool_())
    try:
        found = pa.array(texts, pa.string())
    except UnicodeEncodeError:  # half a character, which no file can hold
        found = pa.array([None if text is None else _whole(text) for text in texts], pa.string())
    return pa.StructArray.from_arrays([found, is_text], fields=list(OBJECTS))


def is_no_cell(cell: object) -> bool:
    """Whether pandas would call the cell missing: None, NaN, NaT or NA."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(cell, float | np.floating) and bool(cell != cell)


def _text(cell: object) -> str:
    if type(cell) is str:
        return cell
    try:
        plain = cell.item() if isinstance(cell, np.number | np.bool_) else cell
        if isinstance(plain, complex) and not plain.imag:  # one makes complex numbers of all others
            plain = plain.real
        return text_of(plain)
    except Exception:  # an object may fail to say what it is in any way
        return str(UNREADABLE)


def _whole(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
