"""Gradient ascent on the logits of a mixture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.domain.free import Filling, Free
from dualquery.model.mixture import Mixture
from dualquery.model.stack import Stack
from dualquery.model.terms import Singles, Slopes, Term

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
    def start(cls, stack: Stack, components: int, noise: float, seed: int) -> Parameters:
        """Near-uniform tables; the noise tells the components apart.

        Args:
            stack: the attributes.
            components: how many.
            noise: standard deviation of the first logits.
            seed: of the noise, which is public.
        """
        codes = stack.rows
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
    """Climbs a sum of terms and a prior; holds the buffers that steps share.

    With a shrinkage κ the logits z of a code have the prior −κ/2·Σ_k π_k (z_k − z̄)², z̄ their mean
    over the components: components differ only where something released says so. Without it, a
    model with more components than the release can tell apart fits its noise.

    Args:
        stack: the attributes that are modelled.
        components: of the mixture.
        shrinkage: κ, one for all attributes or one for each attribute of the stack.
        decay_square: how slowly the optimiser forgets the squares of slopes.
    """

    def __init__(
        self,
        stack: Stack,
        components: int,
        shrinkage: float | npt.NDArray[np.floating] = 0.0,
        decay_square: float = DECAY_SQUARE,
    ) -> None:
        self.stack = stack
        self.decay_square = decay_square
        each = np.broadcast_to(np.asarray(shrinkage, dtype=np.float32), len(stack.attributes))
        self._strength = np.repeat(each, np.diff(stack.start)) if each.any() else None
        self._tables = np.empty((stack.rows, components), dtype=np.float32)

    def tables(self, parameters: Parameters) -> Singles:
        """The probabilities of all codes, a row per code; valid until the next call."""
        from dualquery.model._kernels import softmax

        softmax(parameters.logits, self.stack.start, self._tables)
        return self._tables

    def gradient(
        self,
        parameters: Parameters,
        tables: Singles,
        slopes: Slopes,
        weights: npt.NDArray[np.float64],
    ) -> Singles:
        """The gradient by the parameters, prior included, from the slopes at their tables.

        Args:
            parameters: where the ascent stands.
            tables: the probabilities there.
            slopes: of all terms there.
            weights: of the components there.
        """
        from dualquery.model._kernels import shrink, softmax_slopes

        gradient = np.empty_like(parameters.flat)
        by_logits = gradient[: -parameters.components].reshape(tables.shape)
        softmax_slopes(tables, self.stack.start, slopes.by_table, by_logits)
        if self._strength is not None:
            shrink(parameters.logits, weights.astype(np.float32), self._strength, by_logits)
        by_weight = slopes.by_weight
        gradient[-parameters.components :] = weights * (by_weight - weights @ by_weight)
        return gradient

    def step(
        self, parameters: Parameters, terms: Sequence[Term], rate: float
    ) -> tuple[Parameters, float]:
        """One step uphill; returns the value of all terms before it."""
        moved, values = self.climb(parameters, terms, [rate])
        return moved, values[0]

    def climb(
        self, parameters: Parameters, terms: Sequence[Term], rates: Sequence[float]
    ) -> tuple[Parameters, list[float]]:
        """One step at each rate; returns the value before each of them."""
        begun = parameters.steps
        # One copy for the whole climb: with a small model, copies would take as long as steps.
        moved = Parameters(
            parameters.flat.copy(),
            parameters.mean.copy(),
            parameters.square.copy(),
            begun + len(rates),
            parameters.components,
        )
        values = [
            self._move(moved, terms, rate, begun + done) for done, rate in enumerate(rates, start=1)
        ]
        return moved, values

    def _move(self, here: Parameters, terms: Sequence[Term], rate: float, steps: int) -> float:
        """One step in place, the given one since the start; returns the value before it."""
        from dualquery.model._kernels import adam

        weights = here.weights
        tables = self.tables(here)
        slopes = _summed(terms, tables, weights.astype(np.float32))
        gradient = self.gradient(here, tables, slopes, weights)
        adam(
            here.flat, gradient, here.mean, here.square, np.float32(rate),
            np.float32(DECAY_MEAN), np.float32(self.decay_square),
            np.float32(1.0 / (1.0 - DECAY_MEAN**steps)),
            np.float32(1.0 / (1.0 - self.decay_square**steps)),
        )  # fmt: skip
        return slopes.value

    def mixture(self, parameters: Parameters, free: Filling = Free.DEFAULT) -> Mixture:
        """The model as it is published; `free` says what attributes take that are not modelled."""
        schema = self.stack.schema
        logits = parameters.logits.astype(np.float64)
        start = self.stack.start
        sizes = np.diff(start)
        top = np.repeat(np.maximum.reduceat(logits, start[:-1]), sizes, axis=0)
        shares = np.exp(logits - top)
        shares /= np.repeat(np.add.reduceat(shares, start[:-1]), sizes, axis=0)
        tables = np.repeat(free.shares(schema)[:, None], parameters.components, axis=1)
        tables[self.stack.codes] = self.stack.expand(shares)
        return Mixture(schema, parameters.weights, tables)


def _summed(terms: Sequence[Term], tables: Singles, weights: Singles) -> Slopes:
    """The slopes of all terms together."""
    total = terms[0].slopes(tables, weights)
    for term in terms[1:]:
        more = term.slopes(tables, weights)
        total = Slopes(
            total.value + more.value,
            total.by_table + more.by_table,
            total.by_weight + more.by_weight,
        )
    return total
