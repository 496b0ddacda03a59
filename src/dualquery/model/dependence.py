"""Whether measured pairs show that attributes depend on one another: public, free of charge.

Where pairs are many, each of them is too noisy to show anything. All of them together show much
smaller dependence: the sum of T squares, each of mean 1 under independence, has the standard
deviation √(2T).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.model.signs import are_binary, pooled_sums
from dualquery.model.stack import Stack
from dualquery.model.strengths import departures
from dualquery.privacy.measuring import Measurement

Floats = npt.NDArray[np.float64]

CLEAR = 6.0
"""Standard deviations, of the sum over all pairs, from which attributes count as dependent."""

CLEAR_PAIR = 60.0
"""The same for the square of one pair: the largest of a million independent ones stays below it,
with Laplace noise too."""


@dataclass(frozen=True)
class Dependence:
    """How far measured pairs are from independence, in standard deviations.

    Attributes:
        overall: the sum over all pairs.
        largest: the largest of single pairs.
    """

    overall: float
    largest: float

    @property
    def found(self) -> bool:
        return self.overall > CLEAR or self.largest > CLEAR_PAIR

    @classmethod
    def of(
        cls, stack: Stack, measurements: Sequence[Measurement], shares: Floats, total: float
    ) -> Dependence:
        """What the pairs among some measurements say.

        Args:
            stack: the attributes that are modelled.
            measurements: one-way tables and pairs.
            shares: the estimated share of every row of the stack.
            total: the number of records.
        """
        pairs = [one for one in measurements if one.marginals.arity == 2]
        if not pairs:
            return cls(0.0, 0.0)
        if are_binary(stack):
            away = _binary(stack, measurements, total)
        else:
            away = np.concatenate([departures(stack, one, shares, total) for one in pairs])
        return cls(float(away.sum() / np.sqrt(len(away))), float(away.max()))


def _binary(stack: Stack, measurements: Sequence[Measurement], total: float) -> Floats:
    """Per pair of 0/1 attributes its squared distance from independence, less 1, over √2.

    The variance of a distance is that of the pair's own sum, and of the two means that are
    multiplied. The latter are from the same tables, but uncorrelated with the former.
    """
    single = pooled_sums(stack, measurements, 1)
    pairs = pooled_sums(stack, [one for one in measurements if one.marginals.arity == 2], 2)
    mean, variance = np.zeros(len(stack.attributes)), np.zeros(len(stack.attributes))
    mean[single.sets[:, 0]] = single.sums / total
    variance[single.sets[:, 0]] = 1.0 / single.precision
    one, other = pairs.sets.T
    distance = pairs.sums - total * mean[one] * mean[other]
    expected = (
        1.0 / pairs.precision
        + mean[other] ** 2 * variance[one]
        + mean[one] ** 2 * variance[other]
        + variance[one] * variance[other] / total**2
    )
    away: Floats = (distance**2 / expected - 1.0) / np.sqrt(2.0)
    return away
