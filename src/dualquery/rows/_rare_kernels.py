"""Compiled loops over the rare cells of packed rows. Each has a plain NumPy twin in the tests.

Cells come as a matrix of terms, as queries do: twice the literal, plus one if it is negated.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dualquery.base.compile import njit
from dualquery.rows._kernels import popcount

Words = npt.NDArray[np.uint64]
Terms = npt.NDArray[np.integer]
Ints = npt.NDArray[np.int64]

PLANES = 32
"""Binary digits of a counter."""

SPAN = 64
"""Words that are counted together: their digits stay in the nearest cache."""


@njit(inline="always")
def _added(digit: np.uint64, one: np.uint64, other: np.uint64) -> tuple[np.uint64, np.uint64]:
    """A digit of 64 counters plus two bits each: the digit, and what is carried to the next."""
    half = digit ^ one
    return half ^ other, (digit & one) | (half & other)


@njit(nogil=True, cache=True)
def cells_per_row(
    bits: Words, terms: Terms, weight: int, sizes: Ints, first: int, last: int
) -> None:
    """Add `weight` to `sizes[r]` for every cell that row r is in, for the words in [first, last).

    64 rows count at a time: digit i of all their counters is a word. Eight cells are added at a
    time, so that only the digits from eight on have to be carried one after the other.
    """
    cells, k = terms.shape
    held = np.empty((8, SPAN), dtype=np.uint64)
    planes = np.empty((PLANES, SPAN), dtype=np.uint64)
    for begin in range(first, last, SPAN):
        span = min(SPAN, last - begin)
        planes[:] = 0
        for group in range(0, cells, 8):
            for j in range(8):
                if group + j >= cells:
                    held[j] = 0
                    continue
                term = terms[group + j]
                a = bits[term[0] >> 1, begin : begin + span]
                f = np.uint64(0) - np.uint64(term[0] & 1)
                if k == 1:
                    for w in range(span):
                        held[j, w] = a[w] ^ f
                    continue
                b = bits[term[1] >> 1, begin : begin + span]
                g = np.uint64(0) - np.uint64(term[1] & 1)
                for w in range(span):
                    held[j, w] = (a[w] ^ f) & (b[w] ^ g)
                for i in range(2, k):
                    c = bits[term[i] >> 1, begin : begin + span]
                    h = np.uint64(0) - np.uint64(term[i] & 1)
                    for w in range(span):
                        held[j, w] &= c[w] ^ h
            any_eight = np.uint64(0)
            for w in range(span):
                ones, two_a = _added(planes[0, w], held[0, w], held[1, w])
                ones, two_b = _added(ones, held[2, w], held[3, w])
                twos, four_a = _added(planes[1, w], two_a, two_b)
                ones, two_a = _added(ones, held[4, w], held[5, w])
                ones, two_b = _added(ones, held[6, w], held[7, w])
                twos, four_b = _added(twos, two_a, two_b)
                fours, eight = _added(planes[2, w], four_a, four_b)
                planes[0, w], planes[1, w], planes[2, w] = ones, twos, fours
                held[0, w] = eight
                any_eight |= eight
            digit = 3
            while any_eight:
                any_eight = np.uint64(0)
                for w in range(span):
                    both = planes[digit, w] & held[0, w]
                    planes[digit, w] ^= held[0, w]
                    held[0, w] = both
                    any_eight |= both
                digit += 1
        for digit in range(PLANES):
            for w in range(span):
                plane = planes[digit, w]
                if plane:
                    for i in range(64):
                        if (plane >> np.uint64(i)) & np.uint64(1):
                            sizes[64 * (begin + w) + i] += weight << digit


@njit(nogil=True, cache=True)
def count_kept(bits: Words, kept: Words, terms: Terms, counts: Ints, first: int, last: int) -> None:
    """Add to `counts[t]` the kept rows that are in cell t, for t in [first, last)."""
    words, k = bits.shape[1], terms.shape[1]
    for t in range(first, last):
        a = bits[terms[t, 0] >> 1]
        f = np.uint64(0) - np.uint64(terms[t, 0] & 1)
        total = np.uint64(0)
        if k == 1:
            for w in range(words):
                total += popcount((a[w] ^ f) & kept[w])
        elif k == 2:
            b = bits[terms[t, 1] >> 1]
            g = np.uint64(0) - np.uint64(terms[t, 1] & 1)
            for w in range(words):
                total += popcount((a[w] ^ f) & (b[w] ^ g) & kept[w])
        else:
            for w in range(words):
                held = (a[w] ^ f) & kept[w]
                for j in range(1, k):
                    held &= bits[terms[t, j] >> 1, w] ^ (np.uint64(0) - np.uint64(terms[t, j] & 1))
                total += popcount(held)
        counts[t] += np.int64(total)


@njit(nogil=True, cache=True)
def count_cut(
    bits: Words,
    rows: Ints,
    charged: Ints,
    terms: Terms,
    weights: Ints,
    most: int,
    counts: Ints,
) -> None:
    """Add to `counts` the cells that some rows are in, as many of each row's as it may pay for.

    A row begins at a cell that follows from what it is charged, and goes round once. It stops
    before the first cell that would bring it above `most`.
    """
    cells, k = terms.shape
    holds = np.empty(2 * len(bits), dtype=np.bool_)
    for number in range(len(rows)):
        word, bit = rows[number] >> 6, np.uint64(rows[number] & 63)
        for literal in range(len(bits)):
            one = (bits[literal, word] >> bit) & np.uint64(1) == np.uint64(1)
            holds[2 * literal] = one
            holds[2 * literal + 1] = not one
        mixed = np.uint64(charged[number]) * np.uint64(0x9E3779B97F4A7C15)
        first = np.int64((mixed >> np.uint64(16)) % np.uint64(cells))
        left = most
        for step in range(cells):
            t = first + step if first + step < cells else first + step - cells
            inside = holds[terms[t, 0]]
            for j in range(1, k):
                inside &= holds[terms[t, j]]
            if inside:
                left -= weights[t]
                if left < 0:
                    break
                counts[t] += 1
