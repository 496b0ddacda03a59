"""Draws as a term of the likelihood: how probable they are if the model's answers were true."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dualquery.base.threads import over_ranges, thread_count
from dualquery.model.compiled import CompiledWorkload
from dualquery.model.likelihood import Likelihood
from dualquery.model.mixture import answers_from_rows
from dualquery.model.terms import Singles, Slopes


class Buffers:
    """Arrays that every step fills anew. Steps that follow one another share them."""

    def __init__(self, compiled: CompiledWorkload, components: int) -> None:
        self.rows = np.empty((compiled.row_count, components), dtype=np.float32)
        self.row_slopes = [np.empty_like(self.rows) for _ in range(thread_count())]


@dataclass(frozen=True, eq=False)
class Drawn:
    """The log-likelihood of all draws so far, as a function of tables and weights."""

    compiled: CompiledWorkload
    likelihood: Likelihood
    buffers: Buffers

    def part(self, positions: npt.NDArray[np.int64], scale: Singles) -> Drawn:
        """The term seen through some of the queries; see `Likelihood.part`."""
        return replace(
            self,
            compiled=self.compiled.part(positions),
            likelihood=self.likelihood.part(positions, scale),
        )

    def slopes(self, tables: Singles, weights: Singles) -> Slopes:
        return slopes_through(self.compiled, self.buffers, tables, weights, self.likelihood.slopes)


def slopes_through(
    compiled: CompiledWorkload,
    buffers: Buffers,
    tables: Singles,
    weights: Singles,
    judge: Callable[[Singles], tuple[float, Singles]],
) -> Slopes:
    """A function of the answers, as one of tables and weights.

    Args:
        compiled: the queries.
        buffers: scratch space.
        tables: the probability of every code under every component.
        weights: of the components.
        judge: the value at some answers, in the arrangement of the compiled workload, and the
            gradient by each of them.
    """
    from dualquery.model._kernels import row_slopes_to_tables

    answers = answers_of(compiled, tables, weights, buffers)
    value, slope = judge(answers)
    row_slope, by_weight = _pulled_back(compiled, buffers, weights, slope)
    by_table = np.zeros_like(tables)
    row_slopes_to_tables(row_slope, compiled.member_start, compiled.members, by_table)
    return Slopes(value, by_table, by_weight)


def _pulled_back(
    compiled: CompiledWorkload, buffers: Buffers, weights: Singles, slope: Singles
) -> tuple[Singles, npt.NDArray[np.float64]]:
    """The gradient by the rows of the literals and by the mixture weights."""
    from dualquery.model._kernels import backward

    rows, row_slopes = buffers.rows, buffers.row_slopes
    if compiled.has_parities:
        slope = np.where(compiled.is_parity, np.float32(0.5) * slope, slope)
    workers = len(row_slopes)
    groups = len(compiled.group_start) - 1
    weight_slopes = np.zeros((workers, len(weights)), dtype=np.float32)

    def task(first: int, stop: int) -> None:
        for worker in range(first, stop):
            row_slopes[worker][:] = 0.0
            backward(
                rows, weights, compiled.group_start, compiled.prefix_start, compiled.prefix,
                compiled.last, slope, row_slopes[worker], weight_slopes[worker],
                groups * worker // workers, groups * (worker + 1) // workers,
            )  # fmt: skip

    over_ranges(task, workers, grain=1, work=len(slope) * len(weights))
    total = row_slopes[0]
    for other in row_slopes[1:]:
        total += other
    if compiled.has_parities:  # the rows of parities are 1 − 2p of the others
        plain = 2 * compiled.literals
        total[:plain] -= 2.0 * total[plain:]
    return total, weight_slopes.sum(axis=0, dtype=np.float64)


def answers_of(
    compiled: CompiledWorkload, tables: Singles, weights: Singles, buffers: Buffers
) -> Singles:
    """The answers of a mixture in the order of a compiled workload.

    Args:
        compiled: the workload.
        tables: the probability of every code under every component.
        weights: of the components.
        buffers: scratch space; its rows of literals are filled.
    """
    from dualquery.model._kernels import fill_rows

    fill_rows(tables, compiled.member_start, compiled.members, buffers.rows)
    return answers_from_rows(compiled, weights, buffers.rows)
