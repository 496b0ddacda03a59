"""Compiled passes over the queries: exponents, bucket counts, and finding an action again.

They release the interpreter lock and are called on separate ranges from plain threads. They use
only additions, multiplications, divisions and comparisons, which IEEE 754 defines to the last
bit, so every machine gets the same buckets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.base.compile import njit
from dualquery.privacy._weights import BUCKETS, CLIP

_LOG2_E = 1.4426950408889634


@njit(inline="always")
def _bucket(fall: float) -> int:
    """b with 2^{−b−1} < exp(fall) ≤ 2^{−b}, for fall ≤ 0 (up to rounding at the borders)."""
    # No fall is positive; were one, this would still stay inside the table.
    return int(-_LOG2_E * max(min(fall, 0.0), CLIP))


@njit(nogil=True, cache=True)
def exponents(
    counts: NDArray[np.int64],
    answers: NDArray[np.float64],
    temperature: float,
    size: float,
    reference: float,
    out: NDArray[np.float64],
) -> None:
    for query in range(counts.size):
        score = (2.0 * counts[query] - size) / (2.0 * reference)
        score = min(1.0, max(-1.0, score))
        answer = answers[query]
        # Not written with min and max: a comparison with NaN must leave the NaN in place.
        if answer < 0.0:
            answer = 0.0
        elif answer > 1.0:
            answer = 1.0
        out[query] = temperature * (score + (0.5 - answer))


@njit(nogil=True, cache=True)
def largest(exponents: NDArray[np.float64], offsets: NDArray[np.float64]) -> float:
    """The largest exponent of all actions, offsets included; NaN where any of them is."""
    top: float = -np.inf
    for query in range(exponents.size):
        value: float = offsets[query] + abs(exponents[query])
        if not value <= top:
            top = value
        if value != value:
            return value
    return top


@njit(nogil=True, cache=True)
def tally(
    exponents: NDArray[np.float64],
    offsets: NDArray[np.float64],
    largest: float,
    block: int,
    first: int,
    last: int,
    blocks: NDArray[np.uint16],
    totals: NDArray[np.int64],
) -> None:
    # A table per sign: neighbouring increments of one cell would wait for one another.
    negated = np.zeros(BUCKETS, dtype=np.uint16)
    for row in range(first, last):
        plain = blocks[row]
        plain[:] = 0
        negated[:] = 0
        for query in range(row * block, min((row + 1) * block, exponents.size)):
            plain[_bucket((offsets[query] + exponents[query]) - largest)] += 1
            negated[_bucket((offsets[query] - exponents[query]) - largest)] += 1
        for bucket in range(BUCKETS):
            plain[bucket] += negated[bucket]
            totals[bucket] += plain[bucket]


@njit(nogil=True, cache=True)
def find(
    exponents: NDArray[np.float64],
    offsets: NDArray[np.float64],
    largest: float,
    block: int,
    rows: NDArray[np.int64],
    buckets: NDArray[np.int64],
    ranks: NDArray[np.int64],
    first: int,
    last: int,
    positions: NDArray[np.int64],
) -> None:
    """Positions of candidates sorted by (row, bucket, rank): one scan of a block per bucket."""
    candidate = first
    while candidate < last:
        row, bucket, seen = rows[candidate], buckets[candidate], 0
        for query in range(row * block, min((row + 1) * block, exponents.size)):
            for sign in range(2):
                exponent = -exponents[query] if sign else exponents[query]
                if _bucket((offsets[query] + exponent) - largest) != bucket:
                    continue
                while (
                    candidate < last
                    and rows[candidate] == row
                    and buckets[candidate] == bucket
                    and ranks[candidate] == seen
                ):
                    positions[candidate] = 2 * query + sign
                    candidate += 1
                seen += 1
            if candidate == last or rows[candidate] != row or buckets[candidate] != bucket:
                break
        else:
            raise ValueError("the exponents changed between counting and finding")
