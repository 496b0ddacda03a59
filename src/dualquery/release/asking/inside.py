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

    def variance_of_mean(self, shares: Floats, all_shares: Floats) -> float:
        """The variance of a mean that stems from where numbers lie inside the bins.

        That of the noise of all sub-bins, as if nothing was smoothed: a smooth density that is too
        flat at one end moves a mean more than it moves any share.

        Args:
            shares: the distribution of the codes among the records that are asked about.
            all_shares: the distribution of the codes among all records, where the noise was added.
        """
        if self.within is None or self.within.surety is None:
            return 0.0
        noise = self.within.surety.noise
        parts = self.within.sub_bins
        count = np.diff(parts.start)
        means = self.within.means
        middle = (np.bincount(parts.bin_of, means) / count)[parts.bin_of]
        squares = np.bincount(parts.bin_of, (means - middle) ** 2)
        return float(((shares * noise / np.maximum(all_shares, noise)) ** 2) @ squares)

    def variance_of_share(self, shares: Floats, wanted: float) -> float:
        """The same for the share of the numbers below a quantile, by the smooth density."""
        if self.within is None or self.within.surety is None:
            return 0.0
        place, part = self._place(shares, wanted)
        below = (np.arange(len(self.within.shares)) < place).astype(float)
        below[place] = part
        surety, bin_of = self.within.surety, self.within.bin_of
        whole = np.maximum(np.bincount(bin_of, surety.spread), surety.noise)
        middle = np.bincount(bin_of, self.within.shares * below)
        return surety.variance((shares / whole)[bin_of] * (below - middle[bin_of]))
