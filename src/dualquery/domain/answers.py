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
    """

    column: str
    value: str
    values: tuple[str, ...]
    separator: str

    @property
    def is_first(self) -> bool:
        """Whether this is the first of the column's answers."""
        return self.value == self.values[0]

    @property
    def name(self) -> str:
        """The name of the answer's attribute."""
        return f"{self.column}:{self.value}"


def split(cell: object, separator: str) -> list[str]:
    """The answers of a cell, without the spaces around them."""
    return [part.strip() for part in str(cell).split(separator) if part.strip()]


def together(given: Sequence[str], separator: str) -> str | None:
    """The cell with these answers; None if there are none."""
    return separator.join(given) if given else None
