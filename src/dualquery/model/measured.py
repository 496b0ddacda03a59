"""Measured marginals as a term of the likelihood: squares, each in units of its noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.base.ragged import offsets
from dualquery.model.forest.inside import Cells, Inside, is_inside
from dualquery.model.forest.trees import Trees
from dualquery.model.stack import Stack
from dualquery.model.terms import Singles, Slopes
from dualquery.privacy.measuring import Measurement
from dualquery.workloads.marginals import Marginals

Int64 = npt.NDArray[np.int64]

DENSE = 0.05
"""Pairs that fill at least this share of the matrix of all pairs of groups are kept as a matrix."""


class Measured:
    """−Σ (y − N·a)²/(2v) over all measured cells.

    y is a noisy count, v the variance of its noise, a the model's probability of the cell and N
    the number of records.
    """

    def __init__(
        self,
        stack: Stack,
        measurements: Sequence[Measurement],
        total: float,
        trees: Trees | None = None,
    ) -> None:
        """Arrange what was measured for the kernels.

        Args:
            stack: the attributes that are modelled, and the groups of their codes.
            measurements: one-way tables of codes or groups; larger tables of the stack's groups.
            total: N, the number of records.
            trees: which attributes are joined directly; none if left out.
        """
        self._stack = stack
        self._total = np.float32(total)
        self._counts, self._precision = self._one_way(measurements)
        self._inside: Inside | None = None
        if trees is not None and len(trees.children):
            measurements, inside = parted(stack, measurements, trees)
            ties = trees.tie_start(np.diff(stack.start))
            self._inside = Inside(trees, stack.start, ties, inside, total)
        pairs = [one for one in measurements if one.marginals.arity == 2]
        listed = [one for one in measurements if one.marginals.arity > 1]
        self._pairs: tuple[Singles, Singles] | None = None
        cells = sum(one.marginals.cells for one in pairs)
        if pairs and cells >= DENSE * stack.rows * stack.rows:
            self._pairs = self._matrix(pairs)
            listed = [one for one in listed if one.marginals.arity > 2]
        self._tables = _Tables.of([(one, self._first(one.marginals)) for one in listed], stack.rows)

    def slopes(self, tables: Singles, weights: Singles, given: Singles | None = None) -> Slopes:
        from dualquery.model._measured_kernels import weigh_pairs, weigh_tables

        total = self._total
        away = total * (tables @ weights) - self._counts
        pull = self._precision * away
        value = float(pull @ away)
        pull *= total
        slope = pull[:, None] * weights
        by_weight = pull @ tables
        if self._pairs is not None:
            counts, precision = self._pairs
            expected = (tables * weights) @ tables.T
            # The matrix holds every pair twice, so its value is halved.
            value += 0.5 * float(weigh_pairs(expected, counts, precision, total))
            pulled = expected @ tables
            slope += pulled * weights
            by_weight += 0.5 * np.einsum("ik,ik->k", tables, pulled)
        if self._tables is not None:
            listed = self._tables
            # A row of ones stands for the attributes that a table of two is short of.
            extended = np.ones((len(tables) + 1, tables.shape[1]), dtype=np.float32)
            extended[:-1] = tables
            extended_slope = np.zeros_like(extended)
            value += float(
                weigh_tables(
                    extended, weights, listed.first, listed.sizes, listed.start, listed.counts,
                    listed.precision, total, extended_slope, by_weight,
                )
            )  # fmt: skip
            slope += extended_slope[:-1]
        if given is not None and self._inside is not None:
            by_given = np.zeros_like(given)
            value += self._inside.add(tables, given, weights, slope, by_given, by_weight)
            return Slopes(-0.5 * value, -slope, -by_weight.astype(np.float64), -by_given)
        return Slopes(-0.5 * value, -slope, -by_weight.astype(np.float64))

    def _one_way(self, measurements: Sequence[Measurement]) -> tuple[Singles, Singles]:
        """Counts and precisions of all rows from one-way tables; a group adds up its codes."""
        stack = self._stack
        counts, precision = np.zeros(stack.rows), np.zeros(stack.rows)
        for one in measurements:
            if one.marginals.arity > 1:
                continue
            row = self._rows_of_cells(one.marginals)
            variance = np.bincount(row, one.variances, stack.rows)
            found = np.bincount(row, one.counts, stack.rows)
            sure = np.where(variance > 0.0, 1.0 / np.where(variance > 0.0, variance, 1.0), 0.0)
            counts += sure * found
            precision += sure
        counts /= np.where(precision > 0.0, precision, 1.0)
        return counts.astype(np.float32), precision.astype(np.float32)

    def _rows_of_cells(self, marginals: Marginals) -> Int64:
        """The row that each cell of some one-way tables is a part of."""
        stack, sizes = self._stack, marginals.shapes[:, 0]
        cell = np.arange(marginals.cells) - np.repeat(marginals.start[:-1], sizes)
        attribute = np.repeat(marginals.attributes[:, 0], sizes)
        first = np.repeat(self._first(marginals)[:, 0], sizes)
        if marginals.groups is stack.groups:
            return first + cell
        group: Int64 = first + stack.groups.of_code[stack.schema.code_start[attribute] + cell]
        return group

    def _first(self, marginals: Marginals) -> Int64:
        """Where the rows of each marginal's attributes begin."""
        found: Int64 = self._stack.start[self._stack.positions(marginals.attributes)]
        return found

    def _matrix(self, pairs: Sequence[Measurement]) -> tuple[Singles, Singles]:
        """Counts and precisions of pairs as symmetric matrices over the rows."""
        rows = self._stack.rows
        counts, precision = np.zeros((rows, rows)), np.zeros((rows, rows))
        for one in pairs:
            first, shapes = self._first(one.marginals), one.marginals.shapes
            for t, (begin, shape) in enumerate(zip(first, shapes, strict=True)):
                cells = one.counts[one.marginals.start[t] : one.marginals.start[t + 1]]
                block = (
                    slice(begin[0], begin[0] + shape[0]),
                    slice(begin[1], begin[1] + shape[1]),
                )
                counts[block] += cells.reshape(shape) / one.variance
                precision[block] += 1.0 / one.variance
        counts, precision = counts + counts.T, precision + precision.T
        counts /= np.where(precision > 0.0, precision, 1.0)
        return counts.astype(np.float32), precision.astype(np.float32)


def parted(
    stack: Stack, measurements: Sequence[Measurement], trees: Trees
) -> tuple[list[Measurement], list[Cells]]:
    """Measurements without the tables inside trees, and those tables one by one.

    Tables about the same attributes become one, each weighed by its precision.
    """
    apart: list[Measurement] = []
    inside: dict[tuple[int, ...], Cells] = {}
    for one in measurements:
        sets = stack.positions(one.marginals.attributes)
        within = np.array([is_inside(trees, row) for row in sets.tolist()], dtype=bool)
        if not within.all():
            apart.append(one if not within.any() else one.of_tables(np.flatnonzero(~within)))
        for t in np.flatnonzero(within):
            key = tuple(sets[t].tolist())
            cells = one.counts[one.marginals.start[t] : one.marginals.start[t + 1]]
            counts, precision = cells.reshape(one.marginals.shapes[t]), 1.0 / one.variance
            if key in inside:
                before = inside[key]
                both = before.precision + precision
                counts = (before.counts * before.precision + counts * precision) / both
                precision = both
            inside[key] = Cells(key, counts, precision)
    return apart, list(inside.values())


@dataclass(frozen=True, eq=False)
class _Tables:
    """Tables of two or three attributes one by one; see `_measured_kernels.weigh_tables`."""

    first: Int64
    sizes: Int64
    start: Int64
    counts: Singles
    precision: Singles

    @classmethod
    def of(cls, listed: Sequence[tuple[Measurement, Int64]], ones_row: int) -> _Tables | None:
        if not listed:
            return None
        first, sizes, counts, precision = [], [], [], []
        for one, begin in listed:
            missing = 3 - one.marginals.arity
            for t, (rows, shape) in enumerate(zip(begin, one.marginals.shapes, strict=True)):
                # The largest attribute last, which is where the kernel wants it.
                order = np.argsort(shape, kind="stable")
                cells = one.counts[one.marginals.start[t] : one.marginals.start[t + 1]]
                counts.append(cells.reshape(shape).transpose(order).reshape(-1))
                first.append([*[ones_row] * missing, *rows[order]])
                sizes.append([*[1] * missing, *shape[order]])
            precision.append(np.full(len(one.marginals), 1.0 / one.variance))
        every = np.array(sizes, dtype=np.int64)
        return cls(
            np.array(first, dtype=np.int64),
            every,
            offsets(every.prod(axis=1)),
            np.concatenate(counts).astype(np.float32),
            np.concatenate(precision).astype(np.float32),
        )
