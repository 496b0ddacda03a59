"""Where the randomness of a run comes from, as an explicit argument.

Every draw is a function of uniform 64-bit words. The source of these words decides one thing only:
whether the draws are private (operating system) or repeatable (seeded).
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dualquery.base.checks import whole


class RandomSource(Protocol):
    """A source of independent uniform 64-bit words."""

    @property
    def private(self) -> bool:
        """Whether draws from this source may be published as private."""
        ...

    def words(self, count: int) -> NDArray[np.uint64]:
        """`count` independent words, uniform on [0, 2⁶⁴)."""
        ...

    def for_round(self, number: int) -> RandomSource:
        """The source of one round.

        A seeded source gives every round a stream of its own, so that a run that is resumed
        draws what it would have drawn without the interruption.
        """
        ...


class SystemSource:
    """The operating system's cryptographic generator.

    It keeps no buffer, because callers ask for large blocks. A source without state cannot give
    the same words to two threads, to both sides of a fork, or to an unpickled copy.
    """

    private = True

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(os.urandom(8 * count), dtype="<u8").astype(np.uint64, copy=False)

    def for_round(self, number: int) -> SystemSource:
        return self


class SeededSource:
    """A repeatable stream for experiments. NOT PRIVATE: whoever knows the seed knows the draws.

    Philox, a counter-based generator whose raw words NumPy keeps stable between versions.
    """

    private = False

    def __init__(self, seed: int, stream: int = 0) -> None:
        self.seed = whole("seed", seed, least=0)
        self.stream = whole("stream", stream, least=0)
        self._generator = np.random.Philox(np.random.SeedSequence([self.seed, self.stream]))

    def words(self, count: int) -> NDArray[np.uint64]:
        return self._generator.random_raw(count)

    def for_round(self, number: int) -> SeededSource:
        # Stream 0 is the seed's own; rounds count from there, so no two share a stream.
        return SeededSource(self.seed, 1 + whole("round", number, least=0))


def source_for(seed: int | None) -> SystemSource | SeededSource:
    """The operating system's source, or a seeded one if a seed is given."""
    return SystemSource() if seed is None else SeededSource(seed)


def uniform_bits(source: RandomSource, bits: int) -> int:
    """A uniform integer on [0, 2^bits), of any size."""
    if bits == 0:
        return 0
    count = -(-bits // 64)
    value = int.from_bytes(source.words(count).astype("<u8").tobytes(), "little")
    return value >> (64 * count - bits)


def uniform_below(source: RandomSource, bound: int) -> int:
    """A uniform integer on [0, bound), exactly, for any positive integer bound."""
    bound = whole("bound", bound)
    bits = (bound - 1).bit_length()
    while True:
        value = uniform_bits(source, bits)
        if value < bound:
            return value
