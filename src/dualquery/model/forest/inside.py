"""Measured tables that lie inside trees, arranged for the kernels: their squares and slopes.

A pair is inside if its attributes are of one tree, a triple if two or three of its attributes are.
All other tables are products of margins, in every component.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.base.ragged import offsets
from dualquery.model.forest.trees import APART, Trees, Ways

Ints = npt.NDArray[np.int64]
Singles = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Cells:
    """One measured table.

    Attributes:
        attributes: their positions, two or three.
        counts: one axis per attribute.
        precision: one over the variance of a count.
    """

    attributes: tuple[int, ...]
    counts: npt.NDArray[np.floating]
    precision: float


def is_inside(trees: Trees, attributes: Sequence[int]) -> bool:
    """Whether two of these attributes are in one tree."""
    return len(set(trees.root[list(attributes)].tolist())) < len(attributes)


class Inside:
    """−Σ (y − N·a)²/(2v) over the cells of tables inside trees."""

    def __init__(
        self, trees: Trees, start: Ints, tie_start: Ints, tables: Sequence[Cells], total: float
    ) -> None:
        """Arrange the tables.

        Args:
            trees: the forest.
            start: where the rows of every attribute begin, and where the last ones end.
            tie_start: where the codes of every edge begin.
            tables: each inside a tree.
            total: N, the number of records.
        """
        self._trees, self._start, self._tie_start = trees, start, tie_start
        self._total = np.float32(total)
        ways = Ways(trees)
        pairs = [self._pair(one, ways) for one in tables if len(one.attributes) == 2]
        triples = [self._triple(one, ways) for one in tables if len(one.attributes) == 3]
        self._pairs, self._triples = _Listed.of(pairs, 6), _Listed.of(triples, 12)
        top, below, self._first, self._rest = ways.arrays()
        sizes = np.diff(start)
        step = trees.children[self._first]
        self._sizes = np.stack([sizes[top], sizes[step], sizes[below]], axis=1)
        self._way_start = offsets(sizes[top] * sizes[below])

    def add(
        self,
        margins: Singles,
        given: Singles,
        weights: Singles,
        by_margin: Singles,
        by_given: Singles,
        by_weight: Singles,
    ) -> float:
        """Add the slopes of Σ (y − N·a)²/(2v); returns twice that sum.

        Args:
            margins: shares of all rows, by component.
            given: conditional shares of all edges, by component.
            weights: of the components.
            by_margin, by_given, by_weight: what is added to.
        """
        from dualquery.model.forest._kernels import walk, walk_back, weigh_pairs, weigh_triples

        ways = np.empty((int(self._way_start[-1]), margins.shape[1]), dtype=np.float32)
        by_way = np.zeros_like(ways)
        walked = (self._tie_start, self._first, self._rest, self._sizes, self._way_start)
        walk(given, *walked, ways)
        value = 0.0
        for kernel, listed in ((weigh_pairs, self._pairs), (weigh_triples, self._triples)):
            if len(listed.places):
                value += kernel(
                    margins, weights, ways, self._way_start, listed.places, listed.start,
                    listed.counts, listed.precision, self._total, by_margin, by_weight, by_way,
                )  # fmt: skip
        walk_back(given, *walked, ways, by_way, by_given)
        return value

    def _rows(self, attribute: int) -> tuple[int, int]:
        """The first row of an attribute, and how many it has; (-1, 0) for `APART`."""
        if attribute == APART:
            return APART, 0
        first = int(self._start[attribute])
        return first, int(self._start[attribute + 1]) - first

    def _pair(self, one: Cells, ways: Ways) -> tuple[list[int], Cells]:
        left, right = one.attributes
        top = self._trees.meeting(left, right)
        place = [
            *self._rows(top),
            ways.number(top, left), self._rows(left)[1],
            ways.number(top, right), self._rows(right)[1],
        ]  # fmt: skip
        return place, one

    def _triple(self, one: Cells, ways: Ways) -> tuple[list[int], Cells]:
        """The two attributes that meet lowest stand last, the apex itself before the other.

        An attribute that is the apex of the other two is one of the two that meet.
        """
        trees = self._trees

        def fitness(order: tuple[int, int, int]) -> tuple[int, bool]:
            third, left, right = (one.attributes[place] for place in order)
            apex = trees.meeting(left, right)
            return (APART if apex == APART else int(trees.depth[apex])), apex != third

        order = max(((0, 1, 2), (1, 0, 2), (2, 0, 1)), key=fitness)
        third, left, right = (one.attributes[place] for place in order)
        apex = trees.meeting(left, right)
        if right == apex:
            order, left, right = (order[0], order[2], order[1]), right, left
        top = trees.meeting(apex, third)
        apart = top == APART
        place = [
            *self._rows(apex), *self._rows(third), *self._rows(top),
            APART if apart else ways.number(top, apex),
            APART if apart else ways.number(top, third),
            ways.number(apex, left), self._rows(left)[1],
            ways.number(apex, right), self._rows(right)[1],
        ]  # fmt: skip
        counts = one.counts.transpose(order)
        return place, Cells((third, left, right), counts, one.precision)


@dataclass(frozen=True, eq=False)
class _Listed:
    """Tables one after the other, as kernels read them."""

    places: Ints
    start: Ints
    counts: Singles
    precision: Singles

    @classmethod
    def of(cls, tables: Sequence[tuple[list[int], Cells]], width: int) -> _Listed:
        places = np.array([place for place, _ in tables], dtype=np.int64).reshape(-1, width)
        counts = [one.counts.reshape(-1) for _, one in tables]
        return cls(
            places,
            offsets([len(one) for one in counts]),
            np.concatenate([*counts, np.empty(0)]).astype(np.float32),
            np.array([one.precision for _, one in tables], dtype=np.float32),
        )
