"""Exact noise on counts: integers drawn with integer arithmetic alone.

Counts are integers, so noise may be integers too. The low bits of a normal variable that is
computed in floating point can tell neighbours apart, although the ideal mechanism could not. The
noise here has *exactly* the stated distribution. So the theorems hold as they are written, and no
rounding has to be charged.

- `rounded_gaussian`: Z = round(σ·N), N standard normal. Proof: ``docs/proofs/rounded_gaussian.md``.
- `discrete_laplace`: P(Z = z) ∝ exp(−|z|/b). Proof: ``docs/proofs/discrete_laplace.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dualquery.base.checks import positive, refusal, whole
from dualquery.privacy.sources import RandomSource

SMALLEST_SIGMA = 2.0**-10
LARGEST_SIGMA = 2.0**40
"""The kernels' integers have room for these scales; noise then stays below 2⁵⁰."""

SMALLEST_SCALE = Fraction(1, 2**10)
LARGEST_NUMERATOR = 2**53
LARGEST_DENOMINATOR = 2**63 - 1

DIGIT_BITS = 8
"""Bits per digit of the fraction of N: a comparison usually reads one digit."""

BLOCK = 2**15
"""The most words that the source is asked for at once."""

Fill = Callable[[NDArray[np.uint64], int, NDArray[np.int64], int], tuple[int, int]]


def rounded_gaussian(
    sigma: float, size: int, source: RandomSource, *, digit_bits: int = DIGIT_BITS
) -> NDArray[np.int64]:
    """`size` independent values of Z = round(σ·N), N standard normal, exactly.

    σ is the rational number that the float is. N is drawn by Karney's method: its whole part, then
    digits of its fraction, as many as it takes to decide the rounding. Its variance is close to
    σ² + 1/12.

    Guarantee: c + Z = round(c + σ·N) for every integer c, so counts with this noise are a
    post-processing of the Gaussian mechanism, and μ-GDP for μ = Δ/σ, Δ their L2 sensitivity.

    Args:
        sigma: standard deviation before rounding, from 2⁻¹⁰ to 2⁴⁰.
        size: how many values.
        source: where random words come from; only the operating system's source is private.
        digit_bits: 1, 2, 4, 8, 16 or 32; changes the speed, never the distribution.
    """
    from dualquery.privacy import _noise_kernels

    mantissa, shift = _mantissa_and_shift(sigma)
    if digit_bits not in (1, 2, 4, 8, 16, 32):
        raise refusal("digit_bits", digit_bits, "1, 2, 4, 8, 16 or 32")

    def fill(
        words: NDArray[np.uint64], at: int, out: NDArray[np.int64], done: int
    ) -> tuple[int, int]:
        # Digits come from the buffer, so there can never be more of them than it holds.
        digits = np.empty(words.size * (64 // digit_bits) + 1, dtype=np.int64)
        reached, position = _noise_kernels.rounded_gaussian(
            words, at, digits, digit_bits, np.uint64(mantissa), shift, out, done
        )
        return int(reached), int(position)

    return _filled(fill, size, source, bits_per_value=36 + 3 * digit_bits)


def discrete_laplace(scale: float | Fraction, size: int, source: RandomSource) -> NDArray[np.int64]:
    """`size` independent integers z with probability proportional to exp(−|z|/b), exactly.

    Guarantee: counts with this noise are ε-private for ε = Δ₁/b, Δ₁ their L1 sensitivity.

    Args:
        scale: b, at least 2⁻¹⁰: a fraction, or a float taken as the fraction it is. Short
            fractions are faster.
        size: how many values.
        source: where random words come from; only the operating system's source is private.
    """
    from dualquery.privacy import _noise_kernels

    b = exact_scale(scale)

    def fill(
        words: NDArray[np.uint64], at: int, out: NDArray[np.int64], done: int
    ) -> tuple[int, int]:
        reached, position = _noise_kernels.discrete_laplace(
            words, at, b.numerator, b.denominator, out, done
        )
        return int(reached), int(position)

    return _filled(fill, size, source, bits_per_value=24 + 6 * b.numerator.bit_length())


def exact_scale(scale: float | Fraction) -> Fraction:
    """The scale of discrete Laplace noise as a fraction that the kernel has room for."""
    b = scale if isinstance(scale, Fraction) else Fraction(positive("scale", scale))
    if not (
        b >= SMALLEST_SCALE
        and b.numerator <= LARGEST_NUMERATOR
        and b.denominator <= LARGEST_DENOMINATOR
    ):
        raise refusal(
            "scale",
            float(b),
            "2^-10 or more, a fraction with a numerator up to 2^53 and a denominator below 2^63",
        )
    return b


def check_sigma(sigma: float) -> float:
    """Refuse a σ for which no noise can be drawn."""
    sigma = positive("sigma", sigma)
    if not SMALLEST_SIGMA <= sigma <= LARGEST_SIGMA:
        raise refusal("sigma", sigma, "2^-10 to 2^40")
    return sigma


def _mantissa_and_shift(sigma: float) -> tuple[int, int]:
    """Integers with σ = mantissa·2^{−shift} exactly, 2⁵² ≤ mantissa < 2⁵³."""
    fraction, exponent = math.frexp(check_sigma(sigma))
    return int(fraction * 2.0**53), 53 - exponent


def _filled(
    fill: Fill, size: int, source: RandomSource, *, bits_per_value: int
) -> NDArray[np.int64]:
    """Values from as many words as they need.

    If the words end within a value, those that it began with are used again (see the kernels).
    """
    out = np.empty(whole("size", size, least=0), dtype=np.int64)
    done, at = 0, 0
    words = np.empty(0, dtype=np.uint64)
    while done < out.size:
        wanted = 8 + (out.size - done) * bits_per_value // 64
        fresh = source.words(min(BLOCK, wanted))
        words = np.concatenate([words[at >> 6 :], fresh])
        done, at = fill(words, at & 63, out, done)
    return out
