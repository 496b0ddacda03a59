"""Noise per query: the Laplace and the Gaussian mechanism over a whole workload.

Private side: they read counts. Each query is answered by its own noisy count. So they answer only
the workload that they were fitted on, and their error grows with the number of queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dualquery.base.checks import positive
from dualquery.base.errors import QueryError
from dualquery.baselines.baseline import FLOATING, Cost, Floats
from dualquery.privacy.accountants import zcdp
from dualquery.privacy.accountants.gaussian import mu_of
from dualquery.privacy.events import Events
from dualquery.privacy.neighbours import Neighbours
from dualquery.workloads.counts import Counted
from dualquery.workloads.workload import Workload

# Replacing a record moves each count by at most one. So the counts of m different queries move by
# at most m in L1 distance and √m in L2 distance, and no smaller bound holds for every workload. A
# query that is asked twice is measured once. Answers are shares of the table, so its
# size must be public: neighbours replace one record.


@dataclass(frozen=True, eq=False)
class _Noise:
    """Noise for the different queries of a workload, and what it costs."""

    values: Floats
    scale: float
    privacy: Cost


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
    def _draw(queries: int, epsilon: float, delta: float, generator: np.random.Generator) -> _Noise:
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
    ) -> Self:
        """Add noise to the count of every different query.

        Args:
            answers: the true counts.
            workload: the queries that were counted.
            epsilon: the budget, which is spent as a whole.
            delta: the budget's δ.
            generator: the source of the noise.
        """
        first, which = workload.different
        noise = cls._draw(len(first), epsilon, delta, generator)
        shares = np.clip((answers.counts[first] + noise.values) / answers.rows, 0.0, 1.0)
        return cls(shares[which], workload.fingerprint, noise.scale, noise.privacy)

    def answers(self, workload: Workload) -> Floats:
        if workload.fingerprint != self.fingerprint:
            raise QueryError(
                f"the {self.name} baseline answers only the workload whose counts it perturbed"
            )
        return self.noisy


class Laplace(_Noisy):
    """Laplace noise on the count of every different query.

    Guarantee: noise of scale b makes one count (1/b)-private. Over m counts that is ε = m/b. For
    δ > 0 it is also ρ = m/(2b²) zero-concentrated, which allows far less noise if m is large. The
    smaller scale of the two is used.
    """

    @property
    def name(self) -> str:
        return "laplace"

    @staticmethod
    def _draw(queries: int, epsilon: float, delta: float, generator: np.random.Generator) -> _Noise:
        scale, proof = laplace_scale(queries, epsilon, delta)
        spent = 0.0 if proof == "sum" else delta
        cost = Cost(epsilon, spent, Neighbours.REPLACE_ONE, f"Laplace noise, {proof}", FLOATING)
        return _Noise(generator.laplace(0.0, scale, queries), scale, cost)


class Gaussian(_Noisy):
    """Gaussian noise on the count of every different query.

    Guarantee: the counts of neighbours are at most √m apart, so noise of standard deviation √m/μ
    is μ-Gaussian-private, with μ the largest that (ε, δ) allows.
    """

    @property
    def name(self) -> str:
        return "gaussian"

    @staticmethod
    def _draw(queries: int, epsilon: float, delta: float, generator: np.random.Generator) -> _Noise:
        scale = float(np.sqrt(queries)) / mu_of(epsilon, delta)
        cost = Cost(epsilon, delta, Neighbours.REPLACE_ONE, "Gaussian noise", FLOATING)
        return _Noise(generator.normal(0.0, scale, queries), scale, cost)


def laplace_scale(queries: int, epsilon: float, delta: float) -> tuple[float, str]:
    """The smaller of the scales that two proofs allow for so many counts, and the proof's name."""
    from scipy.optimize import brentq

    pure = queries / positive("epsilon", epsilon)
    if delta == 0.0:
        return pure, "sum"

    def excess(log_scale: float) -> float:
        # A (1/b)-private count has bounded range at most 2/b: ρ = (2/b)²/8 = 1/(2b²).
        events = Events(np.array([queries]), np.array([2.0 / np.exp(log_scale)]))
        return zcdp.epsilon(events, delta) - epsilon

    low, high = -20.0, float(np.log(pure)) + 20.0
    if excess(low) <= 0.0:
        return pure, "sum"
    found = float(np.exp(brentq(excess, low, high, xtol=1e-12))) * (1.0 + 1e-9)
    return (found, "zero-concentrated") if found < pure else (pure, "sum")
