"""Whether measured pairs show that attributes depend on one another: public, free of charge.

Where pairs are many, each of them is too noisy to show anything. All of them together show much
smaller dependence: the sum of T squares, each of mean 1 under independence, has the standard
deviation √(2T).

Independence is a statement about where rows come from. The rows of a finite table depart from it by
chance, and a large budget shows that. A model of it is no use: it is different in the next table,
and a mixture that is fitted to it is worse than none. So chance counts as noise here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dualquery.model.moments import beyond_noise
from dualquery.model.signs import are_binary, pooled_sums
from dualquery.model.stack import Stack
from dualquery.model.strengths import beyond_chance
from dualquery.privacy.measuring import Measurement

Floats = npt.NDArray[np.float64]

CLEAR = 6.0
"""Standard deviations, of the sum over all pairs, from which attributes count as dependent."""

SURE = 0.5
"""Standard deviations that are taken off what pair tables show of weak dependence."""

CLEAR_PAIR = 60.0
"""The same for the square of one pair: the largest of a million independent ones stays below it,
with Laplace noise too."""


@dataclass(frozen=True)
class Dependence:
    """How far measured pairs are from independence, in standard deviations.

    Attributes:
        overall: the sum over all pairs.
        largest: the largest of single pairs.
        square: the mean square of all correlations, less what noise and chance alone make of it,
            and less some of the standard deviation of that; never negative, and known for 0/1
            attributes only. Dependence that is too weak to be modelled still moves answers by so
            much.
    """

    overall: float
    largest: float
    square: float = 0.0

    @property
    def found(self) -> bool:
        return self.overall > CLEAR or self.largest > CLEAR_PAIR

    @classmethod
    def of(
        cls,
        stack: Stack,
        measurements: Sequence[Measurement],
        shares: Floats,
        total: float,
        chance: float = 1.0,
    ) -> Dependence:
        """What the pairs among some measurements say.

        Args:
            stack: the attributes that are modelled.
            measurements: one-way tables and pairs, or triples where no pairs were measured.
            shares: the estimated share of every row of the stack.
            total: the number of records, or of the parts that they are counted in.
            chance: the variance of a count, per part, that chance alone makes.
        """
        listed = [one for one in measurements if one.marginals.arity == 2] or [
            one for one in measurements if one.marginals.arity == 3
        ]
        if not listed:
            return cls(0.0, 0.0)
        if are_binary(stack):
            return _of_signs(stack, measurements, listed, total, chance)
        found = [beyond_chance(stack, one, shares, total, chance) for one in listed]
        away, more = (np.concatenate(part) for part in zip(*found, strict=True))
        # What chance made of a pair is in all tables that hold it; their noise is their own.
        alike = 1.0 + (_tables_per_pair(listed) - 1.0) * float((more / (1.0 + more)).mean()) ** 2
        overall = float(away.sum() / np.sqrt(len(away) * alike))
        return cls(overall, float(away.max()))


def _tables_per_pair(listed: Sequence[Measurement]) -> float:
    """How many triples hold a pair, on average; pairs are taken as measured once."""
    sets = np.concatenate([one.marginals.attributes for one in listed])
    if sets.shape[1] == 2:
        return 1.0
    held = [np.sort(sets[:, list(two)], axis=1) for two in combinations(range(sets.shape[1]), 2)]
    return len(held) * len(sets) / len(np.unique(np.concatenate(held), axis=0))


def _of_signs(
    stack: Stack,
    measurements: Sequence[Measurement],
    listed: Sequence[Measurement],
    total: float,
    chance: float,
) -> Dependence:
    """The dependence of 0/1 attributes.

    A pair's sum of products of signs is compared with the product of its means. The variance of
    that distance is that of the pair's own sum, of the two means that are multiplied, and of
    chance: n independent rows with signs of variance 1 − s² each have a covariance of variance
    n(1 − s²)(1 − t²). The means are from the same tables, but uncorrelated with the sums.
    """
    single = pooled_sums(stack, measurements, 1)
    pairs = pooled_sums(stack, listed, 2)
    mean, variance = np.zeros(len(stack.attributes)), np.zeros(len(stack.attributes))
    mean[single.sets[:, 0]] = single.sums / total
    variance[single.sets[:, 0]] = 1.0 / single.precision
    one, other = pairs.sets.T
    squares = (pairs.sums - total * mean[one] * mean[other]) ** 2
    noise = (
        1.0 / pairs.precision
        + mean[other] ** 2 * variance[one]
        + mean[one] ** 2 * variance[other]
        + variance[one] * variance[other] / total**2
    )
    scatter = np.maximum(0.0, 1.0 - mean**2)
    both = scatter[one] * scatter[other]
    expected = noise + total * chance * both
    away: Floats = (squares / expected - 1.0) / np.sqrt(2.0)
    room = float((total**2 * both).sum())
    square = beyond_noise(float((squares - expected).sum()), expected, room, SURE)
    overall = float(away.sum() / np.sqrt(len(away)))
    return Dependence(overall, float(away.max()), square)
