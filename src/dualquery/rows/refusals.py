"""What a release says about a cell that it refuses. Private side, and yet no text names a cell.

A message goes into logs and mails. So it names the column, the reason, and what was declared, all
of it public. Whoever may see the private table can ask for the cells themselves: `check` has
`show`, and marks what it shows. `check` says the same with counts, so that nobody has to learn two
sets of messages.
"""

from __future__ import annotations

from collections.abc import Sequence

from dualquery.base.errors import TableError
from dualquery.base.similar import brief, did_you_mean
from dualquery.domain.attributes import Attribute
from dualquery.domain.types import spelled

OUTSIDE, MISSING_CELL, UNFIT = -1, -2, -3
"""Marks in place of a code for a cell that is refused, and why: it is outside the declared domain;
it is missing; it is not of the declared type."""

WAY_OUT = {
    "python": "dq.check(table, schema, show=True) shows such cells",
    "command": "`dualquery check TABLE --schema F --show` shows such cells",
}
"""How a curator sees the cells that a message does not name."""


def refused(mark: int, attribute: Attribute) -> TableError:
    """The error about a cell: why it is refused, and how its curator can see it."""
    return TableError(refusal_text(mark, attribute), **WAY_OUT)


def refusal_text(mark: int, attribute: Attribute) -> str:
    """One line that names the column and the reason, and says what would be right.

    Args:
        mark: why a cell is refused.
        attribute: what was declared.
    """
    column = f"column {attribute.column!r}"
    if attribute.answer is not None:
        return (
            f"{column}: a cell holds something other than its declared answers "
            f"({_listed(attribute.answer.values)})"
        )
    if mark == MISSING_CELL:
        return (
            f"{column}: a cell is missing and the attribute has no missing bucket; "
            "declare missing = true"
        )
    if mark == UNFIT:
        kind = attribute.type
        example = f", such as {kind.example}" if kind.example else ""
        spelt = attribute.spelling
        if spelt.format:
            example = f", written as {spelt.format}"
        elif spelt.decimal == ",":
            example = ", such as 3,5"
        return f"{column}: a cell is not {kind.noun}; expected {attribute.describe()}{example}"
    return f"{column}: a cell is outside its declared domain ({attribute.describe()})"


def shown(cell: object, attribute: Attribute) -> str:
    """A cell for the curator, cut short if it is long, and what may have been meant."""
    if attribute.type.is_temporal and isinstance(cell, float):
        return spelled(attribute.type, cell)
    return f"{brief(repr(cell))}{_suggestion(cell, attribute)}"


def _suggestion(cell: object, attribute: Attribute) -> str:
    if not isinstance(cell, str) or attribute.is_numeric:
        return ""
    answer = attribute.answer
    known = attribute.values if answer is None else answer.values
    hint = did_you_mean(cell, [str(value) for value in known]).lstrip("; ")
    return f" ({hint})" if hint else ""


def _listed(values: Sequence[str]) -> str:
    named = ", ".join(values[:6])
    return named if len(values) <= 6 else f"{named}, … {len(values)} answers"
