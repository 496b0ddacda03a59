"""Rules of the form `order = ["admitted", "discharged"]`: no column is before the one in front.

Codes can obey such a rule only in part: two cells of one bin may still be in the wrong order. So a
rule forbids pairs of codes that leave no room for the order, and cells are put in order when they
are drawn inside their bins.

A column may stand in several rules. Together they say of pairs of columns which comes before which:
from a before b and b before c follows a before c. If every such pair of bins leaves room, all of
them together do: give each column the largest of the lower ends of the bins that come before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import SchemaError
from dualquery.domain.attributes import Attribute
from dualquery.domain.decimals import common_grids
from dualquery.domain.grid import Grid
from dualquery.domain.ordered import Attributes
from dualquery.domain.query import Literal
from dualquery.domain.types import DAY, Type, number_of

Floats = npt.NDArray[np.float64]
Pairs = frozenset[tuple[int, int]]
"""Positions of columns, the one that comes before the other first."""

MOST_BLOCKED = 1 << 24
"""The most pairs of bins that one rule compares; they take three seconds. A short schema could ask
for billions."""


@dataclass(frozen=True)
class Order:
    """Columns that rules put in order.

    Attributes:
        places: their positions, none in front of one that comes before it.
        before: pairs of indices into `places`: the first is never above the second.
    """

    places: tuple[int, ...]
    before: Pairs

    @property
    def is_chain(self) -> bool:
        """Whether each two of the columns are in order."""
        return 2 * len(self.before) == len(self.places) * (len(self.places) - 1)


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
    elif attribute.decimals is not None:
        return Grid(attribute.decimals).in_bins(attribute.edges)
    else:
        high[:-1] = np.nextafter(high[:-1], low[:-1])
    return low, high


def extended(known: Pairs, places: Sequence[int], number: int, schema: Attributes) -> Pairs:
    """What is known of pairs of columns, with one more rule and what follows from it.

    Args:
        known: what follows from the rules before it.
        places: the columns of the rule, from the first to the last.
        number: the number of the rule, for messages.
        schema: the attributes.
    """
    pairs = set(known) | {(a, b) for i, a in enumerate(places) for b in places[i + 1 :]}
    while True:
        more = {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs
        if not more:
            break
        pairs |= more
    for one, other in sorted(pairs):
        if one == other:
            raise SchemaError(
                f"constraint {number}: with the order rules above, {schema.names[one]!r} would come"
                " before itself"
            )
    found = frozenset(pairs)
    _refuse_between(found, number, schema)
    return found


def _refuse_between(pairs: Pairs, number: int, schema: Attributes) -> None:
    """Refuse a column between others with more decimals: it may have no number there."""
    fine = [_fineness(attribute) for attribute in schema.attributes]
    for one, middle in sorted(pairs):
        if fine[one] <= fine[middle]:
            continue
        for between, other in sorted(pairs):
            if between == middle and fine[other] > fine[middle]:
                a, b, c = (schema.names[place] for place in (one, middle, other))
                if schema.attributes[middle].type is Type.WHOLE:
                    has, more = "whole numbers", "decimals"
                    wanted = f'type = "decimal" for {b!r} too'
                else:
                    has, more = f"decimals = {fine[middle]:g}", "more"
                    wanted = f"as many decimals for {b!r} as for one of them"
                raise SchemaError(
                    f"constraint {number}: {b!r} has {has} and stands between {a!r} and {c!r}, "
                    f"which have {more}; expected {wanted}"
                )


def _fineness(attribute: Attribute) -> float:
    """How many decimals cells have; any number of them where nothing is declared."""
    if attribute.type is not Type.DECIMAL:
        return 0.0
    return math.inf if attribute.decimals is None else float(attribute.decimals)


def joined(pairs: Pairs, rules: Iterable[Sequence[int]]) -> tuple[Order, ...]:
    """The columns that belong together, each group with its pairs.

    Args:
        pairs: all that follows from the rules.
        rules: their columns; groups stand in the order of their first rule.
    """
    group: dict[int, int] = {}
    for number, places in enumerate(rules):
        met = {group[place] for place in places if place in group}
        name = min(met, default=number)
        group |= dict.fromkeys(places, name)
        group = {place: name if own in met else own for place, own in group.items()}
    found = []
    for name in sorted(set(group.values())):
        members = [place for place, own in group.items() if own == name]
        # A column has more columns before it than each of those has.
        ahead = {place: sum(other == place for _, other in pairs) for place in members}
        places = tuple(sorted(members, key=lambda place: ahead[place]))
        index = {place: i for i, place in enumerate(places)}
        inside = frozenset((index[a], index[b]) for a, b in pairs if a in index)
        found.append(Order(places, inside))
    return tuple(found)


def order_clauses(
    pairs: Iterable[tuple[int, int]], schema: Attributes
) -> list[tuple[Literal, Literal]]:
    """Pairs of literals that together leave no room for the order.

    Every pair of columns counts, not only neighbours, because a cell between them may be missing.
    """
    clauses = []
    pairs = list(pairs)
    blocks = sum(schema.attributes[a].size * schema.attributes[b].size for a, b in pairs)
    if blocks > MOST_BLOCKED:
        raise SchemaError(
            f"constraints: the order rules compare {blocks:,} pairs of bins; expected at most "
            f"{MOST_BLOCKED:,}: order fewer columns, or give them fewer bins"
        )
    for first, second in pairs:
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
    order: Order,
    generator: np.random.Generator | None,
) -> list[Floats]:
    """Cells in the declared order, each still in its own bin.

    Rows that are in order stay as they are. If a row can be put in order by exchanging its cells,
    that is done. Otherwise its cells are drawn again where there is room, or put in the middle.
    Cells have the decimals of their columns (`decimals.common_grids`) before and after.

    Args:
        cells: per column of the order, the number that stands for each row's cell.
        codes: per column, the codes of these cells; they leave room for the order.
        attributes: the columns.
        order: which of them come before which.
        generator: public randomness; None for the middle.
    """
    grids = common_grids(attributes)
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
    for column in reversed(range(len(attributes))):
        later = [high[:, b] for a, b in order.before if a == column]
        high[:, column] = np.minimum.reduce([high[:, column], *later])
        if (grid := grids[column]) is not None:
            high[:, column] = grid.down(high[:, column])
    wrong = _out_of_order(values, present, order)
    # A number with more decimals has no place in a column with fewer.
    if len(set(grids)) == 1:
        mended = _exchanged(values[wrong], low[wrong], high[wrong], present[wrong], order)
        values[wrong] = mended
        wrong = wrong[_out_of_order(mended, present[wrong], order)]
    for column, grid in enumerate(grids):
        earlier = [
            np.where(present[wrong, a], values[wrong, a], -math.inf)
            for a, b in order.before
            if b == column
        ]
        floor, top = np.maximum.reduce([low[wrong, column], *earlier]), high[wrong, column]
        held = values[wrong, column]
        share = np.full(len(wrong), 0.5) if generator is None else generator.random(len(wrong))
        here = present[wrong, column]
        if grid is not None:  # what comes before may have more decimals
            floor = grid.up(floor)
        least, most = np.where(here, floor, 0.0), np.where(here, top, 0.0)
        if grid is not None:
            drawn = np.minimum(grid.between(least, most, share), most)
        else:
            drawn = np.minimum(least + share * (most - least), most)
        kept = (held >= floor) & (held <= top)
        values[wrong, column] = np.where(here & ~kept, drawn, held)
    return [values[:, column] for column in range(len(attributes))]


def _out_of_order(
    values: Floats, present: npt.NDArray[np.bool_], order: Order
) -> npt.NDArray[np.int64]:
    """The rows in which some cell is above one that comes after it."""
    wrong = np.zeros(len(values), dtype=bool)
    for a, b in order.before:
        wrong |= present[:, a] & present[:, b] & (values[:, a] > values[:, b])
    return np.flatnonzero(wrong)


def _exchanged(
    values: Floats, low: Floats, high: Floats, present: npt.NDArray[np.bool_], order: Order
) -> Floats:
    """Rows whose cells were exchanged with one another, where every cell then is in its bin.

    If each two columns are in order, the cells are sorted. Otherwise pairs are exchanged until
    none is left that can be. Each exchange brings a larger cell to a later column, so this ends.
    """
    if order.is_chain:
        swapped = np.sort(values, axis=1)
        inside: npt.NDArray[np.bool_] = (swapped >= low) & (swapped <= high) & present
        return np.where(inside.all(axis=1, keepdims=True), swapped, values)
    found, moved = values.copy(), True
    while moved:
        moved = False
        for a, b in sorted(order.before):
            one, other = found[:, a], found[:, b]
            there = present[:, a] & present[:, b]
            can: npt.NDArray[np.bool_] = there & (one > other)
            can &= (other >= low[:, a]) & (one <= high[:, b])
            if can.any():
                found[can, a], found[can, b] = other[can], one[can]
                moved = True
    return found
