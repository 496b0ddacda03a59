"""Standard errors of figures that are made of several shares.

The release knows the standard error of a share. A figure such as a mean or a conditional share is
a function of the shares of several cells that partition all records. Its error is, to first order,
Σ h_j e_j: cell j is off by e_j, and h_j says how much the figure moves with it. This file supposes
that the errors of the cells are independent, except that they add up to zero, as shares of a
partition do. Then Var Σ h_j e_j = Σ h_j² v_j − (Σ h_j v_j)² / Σ v_j, where the v_j are such that
every cell has its known standard error: s_j² = v_j (1 − v_j / Σ v_i).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

STEPS = 60
"""Steps of the fixed point for the v_j."""


def standard_errors(moves: Floats, errors: Floats) -> Floats:
    """The standard errors of figures, each of several cells that partition all records.

    Args:
        moves: how much a figure moves with the share of each of its cells; the cells of one
            figure lie along the last axis.
        errors: the standard error of each cell's share; NaN where it is unknown.

    Returns:
        One per figure; NaN where the error of a cell is unknown.
    """
    free = free_variances(errors)
    total = free.sum(axis=-1)
    common = (free * moves).sum(axis=-1) ** 2 / np.where(total > 0.0, total, 1.0)
    found: Floats = np.sqrt(np.maximum((free * moves**2).sum(axis=-1) - common, 0.0))
    return found


def free_variances(errors: Floats) -> Floats:
    """The variances v_j of the errors before they are made to add up to zero.

    A cell with more than half of all variance would have to be matched by all others together.
    Then there is no solution, and the variance of that cell stays at twice its square error.
    """
    squares = np.asarray(errors, dtype=float) ** 2
    free = squares
    for _ in range(STEPS):
        total = free.sum(axis=-1, keepdims=True)
        part = free / np.where(total > 0.0, total, 1.0)
        free = squares / (1.0 - np.minimum(part, 0.5))
    return free


def independent(cells: Floats) -> Floats:
    """The cells that columns with the same distributions would have if they were independent."""
    found = np.ones((1,) * cells.ndim)
    for axis in range(cells.ndim):
        others = tuple(other for other in range(cells.ndim) if other != axis)
        found = found * cells.sum(axis=others, keepdims=True)
    return found
