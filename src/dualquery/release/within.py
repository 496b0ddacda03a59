"""Where values lie inside a bin: what `sample` draws from, and means and quantiles rest on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dualquery.domain.attributes import Attribute
from dualquery.domain.sub_bins import SubBins

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Within:
    """How the values of one numeric attribute are spread inside its bins.

    Attributes:
        sub_bins: the parts of the bins.
        shares: per sub-bin, its share of its *bin*; those of one bin add up to 1.
        measured: whether the shares were measured. Otherwise values are spread evenly over a bin,
            or over its logarithm if the bin is wide.
        noise: the standard deviation of the noise of one sub-bin, as a share of all records; 0 if
            nothing was measured.
    """

    sub_bins: SubBins
    shares: Floats
    measured: bool = False
    noise: float = 0.0

    @classmethod
    def unmeasured(cls, attribute: Attribute) -> Within:
        """What is supposed where nothing was measured."""
        found = SubBins.of(attribute)
        return cls(found, found.plain)

    @property
    def edges(self) -> Floats:
        """The edges of all sub-bins, in rising order."""
        return self.sub_bins.edges

    @property
    def bin_of(self) -> npt.NDArray[np.int64]:
        """Per sub-bin, the code of its bin."""
        return self.sub_bins.bin_of

    @cached_property
    def bin_means(self) -> Floats:
        """Per bin, the mean of its values."""
        return np.add.reduceat(self.shares * self.sub_bins.means, self.sub_bins.start[:-1])

    def spread(self, bins: Floats) -> Floats:
        """The share of each sub-bin among all records, from the shares of the bins.

        Args:
            bins: per bin, the share of the records that have it; the missing bucket is left out.
        """
        spread: Floats = bins[self.bin_of] * self.shares
        return spread

    def draw(
        self, codes: npt.NDArray[np.integer], generator: np.random.Generator
    ) -> npt.NDArray[np.float64]:
        """A value for each code of a bin."""
        sub_bin = self._sub_bins_of(codes, generator.random(len(codes)))
        return self.sub_bins.values(sub_bin, generator.random(len(codes)))

    def _sub_bins_of(
        self, codes: npt.NDArray[np.integer], uniform: Floats
    ) -> npt.NDArray[np.int64]:
        """A sub-bin of each bin, the one at a uniform place of the bin's shares."""
        start = self.sub_bins.start
        ends = np.cumsum(self.shares)
        before = np.append(0.0, ends)[start]
        # Rounding must not let a value leave its bin, so the place is clipped to the bin's parts.
        place = before[codes] + uniform * (before[codes + 1] - before[codes])
        found = np.searchsorted(ends, place, side="right")
        kept: npt.NDArray[np.int64] = np.clip(found, start[codes], start[codes + 1] - 1)
        return kept
