"""Gradient ascent on the logits of a mixture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from dualquery.domain.free import Filling, Free
from dualquery.model.forest.edges import Edges
from dualquery.model.forest.trees import APART, Trees
from dualquery.model.mixture import Mixture
from dualquery.model.stack import Stack
from dualquery.model.terms import JoinedTerm, Singles, Slopes, Term

DECAY_MEAN, DECAY_SQUARE = 0.9, 0.99

RIDGE = 0.6
"""The prior of what ties a child to its parent: −RIDGE/2·Σ (W − W₀)². W₀ is what the cleaned table
of the two says; see `forest.cleaning`."""


@dataclass(frozen=True, eq=False)
class Parameters:
    """Where an ascent stands: logits, and the optimiser's running means.

    `flat` holds the logits of the tables of the attributes in use, code by code and component
    by component, then what ties children to their parents, then the logits of the mixture weights.
    """

    flat: Singles
    mean: Singles
    square: Singles
    steps: int
    components: int
    tied: int = 0
    """How many numbers tie children to their parents."""

    @classmethod
    def start(
        cls, stack: Stack, components: int, noise: float, seed: int, tied: int = 0
    ) -> Parameters:
        """Near-uniform tables; the noise tells the components apart.

        Args:
            stack: the attributes.
            components: how many.
            noise: standard deviation of the first logits.
            seed: of the noise, which is public.
            tied: how many numbers tie children to their parents; nothing does at first.
        """
        codes = stack.rows
        flat = np.zeros((codes + 1) * components + tied, dtype=np.float32)
        generator = np.random.default_rng(seed)
        flat[: codes * components] = noise * generator.standard_normal(codes * components)
        return cls.at(flat, components, tied)

    @classmethod
    def at(cls, flat: Singles, components: int, tied: int = 0) -> Parameters:
        """Given logits, with a fresh optimiser."""
        return cls(flat, np.zeros_like(flat), np.zeros_like(flat), 0, components, tied)

    @property
    def logits(self) -> Singles:
        return self.flat[: -self.components - self.tied].reshape(-1, self.components)

    @property
    def ties(self) -> Singles:
        return self.flat[-self.components - self.tied : -self.components]

    def tied_by(self, ties: Singles) -> Parameters:
        """The same shares and weights, with other ties between children and parents."""
        flat = np.concatenate([self.logits.reshape(-1), ties, self.flat[-self.components :]])
        return Parameters.at(flat, self.components, len(ties))

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
        trees: which attributes are joined directly; none if left out.
        ties: what ties children to their parents by the measured tables; the prior's centre.
    """

    def __init__(
        self,
        stack: Stack,
        components: int,
        shrinkage: float | npt.NDArray[np.floating] = 0.0,
        decay_square: float = DECAY_SQUARE,
        trees: Trees | None = None,
        ties: Singles | None = None,
    ) -> None:
        self.stack = stack
        self.ties = np.float32(0.0) if ties is None else ties
        self.decay_square = decay_square
        self.trees = trees or Trees.without_edges(len(stack.attributes))
        self.tie_start = self.trees.tie_start(np.diff(stack.start))
        self._given = np.empty((int(self.tie_start[-1]), components), dtype=np.float32)
        each = np.broadcast_to(np.asarray(shrinkage, dtype=np.float32), len(stack.attributes))
        self._strength = np.repeat(each, np.diff(stack.start)) if each.any() else None
        self._tables = np.empty((stack.rows, components), dtype=np.float32)

    def tables(self, parameters: Parameters) -> Singles:
        """The probabilities of all codes, a row per code; valid until the next call.

        So are the conditional ones of all edges, in `given`.
        """
        from dualquery.model._kernels import softmax
        from dualquery.model.forest._kernels import sweep

        softmax(parameters.logits, self.stack.start, self._tables)
        if len(self._given):
            sweep(
                parameters.logits, parameters.ties, self.stack.start, self.trees.parents,
                self.trees.children, self.tie_start, self._tables, self._given,
            )  # fmt: skip
        return self._tables

    @property
    def given(self) -> Singles | None:
        """The conditional probabilities of all edges at the last tables; None without edges."""
        return self._given if len(self._given) else None

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
        by_logits = gradient[: tables.size].reshape(tables.shape)
        if slopes.by_given is None:
            softmax_slopes(tables, self.stack.start, slopes.by_table, by_logits)
        else:
            self._gradient_of_edges(parameters, tables, slopes, gradient)
        if self._strength is not None:
            shrink(parameters.logits, weights.astype(np.float32), self._strength, by_logits)
        by_weight = slopes.by_weight
        gradient[-parameters.components :] = weights * (by_weight - weights @ by_weight)
        return gradient

    def _gradient_of_edges(
        self, parameters: Parameters, tables: Singles, slopes: Slopes, gradient: Singles
    ) -> None:
        """Fill in the gradient by logits and ties: children first, then what is left for roots."""
        from dualquery.model._kernels import softmax_slopes
        from dualquery.model.forest._kernels import sweep_back

        start, trees = self.stack.start, self.trees
        by_children = np.empty_like(tables)
        by_ties = gradient[tables.size : -parameters.components]
        sweep_back(
            start, trees.parents, trees.children, self.tie_start, tables, self._given,
            slopes.by_table, slopes.by_given, by_children, by_ties,
        )  # fmt: skip
        by_ties -= np.float32(RIDGE) * (parameters.ties - self.ties)
        by_logits = gradient[: tables.size].reshape(tables.shape)
        softmax_slopes(tables, start, slopes.by_table, by_logits)
        child = np.repeat(trees.edge >= 0, np.diff(start))
        by_logits[child] = by_children[child]

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
            parameters.tied,
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
        slopes = _summed(terms, tables, weights.astype(np.float32), self.given)
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
        own = np.repeat(free.shares(schema)[:, None], parameters.components, axis=1)
        own[self.stack.codes] = self.stack.expand(shares)
        return Mixture(schema, parameters.weights, own, self._edges(parameters))

    def _edges(self, parameters: Parameters) -> Edges | None:
        """What joins the attributes, by their places in the schema."""
        if not len(self.trees.children):
            return None
        named = self.stack.attributes
        parent = np.full(len(self.stack.schema), APART, dtype=np.int64)
        parent[named[self.trees.children]] = named[self.trees.parents]
        return Edges(
            Trees(parent),
            self.stack.groups,
            parameters.ties.astype(np.float64)[None],
            np.zeros(parameters.components, dtype=np.int64),
        )


def _summed(
    terms: Sequence[Term], tables: Singles, weights: Singles, given: Singles | None
) -> Slopes:
    """The slopes of all terms together; with edges there is one term, what was measured."""
    if given is not None:
        (term,) = terms
        return cast("JoinedTerm", term).slopes(tables, weights, given)
    total = terms[0].slopes(tables, weights)
    for term in terms[1:]:
        more = term.slopes(tables, weights)
        total = Slopes(
            total.value + more.value,
            total.by_table + more.by_table,
            total.by_weight + more.by_weight,
        )
    return total
