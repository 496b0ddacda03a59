"""Columns of Python objects: how each cell is read must not depend on the cells beside it.

Arrow finds one type for a whole list of objects. One cell can then change how all others are read:
a date among whole numbers turns every number into text that is no date, and the time zone of the
first timestamp moves all others to its clock. A person who changes one cell would so change the
counts of everybody, and no noise is scaled for that. Here every cell becomes text by itself, and
the schema judges the text, as it does for a CSV file.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from dualquery.domain.types import text_of

_NESTED = (list, tuple, dict, set, np.ndarray)


def column_of_objects(cells: Iterable[object]) -> pa.Array:
    """An Arrow column of text, one cell at a time; lists and structures stay what they are."""
    held = list(cells)
    kinds = set(map(type, held))
    if kinds <= {str, type(None)}:
        return pa.array(held, pa.string())
    if any(issubclass(kind, _NESTED) for kind in kinds):
        try:
            found = pa.array(held, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            found = None  # some cells are none: all are judged as text
        if found is not None:
            return found  # refused by its type, whatever its cells
    return pa.array([None if is_no_cell(cell) else _text(cell) for cell in held], pa.string())


def is_no_cell(cell: object) -> bool:
    """Whether pandas would call the cell missing: None, NaN, NaT or NA."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(cell, float | np.floating) and bool(cell != cell)


def _text(cell: object) -> str:
    return text_of(cell.item() if isinstance(cell, np.number | np.bool_) else cell)
