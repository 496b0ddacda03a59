"""Sub-bins: where a numeric column is measured more finely than it is asked about.

Queries and relations between columns use the bins of the schema. A column's own distribution is
finer than that: its mean and its quantiles depend on where values lie *inside* a bin. So each bin
is cut into sub-bins by a rule that reads the schema alone. Sub-bins are equal, except in a wide
bin such as [1,000, 1,000,000): there they are logarithmic, because money and counts with a long
tail are spread over orders of magnitude.

The rule is part of the release format: a release keeps the noisy counts of its sub-bins, not
their edges. A change of the rule would make such releases unreadable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from dualquery.base.order import distinct
from dualquery.domain.attributes import Attribute

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

IN_ALL = 64
"""About how many sub-bins a column has, if its schema does not say otherwise."""

IN_WIDE = 4
"""A wide bin has at least this many sub-bins, if its schema does not say otherwise."""

MOST_WHOLE = 128
"""If a column has at most this many whole numbers, each is a sub-bin of its own."""

WIDE = 4.0
"""A bin is wide if its upper edge is at least this many times its lower edge."""

SMALLEST = 1e-4
"""The only bin of a column that begins at zero is cut logarithmically down to this share."""


@dataclass(frozen=True, eq=False)
class SubBins:
    """The sub-bins of one numeric attribute, from the smallest values to the largest.

    Attributes:
        edges: sub-bin i is [edges[i], edges[i + 1]); the last one is closed.
        start: the sub-bins of bin b are start[b]:start[b + 1].
        logarithmic: per sub-bin, whether values are spread evenly in their logarithm.
        whole: whether values are whole numbers.
        reached: whether the smallest and the largest value are known to lie at the ends.
    """

    edges: Floats
    start: Ints
    logarithmic: npt.NDArray[np.bool_]
    whole: bool
    reached: bool = False

    @classmethod
    def of(cls, attribute: Attribute) -> SubBins:
        """The sub-bins of a numeric attribute, by the rule or as its schema declares."""
        edges = tuple(float(edge) for edge in attribute.edges)
        kind = attribute.type
        return _sub_bins(
            edges, kind.is_counted, attribute.sub_bins, kind.is_temporal, attribute.reached
        )

    def __len__(self) -> int:
        return len(self.edges) - 1

    @property
    def long(self) -> tuple[bool, bool]:
        """Whether a long tail ends at the first edge, and whether one ends at the last."""
        first = self.logarithmic[0] and self.edges[0] < 0.0
        return bool(first), bool(self.logarithmic[-1] and self.edges[-1] > 0.0)

    @cached_property
    def bin_of(self) -> npt.NDArray[np.int64]:
        """Per sub-bin, the bin it is a part of."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """Where values of each sub-bin begin and end.

        The values of a column of whole numbers are cut to whole numbers after they are drawn, so a
        sub-bin with the whole numbers 3, 4 and 5 reaches from 3 to 6.
        """
        low, high = self.edges[:-1].copy(), self.edges[1:].copy()
        if self.whole:
            low, high = np.ceil(low), np.ceil(high)
            high[-1] = np.floor(self.edges[-1]) + 1.0
        return low, high

    @cached_property
    def plain(self) -> Floats:
        """The share of its bin that each sub-bin has if nothing was measured.

        Values are then spread evenly over the bin, or over its logarithm if the bin is wide.
        """
        low, high = self.ends
        wide = np.bincount(self.bin_of, self.logarithmic)[self.bin_of] > 0.0
        longest = np.zeros(len(self.start) - 1)
        np.maximum.at(longest, self.bin_of[self.logarithmic], self._log_length[self.logarithmic])
        # The part next to zero of a wide bin has no logarithm: it counts like its neighbour.
        curved = np.where(self.logarithmic, self._log_length, longest[self.bin_of])
        length = np.where(wide, curved, high - low)
        shares: Floats = length / np.bincount(self.bin_of, length)[self.bin_of]
        return shares

    @cached_property
    def means(self) -> Floats:
        """The mean of the values that are drawn in each sub-bin."""
        low, high = self.ends
        with np.errstate(divide="ignore", invalid="ignore"):
            curved = np.sign(low) * (high - low) / self._log_length
            if self.whole:
                curved = self._whole_log_means()
        straight = (low + high - (1.0 if self.whole else 0.0)) / 2.0
        found: Floats = np.where(self.logarithmic, curved, straight)
        return found

    def values(self, sub_bin: Ints, uniform: Floats) -> Floats:
        """The value at a place of a sub-bin, a place being a number in [0, 1).

        No value leaves its sub-bin, whatever the rounding.
        """
        low, high = (ends[sub_bin] for ends in self.ends)
        curved = self.logarithmic[sub_bin]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(curved, high / np.where(curved, low, 1.0), 1.0)
            found = np.where(curved, low * ratio**uniform, low + uniform * (high - low))
        if self.whole:
            found, high = np.floor(found), high - 1.0
        else:  # the upper edge belongs to the next sub-bin, and rounding may reach it
            high = np.nextafter(high, low)
        inside: Floats = np.clip(found, low, high)
        return inside

    @cached_property
    def _log_length(self) -> Floats:
        low, high = self.ends
        ratio = np.where(self.logarithmic, high / np.where(self.logarithmic, low, 1.0), math.e)
        length: Floats = np.abs(np.log(ratio))
        return length

    def _whole_log_means(self) -> Floats:
        """The mean of ⌊X⌋, X log-uniform on [low, high).

        It is low + Σ P(X ≥ k) over the whole numbers k above low, mirrored below zero.
        """
        from scipy.special import gammaln

        low, high = self.ends
        negative = high <= 0.0
        a, b = np.where(negative, -high, low), np.where(negative, -low, high)
        a, b = np.where(self.logarithmic, a, 1.0), np.where(self.logarithmic, b, 2.0)
        above = (b - 1.0 - a) * np.log(b) - (gammaln(b) - gammaln(a + 1.0))
        mean = a + above / np.log(b / a)
        # Below zero ⌊−Y⌋ = −⌈Y⌉, which is −(⌊Y⌋ + 1).
        found: Floats = np.where(negative, -mean - 1.0, mean)
        return found


@lru_cache(maxsize=4096)
def _sub_bins(
    cuts_of_bins: tuple[float, ...],
    whole: bool,
    declared: int,
    even: bool = False,
    reached: bool = False,
) -> SubBins:
    """The rule. `even` allows no logarithms: where dates and times begin to count says nothing."""
    edges = np.array(cuts_of_bins)
    bins = len(edges) - 1
    each = 0
    if whole:
        numbers = math.floor(edges[-1]) - math.ceil(edges[0]) + 1
        each = numbers if numbers <= MOST_WHOLE and not declared else 0
    cuts, start, curved = [edges[:1]], [0], []
    for b in range(bins):
        first, last = float(edges[b]), float(edges[b + 1])
        wide = not even and _is_wide(first, last, bins)
        count = each or declared or max(IN_WIDE if wide else 1, IN_ALL // bins)
        inner = _between(first, last, count, wide)
        if whole:
            # A bin is cut between whole numbers only; the last one is closed.
            least = math.ceil(first)
            most = math.floor(last) if b == bins - 1 else math.ceil(last) - 1
            inner = np.arange(least + 1.0, most + 1.0) if each else distinct(np.rint(inner))
            inner = inner[(inner > least) & (inner <= most)]
        inner = inner[(inner > first) & (inner < last)]
        cuts += [inner, edges[b + 1 : b + 2]]
        start.append(start[-1] + len(inner) + 1)
        curved += [wide] * (len(inner) + 1)
    found = SubBins(
        np.concatenate(cuts),
        np.array(start, dtype=np.int64),
        np.array(curved, dtype=bool),
        whole,
        reached,
    )
    low, high = found.ends
    # A part that touches zero has no logarithm.
    return replace(found, logarithmic=found.logarithmic & ((low > 0.0) | (high < 0.0)))


def _is_wide(low: float, high: float, bins: int) -> bool:
    small, large = sorted((abs(low), abs(high)))
    if low < 0.0 < high:
        return False
    if small == 0.0:
        return bins == 1
    return large >= WIDE * small


def _between(low: float, high: float, count: int, wide: bool) -> Floats:
    """The edges that cut a bin into so many parts, without its own."""
    if not wide:
        return np.linspace(low, high, count + 1)[1:-1]
    small, large = sorted((abs(low), abs(high)))
    if small == 0.0:
        inner = np.geomspace(SMALLEST * large, large, count)[:-1]
    else:
        inner = np.geomspace(small, large, count + 1)[1:-1]
    return inner if high > 0.0 else -inner[::-1]
