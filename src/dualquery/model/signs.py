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
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from dualquery.model.stack import Stack
from dualquery.model.terms import Singles, Slopes
from dualquery.privacy.measuring import Measurement

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DENSE = 0.05
"""Pairs that are at least this share of all pairs are kept as a matrix."""


def are_binary(stack: Stack) -> bool:
    """Whether all attributes of a stack have two codes, each for itself."""
    return bool(np.all(np.diff(stack.start) == 2))


@dataclass(frozen=True, eq=False)
class Sums:
    """What was measured about sets of `size` attributes each.

    Attributes:
        sets: positions in the stack, one row per set, in rising order.
        sums: the estimated sum over the records of the product of the set's signs.
        precision: one over the variance of each.
    """

    sets: Ints
    sums: Floats
    precision: Floats

    def __len__(self) -> int:
        return len(self.sets)


def pooled_sums(stack: Stack, measurements: Sequence[Measurement], size: int) -> Sums:
    """The sums about all sets of `size` attributes that lie in a measured table.

    Args:
        stack: 0/1 attributes.
        measurements: tables of them, of any arity.
        size: how many attributes a set has.
    """
    width = len(stack.attributes)
    numbers, sums, precisions = [], [], []
    for one in measurements:
        arity = one.marginals.arity
        cells = one.counts.reshape(len(one.marginals), *(2,) * arity).astype(np.float64)
        positions = stack.positions(one.marginals.attributes)
        for chosen in combinations(range(arity), size):
            found: npt.NDArray[Any] = cells
            for place in range(arity - 1, -1, -1):
                low, high = found.take(0, axis=1 + place), found.take(1, axis=1 + place)
                found = high - low if place in chosen else high + low
            ordered = np.sort(positions[:, chosen], axis=1)
            numbers.append(ordered @ (width ** np.arange(size - 1, -1, -1)))
            sums.append(found)
            precisions.append(1.0 / np.add.reduceat(one.variances, one.marginals.start[:-1]))
    if not numbers:
        return Sums(np.zeros((0, size), np.int64), np.zeros(0), np.zeros(0))
    distinct, which = np.unique(np.concatenate(numbers), return_inverse=True)
    precision = np.bincount(which, np.concatenate(precisions), len(distinct)).astype(np.float64)
    weighted = np.concatenate(precisions) * np.concatenate(sums)
    pooled = np.bincount(which, weighted, len(distinct)) / precision
    distinct = distinct.astype(np.int64)
    digits = []
    for _ in range(size):
        distinct, digit = np.divmod(distinct, width)
        digits.append(digit)
    return Sums(np.stack(digits[::-1], axis=1), pooled, precision)


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
        self._width = len(stack.attributes)
        self._total = np.float32(total)
        single = pooled_sums(stack, measurements, 1)
        self._counts = np.zeros(self._width, np.float32)
        self._precision = np.zeros(self._width, np.float32)
        self._counts[single.sets[:, 0]] = single.sums
        self._precision[single.sets[:, 0]] = single.precision
        pairs, triples = (pooled_sums(stack, measurements, size) for size in (2, 3))
        self._pairs: tuple[Singles, Singles] | None = None
        listed = [pairs, triples]
        if len(pairs) >= max(1.0, DENSE * self._width**2 / 2.0):
            self._pairs = self._matrix(pairs)
            listed = [triples]
        self._listed = _Listed.of(listed, self._width)

    def slopes(self, tables: Singles, weights: Singles) -> Slopes:
        from dualquery.model._measured_kernels import weigh_pairs, weigh_tables

        total = self._total
        signs = np.ones((self._width + 1, tables.shape[1]), dtype=np.float32)
        np.subtract(tables[1::2], tables[::2], out=signs[:-1])
        each = signs[:-1]
        slope = np.zeros_like(signs)
        away = total * (each @ weights) - self._counts
        pull = self._precision * away
        value = float(pull @ away)
        pull *= total
        slope[:-1] = pull[:, None] * weights
        by_weight = pull @ each
        if self._pairs is not None:
            counts, precision = self._pairs
            expected = (each * weights) @ each.T
            # The matrix holds every pair twice, so its value is halved.
            value += 0.5 * float(weigh_pairs(expected, counts, precision, total))
            pulled = expected @ each
            slope[:-1] += pulled * weights
            by_weight += 0.5 * np.einsum("ik,ik->k", each, pulled)
        if self._listed is not None:
            listed = self._listed
            value += float(
                weigh_tables(
                    signs, weights, listed.first, listed.sizes, listed.start, listed.sums,
                    listed.precision, total, slope, by_weight,
                )
            )  # fmt: skip
        by_table = np.empty_like(tables)
        by_table[1::2] = -slope[:-1]
        by_table[::2] = slope[:-1]
        return Slopes(-0.5 * value, by_table, -by_weight.astype(np.float64))

    def _matrix(self, pairs: Sums) -> tuple[Singles, Singles]:
        """Sums and precisions of pairs as symmetric matrices."""
        counts = np.zeros((self._width, self._width), np.float32)
        precision = np.zeros_like(counts)
        one, other = pairs.sets.T
        counts[one, other] = counts[other, one] = pairs.sums
        precision[one, other] = precision[other, one] = pairs.precision
        return counts, precision


@dataclass(frozen=True, eq=False)
class _Listed:
    """Sets of two or three attributes one by one, as tables of a single cell each."""

    first: Ints
    sums: Singles
    precision: Singles

    @classmethod
    def of(cls, found: Sequence[Sums], ones_row: int) -> _Listed | None:
        if not any(len(one) for one in found):
            return None
        first = []
        for one in found:
            missing = 3 - one.sets.shape[1]
            first.append(np.hstack([one.sets, np.full((len(one), missing), ones_row)]))
        return cls(
            np.concatenate(first).astype(np.int64),
            np.concatenate([one.sums for one in found]).astype(np.float32),
            np.concatenate([one.precision for one in found]).astype(np.float32),
        )

    @cached_property
    def sizes(self) -> Ints:
        return np.ones_like(self.first)

    @cached_property
    def start(self) -> Ints:
        return np.arange(len(self.first) + 1)
