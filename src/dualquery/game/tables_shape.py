"""What a plan of tables needs to know of a workload: which attributes its queries name together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dualquery.domain.schema import Schema
from dualquery.workloads.workload import Workload

Floats = npt.NDArray[np.float64]

MOST_SETS = 20_000
"""Pairs, or triples, beyond which tables take too long to count and to fit."""


MOST_COUNTED = 1 << 22
"""The most numbers of sets, possible ones included, for which a sum each is kept."""


def attribute_sets(workload: Workload, arity: int) -> npt.NDArray[np.int32]:
    """The sets of so many attributes that occur together in a query, in order."""
    return weighed_sets(workload, arity)[0]


def weighed_sets(
    workload: Workload, arity: int, weights: Floats | None = None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """The sets of so many attributes that occur together in a query, and the level of each.

    Args:
        workload: the queries.
        arity: how many attributes a set has.
        weights: how much each query counts; all of them alike where left out.
    """
    weights = np.ones(len(workload)) if weights is None else weights
    attribute = workload.literals.attribute[workload.terms >> 1]
    lengths = np.diff(workload.start)
    width = len(workload.schema)
    numbers: list[tuple[npt.NDArray[np.int64], Floats]] = []
    for length in np.unique(lengths[lengths >= arity]).tolist():
        chosen = np.flatnonzero(lengths == length)
        places = workload.start[chosen][:, None] + np.arange(length)
        sets = _in_rising_order(attribute[places].T)
        for part in combinations(range(length), arity):
            # One number per set: sorting numbers is many times faster than sorting rows.
            number = np.zeros(len(chosen), dtype=np.int64)
            for place in part:
                number = number * width + sets[place]
            numbers.append((number, weights[chosen]))
    number, weight = _added(numbers, width**arity)
    digits = []
    for _ in range(arity):
        number, digit = np.divmod(number, width)
        digits.append(digit)
    return np.stack(digits[::-1], axis=1).astype(np.int32), levels_of(weight, float(weights.min()))


def _in_rising_order(columns: npt.NDArray[np.int32]) -> list[npt.NDArray[np.int64]]:
    """The same numbers with the smallest of every row in the first column, and so on."""
    ordered = [column.astype(np.int64) for column in columns]
    for last in range(len(ordered) - 1, 0, -1):  # so few columns are sorted fastest by swaps
        for place in range(last):
            low, high = ordered[place], ordered[place + 1]
            ordered[place], ordered[place + 1] = np.minimum(low, high), np.maximum(low, high)
    return ordered


def _added(
    numbers: list[tuple[npt.NDArray[np.int64], Floats]], most: int
) -> tuple[npt.NDArray[np.int64], Floats]:
    """The different numbers, all below `most`, in rising order, and the weights of each added."""
    if most <= MOST_COUNTED:  # a sum for every number there can be, instead of a sort
        occurs, sums = np.zeros(most, dtype=bool), np.zeros(most)
        for number, weights in numbers:
            occurs[number] = True
            sums += np.bincount(number, weights, most)
        different = np.flatnonzero(occurs)
        return different, sums[different]
    found: list[npt.NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    counted: list[Floats] = [np.empty(0)]
    for number, weights in numbers:
        different, which = np.unique(number, return_inverse=True)
        found.append(different)
        counted.append(np.bincount(which, weights, len(different)).astype(np.float64))
    different, which = np.unique(np.concatenate(found), return_inverse=True)
    weight = np.bincount(which, np.concatenate(counted), len(different)).astype(np.float64)
    return different, weight


def levels_of(weight: Floats, query: float) -> npt.NDArray[np.int64]:
    """How many powers of √10 a set counts more, or less, than the median; between −4 and 4.

    Sets of one level are measured alike. Ten queries are added to every set, so that the scatter
    of a few random queries makes no level.

    Args:
        weight: how much each set counts.
        query: how much a query counts at least.
    """
    if not len(weight):
        return np.empty(0, dtype=np.int64)
    median = np.quantile(weight, 0.5, method="lower")
    ratio = (weight + 10.0 * query) / (median + 10.0 * query)
    return np.clip(np.rint(2.0 * np.log10(ratio)), -4, 4).astype(np.int64)


@dataclass(frozen=True)
class Shape:
    """What a plan needs to know of a workload.

    Attributes:
        attributes: how many the queries name.
        codes: how many codes those have together.
        pairs: how many pairs of attributes occur together in a query.
        triples: how many triples do; 0 where there are more than 20,000 pairs.
        parities: whether any query is a parity, which no table answers.
        pair_levels: how many pairs have each level; see `levels_of`.
        triple_levels: how many triples have.
        long: how many of the attributes have long tails, which may have to be measured again.
        lone: how many of the pairs are in none of the triples.
        widest: the most codes that one of the attributes has.
    """

    attributes: int
    codes: int
    pairs: int
    triples: int
    parities: bool = False
    pair_levels: tuple[tuple[int, int], ...] = ()
    triple_levels: tuple[tuple[int, int], ...] = ()
    long: int = 0
    lone: int = 0
    widest: int = 2

    @property
    def binary(self) -> bool:
        """Whether every attribute has two codes; one and three are two on average only."""
        return self.codes == 2 * self.attributes and self.widest <= 2

    @property
    def narrow(self) -> bool:
        """Whether triples tell as much about pairs as pair tables would for the same price.

        A step from k-way to (k + 1)-way tables multiplies what is told of the k-way ones by
        (k + 1)/m, of m codes each.
        """
        return self.codes <= 3 * self.attributes

    @classmethod
    def of(cls, workload: Workload, weights: Floats | None = None) -> Shape:
        """The shape of a workload; `weights` says how much each query counts."""
        used = workload.used
        sizes = workload.schema.sizes[used]
        pairs, pair_levels = weighed_sets(workload, 2, weights)
        triples, triple_levels = np.empty((0, 3), np.int32), pair_levels[:0]
        if len(pairs) <= MOST_SETS:
            triples, triple_levels = weighed_sets(workload, 3, weights)
        return cls(
            len(used),
            int(sizes.sum()),
            len(pairs),
            len(triples),
            workload.has_parities,
            _tally(pair_levels),
            _tally(triple_levels),
            len(set(workload.schema.long) & set(used.tolist())),
            _lone(pairs, triples),
            int(sizes.max(initial=0)),
        )

    @classmethod
    def of_all(cls, schema: Schema, k: int) -> Shape:
        """All k-way marginals of a schema."""
        d = len(schema)
        pairs = math.comb(d, 2) if k >= 2 else 0
        triples = math.comb(d, 3) if k >= 3 and pairs <= MOST_SETS else 0
        return cls(
            d,
            int(schema.sizes.sum()),
            pairs,
            triples,
            long=len(schema.long),
            lone=0 if triples else pairs,
            widest=int(schema.sizes.max(initial=0)),
        )


def _lone(pairs: npt.NDArray[np.int32], triples: npt.NDArray[np.int32]) -> int:
    """How many of the pairs are in none of the triples; every pair of a triple is one of them."""
    inside = {
        pair
        for one, two, three in triples.tolist()
        for pair in ((one, two), (one, three), (two, three))
    }
    return len(pairs) - len(inside)


def _tally(levels: npt.NDArray[np.int64]) -> tuple[tuple[int, int], ...]:
    """How many sets have each level, the highest level first."""
    found, counts = np.unique(levels, return_counts=True)
    return tuple(zip(found[::-1].tolist(), counts[::-1].tolist(), strict=True))
