"""Ids of persons and of rows: one text per id, made from that id alone. Private side.

1, 1.0, "1", "01" and " 1 " are one id. A frame may hold the same whole numbers as whole or decimal
numbers or as text, and which of them it is may depend on the id of one other person.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from dualquery.base.errors import TableError
from dualquery.domain.types import has_lost_digits, text_of
from dualquery.rows.cells import UNREADABLE, lost_digits, python_cells
from dualquery.rows.encoding import decoded, plain_column

_WHOLE = re.compile(r"([+-]?)0*(\d+)(?:\.0*)?", re.ASCII)


def id_text(cell: object) -> str:
    """The one text of an id, however a file or a frame holds it."""
    text = text_of(cell).strip()
    found = _WHOLE.fullmatch(text)
    if found is None:
        return text
    sign, digits = found.groups()
    return f"-{digits}" if sign == "-" and digits != "0" else digits


def coded_ids(
    cells: pa.Array | pa.ChunkedArray, column: str, missing: str | None, *, inferred: bool = True
) -> pa.DictionaryArray:
    """A column of ids as numbers of different ids, each listed once, with its text.

    Args:
        cells: the column.
        column: its name, for messages.
        missing: the message about a cell that is missing; None if such a cell, and one that
            cannot be read, has no number and is not refused.
        inferred: whether a frame library may have chosen the type of the column. Then one missing
            id makes decimal numbers of all whole ones, and large ones no longer say which number
            they were. That is always refused, because it would leave out the rows of others.
    """
    plain = plain_column(cells, column)
    plain = decoded(plain)  # it may list an id twice, or a missing one
    if plain.null_count and missing is not None:
        raise TableError(missing)
    coded = plain.dictionary_encode()
    if pa.types.is_integer(plain.type):  # a whole number is its own text
        return pa.DictionaryArray.from_arrays(coded.indices, coded.dictionary.cast(pa.string()))
    found = python_cells(coded.dictionary)
    if (inferred or missing is not None) and any(map(has_lost_digits, found)):
        raise lost_digits(column)
    if missing is not None:
        _refuse_none(found, column, missing)
    named = [None if _is_none(cell) else id_text(cell) for cell in found]
    texts = pa.array(named, pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(texts.indices.take(coded.indices), texts.dictionary)


def _is_none(cell: object) -> bool:
    """Whether a cell names nobody; not a number is what pandas marks a missing one with."""
    return cell is UNREADABLE or has_lost_digits(cell) or cell != cell


def _refuse_none(found: Sequence[object], column: str, missing: str) -> None:
    """Refuse cells that name nobody, with the reason."""
    if any(cell is UNREADABLE for cell in found):
        raise TableError(f"column {column!r}: an id cannot be read; expected text or numbers")
    if any(map(_is_none, found)):
        raise TableError(missing)
