"""Columns with several answers in one cell, such as "en;fr": one yes/no attribute per answer.

`values = ["en", "fr", "de"]` with `separator = ";"` declares the attributes `languages:en`,
`languages:fr` and `languages:de`. A cell without any answer is a missing one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a column that may have several in a cell.

    Attributes:
        column: the column.
        value: the answer.
        values: all answers that can be given, in order.
        separator: what stands between the answers of a cell.
        missing_words: cells that stand for a missing one, such as "NA".
    """

    column: str
    value: str
    values: tuple[str, ...]
    separator: str
    missing_words: tuple[str, ...] = ()

    @property
    def is_first(self) -> bool:
        """Whether this is the first of the column's answers."""
        return self.value == self.values[0]

    @property
    def name(self) -> str:
        """The name of the answer's attribute."""
        return f"{self.column}:{self.value}"


def split(cell: object, separator: str, values: Sequence[str] = ()) -> list[str]:
    """The answers of a cell, without the spaces around them.

    Args:
        cell: the cell.
        separator: what stands between answers.
        values: the declared answers. One that holds the separator itself, such as "yes, often", is
            found before its parts are.
    """
    parts = [part.strip() for part in str(cell).split(separator) if part.strip()]
    whole = {tuple(split(value, separator)): value for value in values if separator in value}
    if not whole:
        return parts
    found, first = [], 0
    while first < len(parts):
        sizes = (s for s in sorted(map(len, whole), reverse=True))
        size = next((s for s in sizes if tuple(parts[first : first + s]) in whole), 1)
        piece = tuple(parts[first : first + size])
        found.append(whole.get(piece, piece[0]))
        first += size
    return found


def together(given: Sequence[str], separator: str) -> str | None:
    """The cell with these answers; None if there are none."""
    return separator.join(given) if given else None
