"""How many decimals sampled cells have: as declared, or as many as the schema's edges call for.

Without a declaration, cells are rounded to a thousandth of the narrowest sub-bin, or finer: more
digits would say nothing. All of it follows from the schema, which is public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from dualquery.domain.attributes import Attribute
from dualquery.domain.grid import MOST_DECIMALS, Grid, written_decimals
from dualquery.domain.sub_bins import SubBins
from dualquery.domain.types import Type

FINENESS = 1000.0
"""Undeclared decimals are fine enough for so many different cells in the narrowest sub-bin."""


def grid_of(attribute: Attribute) -> Grid | None:
    """What the cells of a column are multiples of; None if it is not known, or makes no sense.

    Whole numbers, dates and times are counted in ones.
    """
    if attribute.type.is_counted:
        return Grid(0)
    if not attribute.edges or attribute.type is not Type.DECIMAL:
        return None
    if attribute.decimals is not None:
        return Grid(attribute.decimals)
    return _usual(tuple(float(edge) for edge in attribute.edges), attribute.sub_bins)


def common_grids(attributes: Sequence[Attribute]) -> list[Grid | None]:
    """The grids of columns whose cells are compared: undeclared ones get the finest of them.

    Every edge and every value is then a multiple itself. So where two bins leave room for an order,
    their multiples do, too.
    """
    own = [grid_of(attribute) for attribute in attributes]
    written = [
        written_decimals(number)
        for attribute in attributes
        if attribute.type in (Type.DECIMAL, Type.WHOLE)
        for number in attribute.edges or attribute.values
        if isinstance(number, int | float)
    ]
    finest = Grid(max([*written, *(grid.decimals for grid in own if grid is not None)], default=0))
    ends = [end for a in attributes if a.edges for end in (a.edges[0], a.edges[-1])]
    shared = finest if finest.decimals <= MOST_DECIMALS and finest.holds([0.0, *ends]) else None
    return [
        shared if a.edges and a.type is Type.DECIMAL and a.decimals is None else grid
        for a, grid in zip(attributes, own, strict=True)
    ]


@lru_cache(maxsize=4096)
def _usual(edges: tuple[float, ...], parts: int) -> Grid | None:
    """A thousandth of the narrowest sub-bin, and at least the decimals of the edges."""
    sub_bins = SubBins.of(Attribute("", edges=edges, sub_bins=parts, type=Type.DECIMAL))
    narrowest = float(np.diff(sub_bins.edges).min())
    decimals = max(0, math.ceil(math.log10(FINENESS / narrowest)), *map(written_decimals, edges))
    grid = Grid(decimals)
    return grid if decimals <= MOST_DECIMALS and grid.holds(edges) else None
