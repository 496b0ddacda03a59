"""The exact draw: the probability of every action is exactly its share of the total weight.

Proof: ``docs/proofs/exact_draws.md``. The weights themselves are defined in
`dualquery.privacy.shards`.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dualquery.base.checks import whole
from dualquery.privacy.shards import MANTISSA_BITS, WeightedActions
from dualquery.privacy.sources import RandomSource, uniform_bits


@dataclass(frozen=True, eq=False)
class Draws:
    """Independent draws, in the order in which they were made.

    Attributes:
        queries: index of the drawn query.
        negated: whether its negation was drawn.
    """

    queries: NDArray[np.int64]
    negated: NDArray[np.bool_]

    def __len__(self) -> int:
        return int(self.queries.size)


def draw(actions: WeightedActions, samples: int, source: RandomSource) -> Draws:
    """`samples` independent draws from the actions, each with probability weight/total, exactly.

    One *attempt* uses three uniform 64-bit words:

    1. the first picks a bucket b with probability proportional to 2^{k_b − b}, where 2^{k_b} is
       the number of actions in the bucket, rounded up to a power of two;
    2. the second picks a rank below 2^{k_b}; the attempt fails if no action has that rank;
    3. the third accepts the action with probability mantissa/2⁵³, else the attempt fails.

    An attempt thus returns an action with probability proportional to
    2^{k_b − b}·2^{−k_b}·mantissa, its weight. Failed attempts are forgotten. More than one attempt
    in eight succeeds, whatever the weights; usually one in three does.

    Guarantee: given the exponents, the draws have *exactly* the distribution of the rational
    weights; all comparisons are between integers. A run that shows nothing but draws is as private
    as its events say, if `source` is the operating system's.
    """
    samples = whole("samples", samples, least=0)
    positions = np.empty(samples, dtype=np.int64)
    if samples:
        totals = actions.tally(actions.largest())
        proposal = Proposal(totals)
        done = 0
        while done < samples:
            attempts = 16 + int((samples - done) / (0.65 * proposal.yield_rate))
            buckets, ranks, thirds = proposal.attempt(attempts, source)
            found, scaled = actions.locate(buckets, ranks)
            accepted = found[thirds < scaled][: samples - done]
            positions[done : done + accepted.size] = accepted
            done += accepted.size
    return Draws(positions >> 1, (positions & 1).astype(np.bool_))


class Proposal:
    """Chooses (bucket, rank) in proportion to 2^{−bucket}, in exact integer arithmetic.

    The bucket is found by comparing a uniform integer of arbitrary size with the cumulated bucket
    weights, most significant bits first. The leading 64 bits decide almost every comparison, for
    a whole array at once. Where they equal the leading bits of a border, the remaining bits are
    drawn and compared too.
    """

    def __init__(self, totals: NDArray[np.int64], *, lead_bits: int = 64) -> None:
        self._buckets = np.flatnonzero(totals)
        self._counts = totals[self._buckets]
        self._rank_bits = np.array([(int(c) - 1).bit_length() for c in self._counts])
        deepest = int(self._buckets[-1])
        self._borders = list(
            accumulate(
                1 << (int(k) + deepest - int(b))
                for b, k in zip(self._buckets, self._rank_bits, strict=True)
            )
        )
        self._bits = max((self._borders[-1] - 1).bit_length(), 1)
        self._lead_bits = lead_bits
        self._rest_bits = max(0, self._bits - lead_bits)
        # No word reaches a border at the very top of the range, so the table leaves it out: 2⁶⁴
        # would not fit.
        shift = lead_bits - self._bits
        leads = [v << shift if shift >= 0 else v >> -shift for v in self._borders]
        self._leads = np.array([v for v in leads if v < 1 << lead_bits], dtype=np.uint64)

    @property
    def yield_rate(self) -> float:
        """The expected share of attempts that reach an action, before the mantissa's test."""
        deepest = int(self._buckets[-1])
        reached = sum(
            int(c) << (deepest - int(b)) for b, c in zip(self._buckets, self._counts, strict=True)
        )
        return reached / (1 << self._bits)

    def attempt(
        self, attempts: int, source: RandomSource
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
        """Buckets and ranks of the attempts that reach an action, with 53 more random bits each."""
        first, second, third = source.words(3 * attempts).reshape(attempts, 3).T
        index = self.bucket_index(first, source)
        kept = np.flatnonzero(index < self._buckets.size)
        index = index[kept]
        bits = self._rank_bits[index]
        # A shift by all 64 bits is undefined, so it is split in two.
        drop = (63 - bits).astype(np.uint64)
        ranks = ((second[kept] >> drop) >> np.uint64(1)).astype(np.int64)
        inside = ranks < self._counts[index]
        thirds = third[kept[inside]] >> np.uint64(64 - MANTISSA_BITS)
        return self._buckets[index[inside]], ranks[inside], thirds

    def bucket_index(self, words: NDArray[np.uint64], source: RandomSource) -> NDArray[np.int64]:
        """The index of the bucket that each word falls into, among those that are not empty.

        A word above all borders falls into none; its index is the number of these buckets.
        """
        leads = words >> np.uint64(64 - self._lead_bits)
        index = np.searchsorted(self._leads, leads, side="right").astype(np.int64)
        if self._rest_bits:
            undecided = np.searchsorted(self._leads, leads, side="left") != index
            for place in np.flatnonzero(undecided):
                rest = uniform_bits(source, self._rest_bits)
                whole_integer = (int(leads[place]) << self._rest_bits) | rest
                index[place] = bisect_right(self._borders, whole_integer)
        return index
