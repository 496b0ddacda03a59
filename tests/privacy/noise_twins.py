"""The exact noise once more, in Python integers and fractions, one bit after another.

The twins read the same random bits as the kernels in the same order, so values must be equal; the
arithmetic is another: intervals of fractions instead of words and carries.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dualquery.privacy.sources import RandomSource


class Bits:
    """The bits of a source, the highest of each word first."""

    def __init__(self, source: RandomSource) -> None:
        self._source = source
        self._text = ""
        self._next = 0
        self.read = 0

    def take(self, count: int) -> int:
        while self._next + count > len(self._text):
            fresh = "".join(f"{int(word):064b}" for word in self._source.words(64))
            self._text = self._text[self._next :] + fresh
            self._next = 0
        value = int(self._text[self._next : self._next + count] or "0", 2)
        self._next += count
        self.read += count
        return value

    def below(self, bound: int) -> int:
        while True:
            value = self.take((bound - 1).bit_length())
            if value < bound:
                return value


class Uniform:
    """A uniform number on [0, 1), of which as many digits are known as were needed."""

    def __init__(self, bits: Bits, width: int) -> None:
        self._bits = bits
        self._width = width
        self._digits: list[int] = []

    def digit(self, place: int) -> int:
        while len(self._digits) <= place:
            self._digits.append(self._bits.take(self._width))
        return self._digits[place]

    def exceeds_a_fresh_one(self) -> bool:
        place = 0
        while True:
            own = self.digit(place)
            other = self._bits.take(self._width)
            if own != other:
                return other < own
            place += 1

    def interval(self, digits: int) -> tuple[Fraction, Fraction]:
        value = 0
        for place in range(digits):
            value = (value << self._width) | self.digit(place)
        unit = 1 << (self._width * digits)
        return Fraction(value, unit), Fraction(value + 1, unit)


def even(successes: int) -> bool:
    return successes % 2 == 0


def minus_half(bits: Bits) -> bool:
    successes = 0
    while bits.below(2 * (successes + 1)) == 0:
        successes += 1
    return even(successes)


def accept(bits: Bits, x: Uniform, k: int) -> bool:
    successes = 0
    while True:
        part = bits.below(2 * k + 2)
        if part == 2 * k + 1 or not x.exceeds_a_fresh_one():
            break
        if part == 2 * k and not x.exceeds_a_fresh_one():
            break
        if successes and bits.below(successes + 1) != 0:
            break
        successes += 1
    return even(successes)


def rounded_gaussian_twin(sigma: float, bits: Bits, width: int) -> int:
    while True:
        k = 0
        while minus_half(bits):
            k += 1
        if not all(minus_half(bits) for _ in range(k * (k - 1))):
            continue
        x = Uniform(bits, width)
        if all(accept(bits, x, k) for _ in range(k + 1)):
            break
    digits = 1
    while True:
        low, high = (Fraction(sigma) * (k + end) + Fraction(1, 2) for end in x.interval(digits))
        if high <= math.floor(low) + 1:
            break
        digits += 1
    return -math.floor(low) if bits.take(1) else math.floor(low)


def discrete_laplace_twin(scale: Fraction, bits: Bits) -> int:
    s, t = scale.numerator, scale.denominator
    while True:
        rest, successes = bits.below(s), 0
        while bits.below(s) < rest and (successes == 0 or bits.below(successes + 1) == 0):
            successes += 1
        if not even(successes):
            continue
        whole = 0
        while minus_one(bits):
            whole += 1
        sign = bits.take(1)
        value = (rest + s * whole) // t
        if value or not sign:
            return -value if sign else value


def minus_one(bits: Bits) -> bool:
    successes = 1  # the first has chance 1
    while bits.below(successes + 1) == 0:
        successes += 1
    return even(successes)
