"""Measured marginals as a term of the likelihood: squares, each in units of its noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from dualquery.model.stack import Stack
from dualquery.model.terms import Singles, Slopes
from dualquery.workloads.marginals import Groups, Marginals

Int64 = npt.NDArray[np.int64]

DENSE = 0.05
"""Pairs that fill at least this share of the matrix of all pairs of groups are kept as a matrix."""


@dataclass(frozen=True, eq=False)
class Measurement:
    """The noisy counts of some marginals, measured together.

    Attributes:
        marginals: which tables.
        counts: the noisy counts of all their cells, laid end to end.
        variance: of the noise in every cell.
    """

    marginals: Marginals
    counts: Int64
    variance: float


class Measured:
    """−Σ (y − N·a)²/(2v) over all measured cells.

    y is a noisy count, v the variance of its noise, a the model's probability of the cell and N
    the number of records.
    """

    def __init__(self, stack: Stack, measurements: Sequence[Measurement], total: float) -> None:
        self._total = np.float32(total)
        axes: dict[int, _Axis] = {}
        for one in measurements:
            groups = one.marginals.groups
            axis = axes.setdefault(id(groups), _Axis(stack, groups))
            axis.add(one)
        self._axes = list(axes.values())
        for axis in self._axes:
            axis.close()

    def slopes(self, tables: Singles, weights: Singles) -> Slopes:
        value = 0.0
        by_table = np.zeros_like(tables)
        by_weight = np.zeros(len(weights), dtype=np.float32)
        for axis in self._axes:
            folded = axis.fold(tables)
            slope = np.zeros_like(folded)
            value += axis.add_slopes(folded, weights, self._total, slope, by_weight)
            by_table -= axis.unfold(slope)
        return Slopes(-0.5 * value, by_table, -by_weight.astype(np.float64))


class _Axis:
    """All measurements of one grouping of codes: the rows of its tables are groups, not codes."""

    def __init__(self, stack: Stack, groups: Groups) -> None:
        self._stack = stack
        sizes = groups.sizes[stack.attributes].astype(np.int64)
        self._start = np.concatenate([[0], np.cumsum(sizes)])
        row = np.repeat(self._start[:-1], np.diff(stack.start)) + groups.of_code[stack.codes]
        self._row = None if np.array_equal(row, np.arange(stack.rows)) else row
        self._sum = csr_array(
            (np.ones(stack.rows, dtype=np.float32), (row, np.arange(stack.rows))),
            shape=(int(self._start[-1]), stack.rows),
        )
        rows = int(self._start[-1])
        self._one_counts, self._one_precision = np.zeros(rows), np.zeros(rows)
        self._single: list[Measurement] = []
        self._listed: list[Measurement] = []
        self._pairs: tuple[Singles, Singles] | None = None

    def add(self, one: Measurement) -> None:
        if one.marginals.arity == 1:
            precision = 1.0 / one.variance
            place = self._first(one.marginals)[:, 0]
            rows = np.repeat(place - one.marginals.start[:-1], np.diff(one.marginals.start))
            rows = rows + np.arange(one.marginals.cells)
            np.add.at(self._one_counts, rows, precision * one.counts)
            np.add.at(self._one_precision, rows, precision)
        else:
            self._listed.append(one)

    def close(self) -> None:
        """Arrange what was added for the kernels."""
        measured = self._one_precision > 0
        self._one_counts[measured] /= self._one_precision[measured]
        self._counts_1 = self._one_counts.astype(np.float32)
        self._precision_1 = self._one_precision.astype(np.float32)
        rows = int(self._start[-1])
        pairs = [one for one in self._listed if one.marginals.arity == 2]
        if sum(one.marginals.cells for one in pairs) >= DENSE * rows * rows:
            self._pairs = self._matrix(pairs)
            self._listed = [one for one in self._listed if one.marginals.arity != 2]
        self._tables = _Tables.of([(one, self._first(one.marginals)) for one in self._listed], rows)

    def _first(self, marginals: Marginals) -> Int64:
        """Where the rows of each marginal's attributes begin."""
        found: Int64 = self._start[self._stack.positions(marginals.attributes)]
        return found

    def _matrix(self, pairs: Sequence[Measurement]) -> tuple[Singles, Singles]:
        """Counts and precisions of pairs as symmetric matrices over the groups."""
        rows = int(self._start[-1])
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

    def fold(self, tables: Singles) -> Singles:
        """Probabilities of groups from those of codes."""
        return tables if self._row is None else np.asarray(self._sum @ tables)

    def unfold(self, slope: Singles) -> Singles:
        return slope if self._row is None else slope[self._row]

    def add_slopes(
        self,
        folded: Singles,
        weights: Singles,
        total: np.float32,
        slope: Singles,
        by_weight: Singles,
    ) -> float:
        """Add the gradient of Σ (y − N·a)²/(2v) to the slopes; returns twice its value."""
        from dualquery.model._measured_kernels import weigh_pairs, weigh_tables

        away = total * (folded @ weights) - self._counts_1
        pull = self._precision_1 * away
        value = float(pull @ away)
        pull *= total
        slope += pull[:, None] * weights
        by_weight += pull @ folded
        if self._pairs is not None:
            counts, precision = self._pairs
            expected = (folded * weights) @ folded.T
            # The matrix holds every pair twice, so its value is halved.
            value += 0.5 * float(weigh_pairs(expected, counts, precision, total))
            pulled = expected @ folded
            slope += pulled * weights
            by_weight += 0.5 * np.einsum("ik,ik->k", folded, pulled)
        if self._tables is not None:
            listed = self._tables
            extended = np.vstack([folded, np.ones((1, folded.shape[1]), dtype=np.float32)])
            extended_slope = np.zeros_like(extended)
            value += float(
                weigh_tables(
                    extended, weights, listed.first, listed.sizes, listed.start, listed.counts,
                    listed.precision, total, extended_slope, by_weight,
                )
            )  # fmt: skip
            slope += extended_slope[:-1]
        return value


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
        first, sizes, precision = [], [], []
        for one, begin in listed:
            missing = 3 - one.marginals.arity
            tables = len(one.marginals)
            first.append(np.hstack([begin, np.full((tables, missing), ones_row)]))
            sizes.append(np.hstack([one.marginals.shapes, np.ones((tables, missing))]))
            precision.append(np.full(tables, 1.0 / one.variance))
        every = np.concatenate(sizes).astype(np.int64)
        return cls(
            np.concatenate(first).astype(np.int64),
            every,
            np.concatenate([[0], np.cumsum(every.prod(axis=1))]),
            np.concatenate([one.counts for one, _ in listed]).astype(np.float32),
            np.concatenate(precision).astype(np.float32),
        )
