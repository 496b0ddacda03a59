"""Ragged arrays: rows of different lengths that lie end to end in one flat array.

Row i is `flat[start[i]:start[i + 1]]`. So `start` has one entry more than there are rows, and the
last one is the length of the flat array. Everything here is plain arithmetic on `start`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Offsets = npt.NDArray[np.int64]


def offsets(lengths: npt.NDArray[np.integer] | Sequence[int]) -> Offsets:
    """Where each row begins, and where the last one ends: 0, then the running sums of `lengths`.

    The sums are 64-bit whatever the type of the lengths, so they do not wrap around.
    """
    start = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, dtype=np.int64, out=start[1:])
    return start


def taken(start: Offsets, chosen: npt.NDArray[np.integer]) -> tuple[Offsets, Offsets]:
    """The rows at `chosen`, in that order, as a ragged array of their own.

    Returns:
        The new array's `start`, and for each of its entries the place in the old flat array.
    """
    lengths = start[chosen + 1] - start[chosen]
    begins = offsets(lengths)
    return begins, np.repeat(start[chosen] - begins[:-1], lengths) + np.arange(begins[-1])
