"""Compiled loops over codes that fill whole marginals. Each has a plain NumPy twin in the tests."""

from __future__ import annotations

import numpy as np

from dualquery.base.compile import njit


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
