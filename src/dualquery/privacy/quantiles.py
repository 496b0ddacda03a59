"""Private quantiles of a column: contrasts of its parts, measured exactly where a fit wants them.

The declared bounds of a column are cut into *cells*, and each cell into *steps*. A count is spread
evenly over the steps of its cell, so that a value that many records share can be cut, too. A round
measures contrasts of the parts between borders, with exact noise. A density is fitted to everything
measured so far, and its quantiles are the borders of the next round. Early rounds only find out
where to look, so they are cheap. Proof: ``docs/proofs/quantiles.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.base.checks import whole
from dualquery.privacy.contrasts import Contrasts
from dualquery.privacy.density import Density, Measured, fitted
from dualquery.privacy.noise import LARGEST_SIGMA, rounded_gaussian
from dualquery.privacy.sources import RandomSource

Int64 = NDArray[np.int64]

FEWEST_STEPS = 2**17
"""A column of few cells is cut into at least this many steps."""

STEPS_PER_CELL = 4
"""A column of many cells has this many steps in each."""

SHARES = (*(0.005,) * 5, *(2.0**-power for power in range(7, 0, -1)))
"""What each round may spend, in proportion: to look around, and then twice as much every time."""


def round_shares() -> tuple[float, ...]:
    """The share of each round; together they are 1 or hardly less."""
    return tuple(share / sum(SHARES) for share in SHARES)


def steps_of(cells: int, sigma: float = 1.0) -> int:
    """Into how many steps each cell is cut: a power of two, so that noise is scaled exactly.

    Args:
        cells: of the column.
        sigma: the largest noise of a round, per part; scaled, it must not be too large to draw.
    """
    wanted = max(STEPS_PER_CELL, -(-FEWEST_STEPS // whole("cells", cells)))
    steps = 1 << (wanted - 1).bit_length()
    while steps > 1 and steps * sigma > LARGEST_SIGMA:
        steps //= 2
    return steps


@dataclass(frozen=True, eq=False)
class Cumulated:
    """Weights below every step, in units of one part over the number of steps per cell."""

    counts: Int64
    steps: int

    @property
    def end(self) -> int:
        """The last border."""
        return len(self.counts) * self.steps

    def below(self, borders: Int64) -> Int64:
        total = np.concatenate([[0], np.cumsum(self.counts)])
        padded = np.append(self.counts, 0)
        cell, rest = np.divmod(borders, self.steps)
        found: Int64 = self.steps * total[cell] + rest * padded[cell]
        return found

    def parts(self, borders: Int64) -> Int64:
        """The weights between the borders, and between them and the ends."""
        found: Int64 = np.diff(self.below(np.concatenate([[0], borders, [self.end]])))
        return found


def measure_parts(
    within: Cumulated, borders: Int64, contrasts: Contrasts, sigma: float, source: RandomSource
) -> Int64:
    """The contrasts of the parts between borders, with exact noise, in the units of `Cumulated`.

    Guarantee: Gaussian noise of scale `sigma` per part, on contrasts that one unit moves by
    `contrasts.distance(unit)` at most.

    Args:
        within: the private counts.
        borders: in rising order; a function of what was released before.
        contrasts: what is measured.
        sigma: of the noise, per part.
        source: where random words come from; only the operating system's source is private.
    """
    # The number of steps is a power of two: the product is exact.
    noise = rounded_gaussian(sigma * within.steps, len(contrasts.rows), source)
    found: Int64 = contrasts.of(within.parts(borders)) + noise
    return found


def find_quantiles(
    counts: Int64,
    contrasts: Contrasts,
    sigmas: Sequence[float],
    source: RandomSource,
    *,
    steps: int | None = None,
) -> list[int]:
    """The inner edges of bins of about equal weight, as numbers of steps from the low bound.

    Guarantee: round r is a measurement with noise of scale `sigmas[r]` on contrasts that one
    unit moves by `contrasts.distance(unit)` at most, if it moves at most `unit.influence` parts of
    the counts. Where a round measures depends on earlier rounds alone.

    Args:
        counts: private counts of all cells, in parts.
        contrasts: what is measured; it says how many bins there are.
        sigmas: of the noise of each round, per part.
        source: where random words come from; only the operating system's source is private.
        steps: into how many steps each cell is cut; left out, by a public rule.
    """
    per_cell = steps_of(len(counts), max(sigmas)) if steps is None else whole("steps", steps)
    within = Cumulated(np.ascontiguousarray(counts, dtype=np.int64), per_cell)
    end, shares = within.end, np.arange(1, contrasts.bins) / contrasts.bins
    if end < 2:
        return []
    density = Density.flat(end, 1.0)
    measured: list[Measured] = []
    for sigma in sigmas:
        borders = np.clip(density.quantiles(shares), 1, end - 1)
        noisy = measure_parts(within, borders, contrasts, sigma, source)
        scaled = contrasts.rows / sigma
        measured.append(Measured(borders, scaled, noisy / (sigma * per_cell)))
        if len(measured) == 1:  # the last contrast is a multiple of the total
            total = measured[0].found[-1] / scaled[-1, 0]
            density = Density.flat(end, max(float(total), 1.0 / float(scaled[-1, 0])))
        density = fitted(density.refined(_knots(borders, per_cell)), measured)
    drawn = np.clip(density.quantiles(shares), 1, end - 1)
    return sorted({int(border) for border in drawn})


def _knots(borders: Int64, per_cell: int) -> Int64:
    """Borders, and those of their cells, where a density may jump; not of cells of few steps."""
    if per_cell <= 2 * STEPS_PER_CELL:
        return borders
    low = borders - borders % per_cell
    return np.concatenate([low, borders, low + per_cell])
