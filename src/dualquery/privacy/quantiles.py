"""Private quantiles of a column: medians of medians, each drawn exactly from a public grid.

The declared bounds of a column are cut into *cells*, and each cell into *steps*. A count is spread
evenly over the steps of its cell, so that a value that many records share can be cut, too. A
median is drawn among all inner borders of steps; then a median of each half, and so on. Each is
drawn several times, and the middle one counts: several weak draws tell more than a strong one of
the same price. Proof: ``docs/proofs/quantiles.md``.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.base.checks import positive, whole
from dualquery.base.errors import ParameterError
from dualquery.privacy._weights import BUCKETS, CLIP
from dualquery.privacy.neighbours import ROUNDING_CHARGE
from dualquery.privacy.sampler import draw
from dualquery.privacy.shards import mantissas
from dualquery.privacy.sources import RandomSource
from dualquery.privacy.unit import Unit

Int64 = NDArray[np.int64]

FEWEST_STEPS = 2**17
"""A column of few cells is cut into at least this many steps."""

STEPS_PER_CELL = 4
"""A column of many cells has this many steps in each."""

DRAWS = 9
"""How often each median is drawn; an odd number, so that there is a middle one."""

_LOG2_E = 1.4426950408889634


def steps_of(cells: int) -> int:
    """Into how many steps each cell is cut."""
    return max(STEPS_PER_CELL, -(-FEWEST_STEPS // whole("cells", cells)))


def levels_of(bins: int) -> int:
    """How often the column is halved."""
    bins = whole("bins", bins, least=2)
    if bins & (bins - 1):
        raise ParameterError(
            f"bins = {bins}; expected a power of two, such as 8: private edges are medians of "
            "medians"
        )
    return bins.bit_length() - 1


def level_range(temperature: float, level: int, unit: Unit) -> float:
    """The bounded range of all medians of one level, drawn together.

    Theorem. One draw of the medians of all parts of a column, with log-weights
    −t·|below − above|/2, has range g·t if one unit of g parts is added or removed, and 2·g·t if it
    is replaced. Rounding adds at most its charge per median. Proof: ``docs/proofs/quantiles.md``.

    Args:
        temperature: t, per part.
        level: 0 for the median of the whole column, which is one; 2^level medians follow.
        unit: whose influence is bounded.
    """
    return float(unit.ideal_range(positive("temperature", temperature), 1)) + (
        ROUNDING_CHARGE * 2.0**level
    )


def temperature_for(range_: float, levels: int, unit: Unit) -> float:
    """The largest temperature at which no level has a larger range, rounded down."""
    room = positive("range", range_) - ROUNDING_CHARGE * 2.0**levels
    if room <= 0.0:
        raise ParameterError("the budget is too small for private edges; raise epsilon")
    found = room / float(unit.ideal_range(1.0, 1))
    while level_range(found, levels, unit) > range_:
        found *= 1.0 - 1e-12
    return found


def draw_quantiles(
    counts: Int64, bins: int, temperature: float, source: RandomSource, *, steps: int | None = None
) -> list[int]:
    """The inner edges of `bins` bins of about equal weight, as numbers of steps from the low bound.

    Guarantee: level l is `DRAWS` draws of range `level_range(temperature, l, unit)`, if one
    unit moves at most `unit.influence` parts of the counts. Which part of the column a median
    is drawn in depends on earlier draws alone. A part that has no inner border is not cut.

    Args:
        counts: private counts of all cells, in parts.
        bins: a power of two.
        temperature: t, per part.
        source: where random words come from; only the operating system's source is private.
        steps: into how many steps each cell is cut; left out, by a public rule.
    """
    per_cell = steps_of(len(counts)) if steps is None else whole("steps", steps)
    within = Cumulated(np.ascontiguousarray(counts, dtype=np.int64), per_cell)
    borders = [0, len(counts) * per_cell]
    for _ in range(levels_of(bins)):
        found = [
            _median(within, low, high, temperature, source)
            for low, high in itertools.pairwise(borders)
            if high - low > 1
        ]
        borders = sorted({*borders, *found})
    return borders[1:-1]


@dataclass(frozen=True, eq=False)
class Cumulated:
    """Weights below every step, in units of one part over the number of steps per cell."""

    counts: Int64
    steps: int

    def below(self, borders: Int64) -> Int64:
        total = np.concatenate([[0], np.cumsum(self.counts)])
        padded = np.append(self.counts, 0)
        cell, rest = np.divmod(borders, self.steps)
        found: Int64 = self.steps * total[cell] + rest * padded[cell]
        return found


def candidates(within: Cumulated, low: int, high: int, temperature: float) -> Candidates:
    """The borders strictly between two others, weighed as medians of what lies between them."""
    below = within.below(np.arange(low, high + 1, dtype=np.int64))
    # |below − above| of the part, an exact integer, and so is its distance to the smallest one.
    apart = np.abs(2 * below[1:-1] - below[0] - below[-1])
    rate = temperature / (2 * within.steps)
    return Candidates(-rate * (apart - apart.min()).astype(np.float64))


def _median(
    within: Cumulated, low: int, high: int, temperature: float, source: RandomSource
) -> int:
    """The middle one of several draws among the borders strictly between two others."""
    drawn = draw(candidates(within, low, high, temperature), DRAWS, source)
    return low + 1 + int(np.sort(drawn.queries)[DRAWS // 2])


class Candidates:
    """Candidates of one draw, by how far their log-weights are below the largest.

    It is what `sampler.draw` needs to know of actions. There are no negations: only even positions
    occur.
    """

    def __init__(self, falls: NDArray[np.float64]) -> None:
        """Take the logarithms of the weights.

        Args:
            falls: zero or less, and zero at the largest; clipped as all log-weights are.
        """
        self._falls = np.maximum(falls, CLIP)
        self._buckets = np.floor(-self._falls * _LOG2_E).astype(np.int64)
        self._order = np.argsort(self._buckets, kind="stable")
        self._totals = np.bincount(self._buckets, minlength=BUCKETS).astype(np.int64)
        self._first = np.cumsum(self._totals) - self._totals

    @property
    def queries(self) -> int:
        return len(self._falls)

    def largest(self) -> float:
        return 0.0

    def tally(self, largest: float) -> Int64:
        return self._totals

    def locate(self, buckets: Int64, ranks: Int64) -> tuple[Int64, NDArray[np.uint64]]:
        found = self._order[self._first[buckets] + ranks]
        return 2 * found, mantissas(self._falls[found], buckets)

    def log_weights(self) -> NDArray[np.float64]:
        """The logarithms of the exact weights, for tests that enumerate."""
        scaled = mantissas(self._falls, self._buckets).astype(np.float64)
        found: NDArray[np.float64] = np.log(scaled) - math.log(2.0) * (self._buckets + 53.0)
        return found
