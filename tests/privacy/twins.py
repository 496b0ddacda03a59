"""Plain twins of the compiled kernels and of the draw, and sources with known words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.shards import BUCKETS, CLIP, mantissas
from dualquery.privacy.sources import RandomSource


class ScriptedSource:
    """Hands out the given words, over and over."""

    private = False

    def __init__(self, words: Iterable[int]) -> None:
        self._words = np.array(list(words), dtype=np.uint64)
        self._next = 0

    def words(self, count: int) -> NDArray[np.uint64]:
        places = (self._next + np.arange(count)) % self._words.size
        self._next += count
        return self._words[places]

    def for_round(self, number: int) -> ScriptedSource:
        return self


class TableActions:
    """Actions with prescribed buckets and mantissas, in order of position."""

    def __init__(self, buckets: Iterable[int], scaled: Iterable[int]) -> None:
        self.buckets = np.array(list(buckets), dtype=np.int64)
        self.scaled = np.array(list(scaled), dtype=np.uint64)

    @property
    def queries(self) -> int:
        return self.buckets.size // 2

    def largest(self) -> float:
        return 0.0

    def tally(self, largest: float) -> NDArray[np.int64]:
        return np.bincount(self.buckets, minlength=BUCKETS)

    def locate(
        self, buckets: NDArray[np.int64], ranks: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        positions = np.array(
            [np.flatnonzero(self.buckets == b)[r] for b, r in zip(buckets, ranks, strict=True)],
            dtype=np.int64,
        )
        return positions, self.scaled[positions]


def exponents_twin(
    counts: NDArray[np.int64],
    answers: NDArray[np.float64],
    temperature: float,
    size: int,
    reference: int,
) -> NDArray[np.float64]:
    score = np.clip((2.0 * counts - size) / (2.0 * reference), -1.0, 1.0)
    return temperature * (score + (0.5 - np.clip(answers, 0.0, 1.0)))


def weights_twin(exponents: NDArray[np.float64]) -> tuple[list[int], list[int]]:
    """Bucket and mantissa of every action, in order of position."""
    largest = max(abs(float(e)) for e in exponents)
    buckets, scaled = [], []
    for exponent in exponents:
        for fall in (float(exponent) - largest, -float(exponent) - largest):
            bucket = math.floor(-1.4426950408889634 * max(fall, CLIP))
            buckets.append(bucket)
            scaled.append(int(mantissas(np.array([fall]), np.array([bucket]))[0]))
    return buckets, scaled


def draw_twin(
    exponents: NDArray[np.float64], samples: int, source: RandomSource
) -> list[tuple[int, bool]]:
    """The draw in Python integers, one attempt after another."""
    buckets, scaled = weights_twin(exponents)
    deepest = max(buckets)
    members = {
        b: [i for i, other in enumerate(buckets) if other == b] for b in sorted(set(buckets))
    }
    bits = {b: (len(inside) - 1).bit_length() for b, inside in members.items()}
    borders = list(accumulate(1 << (bits[b] + deepest - b) for b in members))
    size = max((borders[-1] - 1).bit_length(), 1)
    drawn: list[tuple[int, bool]] = []
    while len(drawn) < samples:
        first, second, third = (int(word) for word in source.words(3))
        # As many bits as the borders have; the first word holds the leading ones.
        value = first >> (64 - size) if size <= 64 else first << (size - 64)
        reached = [b for b, border in zip(members, borders, strict=True) if value < border]
        if not reached:
            continue
        rank = second >> (64 - bits[reached[0]])
        if rank >= len(members[reached[0]]):
            continue
        position = members[reached[0]][rank]
        if third >> 11 < scaled[position]:
            drawn.append((position // 2, position % 2 == 1))
    return drawn


def words_of(*fields: Iterable[int], bits: int) -> Iterator[int]:
    """Values of so many bits as the leading bits of words."""
    for field in fields:
        for value in field:
            yield value << (64 - bits)
