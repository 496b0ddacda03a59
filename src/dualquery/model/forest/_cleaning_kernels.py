# mypy: ignore-errors
# Compiled code has numba's types, not Python's; the twins in the tests check it.
"""Compiled loops over one table. Each has a plain NumPy twin."""

from __future__ import annotations

import numpy as np

from dualquery.base.compile import njit

_compiled = njit(nogil=True, cache=True, error_model="numpy")


@_compiled
def rake(table, rows, columns, sweeps, close):
    """Scale rows and columns in turn, in place, until no row is off by more than a share."""
    down, across = table.shape
    sums = np.empty(across)
    for _ in range(sweeps):
        worst = 0.0
        sums[:] = 0.0
        for i in range(down):
            total = 0.0
            for j in range(across):
                total += table[i, j]
            off = rows[i] / total
            worst = max(worst, abs(off - 1.0))
            for j in range(across):
                table[i, j] *= off
                sums[j] += table[i, j]
        for j in range(across):
            sums[j] = columns[j] / sums[j]
        for i in range(down):
            for j in range(across):
                table[i, j] *= sums[j]
        if worst < close:
            break


@_compiled
def slopes_beyond_margins(powers, table, sweeps, found):
    """Fill the slopes of all cells by each power, less what fixed margins take back."""
    down, across = table.shape
    rows, columns = np.zeros(down), np.zeros(across)
    for i in range(down):
        for j in range(across):
            rows[i] += table[i, j]
            columns[j] += table[i, j]
    one = np.empty((down, across))
    sums = np.empty(across)
    for p in range(len(powers)):
        one[:] = powers[p]
        for _ in range(sweeps):
            sums[:] = 0.0
            for i in range(down):
                total = 0.0
                for j in range(across):
                    total += one[i, j] * table[i, j]
                for j in range(across):
                    one[i, j] -= total / rows[i]
                    sums[j] += one[i, j] * table[i, j]
            for i in range(down):
                for j in range(across):
                    one[i, j] -= sums[j] / columns[j]
        for i in range(down):
            for j in range(across):
                found[p, i * across + j] = one[i, j] * table[i, j]
