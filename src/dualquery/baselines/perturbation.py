"""Noise per query: the Laplace and the Gaussian mechanism over a whole workload.

Private side: they read counts. Each query is answered by its own noisy count. So they answer only
the workload that they were fitted on, and their error grows with the number of queries that one
record can satisfy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dualquery.base.checks import positive
from dualquery.base.errors import QueryError
from dualquery.baselines.baseline import FLOATING, Cost, Floats, public_rows
from dualquery.baselines.reach import reach
from dualquery.privacy.accountants import zcdp
from dualquery.privacy.accountants.gaussian import mu_of
from dualquery.privacy.events import Events
from dualquery.privacy.neighbours import Neighbours
from dualquery.workloads.counts import Counted
from dualquery.workloads.workload import Workload

# A neighbour moves at most m counts, each by at most one; m is the reach of the workload. So counts
# move by at most m in L1 distance and √m in L2 distance. A query that is asked twice is measured
# once. Answers are noisy counts over a public number of rows.


@dataclass(frozen=True, eq=False)
class _Noisy:
    """Noisy answers to one workload, kept in [0, 1]."""

    noisy: Floats
    fingerprint: str
    scale: float
    privacy: Cost

    @property
    def name(self) -> str:
        raise NotImplementedError

    @staticmethod
    def _scale(moved: int, epsilon: float, delta: float) -> tuple[float, float, str]:
        """The scale of the noise if so many counts move, its δ, and the theorem."""
        raise NotImplementedError

    @staticmethod
    def _draw(scale: float, queries: int, generator: np.random.Generator) -> Floats:
        """Noise for so many counts."""
        raise NotImplementedError

    @classmethod
    def fit(
        cls,
        answers: Counted,
        workload: Workload,
        *,
        epsilon: float,
        delta: float,
        generator: np.random.Generator,
        neighbours: Neighbours = Neighbours.REPLACE_ONE,
        reference: int | None = None,
        exclusive: bool = True,
    ) -> Self:
        """Add noise to the count of every different query.

        Args:
            answers: the true counts.
            workload: the queries that were counted.
            epsilon: the budget, which is spent as a whole.
            delta: the budget's δ.
            generator: the source of the noise.
            neighbours: which tables the promise compares.
            reference: the public number of rows under add-remove neighbours.
            exclusive: whether queries that exclude each other are known to; without it every count
                is paid for, as in the paper.
        """
        rows = public_rows(answers.rows, neighbours, reference)
        first, which = workload.different
        moved = reach(workload.take(first), neighbours) if exclusive else len(first)
        scale, spent, proof = cls._scale(moved, epsilon, delta)
        noise = cls._draw(scale, len(first), generator)
        shares = np.clip((answers.counts[first] + noise) / rows, 0.0, 1.0)
        cost = Cost(epsilon, spent, neighbours, proof, FLOATING)
        return cls(shares[which], workload.fingerprint, scale, cost)

    def answers(self, workload: Workload) -> Floats:
        if workload.fingerprint != self.fingerprint:
            raise QueryError(
                f"the {self.name} baseline answers only the workload whose counts it perturbed"
            )
        return self.noisy


class Laplace(_Noisy):
    """Laplace noise on the count of every different query.

    Guarantee: noise of scale b makes one count (1/b)-private. If m counts move that is ε = m/b. For
    δ > 0 it is also ρ = m/(2b²) zero-concentrated, which allows far less noise if m is large. The
    smaller scale of the two is used.
    """

    @property
    def name(self) -> str:
        return "laplace"

    @staticmethod
    def _scale(moved: int, epsilon: float, delta: float) -> tuple[float, float, str]:
        scale, proof = laplace_scale(moved, epsilon, delta)
        return scale, 0.0 if proof == "sum" else delta, f"Laplace noise, {proof}"

    @staticmethod
    def _draw(scale: float, queries: int, generator: np.random.Generator) -> Floats:
        return generator.laplace(0.0, scale, queries)


class Gaussian(_Noisy):
    """Gaussian noise on the count of every different query.

    Guarantee: the counts of neighbours are at most √m apart, m the number that move, so noise of
    standard deviation √m/μ is μ-Gaussian-private, with μ the largest that (ε, δ) allows.
    """

    @property
    def name(self) -> str:
        return "gaussian"

    @staticmethod
    def _scale(moved: int, epsilon: float, delta: float) -> tuple[float, float, str]:
        return float(np.sqrt(moved)) / mu_of(epsilon, delta), delta, "Gaussian noise"

    @staticmethod
    def _draw(scale: float, queries: int, generator: np.random.Generator) -> Floats:
        return generator.normal(0.0, scale, queries)


def laplace_scale(moved: int, epsilon: float, delta: float) -> tuple[float, str]:
    """The smaller of the scales that two proofs allow if so many counts move, and the proof."""
    from scipy.optimize import brentq

    pure = moved / positive("epsilon", epsilon)
    if delta == 0.0:
        return pure, "sum"

    def excess(log_scale: float) -> float:
        # A (1/b)-private count has bounded range at most 2/b: ρ = (2/b)²/8 = 1/(2b²).
        events = Events(np.array([moved]), np.array([2.0 / np.exp(log_scale)]))
        return zcdp.epsilon(events, delta) - epsilon

    low, high = -20.0, float(np.log(pure)) + 20.0
    if excess(low) <= 0.0:
        return pure, "sum"
    found = float(np.exp(brentq(excess, low, high, xtol=1e-12))) * (1.0 + 1e-9)
    return (found, "zero-concentrated") if found < pure else (pure, "sum")
