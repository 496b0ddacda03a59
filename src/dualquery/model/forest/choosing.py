"""Which attributes are joined: a function of released tables alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dualquery.model.forest.trees import Trees, spanning
from dualquery.model.stack import Stack
from dualquery.privacy.measuring import Measurement

Floats = npt.NDArray[np.float64]

CLEAR = 3.0
"""A pair may be an edge if it departs from independence by so many standard deviations."""


def forest_of(
    stack: Stack,
    measurements: Sequence[Measurement],
    shares: Floats,
    total: float,
    largest: int,
    alone: npt.NDArray[np.bool_],
) -> Trees:
    """The heaviest forest over the measured pairs that clearly depart from independence.

    A pair weighs an estimate of its χ²: Σ((y − e)² − v)/(e + 2σ), with noisy counts y, counts e as
    independence has them, and the variance v = σ² of the noise.

    Args:
        stack: the attributes that are modelled.
        measurements: tables of its groups; only pairs are read.
        shares: the estimated share of every row of the stack.
        total: the number of records.
        largest: the most attributes of a tree.
        alone: per attribute, whether it must have no edge.
    """
    counts: dict[tuple[int, int], Floats] = {}
    precision: dict[tuple[int, int], float] = {}
    nothing = np.zeros(1)
    for one in measurements:
        if one.marginals.arity != 2:
            continue
        start = one.marginals.start
        for t, (a, b) in enumerate(stack.positions(one.marginals.attributes).tolist()):
            if alone[a] or alone[b]:
                continue
            cells = one.counts[start[t] : start[t + 1]] / one.variance
            counts[a, b] = counts.get((a, b), nothing) + cells
            precision[a, b] = precision.get((a, b), 0.0) + 1.0 / one.variance
    weighed = []
    for (a, b), summed in counts.items():
        variance = 1.0 / precision[a, b]
        first, second = (shares[stack.start[i] : stack.start[i + 1]] for i in (a, b))
        expected = total * np.outer(first, second).reshape(-1)
        squares = (summed * variance - expected) ** 2
        count = len(squares)
        if (squares.sum() / variance - count) / np.sqrt(2.0 * count) > CLEAR:
            beyond = ((squares - variance) / (expected + 2.0 * np.sqrt(variance))).sum()
            weighed.append((float(beyond), a, b))
    return spanning(len(stack.attributes), weighed, largest)
