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
from dualquery.model.signs import pooled_sums
from dualquery.model.stack import Stack
from dualquery.privacy.measuring import Measurement

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


def margins(stack: Stack, measurements: Sequence[Measurement], total: float) -> Product:
    """What tables say about each attribute alone, whatever depends on what.

    Args:
        stack: 0/1 attributes, each in at least one table.
        measurements: tables of at most three of them.
        total: the number of records.
    """
    single = pooled_sums(stack, measurements, 1)
    return _product(single.sums / total, single.precision * total**2)


def fitted_product(stack: Stack, measurements: Sequence[Measurement], total: float) -> Product:
    """The independent attributes that are nearest to all tables, each in units of its noise.

    Args:
        stack: 0/1 attributes, each in at least one table.
        measurements: tables of at most three of them.
        total: the number of records.
    """
    single = pooled_sums(stack, measurements, 1)
    larger = [pooled_sums(stack, measurements, size) for size in (2, 3)]
    known = single.precision * single.sums / total
    mean = np.clip(single.sums / total, -1.0, 1.0)
    sure = single.precision
    for _ in range(SWEEPS):
        pull, sure = known.copy(), single.precision.copy()
        for sums in larger:
            for place in range(sums.sets.shape[1]):
                others = np.delete(sums.sets, place, axis=1)
                rest = mean[others].prod(axis=1)
                chosen, width = sums.sets[:, place], len(mean)
                weighted = sums.precision * rest
                pull += np.bincount(chosen, weighted * sums.sums / total, width)
                sure += np.bincount(chosen, weighted * rest, width)
        mean = np.clip(pull / sure, -1.0, 1.0)
    return _product(mean, sure * total**2)


def _product(mean: Floats, precision: Floats) -> Product:
    share = np.clip(0.5 + 0.5 * mean, LEAST, 1.0 - LEAST)
    return Product(share, 0.25 / precision)
