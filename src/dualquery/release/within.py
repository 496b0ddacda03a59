"""Where values lie inside a bin: what `sample` draws from, and means and quantiles rest on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dualquery.domain.attributes import Attribute
from dualquery.domain.sub_bins import SubBins
from dualquery.model.inside import Surety, spread_inside
from dualquery.model.smoothing import Bins, Cells

Floats = npt.NDArray[np.float64]

POINTS = 1024
"""Points of the rule that works out means and variances inside a sub-bin."""


@dataclass(frozen=True, eq=False)
class Within:
    """How the values of one numeric attribute are spread inside its bins.

    Attributes:
        sub_bins: the parts of the bins.
        shares: per sub-bin, its share of its *bin*; those of one bin add up to 1.
        measured: whether the shares were measured. Otherwise values are spread evenly over a bin,
            or over its logarithm if the bin is wide.
        surety: how surely the shares are known; None if nothing was measured.
        tilt: per sub-bin, by how much the logarithm of the density rises inside it; None if
            values are spread evenly in each.
    """

    sub_bins: SubBins
    shares: Floats
    measured: bool = False
    surety: Surety | None = None
    tilt: Floats | None = None

    @classmethod
    def unmeasured(cls, attribute: Attribute) -> Within:
        """What is supposed where nothing was measured."""
        found = SubBins.of(attribute)
        return cls(found, found.plain)

    @classmethod
    def measured_as(
        cls,
        sub_bins: SubBins,
        counts: Floats,
        noise: float,
        total: float,
        again: Sequence[Cells] = (),
        bins: Bins | None = None,
    ) -> Within:
        """What noisy counts of the sub-bins say.

        Args:
            sub_bins: of the attribute.
            counts: one per sub-bin.
            noise: the standard deviation of their noise.
            total: the number of records.
            again: further tables of the column.
            bins: what is known about whole bins from elsewhere.
        """
        found = spread_inside(counts, noise, total, sub_bins, again, bins)
        return cls(sub_bins, found.shares, True, found.surety, found.tilt)

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
        return np.add.reduceat(self.shares * self.means, self.sub_bins.start[:-1])

    @cached_property
    def means(self) -> Floats:
        """Per sub-bin, the mean of its values."""
        found = self.sub_bins.means.copy()
        for some in _runs(np.flatnonzero(self._tilts)):
            found[some] = self._points(some).mean(axis=1)
        return found

    @cached_property
    def variances(self) -> Floats:
        """Per sub-bin, the variance of its values."""
        low, high = self.sub_bins.ends
        found: Floats = ((high - low) ** 2 - self.sub_bins.whole) / 12.0
        for some in _runs(np.flatnonzero(self.sub_bins.logarithmic | (self._tilts != 0.0))):
            found[some] = self._points(some).var(axis=1)
        return found

    @cached_property
    def _tilts(self) -> Floats:
        return np.zeros(len(self.shares)) if self.tilt is None else self.tilt

    def _points(self, sub_bins: npt.NDArray[np.int64]) -> Floats:
        """Per sub-bin, a row of its values at equal steps of their distribution."""
        places = (np.arange(POINTS) + 0.5) / POINTS
        found = self.values(np.repeat(sub_bins, POINTS), np.tile(places, len(sub_bins)))
        return found.reshape(len(sub_bins), POINTS)

    def values(self, sub_bin: npt.NDArray[np.int64], place: Floats) -> Floats:
        """The value at a place of a sub-bin: the part of its values that lie below, in [0, 1)."""
        tilt = self._tilts[sub_bin]
        steep = np.abs(tilt) > 1e-6
        safe = np.where(steep, tilt, 1.0)
        even = np.where(steep, np.log1p(place * np.expm1(safe)) / safe, place)
        return self.sub_bins.values(sub_bin, np.clip(even, 0.0, np.nextafter(1.0, 0.0)))

    def spread(self, bins: Floats) -> Floats:
        """The share of each sub-bin among all records, from the shares of the bins.

        Args:
            bins: per bin, the share of the records that have it; the missing bucket is left out.
        """
        spread: Floats = bins[self.bin_of] * self.shares
        return spread

    def draw(
        self,
        codes: npt.NDArray[np.integer],
        generator: np.random.Generator,
        *,
        independent: bool = False,
    ) -> Floats:
        """A value for each code of a bin.

        The rows of a bin get its sub-bins, and places in them, in proportion. With `independent`
        each row is drawn for itself.
        """
        place = generator.random(len(codes)) if independent else _in_proportion(codes, generator)
        return self._at(codes, place)

    def _at(self, codes: npt.NDArray[np.integer], place: Floats) -> Floats:
        """The value at a place of each bin, a place being a number in [0, 1)."""
        start = self.sub_bins.start
        ends = np.cumsum(self.shares)
        before = np.append(0.0, ends)
        first = before[start[codes]]
        wanted = first + place * (before[start[codes + 1]] - first)
        found = np.searchsorted(ends, wanted, side="right")
        # Rounding must not let a value leave its bin.
        sub_bin = np.clip(found, start[codes], start[codes + 1] - 1)
        share = np.maximum(self.shares[sub_bin], np.finfo(float).tiny)
        inside = np.clip((wanted - before[sub_bin]) / share, 0.0, np.nextafter(1.0, 0.0))
        return self.values(sub_bin, inside)


def _runs(places: npt.NDArray[np.int64], most: int = 256) -> Iterator[npt.NDArray[np.int64]]:
    """Places in order, so many at a time: their points then fit into a cache."""
    for first in range(0, len(places), most):
        yield places[first : first + most]


def _in_proportion(codes: npt.NDArray[np.integer], generator: np.random.Generator) -> Floats:
    """Places in [0, 1): the rows of one code get one of every equal part, in random order."""
    mixed = generator.permutation(len(codes))
    order = mixed[np.argsort(codes[mixed], kind="stable")]
    counts = np.bincount(codes)
    first = np.cumsum(counts) - counts
    place = np.empty(len(codes))
    place[order] = np.arange(len(codes)) - first[codes[order]]
    spread: Floats = (place + generator.random(len(codes))) / counts[codes]
    return spread
