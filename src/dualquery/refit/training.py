"""Gradient ascent on the logits of a mixture."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dualquery.free import Free
from dualquery.refit.compiled import CompiledWorkload
from dualquery.refit.likelihood import Likelihood
from dualquery.refit.mixture import Mixture, answers_from_rows
from dualquery.schema import Schema
from dualquery.threads import over_ranges, thread_count

Singles = npt.NDArray[np.float32]

DECAY_MEAN, DECAY_SQUARE = 0.9, 0.99


@dataclass(frozen=True, eq=False)
class Parameters:
    """Where an ascent stands: logits, and the optimiser's running means.

    `flat` holds the logits of the tables of the attributes in use, code by code and component
    by component, then those of the mixture weights.
    """

    flat: Singles
    mean: Singles
    square: Singles
    steps: int
    components: int

    @classmethod
    def start(
        cls, compiled: CompiledWorkload, components: int, noise: float, seed: int
    ) -> Parameters:
        """Near-uniform tables; the noise tells the components apart."""
        codes = len(compiled.codes)
        flat = np.zeros((codes + 1) * components, dtype=np.float32)
        generator = np.random.default_rng(seed)
        flat[: codes * components] = noise * generator.standard_normal(codes * components)
        return cls.at(flat, components)

    @classmethod
    def at(cls, flat: Singles, components: int) -> Parameters:
        """Given logits, with a fresh optimiser."""
        return cls(flat, np.zeros_like(flat), np.zeros_like(flat), 0, components)

    @property
    def logits(self) -> Singles:
        return self.flat[: -self.components].reshape(-1, self.components)

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        logits = self.flat[-self.components :].astype(np.float64)
        shares = np.exp(logits - logits.max())
        normal: npt.NDArray[np.float64] = shares / shares.sum()
        return normal


class Ascent:
    """Climbs the likelihood of the draws; holds the buffers the steps share.

    With a `shrinkage` κ the logits z have the prior −κ/2·Σ_k π_k (z_k − z̄)², z̄ their mean over
    components: components differ only where the draws say so. Without it, a model with more
    components than the draws can tell apart fits their noise.
    """

    def __init__(self, compiled: CompiledWorkload, components: int, shrinkage: float = 0.0) -> None:
        self.compiled = compiled
        self.shrinkage = shrinkage
        shape = (len(compiled.codes), components)
        self._tables = np.empty(shape, dtype=np.float32)
        self._table_slope = np.empty(shape, dtype=np.float32)
        self._rows = np.empty((compiled.row_count, components), dtype=np.float32)
        self._row_slopes = [np.empty_like(self._rows) for _ in range(thread_count())]

    def on(self, compiled: CompiledWorkload) -> Ascent:
        """The same ascent over a part of the queries; the buffers are shared."""
        part = copy(self)
        part.compiled = compiled
        return part

    def answers(self, parameters: Parameters) -> Singles:
        """The model's answers, in the arrangement of the compiled workload."""
        from dualquery.refit._kernels import fill_rows, softmax

        compiled = self.compiled
        softmax(parameters.logits, compiled.table_start, self._tables)
        fill_rows(self._tables, compiled.member_start, compiled.members, self._rows)
        return answers_from_rows(compiled, parameters.weights.astype(np.float32), self._rows)

    def gradient(self, parameters: Parameters, slope: Singles) -> Singles:
        """The gradient of Σ slope·answers, and of the prior, by the parameters.

        `answers` must have been called with the same parameters before.
        """
        from dualquery.refit._kernels import row_slopes_to_tables, shrink, softmax_slopes

        compiled = self.compiled
        row_slope, weight_slope = self._pull_back(parameters, slope)
        self._table_slope[:] = 0.0
        row_slopes_to_tables(row_slope, compiled.member_start, compiled.members, self._table_slope)
        gradient = np.empty_like(parameters.flat)
        by_logits = gradient[: -parameters.components].reshape(self._tables.shape)
        softmax_slopes(self._tables, compiled.table_start, self._table_slope, by_logits)
        weights = parameters.weights
        if self.shrinkage:
            single = weights.astype(np.float32)
            shrink(parameters.logits, single, np.float32(self.shrinkage), by_logits)
        gradient[-parameters.components :] = weights * (weight_slope - weights @ weight_slope)
        return gradient

    def _pull_back(
        self, parameters: Parameters, slope: Singles
    ) -> tuple[Singles, npt.NDArray[np.float64]]:
        from dualquery.refit._kernels import backward

        compiled, rows = self.compiled, self._rows
        weights = parameters.weights.astype(np.float32)
        if compiled.has_parities:
            slope = np.where(compiled.is_parity, np.float32(0.5) * slope, slope)
        workers = len(self._row_slopes)
        groups = len(compiled.group_start) - 1
        weight_slopes = np.zeros((workers, parameters.components), dtype=np.float32)

        def task(first: int, stop: int) -> None:
            for worker in range(first, stop):
                self._row_slopes[worker][:] = 0.0
                backward(
                    rows, weights, compiled.group_start, compiled.prefix_start, compiled.prefix,
                    compiled.last, slope, self._row_slopes[worker], weight_slopes[worker],
                    groups * worker // workers, groups * (worker + 1) // workers,
                )  # fmt: skip

        over_ranges(task, workers, grain=1)
        total = self._row_slopes[0]
        for other in self._row_slopes[1:]:
            total += other
        if compiled.has_parities:  # the rows of parities are 1 − 2p of the others
            plain = 2 * compiled.literals
            total[:plain] -= 2.0 * total[plain:]
        return total, weight_slopes.sum(axis=0, dtype=np.float64)

    def step(
        self, parameters: Parameters, likelihood: Likelihood, rate: float
    ) -> tuple[Parameters, float]:
        """One step uphill; returns the log-likelihood before it."""
        from dualquery.refit._kernels import adam

        value, slope = likelihood.slopes(self.answers(parameters))
        gradient = self.gradient(parameters, slope)
        steps = parameters.steps + 1
        moved = replace(
            parameters,
            flat=parameters.flat.copy(),
            mean=parameters.mean.copy(),
            square=parameters.square.copy(),
            steps=steps,
        )
        adam(
            moved.flat, gradient, moved.mean, moved.square, np.float32(rate),
            np.float32(DECAY_MEAN), np.float32(DECAY_SQUARE),
            np.float32(1.0 / (1.0 - DECAY_MEAN**steps)),
            np.float32(1.0 / (1.0 - DECAY_SQUARE**steps)),
        )  # fmt: skip
        return moved, value

    def climb(
        self, parameters: Parameters, likelihood: Likelihood, rates: Sequence[float]
    ) -> tuple[Parameters, list[float]]:
        """One step at each rate; returns the log-likelihood before each of them."""
        values = []
        for rate in rates:
            parameters, value = self.step(parameters, likelihood, rate)
            values.append(value)
        return parameters, values

    def mixture(self, parameters: Parameters, schema: Schema, free: Free = Free.DEFAULT) -> Mixture:
        """The model as it is published; `free` says what attributes take that no query mentions."""
        logits = parameters.logits.astype(np.float64)
        start = self.compiled.table_start
        sizes = np.diff(start)
        top = np.repeat(np.maximum.reduceat(logits, start[:-1]), sizes, axis=0)
        shares = np.exp(logits - top)
        shares /= np.repeat(np.add.reduceat(shares, start[:-1]), sizes, axis=0)
        tables = np.repeat(free.shares(schema)[:, None], parameters.components, axis=1)
        tables[self.compiled.codes] = shares
        return Mixture(schema, parameters.weights, tables)
