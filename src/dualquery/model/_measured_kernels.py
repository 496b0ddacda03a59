# mypy: ignore-errors
# Compiled code has numba's types, not Python's; the twins in the tests check it.
"""Compiled loops over measured cells. Each has a plain NumPy twin in the tests."""

from __future__ import annotations

import numpy as np

from dualquery.base.compile import njit

_compiled = njit(nogil=True, cache=True, fastmath=True, error_model="numpy")
# A kernel that is called by another has to become a part of it. As a function of its own it would
# be compiled twice, by itself and with its caller, and sums that may be reordered would end in
# other last digits; which of the two is called depends on whether the cache was empty.
_part_of_a_kernel = njit(fastmath=True, error_model="numpy", inline="always")

LARGE = 256
"""Tables of so many cells are weighed by matrix products."""


@_compiled
def weigh_pairs(expected, counts, precision, total):
    """Turn model shares into slopes, in place; returns Σ precision·(total·share − count)².

    The slope by a share is precision·(total·share − count)·total.
    """
    value = 0.0
    for i in range(expected.shape[0]):
        row = np.float32(0.0)
        for j in range(expected.shape[1]):
            away = total * expected[i, j] - counts[i, j]
            pull = precision[i, j] * away
            row += pull * away
            expected[i, j] = pull * total
        value += row
    return value


@_part_of_a_kernel
def _small_table(
    folded, weighted, weights, first, sizes, counts, precision, total, folded_slope, weight_slope,
    pair, pulled,
):  # fmt: skip
    """One table cell by cell: calls of a matrix product would take longer than a few cells."""
    components = folded.shape[1]
    value = np.float32(0.0)
    cell = 0
    for i in range(first[0], first[0] + sizes[0]):
        for j in range(first[1], first[1] + sizes[1]):
            for k in range(components):
                pair[k] = weighted[i, k] * folded[j, k]
                pulled[k] = 0.0
            for l in range(first[2], first[2] + sizes[2]):
                share = np.float32(0.0)
                for k in range(components):
                    share += pair[k] * folded[l, k]
                away = total * share - counts[cell]
                pull = precision * away
                value += pull * away
                pull *= total
                for k in range(components):
                    pulled[k] += pull * folded[l, k]
                    folded_slope[l, k] += pull * pair[k]
                cell += 1
            for k in range(components):
                weight_slope[k] += pulled[k] * folded[i, k] * folded[j, k]
                folded_slope[i, k] += pulled[k] * weights[k] * folded[j, k]
                folded_slope[j, k] += pulled[k] * weighted[i, k]
    return value


@_part_of_a_kernel
def _large_table(
    folded, weighted, weights, first, sizes, counts, precision, total, folded_slope, weight_slope,
    scratch,
):  # fmt: skip
    """One table as three matrix products: shares of cells, and the slopes of either side of them.

    One side is the last attribute, the other all pairs of rows of the first two.
    """
    components = folded.shape[1]
    one, two, three = sizes[0], sizes[1], sizes[2]
    rows = one * two
    ends = np.cumsum(
        np.array([rows * components, rows * components, rows * three, three * components])
    )
    pairs = scratch[: ends[0]].reshape(rows, components)
    pulled = scratch[ends[0] : ends[1]].reshape(rows, components)
    shares = scratch[ends[1] : ends[2]].reshape(rows, three)
    gained = scratch[ends[2] : ends[3]].reshape(three, components)
    for i in range(one):
        for j in range(two):
            pair, left, right = pairs[i * two + j], weighted[first[0] + i], folded[first[1] + j]
            for k in range(components):
                pair[k] = left[k] * right[k]
    last = folded[first[2] : first[2] + three]
    np.dot(pairs, last.T, shares)
    cells = shares.reshape(-1)
    value = np.float32(0.0)
    for c in range(len(cells)):
        away = total * cells[c] - counts[c]
        pull = precision * away
        value += pull * away
        cells[c] = pull * total
    np.dot(shares, last, pulled)
    np.dot(shares.T, pairs, gained)
    for l in range(three):
        for k in range(components):
            folded_slope[first[2] + l, k] += gained[l, k]
    summed = pairs[0]  # the pairs are not needed any more
    for i in range(one):
        left, row_slope = weighted[first[0] + i], folded_slope[first[0] + i]
        for k in range(components):
            summed[k] = 0.0
        for j in range(two):
            pull, right = pulled[i * two + j], folded[first[1] + j]
            right_slope = folded_slope[first[1] + j]
            for k in range(components):
                summed[k] += pull[k] * right[k]
                right_slope[k] += pull[k] * left[k]
        for k in range(components):
            weight_slope[k] += summed[k] * folded[first[0] + i, k]
            row_slope[k] += summed[k] * weights[k]
    return value


@_compiled
def weigh_tables(
    folded, weights, first, sizes, start, counts, precision, total, folded_slope, weight_slope
):
    """Add the slopes of tables of three attributes; returns Σ precision·(total·share − count)².

    Table t has the rows `first[t, i]:first[t, i] + sizes[t, i]` of `folded` along its attribute i,
    and the cells `counts[start[t]:start[t + 1]]`, the last attribute fastest. A table of two
    attributes has one row of ones as one of the three. Large tables are fastest if their last
    attribute has most rows.
    """
    components = folded.shape[1]
    weighted = np.empty_like(folded)
    for i in range(len(folded)):
        for k in range(components):
            weighted[i, k] = weights[k] * folded[i, k]
    needed = components
    for t in range(len(first)):
        if start[t + 1] - start[t] >= LARGE:
            rows = sizes[t, 0] * sizes[t, 1]
            needed = max(
                needed, 2 * rows * components + sizes[t, 2] * components + start[t + 1] - start[t]
            )
    scratch = np.empty(needed, dtype=np.float32)
    pair = np.empty(components, dtype=np.float32)
    value = 0.0
    for t in range(len(first)):
        cells = counts[start[t] : start[t + 1]]
        if len(cells) >= LARGE:
            value += _large_table(
                folded, weighted, weights, first[t], sizes[t], cells, precision[t], total,
                folded_slope, weight_slope, scratch,
            )  # fmt: skip
        else:
            value += _small_table(
                folded, weighted, weights, first[t], sizes[t], cells, precision[t], total,
                folded_slope, weight_slope, pair, scratch[:components],
            )  # fmt: skip
    return value
