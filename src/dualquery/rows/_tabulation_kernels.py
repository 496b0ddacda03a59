"""Compiled loops over codes that fill whole marginals. Each has a plain NumPy twin in the tests."""

from __future__ import annotations

import numpy as np

from dualquery.base.compile import njit
from dualquery.rows._kernels import equal_rows, popcount


@njit(nogil=True, cache=True)
def add_strides(codes, stride, places):  # type: ignore[no-untyped-def]
    """Add `stride` times its code to the place of every row."""
    for row in range(len(codes)):
        places[row] += stride * np.uint32(codes[row])


@njit(nogil=True, cache=True)
def count_places(places, copies):  # type: ignore[no-untyped-def]
    """Add 1 to the count of every row's place, in four copies of the table that take turns.

    Consecutive rows often lie in the same cell. With one table the second row would wait until the
    count of the first is written.
    """
    whole = len(places) // 4 * 4
    one = np.uint32(1)
    for row in range(0, whole, 4):
        copies[0, places[row]] += one
        copies[1, places[row + 1]] += one
        copies[2, places[row + 2]] += one
        copies[3, places[row + 3]] += one
    for row in range(whole, len(places)):
        copies[0, places[row]] += one


@njit(nogil=True, cache=True)
def mark_codes(codes, size, bits, first):  # type: ignore[no-untyped-def]
    """Write, for every code below `size`, which rows have it: to the words of `bits[first + code]`.

    The codes are contiguous. Bits past the last row are zero; words past it are left as they were.
    """
    whole = len(codes) // 64
    for code in range(size):
        marked = bits[first + code]
        for word in range(whole):
            marked[word] = equal_rows(codes, 64 * word, code)
    if len(codes) % 64:
        for code in range(size):
            bits[first + code, whole] = np.uint64(0)
        for row in range(64 * whole, len(codes)):
            bits[first + codes[row], whole] |= np.uint64(1) << np.uint64(row & 63)


@njit(nogil=True, cache=True)
def count_marked(bits, words, literals, shapes, start, counted):  # type: ignore[no-untyped-def]
    """Add to the cells of every table the rows that have all codes of a cell, by popcounts.

    Table t has `shapes[t]` codes per attribute, and the marks of attribute i begin at
    `bits[literals[t, i]]`. Its cells begin at `counted[start[t]]`; the last attribute varies
    fastest. Four codes of the last attribute are counted at a time, so that the rows of the codes
    before it are loaded once for all four.
    """
    arity = shapes.shape[1]
    joint = np.empty(words, dtype=np.uint64)
    for table in range(len(shapes)):
        size, last = shapes[table, arity - 1], literals[table, arity - 1]
        before = 1
        for place in range(arity - 1):
            before *= shapes[table, place]
        cell = start[table]
        for prefix in range(before):
            held, rest = joint, prefix
            if arity == 2:
                held = bits[literals[table, 0] + prefix]
            else:
                joint[:] = ~np.uint64(0)
                for place in range(arity - 2, -1, -1):
                    marked = bits[literals[table, place] + rest % shapes[table, place]]
                    rest //= shapes[table, place]
                    for word in range(words):
                        joint[word] &= marked[word]
            fours = size // 4 * 4
            for code in range(0, fours, 4):
                a, b = bits[last + code], bits[last + code + 1]
                c, d = bits[last + code + 2], bits[last + code + 3]
                w, x, y, z = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
                for word in range(words):
                    w += popcount(held[word] & a[word])
                    x += popcount(held[word] & b[word])
                    y += popcount(held[word] & c[word])
                    z += popcount(held[word] & d[word])
                counted[cell + code] += np.int64(w)
                counted[cell + code + 1] += np.int64(x)
                counted[cell + code + 2] += np.int64(y)
                counted[cell + code + 3] += np.int64(z)
            for code in range(fours, size):
                a = bits[last + code]
                w = np.uint64(0)
                for word in range(words):
                    w += popcount(held[word] & a[word])
                counted[cell + code] += np.int64(w)
            cell += size
