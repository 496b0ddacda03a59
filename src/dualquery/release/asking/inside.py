"""What the codes of a column are worth as numbers: the only place here that knows about bins.

A value stands for itself. A bin stands for the numbers that `sample` writes into its cells, which
`release.within` describes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import QueryError
from dualquery.domain.attributes import Attribute
from dualquery.release.within import Within

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Numbers:
    """What is known about the number in a cell, per code except that of missing cells.

    Attributes:
        mean: per code, the mean.
        least: the smallest number of the column.
        most: the largest one.
        within: how numbers lie inside the bins; None for a column of values.
    """

    mean: Floats
    least: float
    most: float
    within: Within | None = None

    @classmethod
    def of(cls, attribute: Attribute, within: Within | None, use: str) -> Numbers:
        """The numbers of a column; what holds none is refused, with what they are wanted for."""
        if attribute.type.is_temporal:
            raise QueryError(
                f"{attribute.name!r} holds {attribute.type.plural}; {use} needs a column of numbers"
            )
        if within is not None:
            return cls(within.bin_means, float(within.edges[0]), float(within.edges[-1]), within)
        if all(isinstance(value, int | float) for value in attribute.values):
            values = np.asarray(attribute.values, dtype=float)
            return cls(values, float(values.min()), float(values.max()))
        raise QueryError(f"{attribute.name!r} holds text; {use} needs a column of numbers")

    @cached_property
    def variance(self) -> Floats:
        """Per code, the variance of the numbers behind it."""
        if self.within is None:
            return np.zeros(len(self.mean))
        parts = self.within.sub_bins
        apart = (self.within.means - self.mean[parts.bin_of]) ** 2
        spread = self.within.shares * (self.within.variances + apart)
        return np.add.reduceat(spread, parts.start[:-1])

    def quantile(self, shares: Floats, wanted: float) -> float:
        """The smallest number that has at least the wanted share at or below it.

        Args:
            shares: the distribution of the codes.
            wanted: between 0 and 1; what lies outside counts as the nearer end.
        """
        place, part = self._place(shares, wanted)
        if self.within is None:
            return float(self.mean[place])
        return float(self.within.values(np.array([place]), np.array([part]))[0])

    def parts_below(self, shares: Floats, wanted: float) -> Floats:
        """Per code, which part of its numbers lies below a quantile."""
        place, part = self._place(shares, wanted)
        if self.within is None:
            return np.where(self.mean <= self.mean[place], 1.0, 0.0)
        code = self.within.bin_of
        weight = self.within.shares * (np.arange(len(code)) < place)
        weight[place] = self.within.shares[place] * part
        return np.add.reduceat(weight, self.within.sub_bins.start[:-1])

    def _place(self, shares: Floats, wanted: float) -> tuple[int, float]:
        """The code, or the sub-bin, in which a quantile lies, and how far inside it."""
        if self.within is None:
            order = np.argsort(self.mean, kind="stable")
            heights = shares[order]
        else:
            heights = self.within.spread(shares)
            order = np.arange(len(heights))
        ends = np.cumsum(heights)
        goal = min(max(wanted, 0.0), 1.0) * ends[-1]
        # Empty codes before the first and behind the last number are no part of the distribution.
        filled = np.flatnonzero(heights > 0.0)
        place = int(np.clip(np.searchsorted(ends, goal, side="left"), filled[0], filled[-1]))
        part = (goal - (ends[place] - heights[place])) / heights[place]
        return int(order[place]), float(min(max(part, 0.0), 1.0))

    # How surely it is known where numbers lie inside the bins

    def variance_of_mean(self, joint: Floats, every: Floats) -> float:
        """The variance of a mean that stems from where numbers lie inside the bins.

        Args:
            joint: the share of all records that have a code and are asked about.
            every: the share of all records that have the code.
        """
        if self.within is None or self.within.surety is None:
            return 0.0
        bin_of, rows = self.within.bin_of, self.within.surety.rows
        shares = joint / joint.sum()
        moves = (shares[bin_of] / self.in_bins[bin_of]) * (self.within.means - self.mean[bin_of])
        # Sub-bins are wide in a long tail, and the rows of one fell somewhere in it.
        narrow = float(self.within.spread(shares**2 / np.maximum(every, 1e-300)) @ (
            self.within.variances
        )) / rows  # fmt: skip
        return (
            self.within.surety.variance(moves)
            + narrow
            + self._chance_of_part(joint, every, self.variance)
            + float(shares @ (self._slopes(joint, every) * self.variance)) ** 2
        )

    def variance_of_share(self, joint: Floats, every: Floats, wanted: float) -> float:
        """The same for the share of the numbers below a quantile."""
        if self.within is None or self.within.surety is None:
            return 0.0
        place, part = self._place(joint, wanted)
        below = (np.arange(len(self.within.shares)) < place).astype(float)
        below[place] = part
        bin_of = self.within.bin_of
        middle = np.bincount(bin_of, self.within.shares * below)
        shares = joint / joint.sum()
        moves = (shares / self.in_bins)[bin_of] * (below - middle[bin_of])
        apart = self.within.means - self.mean[bin_of]
        along = np.bincount(bin_of, self.within.shares * apart * (below - middle[bin_of]))
        return (
            self.within.surety.variance(moves)
            + self._chance_of_part(joint, every, middle * (1.0 - middle))
            + float(shares @ (self._slopes(joint, every) * along)) ** 2
        )

    @cached_property
    def in_bins(self) -> Floats:
        """The share of all records in each bin, by the counts of its sub-bins."""
        assert self.within is not None
        assert self.within.surety is not None
        surety, bin_of = self.within.surety, self.within.bin_of
        least = np.sqrt(np.bincount(bin_of, surety.noise**2) / np.bincount(bin_of))
        found: Floats = np.maximum(np.bincount(bin_of, surety.spread), least)
        return found

    def _slopes(self, joint: Floats, every: Floats) -> Floats:
        """Per bin, how steeply a condition may become more frequent inside it, relative to itself.

        A figure supposes that the rows of a condition lie inside a bin like all rows of the bin. If
        larger numbers satisfy the condition more often from bin to bin, they may do so inside a bin
        as well. What that would move counts as an error. At the ends of a bin the frequency stays
        positive.
        """
        found = np.zeros(len(joint))
        filled = np.flatnonzero((joint > 0.0) & (every > 0.0))
        if len(filled) < 2:  # one bin has no slope
            return found
        often, at = joint[filled] / every[filled], self.mean[filled]
        slopes = np.gradient(often, at) / often
        reach = np.sqrt(3.0 * np.maximum(self.variance[filled], 1e-300))  # half of an even bin
        found[filled] = np.clip(slopes, -1.0 / reach, 1.0 / reach)
        return found

    def _chance_of_part(self, joint: Floats, every: Floats, variance: Floats) -> float:
        """What the rows of a condition depart by chance from those of the same bins.

        The condition takes m of the M rows of a bin. If it takes no heed of where in the bin they
        lie, their mean has the variance v(1/m − 1/M), that of a draw without replacement.

        Args:
            joint: the share of all records that have a code and are asked about.
            every: the share of all records that have the code.
            variance: per code, v.
        """
        assert self.within is not None
        assert self.within.surety is not None
        part = np.clip(joint / np.maximum(every, 1e-300), 0.0, 1.0)
        found = (joint * variance * (1.0 - part)).sum()
        return float(found / joint.sum() ** 2 / self.within.surety.rows)
