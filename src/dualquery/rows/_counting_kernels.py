"""Compiled loops that count queries over packed rows. There is one per route, and all are exact.

A block is `bits[literal, word]`. Queries come as a matrix of terms (twice the literal, plus one if
it is negated), so all queries of one call have the same number of terms. Bits past the last row
are zero in every literal; the caller takes off what they add to a count. A kernel handles the
queries in [first, last), so that threads can share the work.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dualquery.base.compile import njit
from dualquery.rows._kernels import popcount

Words = npt.NDArray[np.uint64]
Terms = npt.NDArray[np.integer]
Codes = npt.NDArray[np.integer]
Ints = npt.NDArray[np.int64]

CHUNK = 4096
"""The number of rows entered into a table at a time: their cells stay in the nearest cache."""


@njit(inline="always")
def _same(terms: Terms, p: int, q: int, length: int) -> bool:
    """Whether two queries share their first terms."""
    shared = 0
    while shared < length and terms[p, shared] == terms[q, shared]:
        shared += 1
    return shared == length


@njit(nogil=True, cache=True)
def count_conjunctions(bits: Words, terms: Terms, counts: Ints, first: int, last: int) -> None:
    """Add to `counts[q]` the rows that satisfy all terms of query q, for q in [first, last).

    Two or three terms are counted in one pass of loads, a logic instruction and a popcount. LLVM
    compiles it to the widest vectors of the machine, where flipping a negated term is free. Runs of
    queries that share all terms except the last share their conjunction, if the run is long enough.
    """
    words, k = bits.shape[1], terms.shape[1]
    held = np.empty(words, dtype=np.uint64)
    q = first
    while q < last:
        a = bits[terms[q, 0] >> 1]
        f = np.uint64(0) - np.uint64(terms[q, 0] & 1)
        end = q + 1
        while end < last and k > 2 and _same(terms, q, end, k - 1):
            end += 1
        if k == 3 and end - q < 3:
            end = q + 1
            b, c = bits[terms[q, 1] >> 1], bits[terms[q, 2] >> 1]
            g = np.uint64(0) - np.uint64(terms[q, 1] & 1)
            h = np.uint64(0) - np.uint64(terms[q, 2] & 1)
            total = np.uint64(0)
            for w in range(words):
                total += popcount((a[w] ^ f) & (b[w] ^ g) & (c[w] ^ h))
            counts[q] += np.int64(total)
            q = end
            continue
        if k > 2:
            for w in range(words):
                held[w] = a[w] ^ f
            for place in range(1, k - 1):
                b = bits[terms[q, place] >> 1]
                g = np.uint64(0) - np.uint64(terms[q, place] & 1)
                for w in range(words):
                    held[w] &= b[w] ^ g
            a, f = held, np.uint64(0)
        while q < end:
            b = bits[terms[q, k - 1] >> 1]
            g = np.uint64(0) - np.uint64(terms[q, k - 1] & 1)
            total = np.uint64(0)
            for w in range(words):
                total += popcount((a[w] ^ f) & (b[w] ^ g))
            counts[q] += np.int64(total)
            q += 1


@njit(nogil=True, cache=True)
def count_odd(bits: Words, literals: Terms, counts: Ints, first: int, last: int) -> None:
    """Add to `counts[q]` the rows in which an odd number of `literals[q]` holds.

    Runs of queries that share all literals except the last share their sum.
    """
    words, k = bits.shape[1], literals.shape[1]
    held = np.zeros(words, dtype=np.uint64)
    for q in range(first, last):
        if q == first or not _same(literals, q, q - 1, k - 1):
            held[:] = 0
            for place in range(k - 1):
                row = bits[literals[q, place]]
                for w in range(words):
                    held[w] ^= row[w]
        row = bits[literals[q, k - 1]]
        total = np.uint64(0)
        for w in range(words):
            total += popcount(held[w] ^ row[w])
        counts[q] += np.int64(total)


@njit(nogil=True, cache=True)
def count_ones(bits: Words, counts: Ints, first: int, last: int) -> None:
    """Add to `counts[i]` the ones of literal i, for i in [first, last)."""
    for literal in range(first, last):
        row = bits[literal]
        total = np.uint64(0)
        for w in range(len(row)):
            total += popcount(row[w])
        counts[literal] += np.int64(total)


@njit(nogil=True, cache=True)
def list_ones(
    bits: Words, literals: Terms, start: Ints, ones: Codes, first: int, last: int
) -> None:
    """Write the rows that satisfy `literals[i]` to `ones[start[i]:]`, for i in [first, last)."""
    for i in range(first, last):
        row = bits[literals[i]]
        place = start[i]
        for w in range(len(row)):
            word = row[w]
            while word != 0:
                low = word & (np.uint64(0) - word)
                ones[place] = 64 * w + np.int64(popcount(low - np.uint64(1)))
                place += 1
                word ^= low


@njit(nogil=True, cache=True)
def count_listed(
    bits: Words,
    start: Ints,
    ones: Codes,
    pivots: Codes,
    terms: Terms,
    counts: Ints,
    first: int,
    last: int,
) -> None:
    """Add to `counts[q]` the rows on the list of `pivots[q]` that satisfy all terms of query q."""
    k = terms.shape[1]
    for q in range(first, last):
        rows = ones[start[pivots[q]] : start[pivots[q] + 1]]
        total = np.int64(0)
        if k == 2:
            a, b = bits[terms[q, 0] >> 1], bits[terms[q, 1] >> 1]
            f, g = np.uint64(terms[q, 0] & 1), np.uint64(terms[q, 1] & 1)
            for i in range(len(rows)):
                w, shift = rows[i] >> 6, np.uint64(rows[i] & 63)
                total += np.int64(((a[w] >> shift) ^ f) & ((b[w] >> shift) ^ g) & np.uint64(1))
        else:
            for i in range(len(rows)):
                w, shift = rows[i] >> 6, np.uint64(rows[i] & 63)
                held = np.uint64(1)
                for place in range(k):
                    term = terms[q, place]
                    held &= (bits[term >> 1, w] >> shift) ^ np.uint64(term & 1)
                total += np.int64(held)
        counts[q] += total


@njit(nogil=True, cache=True)
def fill_codes(bits: Words, literals: Terms, codes: Codes) -> None:
    """Write i to `codes[row]` for the rows that satisfy `literals[i]`."""
    for i in range(len(literals)):
        row = bits[literals[i]]
        for w in range(len(row)):
            word = row[w]
            while word != 0:
                low = word & (np.uint64(0) - word)
                codes[64 * w + np.int64(popcount(low - np.uint64(1)))] = i
                word ^= low


@njit(nogil=True, cache=True)
def count_tables(
    codes: Codes,
    columns: Codes,
    radix: Ints,
    start: Ints,
    cells: Ints,
    counts: Ints,
    first: int,
    last: int,
) -> None:
    """Add to `counts[q]` the rows in the cell of query q, with one pass over the rows per table.

    Table t has the attributes `columns[t]` and the strides `radix[t]`, of which the last entry is
    its number of cells. It answers the queries `start[t]:start[t + 1]`: query q is its cell
    `cells[q]`. Two copies of the table take turns, so that consecutive rows in the same cell do not
    wait for each other.
    """
    k, rows = columns.shape[1], codes.shape[1]
    joint = np.empty(CHUNK, dtype=np.int32)
    for t in range(first, last):
        size = radix[t, k]
        table = np.zeros(2 * size, dtype=np.int32)
        for begin in range(0, rows, CHUNK):
            end = min(begin + CHUNK, rows)
            held = joint[: end - begin]
            held[:] = codes[columns[t, 0], begin:end]
            for place in range(1, k):
                column = codes[columns[t, place], begin:end]
                weight = np.int32(radix[t, place])
                for row in range(len(held)):
                    held[row] += weight * np.int32(column[row])
            for row in range(0, len(held) - 1, 2):
                table[held[row]] += 1
                table[held[row + 1] + size] += 1
            if len(held) & 1:
                table[held[-1]] += 1
        for q in range(start[t], start[t + 1]):
            counts[q] += table[cells[q]] + table[size + cells[q]]
