"""Independent 0/1 attributes, fitted to everything that was measured about them.

If attributes are independent, a table of several of them says something about each through every
set that the attribute is in: with signs of mean s, the mean of a product is the product of the
means. A pair table then tells 1 + s² of what its margin tells about the other attribute. With
shares that are uniform between 0 and 1 that is a third more than one-way tables for the same price.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.model.grouping import LEAST
from dualquery.model.moments import Sums
from dualquery.model.rare import rare_sums
from dualquery.model.signs import pooled_sums
from dualquery.model.stack import Stack
from dualquery.privacy.measuring import Measurement
from dualquery.privacy.rare import Rare

Floats = npt.NDArray[np.float64]

SWEEPS = 20
"""How often each attribute is estimated given the others; the change falls by half or more."""


@dataclass(frozen=True, eq=False)
class Product:
    """The share of ones of every attribute of a stack, and its variance."""

    share: Floats
    variance: Floats

    @property
    def rows(self) -> Floats:
        """The share of every row of the stack: zeros, then ones, attribute by attribute."""
        return np.column_stack([1.0 - self.share, self.share]).reshape(-1)


@dataclass(frozen=True, eq=False)
class _View:
    """Sums of products of numbers that attributes have: `offset + slope·s` where s is the sign.

    Attributes:
        offset: per attribute.
        slope: per attribute.
        sums: what was measured about sets of one, two and three.
    """

    offset: Floats
    slope: Floats
    sums: tuple[Sums, ...]

    def add(self, mean: Floats, pull: Floats, sure: Floats) -> None:
        """Add what all sets say about each of their attributes, given the means of the others.

        Args:
            mean: of every attribute's sign.
            pull: Σ precision·slope·(sum per record − what it is at s = 0), by attribute.
            sure: Σ precision·slope², by attribute.
        """
        numbers, width = self.offset + self.slope * mean, len(mean)
        for sums in self.sums:
            for place in range(sums.sets.shape[1]):
                chosen = sums.sets[:, place]
                rest = numbers[np.delete(sums.sets, place, axis=1)].prod(axis=1)
                slope = rest * self.slope[chosen]
                away = sums.sums - rest * self.offset[chosen]
                pull += np.bincount(chosen, sums.precision * slope * away, width)
                sure += np.bincount(chosen, sums.precision * slope**2, width)


def _views(
    stack: Stack,
    measurements: Sequence[Measurement],
    rare: Sequence[Rare],
    total: float,
    sizes: Sequence[int],
) -> list[_View]:
    """What tables and rare cells say, per record, about sets of these sizes."""
    width = len(stack.attributes)
    signs = tuple(_per_record(pooled_sums(stack, measurements, size), total) for size in sizes)
    views = [_View(np.zeros(width), np.ones(width), signs)]
    if rare:
        # The share of the rare code is (1 ± s)/2.
        turn = np.where(rare[0].cells.codes[stack.attributes] == 1, 0.5, -0.5)
        cells = tuple(_per_record(rare_sums(stack, rare, size), total) for size in sizes)
        views.append(_View(np.full(width, 0.5), turn, cells))
    return views


def _per_record(sums: Sums, total: float) -> Sums:
    return Sums(sums.sets, sums.sums / total, sums.precision * total**2)


def margins(
    stack: Stack, measurements: Sequence[Measurement], total: float, rare: Sequence[Rare] = ()
) -> Product:
    """What was measured about each attribute alone, whatever depends on what.

    Args:
        stack: 0/1 attributes, each in at least one table.
        measurements: tables of at most three of them.
        total: the number of records.
        rare: rare cells of them.
    """
    mean, sure = _found(
        _views(stack, measurements, rare, total, (1,)), np.zeros(len(stack.attributes))
    )
    return _product(mean, sure)


def fitted_product(
    stack: Stack, measurements: Sequence[Measurement], total: float, rare: Sequence[Rare] = ()
) -> Product:
    """The independent attributes that are nearest to what was measured, in units of its noise.

    Args:
        stack: 0/1 attributes, each in at least one table.
        measurements: tables of at most three of them.
        total: the number of records.
        rare: rare cells of them.
    """
    mean, sure = _found(
        _views(stack, measurements, rare, total, (1,)), np.zeros(len(stack.attributes))
    )
    views = _views(stack, measurements, rare, total, (1, 2, 3))
    for _ in range(SWEEPS):
        mean, sure = _found(views, np.clip(mean, -1.0, 1.0))
    return _product(np.clip(mean, -1.0, 1.0), sure)


def _found(views: Sequence[_View], mean: Floats) -> tuple[Floats, Floats]:
    """Every attribute's mean sign given those of the others, and its precision."""
    width = len(views[0].offset)
    pull, sure = np.zeros(width), np.zeros(width)
    for view in views:
        view.add(mean, pull, sure)
    return pull / sure, sure


def _product(mean: Floats, precision: Floats) -> Product:
    share = np.clip(0.5 + 0.5 * mean, LEAST, 1.0 - LEAST)
    return Product(share, 0.25 / precision)
