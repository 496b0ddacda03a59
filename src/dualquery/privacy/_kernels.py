"""Compiled passes over the queries: exponents, bucket counts, and finding an action again.

They release the interpreter lock and are called on separate ranges from plain threads. They use
only additions, multiplications, divisions and comparisons, which IEEE 754 defines to the last
bit, so every machine gets the same buckets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.base.compile import njit
from dualquery.privacy._weights import BLOCK, BUCKETS, CLIP, Exponents

_LOG2_E = 1.4426950408889634


@njit(inline="always")
def _bucket(exponents: Exponents, query: int, negated: int) -> int:
    """The bucket of an action: b with 2^{−b−1} < exp(fall) ≤ 2^{−b}, up to rounding at borders."""
    score = -exponents.scores[query] if negated else exponents.scores[query]
    fall = (exponents.log_prior[query] + score) - exponents.largest
    # No fall is positive; were one, this would still stay inside the table.
    return int(-_LOG2_E * max(min(fall, 0.0), CLIP))


@njit(nogil=True, cache=True)
def score(
    counts: NDArray[np.int64],
    answers: NDArray[np.float64],
    temperature: float,
    size: float,
    reference: float,
    out: NDArray[np.float64],
) -> None:
    """Write L_q per query to `out`; `Shard.score` has the formula.

    Args:
        counts: private counts, one per query.
        answers: the data player's answers.
        temperature: β.
        size: |D|.
        reference: n or n0.
        out: where the exponents are written.
    """
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
def largest(scores: NDArray[np.float64], log_prior: NDArray[np.float64]) -> float:
    """The largest exponent of all actions, log priors included; NaN if one of them is NaN."""
    top: float = -np.inf
    for query in range(scores.size):
        value: float = log_prior[query] + abs(scores[query])
        if not value <= top:
            top = value
        if value != value:
            return value
    return top


@njit(nogil=True, cache=True)
def tally(
    exponents: Exponents,
    first: int,
    last: int,
    blocks: NDArray[np.uint16],
    totals: NDArray[np.int64],
) -> None:
    """Count the actions per bucket in blocks `first` to `last` − 1.

    Args:
        exponents: those of all blocks.
        first: the first block.
        last: the block after the last one.
        blocks: per block and bucket, the number of actions; the rows of these blocks are written.
        totals: per bucket, the number of actions; that of these blocks is added.
    """
    # A table per sign: neighbouring increments of one cell would wait for one another.
    negated = np.zeros(BUCKETS, dtype=np.uint16)
    for row in range(first, last):
        plain = blocks[row]
        plain[:] = 0
        negated[:] = 0
        for query in range(row * BLOCK, min((row + 1) * BLOCK, exponents.scores.size)):
            plain[_bucket(exponents, query, 0)] += 1
            negated[_bucket(exponents, query, 1)] += 1
        for bucket in range(BUCKETS):
            plain[bucket] += negated[bucket]
            totals[bucket] += plain[bucket]


@njit(nogil=True, cache=True)
def find(
    exponents: Exponents,
    rows: NDArray[np.int64],
    buckets: NDArray[np.int64],
    ranks: NDArray[np.int64],
    first: int,
    last: int,
    positions: NDArray[np.int64],
) -> None:
    """Find the actions of candidates `first` to `last` − 1, with one scan per block.

    Args:
        exponents: as they were when `tally` counted.
        rows: the block of each candidate; candidates are sorted by block, bucket and rank.
        buckets: the bucket of each candidate.
        ranks: its rank among the actions of its bucket in its block.
        first: the first candidate.
        last: the candidate after the last one.
        positions: where the positions of these candidates are written.
    """
    # Per bucket, the next candidate of this block (−1: none is left), and the actions seen so far.
    waiting = np.full(BUCKETS, -1, dtype=np.int64)
    seen = np.zeros(BUCKETS, dtype=np.int64)
    candidate = first
    while candidate < last:
        row, end = rows[candidate], candidate
        while end < last and rows[end] == row:
            if waiting[buckets[end]] < 0:
                waiting[buckets[end]] = end
                seen[buckets[end]] = 0
            end += 1
        left = end - candidate
        for query in range(row * BLOCK, min((row + 1) * BLOCK, exponents.scores.size)):
            for negated in range(2):
                bucket = _bucket(exponents, query, negated)
                place = waiting[bucket]
                if place < 0:
                    continue
                while place < end and buckets[place] == bucket and ranks[place] == seen[bucket]:
                    positions[place] = 2 * query + negated
                    place += 1
                    left -= 1
                seen[bucket] += 1
                waiting[bucket] = place if place < end and buckets[place] == bucket else -1
            if left == 0:
                break
        if left > 0:
            raise ValueError("the exponents changed between counting and finding")
        candidate = end
