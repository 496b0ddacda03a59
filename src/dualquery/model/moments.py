"""Measured sums of products, as a function of a mixture.

Give every attribute a number that depends on its code: a sign, or one for the rarer of two codes
and zero for the other. The sum over all records of the product of some attributes' numbers is a
*moment*. Under a mixture its mean is Σ_k π_k·Π_a m_ak, m_ak being the mean of attribute a's number
in component k. So whatever the numbers are, the same matrix products give value and slopes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dualquery.model.terms import Singles

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DENSE = 0.05
"""Pairs that are at least this share of all pairs are kept as a matrix."""

MOST = 3
"""The most attributes of a set."""


@dataclass(frozen=True, eq=False)
class Sums:
    """What was measured about sets of as many attributes each.

    Attributes:
        sets: positions in the stack, one row per set, in rising order.
        sums: the estimated sum over the records of the product of the set's numbers.
        precision: one over the variance of each.
    """

    sets: Ints
    sums: Floats
    precision: Floats

    def __len__(self) -> int:
        return len(self.sets)

    @classmethod
    def none(cls, size: int) -> Sums:
        """Nothing about sets of so many attributes."""
        return cls(np.zeros((0, size), np.int64), np.zeros(0), np.zeros(0))

    @classmethod
    def pooled(cls, found: Sequence[Sums], width: int, size: int) -> Sums:
        """Sums about the same set are averaged by their precision.

        Args:
            found: what was measured; sets may be in any order.
            width: how many attributes the stack has.
            size: how many each of the sets has.
        """
        if not any(len(one) for one in found):
            return cls.none(size)
        powers = width ** np.arange(size - 1, -1, -1)
        numbers = np.concatenate([np.sort(one.sets, axis=1) @ powers for one in found])
        precisions = np.concatenate([one.precision for one in found])
        weighted = precisions * np.concatenate([one.sums for one in found])
        distinct, which = np.unique(numbers, return_inverse=True)
        precision = np.bincount(which, precisions, len(distinct)).astype(np.float64)
        sums = np.bincount(which, weighted, len(distinct)) / precision
        distinct = distinct.astype(np.int64)
        digits = []
        for _ in range(size):
            distinct, digit = np.divmod(distinct, width)
            digits.append(digit)
        return cls(np.stack(digits[::-1], axis=1), sums, precision)


class Moments:
    """Σ (h − N·m)²/v over all measured sets: h the sum, v its variance, m the model's mean."""

    def __init__(self, width: int, sums: Sequence[Sums], total: float) -> None:
        """Arrange what was measured for the kernels.

        Args:
            width: how many attributes the stack has.
            sums: about single attributes, pairs and triples, in this order.
            total: N, the number of records.
        """
        self._width = width
        self._total = np.float32(total)
        single, pairs, triples = sums
        self._sums = np.zeros(width, np.float32)
        self._precision = np.zeros(width, np.float32)
        self._sums[single.sets[:, 0]] = single.sums
        self._precision[single.sets[:, 0]] = single.precision
        self._pairs: tuple[Singles, Singles] | None = None
        listed = [pairs, triples]
        if len(pairs) >= max(1.0, DENSE * width**2 / 2.0):
            self._pairs = self._matrix(pairs)
            listed = [triples]
        self._listed = _Listed.of(listed, width)

    def slopes(self, means: Singles, weights: Singles) -> tuple[float, Singles, Singles]:
        """Half of the sum's slopes: its value, then by the means and by the mixture weights.

        Args:
            means: of every attribute's number, a column per component.
            weights: of the components.
        """
        from dualquery.model._measured_kernels import weigh_pairs, weigh_tables

        total = self._total
        # A set of two has a row of ones as its third attribute.
        padded = np.ones((self._width + 1, means.shape[1]), dtype=np.float32)
        padded[:-1] = means
        each = padded[:-1]
        slope = np.zeros_like(padded)
        away = total * (each @ weights) - self._sums
        pull = self._precision * away
        value = float(pull @ away)
        pull *= total
        slope[:-1] = pull[:, None] * weights
        by_weight = pull @ each
        if self._pairs is not None:
            sums, precision = self._pairs
            expected = (each * weights) @ each.T
            # The matrix holds every pair twice, so its value is halved.
            value += 0.5 * float(weigh_pairs(expected, sums, precision, total))
            pulled = expected @ each
            slope[:-1] += pulled * weights
            by_weight += 0.5 * np.einsum("ik,ik->k", each, pulled)
        if self._listed is not None:
            listed = self._listed
            value += float(
                weigh_tables(
                    padded, weights, listed.first, listed.sizes, listed.start, listed.sums,
                    listed.precision, total, slope, by_weight,
                )
            )  # fmt: skip
        return value, slope[:-1], by_weight

    def _matrix(self, pairs: Sums) -> tuple[Singles, Singles]:
        """Sums and precisions of pairs as symmetric matrices."""
        sums = np.zeros((self._width, self._width), np.float32)
        precision = np.zeros_like(sums)
        one, other = pairs.sets.T
        sums[one, other] = sums[other, one] = pairs.sums
        precision[one, other] = precision[other, one] = pairs.precision
        return sums, precision


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
            missing = MOST - one.sets.shape[1]
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


def beyond_noise(excess: float, expected: Floats, room: float, sure: float) -> float:
    """The mean square of correlations that pairs show beyond noise; between 0 and 1.

    A sum of squares of noise has the variance 2Σe², e being what each square is expected to be.
    Some of its standard deviation is taken off. Without that, half of all independent tables would
    be said to have some dependence, and their intervals would be too long.

    Args:
        excess: by how much the sum of squares is above what is expected of it.
        expected: of each square.
        room: what the sum would be if all correlations were one.
        sure: how many standard deviations are taken off.
    """
    if room <= 0.0:
        return 0.0
    noise = float(np.sqrt(2.0 * (expected**2).sum()))
    return float(np.clip((excess - sure * noise) / room, 0.0, 1.0))
