"""Compiled loops that make packed columns from counters, in any order and on any thread."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dualquery.base.compile import njit

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.integer]
Floats = npt.NDArray[np.floating]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@njit(inline="always")
def _mixed(state: np.uint64) -> np.uint64:
    """The output function of SplitMix64, which turns a counter into a well mixed word."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@njit(nogil=True, cache=True)
def biased_columns(
    seed: np.uint64,
    columns: Ints,
    bias: Ints,
    out: Words,
    first: int,
    last: int,
) -> None:
    """Fill `out[i]` with bits that are on with probability bias[columns[i]] / 2¹⁶.

    The binary digits of the bias are gone through from the last to the first. A digit 1 is a
    disjunction with a random word, a digit 0 a conjunction. Each halves the probability so far, and
    a digit 1 adds one half.
    """
    words = out.shape[1]
    for i in range(first, last):
        column, row = columns[i], out[i]
        key = _mixed(np.uint64(seed) + GOLDEN * np.uint64(column + 1))
        row[:] = 0
        digits = bias[column]
        if digits == 1 << 16:
            row[:] = ~np.uint64(0)
            continue
        for level in range(16):
            chosen = np.uint64(0) - np.uint64((digits >> level) & 1)
            if digits & ((1 << (level + 1)) - 1) == 0:
                continue  # all digits so far are 0, and so are all bits
            offset = key + np.uint64(level * words) * GOLDEN
            for w in range(words):
                word = _mixed(offset + np.uint64(w + 1) * GOLDEN)
                row[w] = (row[w] & word) | (chosen & ~word & ~row[w]) | (chosen & row[w])


@njit(nogil=True, cache=True)
def rated_columns(
    seed: np.uint64,
    columns: Ints,
    chance: Floats,
    start: Ints,
    place: Ints,
    out: Words,
    first: int,
    last: int,
) -> None:
    """Fill `out[i]` with bits on for group g's members with probability chance[columns[i], g].

    Group g holds the rows `place[start[g]:start[g+1]]`. The gaps between ones are geometric, so
    the work grows with the number of ones and not of rows.
    """
    for i in range(first, last):
        column, row = columns[i], out[i]
        row[:] = 0
        state = _mixed(np.uint64(seed) + GOLDEN * np.uint64(column + 1))
        for group in range(len(start) - 1):
            p = chance[column, group]
            if p <= 0.0:
                continue
            scale = 1.0 / np.log1p(-p)
            member = start[group] - 1
            while True:
                state += GOLDEN
                uniform = (np.float64(_mixed(state) >> np.uint64(11)) + 0.5) * 2.0**-53
                gap = np.log(uniform) * scale
                if gap >= start[group + 1] - member:
                    break
                member += 1 + np.int64(gap)
                if member >= start[group + 1]:
                    break
                one = place[member]
                row[one >> 6] |= np.uint64(1) << np.uint64(one & 63)
