"""Multiples of a power of ten: what the cells of a column with so many decimals can be.

A multiple is kept as the float that its decimal notation reads as: 0.07, not 7·0.01. So two equal
multiples are equal floats, and a multiple is above an edge if its notation is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MOST_DECIMALS = 15
"""The most decimals that a schema may declare."""

EXACT = 2.0**50
"""Multiples are told apart up to this many steps from zero."""


@dataclass(frozen=True)
class Grid:
    """All multiples of 10⁻ᵈ.

    Attributes:
        decimals: d.
    """

    decimals: int

    @property
    def _per_one(self) -> float:
        return 10.0**self.decimals

    def holds(self, edges: Sequence[float]) -> bool:
        """Whether multiples as large as these edges are told apart."""
        return max(abs(edge) for edge in edges) * self._per_one <= EXACT

    def nearest(self, numbers: Floats) -> Floats:
        """The multiples that are nearest to some numbers."""
        return self._multiples(np.rint(numbers * self._per_one))

    def up(self, numbers: Floats) -> Floats:
        """The smallest multiples that are not below some numbers."""
        steps = np.rint(numbers * self._per_one)
        return self._multiples(steps + (self._multiples(steps) < numbers))

    def down(self, numbers: Floats) -> Floats:
        """The largest multiples that are not above some numbers."""
        steps = np.rint(numbers * self._per_one)
        return self._multiples(steps - (self._multiples(steps) > numbers))

    def below(self, numbers: Floats) -> Floats:
        """The largest multiples that are below some numbers."""
        steps = np.rint(numbers * self._per_one)
        return self._multiples(steps - (self._multiples(steps) >= numbers))

    def between(self, low: Floats, high: Floats, share: Floats) -> Floats:
        """One of the multiples from `low` to `high`, both included, as a share in [0, 1) says."""
        steps = np.rint((high - low) * self._per_one)
        first = np.rint(low * self._per_one)
        return self._multiples(first + np.minimum(np.floor(share * (steps + 1.0)), steps))

    def in_bins(self, edges: Sequence[float]) -> tuple[Floats, Floats]:
        """Per bin, its smallest and its largest multiple; a bin without any has them exchanged."""
        cuts = np.asarray(edges, dtype=np.float64)
        low, high = self.up(cuts[:-1]), self.below(cuts[1:])
        high[-1:] = self.down(cuts[-1:])
        return low, high

    def _multiples(self, steps: Floats) -> Floats:
        # A sum with zero has no sign: −0 would be written as -0.0.
        found: Floats = steps / self._per_one + 0.0
        return found


def written_decimals(number: float) -> int:
    """How many decimals a number has as it is written: 2 for 0.25, 0 for 1e20."""
    text = repr(float(number)).lower()
    digits, _, exponent = text.partition("e")
    fraction = digits.partition(".")[2].rstrip("0")
    return max(0, len(fraction) - int(exponent or 0))
