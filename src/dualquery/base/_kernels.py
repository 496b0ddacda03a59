"""The one random generator of compiled loops. It is public: it plays no part in privacy."""

from __future__ import annotations

import numpy as np

from dualquery.base.compile import njit


@njit(inline="always")
def next_random(state: np.uint64) -> np.uint64:
    """One step of Marsaglia's xorshift; the new state is the random number.

    Its high bits are the better ones. A state of 0 would stay 0.
    """
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state
