"""How shares of cells move together if a dependence between two columns is off.

Errors of cells are not independent: a correlation that is too weak moves a whole corner of a table.
So the dependence of two columns is taken to be off by a random amount, and every share moves by
P·φ, P the cell's share. Columns with an order have one direction: φ grows with both. The codes of
others have one each. φ is centred so that neither column's own shares move.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

SWEEPS = 8
"""In which directions are centred for rows and columns in turn."""

MOST = 1 << 22
"""Cells of all directions of a table; with more of them, single directions matter little."""


def scores(shares: Floats, *, linear: bool) -> Floats:
    """The directions of a column: one row each, with mean 0; their squares have the mean 1 in all.

    Args:
        shares: of its codes.
        linear: whether the codes have an order, so that there is one direction, by rank.
    """
    total = shares.sum()
    shares = np.maximum(shares, 0.0) / (total if total > 0.0 else 1.0)
    size = len(shares)
    if linear or size <= 2:
        rank = np.cumsum(shares) - shares / 2.0
        rank = rank - shares @ rank
        square = float(shares @ rank**2)
        return rank[None, :] / np.sqrt(square) if square > 0.0 else np.zeros((1, size))
    root = np.sqrt(np.maximum(shares, 1e-300) * (size - 1.0))
    found: Floats = (np.eye(size) - shares[:, None]) / np.where(shares > 0.0, root, np.inf)[:, None]
    return found


def bends(joint: Floats, ordered: Sequence[bool], missed: Callable[[int, int], float]) -> Floats:
    """How shares of cells move, one row of all cells per direction.

    Args:
        joint: the shares, one axis per column.
        ordered: whether each column's codes have an order.
        missed: the standard error of the dependence of the columns of two axes.
    """
    found = [np.zeros((0, joint.size))]
    for i, j in combinations(range(joint.ndim), 2):
        error = missed(i, j)
        others = tuple(a for a in range(joint.ndim) if a not in (i, j))
        pair = joint.sum(axis=others)
        one = scores(pair.sum(axis=1), linear=ordered[i])
        other = scores(pair.sum(axis=0), linear=ordered[j])
        count = len(one) * len(other)
        if error <= 0.0 or count * joint.size > MOST:
            continue
        directions = (one[:, None, :, None] * other[None, :, None, :]).reshape(count, *pair.shape)
        directions = error * _centred(directions, pair)
        wide = [count] + [joint.shape[a] if a in (i, j) else 1 for a in range(joint.ndim)]
        found.append((joint * directions.reshape(wide)).reshape(count, -1))
    return np.concatenate(found)


def _centred(directions: Floats, pair: Floats) -> Floats:
    """The directions without what moves shares of rows or columns."""
    rows, columns = pair.sum(axis=1), pair.sum(axis=0)
    rows, columns = (np.where(one > 0.0, one, 1.0) for one in (rows, columns))
    for _ in range(SWEEPS):
        directions = directions - ((directions * pair).sum(axis=2) / rows)[:, :, None]
        directions = directions - ((directions * pair).sum(axis=1) / columns)[:, None, :]
    return directions
