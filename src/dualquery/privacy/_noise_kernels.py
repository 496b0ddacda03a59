"""Compiled loops of the exact noise: integers only, from a buffer of random bits.

Random bits are read in order, the highest bit of a word first. A position `at` counts bits. When
the buffer ends within a value, the loop returns where that value began; the caller appends
fresh words and calls again, and the value is made anew from *the same* bits. Dropping them instead
would favour values that need few bits.

Proofs: ``docs/proofs/rounded_gaussian.md``, ``docs/proofs/discrete_laplace.md``. Plain twins in
Python integers and fractions are in the tests.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.base.compile import njit

Words = NDArray[np.uint64]
Digits = NDArray[np.int64]
Integer = int | np.int64

SPENT = 1 << 62
"""The position that says that the buffer has ended; every later read says so again."""

MOST_WHOLE = 512
"""A value of so many scales stops the program; the chance is below e^{−500}."""

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@njit(inline="always")
def _take(words: Words, at: int, bits: int) -> tuple[Integer, int]:
    """The next `bits` bits, at most 63, as an integer, and the position after them."""
    if at + bits > 64 * words.size:
        return 0, SPENT
    place, offset = at >> 6, at & 63
    value = (words[place] << np.uint64(offset)) >> np.uint64(64 - bits)
    over = offset + bits - 64
    if over > 0:
        value |= words[place + 1] >> np.uint64(64 - over)
    return np.int64(value), at + bits


@njit(inline="always")
def _below(words: Words, at: int, bound: int, bits: int) -> tuple[Integer, int]:
    """A uniform integer below `bound`, which has 2^{bits−1} < bound ≤ 2^bits; at 1, no bits."""
    if bits == 0:
        return 0, at
    value, at = _take(words, at, bits)
    while value >= bound:
        value, at = _take(words, at, bits)
    return value, at


@njit(inline="always")
def _length(bound: int) -> int:
    """The number of bits of bound − 1, for small bounds."""
    bits = 0
    while (1 << bits) < bound:
        bits += 1
    return bits


@njit()
def _one_in(words: Words, at: int, bound: int) -> tuple[bool, int]:
    """True with probability 1/bound."""
    value, at = _below(words, at, bound, _length(bound))
    return value == 0 and at < SPENT, at


@njit()
def _exp_half(words: Words, at: int) -> tuple[bool, int]:
    """True with probability exp(−1/2): an even number of successes of chance 1/2, 1/4, 1/6, …"""
    n = 1
    going, at = _one_in(words, at, 2)
    while going:
        n += 1
        going, at = _one_in(words, at, 2 * n)
    return (n & 1) == 1, at


@njit()
def _smaller(
    words: Words, at: int, digits: Digits, depth: int, width: int
) -> tuple[bool, int, int]:
    """Whether a fresh uniform number is below x; reveals digits of x as they are needed."""
    place = 0
    while True:
        if place == depth:
            digits[place], at = _take(words, at, width)
            depth += 1
        fresh, at = _take(words, at, width)
        if fresh != digits[place] or at >= SPENT:
            return fresh < digits[place], at, depth
        place += 1


@njit()
def _accept(
    words: Words, at: int, digits: Digits, depth: int, width: int, whole: int
) -> tuple[bool, int, int]:
    """True with probability exp(−x·(2k + x)/(2k + 2)), k the whole part."""
    n = 1
    while True:
        part, at = _below(words, at, 2 * whole + 2, _length(2 * whole + 2))
        if part == 2 * whole + 1 or at >= SPENT:
            break
        smaller, at, depth = _smaller(words, at, digits, depth, width)
        if not smaller or at >= SPENT:
            break
        if part == 2 * whole:
            smaller, at, depth = _smaller(words, at, digits, depth, width)
            if not smaller or at >= SPENT:
                break
        if n > 1:
            going, at = _one_in(words, at, n)
            if not going:
                break
        n += 1
    return (n & 1) == 1, at, depth


@njit()
def _normal(words: Words, at: int, digits: Digits, width: int) -> tuple[int, int, int]:
    """The whole part of |N|, the position, and how many digits of its fraction are known."""
    while True:
        whole = 0
        more, at = _exp_half(words, at)
        while more and at < SPENT:
            whole += 1
            more, at = _exp_half(words, at)
        kept = True
        for _ in range(whole * (whole - 1)):
            kept, at = _exp_half(words, at)
            if not kept:
                break
        depth = 0
        if kept:
            for _ in range(whole + 1):
                kept, at, depth = _accept(words, at, digits, depth, width, whole)
                if not kept:
                    break
        if at >= SPENT:
            return 0, at, 0
        if kept:
            if whole >= MOST_WHOLE:
                raise OverflowError("a standard normal variable of 512 or more")
            return whole, at, depth


@njit(inline="always")
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The high and the low word of a·b."""
    a_high, a_low = a >> _HALF, a & _LOW
    b_high, b_low = b >> _HALF, b & _LOW
    low = a_low * b_low
    first = a_high * b_low + (low >> _HALF)
    second = a_low * b_high + (first & _LOW)
    return a_high * b_high + (first >> _HALF) + (second >> _HALF), a * b


@njit()
def _round(
    words: Words, at: int, digits: Digits, depth: int, width: int, whole: int,
    mantissa: np.uint64, shift: int,
) -> tuple[Integer, int]:  # fmt: skip
    """⌊σ·(k + x) + ½⌋ for σ = mantissa·2^{−shift}; reveals digits of x until it is decided.

    With the leading bits of x known, σ·(k + x) + ½ lies in [A, A + reach)·2^{−shift−64}, where A
    and reach are integers of two words. The floor is decided when no multiple of 2^{shift+64}
    lies strictly inside.
    """
    one, none = np.uint64(1), np.uint64(0)
    unit = one << np.uint64(shift)
    base = mantissa * np.uint64(whole) + (one << np.uint64(shift - 1))
    leading, known, place = none, 0, 0
    while True:
        if place == depth:
            digits[place], at = _take(words, at, width)
            depth += 1
        if at >= SPENT:
            return 0, at
        known += width
        leading |= np.uint64(digits[place]) << np.uint64(64 - known)
        place += 1
        high, low = _product(mantissa, leading)
        high += base
        value = np.int64(high >> np.uint64(shift))
        if known < 64:
            reach_high = mantissa >> np.uint64(known)
            reach_low = mantissa << np.uint64(64 - known)
        else:
            reach_high, reach_low = none, mantissa
        end_low = low + reach_low
        end_high = (high & (unit - one)) + reach_high + (one if end_low < low else none)
        if end_high < unit or (end_high == unit and end_low == none):
            return value, at
        if known == 64:
            break
    # The rest θ of x decides: the floor is one higher where mantissa·θ ≥ gap. Bit by bit, θ is
    # (bit + θ')/2 and the gap becomes 2·gap − mantissa·bit.
    gap = none - low
    while True:
        if place == depth:
            digits[place], at = _take(words, at, width)
            depth += 1
        if at >= SPENT:
            return 0, at
        for bit in range(width - 1, -1, -1):
            gap = gap + gap
            if (digits[place] >> bit) & 1:
                if gap <= mantissa:
                    return value + 1, at
                gap -= mantissa
            elif gap >= mantissa:
                return value, at
        place += 1


@njit(nogil=True, cache=True)
def rounded_gaussian(
    words: Words, at: int, digits: Digits, width: int, mantissa: np.uint64, shift: int,
    out: NDArray[np.int64], done: int,
) -> tuple[int, int]:  # fmt: skip
    """Fill `out` from place `done` on, as far as the buffer lasts.

    Args:
        words: the buffer of random bits.
        at: the position of the first unused bit.
        digits: room for as many digits as the buffer holds.
        width: bits per digit.
        mantissa: σ = mantissa·2^{−shift}.
        shift: see `mantissa`.
        out: where the values are written.
        done: how many values are there already.

    Returns:
        How many values are there now, and the position where the unfinished value began.
    """
    while done < out.size:
        start = at
        whole, at, depth = _normal(words, at, digits, width)
        size, at = _round(words, at, digits, depth, width, whole, mantissa, shift)
        negative, at = _take(words, at, 1)
        if at >= SPENT:
            return done, start
        out[done] = -size if negative else size
        done += 1
    return done, at


@njit()
def _exp_minus(
    words: Words, at: int, numerator: Integer, denominator: int, bits: int
) -> tuple[bool, int]:
    """True with probability exp(−numerator/denominator), for a fraction in [0, 1]."""
    n = 1
    while True:
        value, at = _below(words, at, denominator, bits)
        if value >= numerator or at >= SPENT:
            break
        if n > 1:
            going, at = _one_in(words, at, n)
            if not going:
                break
        n += 1
    return (n & 1) == 1, at


@njit()
def _exp_one(words: Words, at: int) -> tuple[bool, int]:
    """True with probability exp(−1): an even number of successes of chance 1, 1/2, 1/3, …"""
    n = 2
    going, at = _one_in(words, at, n)
    while going:
        n += 1
        going, at = _one_in(words, at, n)
    return (n & 1) == 1, at


@njit(nogil=True, cache=True)
def discrete_laplace(
    words: Words, at: int, numerator: int, denominator: int, out: NDArray[np.int64], done: int
) -> tuple[int, int]:
    """Like `rounded_gaussian`, for the scale b = numerator/denominator."""
    bits = _length(numerator)
    while done < out.size:
        start = at
        while True:
            rest, at = _below(words, at, numerator, bits)
            kept, at = _exp_minus(words, at, rest, numerator, bits)
            if at >= SPENT:
                return done, start
            if not kept:
                continue
            whole = 0
            more, at = _exp_one(words, at)
            while more and at < SPENT:
                whole += 1
                more, at = _exp_one(words, at)
            if whole >= MOST_WHOLE:
                raise OverflowError("a discrete Laplace variable of 512 scales or more")
            negative, at = _take(words, at, 1)
            if at >= SPENT:
                return done, start
            size = (rest + numerator * whole) // denominator
            if size > 0 or not negative:  # zero has one sign
                break
        out[done] = -size if negative else size
        done += 1
    return done, at
