"""What measured pairs say: which attributes are joined, and how; from released tables alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dualquery.model.forest.cleaning import cleaned
from dualquery.model.forest.trees import Trees, spanning
from dualquery.model.stack import Stack
from dualquery.privacy.measuring import Measurement

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

CLEAR = 3.0
"""A pair may be an edge if it departs from independence by so many standard deviations."""

PER_ATTRIBUTE = 4
"""Of the pairs that depart most from independence, by an estimate of their χ², so many per
attribute are looked at more closely."""

DETERMINED = 0.9
"""An attribute is determined by another one if that takes away so much of the mistakes of guessing
its code (Goodman and Kruskal's λ)."""


@dataclass(frozen=True, eq=False)
class Pair:
    """What all measurements of a pair say together.

    Attributes:
        counts: noisy counts, a row per code of its first attribute.
        variance: of the noise of each.
    """

    counts: Floats
    variance: float

    def and_(self, counts: Floats, variance: float) -> Pair:
        """With one more measurement, each weighed by its precision."""
        both = 1.0 / (1.0 / self.variance + 1.0 / variance)
        return Pair(both * (self.counts / self.variance + counts / variance), both)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The measured pairs of some attributes.

    Attributes:
        stack: the attributes that are modelled.
        shares: the estimated share of every row of the stack.
        total: the number of records.
        measured: by the positions of the two attributes, the smaller one first.
    """

    stack: Stack
    shares: Floats
    total: float
    measured: dict[tuple[int, int], Pair] = field(default_factory=dict)
    _tables: dict[tuple[int, int], tuple[Pair, Floats]] = field(default_factory=dict)

    def of(self, measurements: Sequence[Measurement]) -> Pairs:
        """All pairs of some measurements; what was cleaned before is not cleaned again.

        Args:
            measurements: tables of the groups of the stack; only pairs are read.
        """
        found: dict[tuple[int, int], Pair] = {}
        for one in measurements:
            if one.marginals.arity != 2:
                continue
            start = one.marginals.start
            for t, (a, b) in enumerate(self.stack.positions(one.marginals.attributes).tolist()):
                counts = one.counts[start[t] : start[t + 1]].reshape(one.marginals.shapes[t])
                old = found.get((a, b))
                new = Pair(counts.astype(np.float64), one.variance)
                found[a, b] = new if old is None else old.and_(new.counts, new.variance)
        return Pairs(self.stack, self.shares, self.total, found, self._tables)

    def alone(self, attribute: int) -> Floats:
        """The counts of its codes, as one-way tables say."""
        start = self.stack.start
        return self.total * self.shares[start[attribute] : start[attribute + 1]]

    def independent(self, a: int, b: int) -> Floats:
        """The table of a pair if the two were independent."""
        return np.outer(self.alone(a), self.alone(b)) / self.total

    def table(self, a: int, b: int) -> Floats:
        """The cleaned table of a measured pair, a row per code of the first attribute."""
        if a > b:
            return self.table(b, a).T
        pair = self.measured[a, b]
        known = self._tables.get((a, b))
        if known is None or not np.array_equal(known[0].counts, pair.counts):
            noise = float(np.sqrt(pair.variance))
            ordered = self.stack.is_ordered(a) and self.stack.is_ordered(b)
            made = cleaned(pair.counts, self.alone(a), self.alone(b), noise, ordered=ordered)
            known = self._tables[a, b] = pair, made
        return known[1]

    @cached_property
    def clear(self) -> list[tuple[int, int]]:
        """The pairs that clearly depart from independence, or those that do so most."""
        weighed = []
        for (a, b), pair in self.measured.items():
            expected = self.independent(a, b)
            squares, noise = (pair.counts - expected) ** 2, float(np.sqrt(pair.variance))
            cells = expected.size
            if (squares.sum() / pair.variance - cells) / np.sqrt(2.0 * cells) > CLEAR:
                beyond = float(((squares - pair.variance) / (expected + 2.0 * noise)).sum())
                weighed.append((beyond, (a, b)))
        weighed.sort(reverse=True)
        return [pair for _, pair in weighed[: PER_ATTRIBUTE * len(self.stack.attributes)]]

    def determined(self) -> dict[int, int]:
        """Attributes whose codes follow from another one's, and that other one.

        Whatever depends on the first depends on the second as much, or more.
        """
        found: dict[int, int] = {}
        for pair in self.clear:
            table = self.table(*pair)
            for (leaf, stem), part in ((pair, table), (pair[::-1], table.T)):
                rest = self.total - self.alone(leaf).max()
                missed = self.total - part.max(axis=0).sum()
                if (
                    missed < (1.0 - DETERMINED) * rest
                    and stem not in found
                    and leaf not in found.values()
                ):
                    found.setdefault(leaf, stem)
        return found

    def forest(self, largest: int, alone: npt.NDArray[np.bool_]) -> Trees:
        """The forest of the pairs that say most about each other, by their cleaned tables.

        A determined attribute is joined to the one that determines it.

        Args:
            largest: the most attributes of a tree.
            alone: per attribute, whether it must have no edge.
        """
        determined = self.determined()
        weighed = []
        for a, b in self.clear:
            if alone[a] or alone[b]:
                continue
            table = self.table(a, b)
            said = float((table * np.log(table / self.independent(a, b))).sum())
            for leaf, other in ((a, b), (b, a)):
                stem = determined.get(leaf, other)
                if stem != other and (min(stem, other), max(stem, other)) in self.measured:
                    said = 0.0
            if said > 0.0:
                weighed.append((said, a, b))
        return spanning(len(self.stack.attributes), weighed, largest)

    def ties(self, trees: Trees) -> Singles:
        """What ties every child to its parent: the logarithm of how far a cell of their cleaned
        table departs from independence.

        Args:
            trees: the forest; its edges are measured pairs.
        """
        found = [
            np.log(self.table(a, b) / self.independent(a, b)).ravel()
            for a, b in zip(trees.parents.tolist(), trees.children.tolist(), strict=True)
        ]
        return np.concatenate([np.empty(0), *found]).astype(np.float32)
