"""The random generator of compiled loops, against its definition."""

from __future__ import annotations

import numpy as np

from dualquery.base._kernels import next_random


def test_random_numbers_are_those_of_xorshift() -> None:
    mask, state = 2**64 - 1, 88172645463325252
    for _ in range(100):
        expected = state ^ (state << 13 & mask)
        expected ^= expected >> 7
        expected ^= expected << 17 & mask
        state = int(next_random(np.uint64(state)))
        assert state == expected
