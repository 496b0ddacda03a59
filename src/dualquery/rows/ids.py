"""Ids of persons and of rows: one text per id, made from that id alone. Private side.

1, 1.0, "1", "01" and " 1 " are one id. A frame may hold the same whole numbers as whole or decimal
numbers or as text, and which of them it is may depend on the id of one other person.
"""

from __future__ import annotations

import re

import pyarrow as pa

from dualquery.base.errors import TableError
from dualquery.domain.types import has_lost_digits, text_of
from dualquery.rows.cells import UNREADABLE, lost_digits, python_cells
from dualquery.rows.encoding import plain_column

_WHOLE = re.compile(r"([+-]?)0*(\d+)(?:\.0*)?", re.ASCII)


def id_text(cell: object) -> str:
    """The one text of an id, however a file or a frame holds it."""
    text = text_of(cell).strip()
    found = _WHOLE.fullmatch(text)
    if found is None:
        return text
    sign, digits = found.groups()
    return f"-{digits}" if sign == "-" and digits != "0" else digits


def coded_ids(cells: pa.Array | pa.ChunkedArray, column: str, missing: str) -> pa.DictionaryArray:
    """A column of ids as numbers of different ids, each listed once, with its text.

    Args:
        cells: the column.
        column: its name, for messages.
        missing: the message about a cell that is missing.
    """
    plain = plain_column(cells, column)
    if pa.types.is_dictionary(plain.type):  # it may list an id twice, or a missing one
        plain = plain.dictionary_decode()
    if plain.null_count:
        raise TableError(missing)
    coded = plain.dictionary_encode()
    if pa.types.is_integer(plain.type):  # a whole number is its own text
        return pa.DictionaryArray.from_arrays(coded.indices, coded.dictionary.cast(pa.string()))
    found = python_cells(coded.dictionary)
    if any(map(has_lost_digits, found)):
        raise lost_digits(column)
    if any(cell is UNREADABLE for cell in found):
        raise TableError(f"column {column!r}: an id cannot be read; expected text or numbers")
    if any(cell != cell for cell in found):  # not a number, as pandas marks a missing one
        raise TableError(missing)
    texts = pa.array([id_text(cell) for cell in found], pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(texts.indices.take(coded.indices), texts.dictionary)
