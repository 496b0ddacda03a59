"""Rules of the form `order = ["admitted", "discharged"]`: no column is before the one in front.

Codes can obey such a rule only in part: two cells of one bin may still be in the wrong order. So a
rule forbids pairs of codes that leave no room for the order, and cells are put in order when they
are drawn inside their bins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import SchemaError
from dualquery.domain.attributes import Attribute
from dualquery.domain.ordered import Attributes
from dualquery.domain.query import Literal
from dualquery.domain.types import DAY, Type, number_of

Floats = npt.NDArray[np.float64]


def read_order(declared: object, number: int, schema: Attributes) -> tuple[int, ...]:
    """The positions of the columns that a rule puts in order.

    Args:
        declared: what stands after `order`.
        number: the number of the rule, for messages.
        schema: the attributes.
    """
    if not isinstance(declared, list | tuple) or len(declared) < 2:
        raise SchemaError(
            f"constraint {number}: order = {declared!r}; expected the names of two or more columns"
        )
    try:
        places = tuple(schema.position(str(name)) for name in declared)
    except SchemaError as error:
        raise SchemaError(f"constraint {number}: {error}") from None
    if len(set(places)) < len(places):
        raise SchemaError(f"constraint {number}: order names one column twice")
    first = schema.attributes[places[0]]
    for place in places:
        attribute = schema.attributes[place]
        if not attribute.ordered:
            raise SchemaError(
                f"constraint {number}: {attribute.name!r} is not ordered; expected a column with "
                "edges, or with ordered = true"
            )
        if not _comparable(first, attribute):
            raise SchemaError(
                f"constraint {number}: {first.name!r} and {attribute.name!r} cannot be compared; "
                "expected columns of one type, or with the same values"
            )
    return places


def _comparable(one: Attribute, other: Attribute) -> bool:
    numbers = (Type.WHOLE, Type.DECIMAL)
    if one.type is Type.TEXT or other.type is Type.TEXT:
        return one.values == other.values
    return one.type is other.type or (one.type in numbers and other.type in numbers)


def extents(attribute: Attribute) -> tuple[Floats, Floats]:
    """Per code, without the missing one, the smallest and the largest cell that it stands for."""
    if not attribute.edges:
        if attribute.type is Type.TEXT:
            places = np.arange(len(attribute.values), dtype=float)
        else:
            places = np.array([number_of(attribute.type, v) for v in attribute.values], dtype=float)
        return places, places
    edges = np.asarray(attribute.edges, dtype=float)
    low, high = edges[:-1].copy(), edges[1:].copy()
    if attribute.type.is_counted:
        low, high = np.ceil(low), np.ceil(high) - 1.0
        high[-1] = math.floor(edges[-1])
        if attribute.type is Type.TIME:  # no clock shows 24:00
            high[-1] = min(high[-1], DAY - 1.0)
    else:
        high[:-1] = np.nextafter(high[:-1], low[:-1])
    return low, high


def order_clauses(places: Sequence[int], schema: Attributes) -> list[tuple[Literal, Literal]]:
    """Pairs of literals that together leave no room for the order.

    Every pair of columns counts, not only neighbours, because a cell between them may be missing.
    """
    clauses = []
    for i, first in enumerate(places):
        for second in places[i + 1 :]:
            low, _ = extents(schema.attributes[first])
            _, high = extents(schema.attributes[second])
            groups: dict[tuple[int, ...], list[int]] = {}
            for code, least in enumerate(low):
                blocked = tuple(int(other) for other in np.flatnonzero(high < least))
                if blocked:
                    groups.setdefault(blocked, []).append(code)
            clauses += [
                (Literal(first, tuple(codes)), Literal(second, blocked))
                for blocked, codes in groups.items()
            ]
    return clauses


def ordered_cells(
    cells: Sequence[Floats],
    codes: Sequence[npt.NDArray[np.integer]],
    attributes: Sequence[Attribute],
    generator: np.random.Generator | None,
) -> list[Floats]:
    """Cells in the declared order, each still in its own bin.

    Rows that are in order stay as they are. If a row can be put in order by exchanging its cells,
    that is done. Otherwise its cells are drawn again where there is room, or put in the middle.

    Args:
        cells: per column of the rule, the number that stands for each row's cell.
        codes: per column, the codes of these cells; they leave room for the order.
        attributes: the columns.
        generator: public randomness; None for the middle.
    """
    values = np.column_stack(cells).astype(float)
    low, high = np.empty_like(values), np.empty_like(values)
    present = np.empty(values.shape, dtype=bool)
    for column, (attribute, code) in enumerate(zip(attributes, codes, strict=True)):
        least, most = extents(attribute)
        proper = np.minimum(code, attribute.proper_size - 1)
        low[:, column], high[:, column] = least[proper], most[proper]
        present[:, column] = code < attribute.proper_size
    # A missing cell is no obstacle: it takes whatever the others have.
    low[~present], high[~present] = -math.inf, math.inf
    # What comes later limits a cell from above.
    high = np.minimum.accumulate(high[:, ::-1], axis=1)[:, ::-1]
    shown = np.where(present, values, -math.inf)
    wrong = np.flatnonzero((np.maximum.accumulate(shown, axis=1) > np.where(
        present, values, math.inf)).any(axis=1))  # fmt: skip
    whole = present[wrong].all(axis=1)
    swapped = np.sort(values[wrong], axis=1)
    fits = whole & ((swapped >= low[wrong]) & (swapped <= high[wrong])).all(axis=1)
    values[wrong[fits]] = swapped[fits]
    rest = wrong[~fits]
    before = np.full(len(rest), -math.inf)
    for column, attribute in enumerate(attributes):
        floor, top = np.maximum(low[rest, column], before), high[rest, column]
        held = values[rest, column]
        share = np.full(len(rest), 0.5) if generator is None else generator.random(len(rest))
        here = present[rest, column]
        span = np.where(here, top, 0.0) - np.where(here, floor, 0.0)
        if attribute.type.is_counted:
            drawn = np.minimum(floor + np.floor(share * (span + 1.0)), top)
        else:
            drawn = np.minimum(floor + share * span, top)
        kept = (held >= floor) & (held <= top)
        values[rest, column] = np.where(here & ~kept, drawn, held)
        before = np.where(here, values[rest, column], before)
    return [values[:, column] for column in range(len(attributes))]
