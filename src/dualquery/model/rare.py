"""Measured rare cells as a term: how often all attributes of a set have their rare codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.model.moments import MOST, Moments, Sums, beyond_noise
from dualquery.model.stack import Stack
from dualquery.model.terms import Singles, Slopes
from dualquery.privacy.rare import Rare

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SURE = 1.0
"""Standard deviations that are taken off what rare cells show of weak dependence. It weighs most on
answers about several rare codes, and fewer pairs speak for it than with tables."""


def rare_rows(stack: Stack, rare: Rare) -> Ints:
    """The row of every attribute's rare code in the tables of a stack of 0/1 attributes."""
    rows: Ints = stack.start[:-1] + rare.cells.codes[stack.attributes]
    return rows


def rare_sums(stack: Stack, measured: Sequence[Rare], size: int) -> Sums:
    """How many records have all rare codes of a set, for all sets of so many attributes.

    Args:
        stack: 0/1 attributes.
        measured: rare cells of them, of any number of attributes.
        size: how many attributes a set has.
    """
    found = [
        Sums(stack.positions(one.cells.attributes), one.counts.astype(np.float64),
             1.0 / one.variances)
        for one in measured
        if one.cells.arity == size
    ]  # fmt: skip
    return Sums.pooled(found, len(stack.attributes), size)


class RareTerm:
    """−Σ (c − N·m)²/(2v) over all rare cells: c the count, v its variance, m the model's share."""

    def __init__(self, stack: Stack, measured: Sequence[Rare], total: float) -> None:
        """Arrange what was measured for the kernels.

        Args:
            stack: 0/1 attributes.
            measured: rare cells of at most three of them, with the same rare codes.
            total: N, the number of records.
        """
        self._rows = rare_rows(stack, measured[0])
        sums = [rare_sums(stack, measured, size) for size in range(1, MOST + 1)]
        self._moments = Moments(len(stack.attributes), sums, total)

    def slopes(self, tables: Singles, weights: Singles) -> Slopes:
        value, slope, by_weight = self._moments.slopes(tables[self._rows], weights)
        by_table = np.zeros_like(tables)
        by_table[self._rows] = -slope
        return Slopes(-0.5 * value, by_table, -by_weight.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Departures:
    """How far the rare cells of pairs are from independence.

    Attributes:
        sets: positions of the pairs in the stack.
        away: z² − 1 over √2, z in standard deviations of noise and chance.
        square: the mean square of all correlations, less what noise and chance make of it.
        shared: Σ p·q·(count − N·p·q) over all pairs, in standard deviations: records that have
            more rare codes than others, of whichever attributes, make it large.
    """

    sets: Ints
    away: Floats
    square: float
    shared: float

    @property
    def overall(self) -> float:
        """The sum of all pairs' squares, in standard deviations."""
        return float(self.away.sum() / np.sqrt(len(self.away)))


def departures_of_pairs(
    stack: Stack,
    measured: Sequence[Rare],
    share: Floats,
    variance: Floats,
    total: float,
    chance: float,
) -> Departures:
    """Compare the rare cell of every pair with the product of its two shares.

    The variance of the distance is that of the count, of the two shares that are multiplied, and
    of chance: n independent rows with shares p and q have a covariance of variance
    n·p(1 − p)·q(1 − q).

    Args:
        stack: 0/1 attributes.
        measured: rare cells, of pairs among others.
        share: of every attribute's rare code.
        variance: of the noise of these shares.
        total: the number of records.
        chance: the variance of a count, per part, that chance alone makes.
    """
    pairs = rare_sums(stack, measured, 2)
    one, other = pairs.sets.T
    p, q, v, w = share[one], share[other], variance[one], variance[other]
    squares = (pairs.sums - total * p * q) ** 2
    noise = 1.0 / pairs.precision + total**2 * (q**2 * v + p**2 * w + v * w)
    both = p * (1.0 - p) * q * (1.0 - q)
    expected = noise + total * chance * both
    # The noise of all counts is alike, so pairs of codes that are less rare say more.
    room = float((total * both) @ (total * both))
    square = beyond_noise(float(both @ (squares - expected)), both * expected, room, SURE)
    away = (squares / expected - 1.0) / np.sqrt(2.0)
    return Departures(pairs.sets, away, square, _shared(pairs, share, variance, total, chance))


def _shared(pairs: Sums, share: Floats, variance: Floats, total: float, chance: float) -> float:
    """See `Departures`. A share's noise is in all pairs of its attribute, so it is added first."""
    one, other = pairs.sets.T
    p, q = share[one], share[other]
    weight = p * q
    excess = float((weight * (pairs.sums - total * p * q)).sum())
    own = weight**2 * (1.0 / pairs.precision + total * chance * p * (1.0 - p) * q * (1.0 - q))
    width = len(share)
    moved = np.bincount(one, weight * q, width) + np.bincount(other, weight * p, width)
    noise = float(own.sum()) + total**2 * float((moved**2 * variance).sum())
    return excess / float(np.sqrt(noise)) if noise > 0.0 else 0.0


def charges_of_independent(
    share: Floats, sets: Ints, weights: npt.NDArray[np.int64]
) -> tuple[float, float]:
    """Mean and standard deviation of a record's charge, if attributes are independent.

    Cells that share attributes vary together. Their variance is taken to the first order: by how
    much the charge moves with each attribute, the others at their means, and of what is left, each
    cell for itself.

    Args:
        share: of every attribute's rare code.
        sets: the positions of every cell's attributes.
        weights: of the cells.
    """
    expected = share[sets].prod(axis=1)
    spread = share * (1.0 - share)
    moved = np.zeros(len(share))
    for place in range(sets.shape[1]):
        rest = share[np.delete(sets, place, axis=1)].prod(axis=1)
        moved += np.bincount(sets[:, place], weights * rest, len(share))
    variance = float((spread * moved**2).sum())
    if sets.shape[1] > 1:
        variance += float((weights**2 * spread[sets].prod(axis=1)).sum())
    return float((weights * expected).sum()), float(np.sqrt(variance))
