"""What a release says about a cell that it refuses. Private side: the text names the cell.

`check` says the same, with counts, so that nobody has to learn two sets of messages.
"""

from __future__ import annotations

from collections.abc import Sequence

from dualquery.base.similar import brief, did_you_mean
from dualquery.domain.attributes import Attribute
from dualquery.domain.types import spelled

OUTSIDE, MISSING_CELL, UNFIT, NO_BUCKET = -1, -2, -3, -4
"""Marks in place of a code for a cell that is refused, and why: it is outside the declared domain;
it is missing; it is not of the declared type; it would count as missing if that were declared."""


def refusal_text(mark: int, cell: object, attribute: Attribute) -> str:
    """One line that names the column and the cell, and says what would be right.

    Args:
        mark: why the cell is refused.
        cell: the cell as it was read; None if it is missing.
        attribute: what was declared.
    """
    column = f"column {attribute.column!r}"
    if attribute.answer is not None:
        return (
            f"{column}: {shown(cell, attribute)} is not one of its declared answers "
            f"({_listed(attribute.answer.values)}){suggestion(cell, attribute)}"
        )
    if mark == MISSING_CELL:
        return (
            f"{column}: a cell is missing and the attribute has no missing bucket; "
            "declare missing = true"
        )
    if mark == NO_BUCKET:
        return (
            f"{column}: {shown(cell, attribute)} is outside the domain and the attribute has no "
            "missing bucket; declare missing = true"
        )
    if mark == UNFIT:
        kind = attribute.type
        example = f", such as {kind.example}" if kind.example else ""
        return (
            f"{column}: {shown(cell, attribute)} is not {kind.noun}; "
            f"expected {attribute.describe()}{example}"
        )
    return (
        f"{column}: {shown(cell, attribute)} is outside its declared domain "
        f"({attribute.describe()}){suggestion(cell, attribute)}"
    )


def shown(cell: object, attribute: Attribute) -> str:
    """A cell for a message, cut short if it is long."""
    if attribute.type.is_temporal and isinstance(cell, float):
        return spelled(attribute.type, cell)
    return brief(repr(cell))


def suggestion(cell: object, attribute: Attribute) -> str:
    """`; did you mean …?` if the attribute has a value much like the cell, else nothing."""
    if not isinstance(cell, str) or attribute.is_numeric:
        return ""
    answer = attribute.answer
    known = attribute.values if answer is None else answer.values
    return did_you_mean(cell, [str(value) for value in known])


def _listed(values: Sequence[str]) -> str:
    shown = ", ".join(values[:6])
    return shown if len(values) <= 6 else f"{shown}, … {len(values)} answers"
