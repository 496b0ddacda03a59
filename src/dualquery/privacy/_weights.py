"""Constants and arrays of the exact weights, shared by `shards` and its kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CLIP = -600.0
"""Logarithms of weights are kept above this: range and support stay as they are, and no weight
is subnormal."""

BUCKETS = 866
"""⌊600·log₂e⌋ + 1: one bucket per power of two down to the clip."""

BLOCK = 2048
"""How many queries share one row of bucket counts."""


class Exponents(NamedTuple):
    """What the weights of a range of queries are made from.

    Attributes:
        scores: L_q per query; that of its negation is −L_q.
        log_prior: o_q per query, the same for its negation.
        largest: M, the largest exponent of all actions, of other ranges too.
    """

    scores: NDArray[np.float64]
    log_prior: NDArray[np.float64]
    largest: float
