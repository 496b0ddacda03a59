"""Exact weights of the actions, on one machine or cut into shards.

**Weights.** The exponent of query q is o_q + L_q and that of its negation o_q − L_q; the public
*log prior* o_q, zero unless it is given, makes some queries likelier than others from the start.
With M the largest exponent, an action's *fall* is x = max(o ± L − M, −600) ≤ 0, its *bucket* the
integer b ≈ ⌊−x·log₂e⌋, and its *mantissa* the integer nearest 2⁵³·exp(x + b·ln 2), kept in
[2⁵², 2⁵³]. The weight of the action *is* the rational number mantissa·2^{−b−53}: no draw ever
rounds it.

**Order.** Actions are ordered query by query, first the query and then its negation: position
2q for query q, 2q + 1 for its negation. A shard holds both signs of a contiguous range of
queries, so shards put end to end keep the order, however they are cut; the *rank* of an action
among the actions of its bucket follows this order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dualquery.base.checks import not_negative, whole
from dualquery.base.errors import ParameterError
from dualquery.base.threads import over_ranges
from dualquery.privacy._weights import BLOCK, BUCKETS, CLIP, Exponents

MANTISSA_BITS = 53
LARGEST_LOG_PRIOR = 32.0
"""The rounding charge covers log priors up to this size."""

# ln 2 in two parts; the first has 11 trailing zero bits, so its product with a bucket is exact.
_LN2_HIGH = float.fromhex("0x1.62e42fefa3800p-1")
_LN2_LOW = float.fromhex("0x1.ef35793c76730p-45")
_INVERSE_FACTORIALS = [1.0 / math.factorial(k) for k in range(18)]


class WeightedActions(Protocol):
    """What a draw needs to know of the actions: three passes, and the weights stay where they are.

    The passes of one draw are `largest`, then `tally`, then `locate` as often as needed.
    """

    @property
    def queries(self) -> int:
        """The number of queries; there are twice as many actions."""
        ...

    def largest(self) -> float:
        """The largest exponent of all actions, log priors included."""
        ...

    def tally(self, largest: float) -> NDArray[np.int64]:
        """How many actions lie in each bucket, `largest` being the largest exponent of all."""
        ...

    def locate(
        self, buckets: NDArray[np.int64], ranks: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Positions and mantissas of actions given by bucket and rank, after `tally`."""
        ...


class Shard:
    """The exponents of a contiguous range of queries; its buffers are used again every round.

    Fill it with `score`, or write into `exponents` directly. `log_prior` is public and never
    changes: the logarithm of each query's prior weight, which its negation shares.
    """

    def __init__(self, queries: int, *, log_prior: NDArray[np.float64] | None = None) -> None:
        self._queries = whole("queries", queries)
        self._log_prior = _checked_prior(log_prior, self._queries)
        self._blocks = np.zeros((-(-self._queries // BLOCK), BUCKETS), dtype=np.uint16)
        self._shift = 0.0
        self.exponents = np.zeros(self._queries, dtype=np.float64)

    @property
    def queries(self) -> int:
        return self._queries

    def score(
        self,
        counts: NDArray[np.int64],
        answers: NDArray[np.float64],
        temperature: float,
        *,
        size: int,
        reference: int,
    ) -> None:
        """Write the exponents β·(q(D) − a_q) of this shard's queries.

        With c the private count of a query, N = |D| and n0 the reference, the exponent is

            β·(clip((2c − N)/(2·n0), −1, 1) + ½ − a_q).

        For N = n0 that is β·(c/n − a_q). For add-remove neighbours it is half the difference
        between the scores c/n0 − a_q and (N − c)/n0 − (1 − a_q) of the query and its negation.
        What was taken out is a common shift of all exponents, which no draw can see. So negation
        is a change of sign here too. The clip acts only where N > 2·n0. It keeps the exponents
        bounded, as the rounding charge requires. Between neighbours, the clipped value changes
        no more than its argument does.

        The answers are public, so rounding them costs no privacy. They are clamped to [0, 1],
        which keeps the exponents bounded whatever a model does.

        Args:
            counts: private counts, int64.
            answers: the data player's answers, float64.
            temperature: β ≥ 0.
            size: |D|, the number of records (public n under replace-one).
            reference: n (replace-one) or n0 (add-remove).
        """
        from dualquery.privacy import _kernels

        temperature = not_negative("temperature", temperature)
        reference = whole("reference", reference)
        for name, array in (("counts", counts), ("answers", answers)):
            if array.shape != self.exponents.shape:
                raise ParameterError(
                    f"{name} of shape {array.shape}; expected one per query, {self._queries}"
                )

        def piece(first: int, last: int) -> None:
            _kernels.score(
                counts[first:last],
                answers[first:last],
                temperature,
                float(size),
                float(reference),
                self.exponents[first:last],
            )

        over_ranges(piece, self._queries, grain=1 << 16)

    def largest(self) -> float:
        from dualquery.privacy import _kernels

        tops: list[float] = []

        def piece(first: int, last: int) -> None:
            part = _kernels.largest(self.exponents[first:last], self._log_prior[first:last])
            tops.append(float(part))

        over_ranges(piece, self._queries, grain=1 << 16)
        top = float(np.max(tops))
        if not math.isfinite(top):
            raise ParameterError(f"an exponent is {top}; expected finite answers")
        return top

    def tally(self, largest: float) -> NDArray[np.int64]:
        from dualquery.privacy import _kernels

        self._shift = largest
        parts: list[NDArray[np.int64]] = []

        def piece(first: int, last: int) -> None:
            totals = np.zeros(BUCKETS, dtype=np.int64)
            _kernels.tally(self._weighed(), first, last, self._blocks, totals)
            parts.append(totals)

        over_ranges(piece, len(self._blocks), grain=(1 << 16) // BLOCK)
        return _total(np.stack(parts))

    def locate(
        self, buckets: NDArray[np.int64], ranks: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        from dualquery.privacy import _kernels

        rows = np.empty(buckets.size, dtype=np.int64)
        inside = np.empty(buckets.size, dtype=np.int64)
        for bucket in np.unique(buckets):
            chosen = np.flatnonzero(buckets == bucket)
            ends = np.cumsum(self._blocks[:, bucket], dtype=np.int64)
            row = np.searchsorted(ends, ranks[chosen], side="right")
            rows[chosen] = row
            inside[chosen] = ranks[chosen] - (ends[row] - self._blocks[row, bucket])
        order = np.lexsort((inside, buckets, rows))
        rows, inside, sorted_buckets = rows[order], inside[order], buckets[order]
        found = np.empty(buckets.size, dtype=np.int64)

        def piece(first: int, last: int) -> None:
            _kernels.find(self._weighed(), rows, sorted_buckets, inside, first, last, found)

        over_ranges(piece, buckets.size, grain=512)
        positions = np.empty_like(found)
        positions[order] = found
        exponents = self.exponents[positions >> 1]
        signed = np.where(positions & 1, -exponents, exponents)
        falls = (self._log_prior[positions >> 1] + signed) - self._shift
        return positions, mantissas(falls, buckets)

    def _weighed(self) -> Exponents:
        return Exponents(self.exponents, self._log_prior, self._shift)


def _checked_prior(log_prior: NDArray[np.float64] | None, queries: int) -> NDArray[np.float64]:
    if log_prior is None:
        return np.zeros(queries)
    if log_prior.shape != (queries,) or not np.all(np.abs(log_prior) <= LARGEST_LOG_PRIOR):
        raise ParameterError(
            f"log_prior of shape {log_prior.shape}; expected one per query, {queries}, "
            f"each within ±{LARGEST_LOG_PRIOR:g}"
        )
    return np.ascontiguousarray(log_prior, dtype=np.float64)


class Shards:
    """Several ranges of queries, in order, seen as one."""

    def __init__(self, parts: Sequence[WeightedActions]) -> None:
        if not parts:
            raise ParameterError("there is no shard; expected one or more")
        self.parts = list(parts)
        self._totals = np.zeros((len(self.parts), BUCKETS), dtype=np.int64)

    @property
    def queries(self) -> int:
        return sum(part.queries for part in self.parts)

    def largest(self) -> float:
        return max(part.largest() for part in self.parts)

    def tally(self, largest: float) -> NDArray[np.int64]:
        self._totals = np.stack([part.tally(largest) for part in self.parts])
        return _total(self._totals)

    def locate(
        self, buckets: NDArray[np.int64], ranks: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        shards, inside = route(self._totals, buckets, ranks)
        positions = np.empty(buckets.size, dtype=np.int64)
        scaled = np.empty(buckets.size, dtype=np.uint64)
        start = 0
        for index, part in enumerate(self.parts):
            chosen = np.flatnonzero(shards == index)
            if chosen.size:
                found, scaled[chosen] = part.locate(buckets[chosen], inside[chosen])
                positions[chosen] = found + 2 * start
            start += part.queries
        return positions, scaled


def route(
    totals: NDArray[np.int64], buckets: NDArray[np.int64], ranks: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which shard holds each (bucket, rank), and the rank inside that shard.

    Args:
        totals: counts per bucket, one row per shard, in the order of the queries.
        buckets: the bucket of each action.
        ranks: its rank among the actions of its bucket in all shards.
    """
    ends = np.cumsum(totals, axis=0)
    shards: NDArray[np.int64] = np.count_nonzero(ends[:, buckets] <= ranks, axis=0)
    return shards, ranks - (ends[shards, buckets] - totals[shards, buckets])


def mantissas(falls: NDArray[np.float64], buckets: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The integer nearest 2⁵³·exp(x + b·ln 2), kept in [2⁵², 2⁵³].

    The exponential is a Taylor polynomial in plain additions and multiplications rather than the
    platform's `exp`: its error is bounded on paper (below 2⁻⁴⁹, relative) and every machine gets
    the same integer. The limits matter only for falls at the border of a bucket, which rounding
    can put on the wrong side of it.
    """
    b = buckets.astype(np.float64)
    reduced = (np.maximum(falls, CLIP) + b * _LN2_HIGH) + b * _LN2_LOW
    value = np.full(reduced.shape, _INVERSE_FACTORIALS[-1])
    for coefficient in reversed(_INVERSE_FACTORIALS[:-1]):
        value = value * reduced + coefficient
    scaled = np.rint(np.ldexp(value, MANTISSA_BITS))
    bounded: NDArray[np.float64] = np.clip(scaled, 2.0**52, 2.0**53)
    return bounded.astype(np.uint64)


def _total(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    total: NDArray[np.int64] = np.sum(counts, axis=0, dtype=np.int64)
    return total
