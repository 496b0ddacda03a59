"""Measured marginals of 0/1 attributes as a term: one number per set of attributes.

A cell of a marginal of 0/1 attributes is a corner of a cube. In the basis of signs, where an
attribute is +1 or −1, the table of a set A says one number per subset B of A: the sum over its
cells of the count times the product of the signs of B. For noise that is independent and alike in
all cells, these sums are uncorrelated, and each has the variance of all cells together. So
measurements of different tables about the same set B are simply averaged by their precision, and a
pair table says as much about its two attributes as it costs: the sums of single attributes are
known from pair tables as well as if all of the budget had gone into one-way tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from dualquery.model.moments import MOST, Moments, Sums
from dualquery.model.stack import Stack
from dualquery.model.terms import Singles, Slopes
from dualquery.privacy.measuring import Measurement


def are_binary(stack: Stack) -> bool:
    """Whether all attributes of a stack have two codes, each for itself."""
    codes = np.diff(stack.groups.code_start)[stack.attributes]
    return bool(np.all(np.diff(stack.start) == 2) and np.all(codes == 2))


def pooled_sums(stack: Stack, measurements: Sequence[Measurement], size: int) -> Sums:
    """The sums about all sets of `size` attributes that lie in a measured table.

    Args:
        stack: 0/1 attributes.
        measurements: tables of them, of any arity.
        size: how many attributes a set has.
    """
    sums = []
    for one in measurements:
        arity = one.marginals.arity
        cells = one.counts.reshape(len(one.marginals), *(2,) * arity).astype(np.float64)
        positions = stack.positions(one.marginals.attributes)
        precision = 1.0 / np.add.reduceat(one.variances, one.marginals.start[:-1])
        for chosen in combinations(range(arity), size):
            found: npt.NDArray[Any] = cells
            for place in range(arity - 1, -1, -1):
                low, high = found.take(0, axis=1 + place), found.take(1, axis=1 + place)
                found = high - low if place in chosen else high + low
            sums.append(Sums(positions[:, chosen], found, precision))
    return Sums.pooled(sums, len(stack.attributes), size)


class Signs:
    """−Σ (h − N·m)²/(2v) over all sets of attributes that were measured.

    h is the pooled sum of products of signs, v its variance, m the model's mean of that product
    and N the number of records. Up to a constant it is the same function of the model as the
    squares of all cells.
    """

    def __init__(self, stack: Stack, measurements: Sequence[Measurement], total: float) -> None:
        """Arrange what was measured for the kernels.

        Args:
            stack: 0/1 attributes.
            measurements: tables of at most three of them.
            total: N, the number of records.
        """
        sums = [pooled_sums(stack, measurements, size) for size in range(1, MOST + 1)]
        self._moments = Moments(len(stack.attributes), sums, total)

    def slopes(self, tables: Singles, weights: Singles) -> Slopes:
        value, slope, by_weight = self._moments.slopes(tables[1::2] - tables[::2], weights)
        by_table = np.empty_like(tables)
        by_table[1::2] = -slope
        by_table[::2] = slope
        return Slopes(-0.5 * value, by_table, -by_weight.astype(np.float64))
