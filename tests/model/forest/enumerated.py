"""A mixture of forests by brute force: every record's probability, in plain NumPy."""

from __future__ import annotations

from itertools import product

import numpy as np

from dualquery.model.forest.trees import APART, Trees


def softmax(values: np.ndarray) -> np.ndarray:
    shares = np.exp(values - values.max())
    return shares / shares.sum()


def joint(
    trees: Trees,
    start: np.ndarray,
    logits: np.ndarray,
    ties: np.ndarray,
    weights: np.ndarray,
) -> np.ndarray:
    """The probability of every record, one axis per attribute."""
    sizes = np.diff(start)
    found = np.zeros(tuple(sizes))
    tie_start = trees.tie_start(sizes)
    for record in product(*(range(size) for size in sizes)):
        for k, weight in enumerate(weights):
            chance = weight
            for a, code in enumerate(record):
                own = logits[start[a] : start[a + 1], k].astype(float)
                above = trees.parent[a]
                if above != APART:
                    e = trees.edge[a]
                    tied = ties[tie_start[e] : tie_start[e + 1]].reshape(sizes[above], sizes[a])
                    own = own + tied[record[above]]
                chance *= softmax(own)[code]
            found[record] += chance
    return found


def table(whole: np.ndarray, attributes: tuple[int, ...]) -> np.ndarray:
    """The marginal of some attributes, in their order."""
    others = tuple(a for a in range(whole.ndim) if a not in attributes)
    kept = [a for a in range(whole.ndim) if a in attributes]
    return whole.sum(axis=others).transpose([kept.index(a) for a in attributes])
