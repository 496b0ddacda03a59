"""Private discovery: the values of an open domain that enough units hold.

Every value that occurs is counted, noise is added, and the values above a threshold are published.
The noise is always below the threshold, so a value that nobody holds could never be published, and
leaving it out of the counting changes nothing. That has a price: with a small chance, the *slack*
δ', a noisy count is so high that only one of two neighbours can have it. It adds to δ.
Proof: ``docs/proofs/discovery.md``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.base.checks import positive, probability, whole
from dualquery.base.errors import ParameterError
from dualquery.privacy.accountants.protocol import GUARD
from dualquery.privacy.noise import rounded_gaussian
from dualquery.privacy.sources import RandomSource
from dualquery.privacy.unit import Unit

_ROUNDING = 1e-14
"""How far a computed tail of the normal distribution may be from its value, relatively."""


def slack_of(threshold: int, sigma: float, unit: Unit) -> float:
    """δ': what noise costs that is always below τ, rounded up.

    Theorem. Let Z be round(σ·N), given that it is below τ, and let one unit have g parts. With at
    most the chance P(Z ≥ τ − g) a noisy count is higher than it can be without the unit. Otherwise
    the counts cost no more than with noise that is not cut. A value that one unit alone holds is
    published with at most that chance, too.
    Proof: ``docs/proofs/discovery.md``.

    Args:
        threshold: τ, in parts; a value is published if its noisy count is τ or more.
        sigma: of the noise.
        unit: whose influence is bounded.
    """
    from scipy.special import ndtr

    sigma, most = positive("sigma", sigma), unit.influence
    if most >= threshold:
        return 1.0  # the unit alone may be above the threshold
    far, near = (float(ndtr(-(threshold - 0.5 - parts) / sigma)) for parts in (0, most))
    return min(1.0, (near - far + _ROUNDING * near) / (1.0 - far) * (1.0 + GUARD))


def threshold_for(slack: float, sigma: float, unit: Unit) -> int:
    """The smallest threshold with at most this slack."""
    slack = probability("slack", slack)
    low, high = unit.influence, unit.influence + 1
    while slack_of(high, sigma, unit) > slack:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if slack_of(middle, sigma, unit) > slack else (low, middle)
    return high


def discover(
    counts: NDArray[np.int64], sigma: float, threshold: int, source: RandomSource
) -> NDArray[np.bool_]:
    """Which of the values that occur are published.

    Guarantee: with a unit of bounded influence the published values cost what a table of their
    counts with this noise costs, and `slack_of` more of δ.

    Args:
        counts: private counts of the values that occur, in parts; all above 0.
        sigma: of the noise.
        threshold: τ, in parts.
        source: where random words come from; only the operating system's source is private.
    """
    if counts.size and counts.min() <= 0:
        raise ParameterError("a value without any record cannot be discovered")
    threshold = whole("threshold", threshold)
    found: NDArray[np.bool_] = (
        counts + cut_noise(sigma, threshold, len(counts), source) >= threshold
    )
    return found


def cut_noise(sigma: float, threshold: int, size: int, source: RandomSource) -> NDArray[np.int64]:
    """`size` independent values of round(σ·N), given that each is below τ, exactly."""
    noise = rounded_gaussian(sigma, size, source)
    while (again := np.flatnonzero(noise >= threshold)).size:
        noise[again] = rounded_gaussian(sigma, again.size, source)
    return noise
