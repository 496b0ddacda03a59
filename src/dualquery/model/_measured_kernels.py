# mypy: ignore-errors
# Compiled code has numba's types, not Python's; the twins in the tests check it.
"""Compiled loops over measured cells. Each has a plain NumPy twin in the tests."""

from __future__ import annotations

import numpy as np

from dualquery.base.compile import njit

_compiled = njit(nogil=True, cache=True, fastmath=True, error_model="numpy")


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


@_compiled
def weigh_tables(
    folded, weights, first, sizes, start, counts, precision, total, folded_slope, weight_slope
):
    """Add the slopes of tables of three attributes; returns Σ precision·(total·share − count)².

    Table t has the rows `first[t, i]:first[t, i] + sizes[t, i]` of `folded` along its attribute i,
    and the cells `counts[start[t]:start[t + 1]]`, the last attribute fastest. A table of two
    attributes has one row of ones as its third.
    """
    components = folded.shape[1]
    pair = np.empty(components, dtype=np.float32)
    pulled = np.empty(components, dtype=np.float32)
    value = 0.0
    for t in range(len(first)):
        cell = start[t]
        part = np.float32(0.0)
        for i in range(first[t, 0], first[t, 0] + sizes[t, 0]):
            for j in range(first[t, 1], first[t, 1] + sizes[t, 1]):
                for k in range(components):
                    pair[k] = weights[k] * folded[i, k] * folded[j, k]
                    pulled[k] = 0.0
                for l in range(first[t, 2], first[t, 2] + sizes[t, 2]):
                    share = np.float32(0.0)
                    for k in range(components):
                        share += pair[k] * folded[l, k]
                    away = total * share - counts[cell]
                    pull = precision[t] * away
                    part += pull * away
                    pull *= total
                    for k in range(components):
                        pulled[k] += pull * folded[l, k]
                        folded_slope[l, k] += pull * pair[k]
                    cell += 1
                for k in range(components):
                    weight_slope[k] += pulled[k] * folded[i, k] * folded[j, k]
                    folded_slope[i, k] += pulled[k] * weights[k] * folded[j, k]
                    folded_slope[j, k] += pulled[k] * weights[k] * folded[i, k]
        value += part
    return value
