"""Integer noise without rounding: the discrete Laplace distribution.

Counts are integers, so the noise may be integers too. It is drawn by comparing uniform integers, so
it has exactly the stated probabilities, and no low bits of a float can tell neighbours apart. The
method is by Canonne, Kamath and Steinke (The Discrete Gaussian for Differential Privacy, 2020).
"""

from __future__ import annotations

import math
from fractions import Fraction

from dualquery.base.checks import positive
from dualquery.privacy.sources import RandomSource, uniform_below

GRID = 2**20
"""A scale is rounded up to a multiple of 1/GRID, so that it is a short fraction."""


def rational_scale(scale: float) -> Fraction:
    """The short fraction that is used in place of `scale`; it is never smaller."""
    return Fraction(math.ceil(Fraction(positive("scale", scale)) * GRID), GRID)


def discrete_laplace(scale: float, source: RandomSource) -> int:
    """An integer k with probability proportional to exp(−|k|/b), b = `rational_scale(scale)`.

    Guarantee: a count that moves by at most one is (1/b)-private with this noise added.
    """
    b = rational_scale(scale)
    while True:
        remainder = uniform_below(source, b.numerator)
        if not _happens(Fraction(remainder, b.numerator), source):
            continue
        whole = 0
        while _happens(Fraction(1), source):
            whole += 1
        size = (remainder + b.numerator * whole) // b.denominator
        negative = uniform_below(source, 2)
        if negative and size == 0:
            continue  # zero must not be drawn with two signs
        return -size if negative else size


def _happens(gamma: Fraction, source: RandomSource) -> bool:
    """True with probability exp(−γ), for γ in [0, 1]."""
    k = 1
    while uniform_below(source, gamma.denominator * k) < gamma.numerator:
        k += 1
    return k % 2 == 1
