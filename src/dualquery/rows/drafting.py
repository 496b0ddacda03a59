"""Drafting a schema from a table, for the curator to review. Private side: it reads the rows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dualquery.base.checks import whole
from dualquery.base.errors import SchemaError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.rows.arrow import ArrowTable
from dualquery.rows.encoding import plain_column, unreadable
from dualquery.rows.opening import open_table
from dualquery.rows.sparse import OnesTable

MOST_VALUES = 50
"""A column with more different numbers than this is cut into bins."""

HEADER = (
    "DRAFT made by reading the private table. It is not safe to use as it is:",
    "every domain below was seen in the data. Replace values and edges by what is",
    "publicly known about each column (code books, questionnaires, physical limits),",
    "add values that could occur but did not, and remove the line `draft = true` when that is",
    "done. Until then no release takes this schema.",
)


def draft_schema(source: str | Path | Any, bins: int = 10) -> Schema:
    """Guess an attribute for every column of a table. No release takes the draft unreviewed."""
    bins = whole("bins", bins)
    table = open_table(source)
    if isinstance(table, OnesTable):
        return Schema(tuple(Attribute.binary(f"x{i}") for i in range(table.width)), draft=True)
    if not isinstance(table, ArrowTable):
        raise SchemaError(f"cannot draft a schema for {type(table).__name__}")
    return Schema(tuple(_draft(table, name, bins) for name in table.header), draft=True)


def _draft(table: ArrowTable, name: str, bins: int) -> Attribute:
    seen: set[Any] = set()
    for batch in table.batches([name]):
        column = plain_column(batch.column(0), name)
        try:
            seen.update(pa.compute.unique(column).to_pylist())
        except (pa.ArrowException, ValueError, OverflowError) as error:
            raise unreadable(name, column.type, error) from None
    missing = bool({None, ""} & seen) or any(isinstance(c, float) and math.isnan(c) for c in seen)
    cells = {c for c in seen if c not in (None, "") and c == c}
    if not cells:
        raise SchemaError(f"column {name!r} is empty; declare it by hand or leave it out")
    numbers = _as_numbers(cells)
    if numbers is not None and set(numbers) <= {0.0, 1.0}:
        return Attribute.binary(name, missing=missing)
    if numbers is not None and len(cells) > min(MOST_VALUES, 2 * bins):
        return Attribute.numeric(
            name, _round_edges(min(numbers), max(numbers), bins), missing=missing
        )
    if numbers is not None and all(number.is_integer() for number in numbers):
        return Attribute.categorical(name, sorted(int(n) for n in numbers), missing=missing)
    return Attribute.categorical(name, sorted(str(cell) for cell in cells), missing=missing)


def _as_numbers(cells: set[Any]) -> list[float] | None:
    try:
        numbers = [float(cell) for cell in cells]
    except (TypeError, ValueError):
        return None
    return numbers if all(math.isfinite(number) for number in numbers) else None


def _round_edges(low: float, high: float, bins: int) -> list[float]:
    """Round numbers as edges that cover the range, so that they show less of its exact ends."""
    step = 10.0 ** math.floor(math.log10((high - low) / bins))
    for factor in (1, 2, 5, 10):
        width = factor * step
        first, last = math.floor(low / width), math.ceil(high / width)
        if last - first <= bins + 1:
            break
    edges = [round(float(i * width), 12) for i in np.arange(first, last + 1)]
    return [int(e) for e in edges] if all(e.is_integer() for e in edges) else edges
