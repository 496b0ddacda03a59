"""Values, edges and types as a schema declares them: how they may be written, what is refused."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence

import numpy as np

from dualquery.base.errors import SchemaError
from dualquery.domain.grid import MOST_DECIMALS, Grid
from dualquery.domain.types import Number, Type, number_of, spelled, text_of, type_of

Value = str | int | float | bool
Edge = float | str | datetime.date | datetime.time
"""How an edge may be written; dates and times may stand in quotes."""


def plain(value: object) -> object:
    """A NumPy scalar as a Python value, because files and queries are written with those."""
    if isinstance(value, np.datetime64):  # of nanoseconds, `item` would make a number
        unit = np.datetime_data(value.dtype)[0]
        return value.astype("datetime64[D]" if unit == "D" else "datetime64[us]").item()
    return value.item() if isinstance(value, np.generic) else value


def words_for_missing(name: str, declared: object) -> tuple[str, ...]:
    """The cells that `missing` lists; none if it is true or false."""
    if isinstance(declared, bool):
        return ()
    if not isinstance(declared, list | tuple) or not all(
        isinstance(word, str | int | float) and not isinstance(word, bool) for word in declared
    ):
        raise SchemaError(
            f"attribute {name!r}: missing = {declared!r}; expected true, false, or a list of the "
            'cells that stand for a missing one, such as ["NA", -9]'
        )
    if not declared:
        raise SchemaError(f"attribute {name!r}: missing = []; expected true, or cells in the list")
    return tuple(text_of(word).strip() for word in declared)


def type_named(name: str, text: str) -> Type:
    try:
        return Type(text)
    except ValueError:
        raise SchemaError(
            f"attribute {name!r}: type = {text!r}; expected {', '.join(list(Type)[:-1])} "
            f"or {list(Type)[-1]}"
        ) from None


def type_of_edges(name: str, edges: Sequence[object]) -> Type:
    """The type that edges have if nothing else is said; "24:00" among times is a time."""
    moments = {type_of(edge) for edge in edges if not isinstance(edge, str)}
    if len(moments) == 1 and next(iter(moments)).is_temporal:
        return moments.pop()
    if any(kind.is_temporal for kind in moments):
        raise SchemaError(
            f"attribute {name!r}: edges mix {' and '.join(sorted(k.plural for k in moments))}; "
            "expected one type"
        )
    return type_of_cells(edges)


def type_of_cells(cells: Sequence[object]) -> Type:
    """The type that cells have if nothing else is said: as they are written."""
    kinds = {type_of(cell) for cell in cells}
    if len(kinds) == 1:
        return kinds.pop()
    if kinds <= {Type.WHOLE, Type.YES_NO}:
        return Type.WHOLE
    return Type.DECIMAL if kinds <= {Type.WHOLE, Type.DECIMAL, Type.YES_NO} else Type.TEXT


def declared_value(name: str, kind: Type, value: object) -> Value:
    """A declared value in the form that an attribute of this type keeps."""
    if not isinstance(value, str | int | float | datetime.date | datetime.time):
        raise SchemaError(f"attribute {name!r}: value {value!r} is not text, a number or a date")
    _refuse_infinite(name, "a value", value)
    if kind is Type.TEXT:
        return value if isinstance(value, str | int | float) else str(value)
    number = None if isinstance(value, str) and not kind.is_temporal else number_of(kind, value)
    if number is None or (kind is Type.WHOLE and number != int(number)):
        raise _unfit(name, "value", value, kind)
    if kind.is_temporal:
        return spelled(kind, number)
    if kind is Type.YES_NO:
        return bool(number)
    return int(number) if kind is Type.WHOLE else number


def _refuse_infinite(name: str, what: str, number: object) -> None:
    """Refuse NaN, infinity, and whole numbers that no floating-point number comes near."""
    if isinstance(number, int | float) and not abs(number) <= sys.float_info.max:
        raise SchemaError(
            f"attribute {name!r}: {what} is not finite, or beyond {sys.float_info.max:g}"
        )


def declared_edge(name: str, kind: Type, edge: object) -> Number:
    """A declared edge as a number."""
    if kind in (Type.TEXT, Type.YES_NO):
        raise SchemaError(f"attribute {name!r}: edge {edge!r} is not a number or a date")
    _refuse_infinite(name, "an edge", edge)
    readable = kind.is_temporal or (isinstance(edge, int | float) and not isinstance(edge, bool))
    number = number_of(kind, edge) if readable else None
    if number is None or (kind is Type.WHOLE and number != int(number)):
        raise _unfit(name, "edge", edge, kind)
    if isinstance(edge, datetime.datetime) and edge.tzinfo is not None:
        raise SchemaError(
            f"attribute {name!r}: edge {edge.isoformat()} has a time zone; expected wall-clock "
            "time without one"
        )
    return int(number) if kind is Type.WHOLE else number


def declared_reached(name: str, kind: Type, reached: object) -> bool:
    """Whether the smallest and the largest number of a column lie at the ends of its edges.

    Args:
        name: of the column.
        kind: what its cells are.
        reached: what the schema says.
    """
    asked = plain(reached)
    if not isinstance(asked, bool):
        raise SchemaError(f"attribute {name!r}: reached = {reached!r}; expected true or false")
    if asked and kind.is_temporal:
        raise SchemaError(
            f"attribute {name!r}: reached is for columns of numbers, and this one holds "
            f"{kind.plural}; leave it out"
        )
    return asked


def declared_decimals(name: str, kind: Type, edges: Sequence[float], decimals: object) -> int:
    """How many decimals the cells of a column have; every bin must hold such a number.

    Args:
        name: of the column.
        kind: its type.
        edges: of its bins, in rising order.
        decimals: what the schema says.
    """
    asked = plain(decimals)
    if kind is not Type.DECIMAL:
        holds = kind.plural
        if kind is Type.WHOLE:
            holds = 'whole numbers; if its cells have decimals, add type = "decimal"'
        raise SchemaError(
            f"attribute {name!r}: decimals is for columns of decimal numbers, and this one holds "
            f"{holds}"
        )
    if isinstance(asked, bool) or not isinstance(asked, int) or not 0 <= asked <= MOST_DECIMALS:
        raise SchemaError(
            f"attribute {name!r}: decimals = {decimals!r}; expected a whole number from 0 to "
            f"{MOST_DECIMALS}"
        )
    grid = Grid(asked)
    if not grid.holds(edges):
        raise SchemaError(
            f"attribute {name!r}: decimals = {asked} is more than a decimal number as large as "
            f"{max(map(abs, edges)):g} can hold; expected fewer"
        )
    low, high = grid.in_bins(edges)
    for place in np.flatnonzero(low > high)[:1].tolist():
        shown = ", ".join(spelled(kind, edge) for edge in edges[place : place + 2])
        raise SchemaError(
            f"attribute {name!r}: bin [{shown}{']' if place == len(low) - 1 else ')'} holds no "
            f"number with {asked} decimal{'' if asked == 1 else 's'}; expected other edges, or "
            "more decimals"
        )
    return asked


def _unfit(name: str, what: str, cell: object, kind: Type) -> SchemaError:
    """The error of a value or edge that is not of its attribute's type."""
    shown = str(cell) if isinstance(cell, datetime.date | datetime.time) else repr(cell)
    noun = "a whole number" if kind is Type.WHOLE else kind.noun
    example = f" such as {kind.example}" if kind.example else ""
    return SchemaError(
        f'attribute {name!r}: {what} {shown} is not {noun}{example}, as type = "{kind}" needs'
    )
