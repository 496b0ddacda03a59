"""Private discovery: the values of an open domain that enough units hold.

Every value that occurs is counted, noise is added, and the values above a threshold are published.
A value that one unit alone holds would give that unit away. The *slack* δ' is the largest chance
of that; it adds to δ. Proof: ``docs/proofs/discovery.md``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.base.checks import positive, probability, whole
from dualquery.base.errors import ParameterError
from dualquery.privacy.accountants.protocol import GUARD
from dualquery.privacy.noise import rounded_gaussian
from dualquery.privacy.sources import RandomSource
from dualquery.privacy.unit import Unit, Weigh


def smallest_share(unit: Unit) -> int:
    """The fewest parts that a unit can give to a value that it holds."""
    persons = unit.persons
    if persons is None or persons.weigh is Weigh.RECORD:
        return 1
    return max(1, persons.parts // persons.most)


def slack_of(threshold: int, sigma: float, unit: Unit) -> float:
    """δ': the largest chance that a value is published that one unit alone holds, rounded up.

    Theorem. A value of k parts is published with chance f(k) = Φ(−(τ − ½ − k)/σ). A unit of g parts
    spreads them over values of p parts or more each. If g < τ, the sum of f over its values is at
    most max(g/p·f(p), f(g)), and some unit reaches that if p divides g.
    Proof: ``docs/proofs/discovery.md``.

    Args:
        threshold: τ, in parts; a value is published if its noisy count is τ or more.
        sigma: of the noise.
        unit: whose influence is bounded.
    """
    from scipy.special import ndtr

    sigma, most, least = positive("sigma", sigma), unit.influence, smallest_share(unit)
    if most >= threshold:
        return 1.0  # the unit alone may be above the threshold

    def chance(parts: int) -> float:
        return float(ndtr(-(threshold - 0.5 - parts) / sigma))

    return min(1.0, max(most / least * chance(least), chance(most)) * (1.0 + GUARD))


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
    noisy = counts + rounded_gaussian(sigma, len(counts), source)
    found: NDArray[np.bool_] = noisy >= whole("threshold", threshold)
    return found
