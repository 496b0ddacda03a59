"""How much noise a share of a budget buys: the smallest scale that does not cost more.

A share is a part of the quantity that adds up: of μ² for the Gaussian accountant, of ρ for the
zero-concentrated one, of ε for the pure one. Every scale is rounded up, which can only make a
release more private. Whether it is large enough is decided in fractions, not in floating point.
Nothing here reads data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dualquery.base.checks import positive, refusal
from dualquery.base.errors import ParameterError
from dualquery.privacy.noise import LARGEST_NUMERATOR, LARGEST_SIGMA, SMALLEST_SCALE, SMALLEST_SIGMA


def sigma_for(mu: float, l2: float, share: float = 1.0) -> float:
    """The smallest σ ≥ Δ₂/(μ·√share): Gaussian noise that costs at most this share of μ².

    Proof of the price: ``docs/proofs/rounded_gaussian.md``.
    """
    return _smallest_root(l2, Fraction(positive("mu", mu)) ** 2 * _share(share))


def sigma_for_rho(rho: float, l2: float, share: float = 1.0) -> float:
    """The smallest σ with Δ₂²/(2σ²) ≤ ρ·share."""
    return _smallest_root(l2, 2 * Fraction(positive("rho", rho)) * _share(share))


def scale_for(epsilon: float, l1: float, share: float = 1.0) -> float:
    """The smallest b ≥ Δ₁/(ε·share): Laplace noise that costs at most this share of ε.

    Proof of the price: ``docs/proofs/discrete_laplace.md``.
    """
    needed = Fraction(positive("l1", l1)) / (Fraction(positive("epsilon", epsilon)) * _share(share))
    if needed > LARGEST_NUMERATOR:
        raise ParameterError(f"epsilon = {epsilon:g}, share = {share:g} need noise beyond 2^53")
    needed = max(needed, SMALLEST_SCALE)
    return _smallest(float(needed), lambda b: b >= needed)


def _smallest_root(l2: float, mu_squared: Fraction) -> float:
    """The smallest σ with σ²·μ² ≥ Δ₂², within what noise can be drawn for."""
    needed = Fraction(positive("l2", l2)) ** 2 / mu_squared
    if needed > Fraction(LARGEST_SIGMA) ** 2:
        raise ParameterError("the budget's share needs noise beyond sigma = 2^40; give it more")
    needed = max(needed, Fraction(SMALLEST_SIGMA) ** 2)
    return _smallest(math.sqrt(needed), lambda sigma: sigma * sigma >= needed)


def _smallest(guess: float, enough: Callable[[Fraction], bool]) -> float:
    """The smallest float that is enough; the guess is at most a few floats away from it."""
    while not enough(Fraction(guess)):
        guess = math.nextafter(guess, math.inf)
    while enough(Fraction(below := math.nextafter(guess, 0.0))):
        guess = below
    return guess


def _share(share: float) -> Fraction:
    if not 0.0 < share <= 1.0:
        raise refusal("share", share, "a number above 0 and up to 1")
    return Fraction(share)
