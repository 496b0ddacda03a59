"""Per-query noise: the Laplace and the Gaussian mechanism over a whole workload.

Private side: they read counts. Each query is answered by its own noisy count, so they answer the
workload they were fitted on and nothing else, and their error grows with the number of queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import positive
from dualquery.base.errors import QueryError
from dualquery.baselines.baseline import FLOATING, Cost, Floats
from dualquery.privacy.accountants import zcdp
from dualquery.privacy.accountants.gaussian import mu_of
from dualquery.privacy.events import Events
from dualquery.privacy.neighbours import Neighbours
from dualquery.workloads.counts import Counted
from dualquery.workloads.workload import Workload

# Replacing a record moves each count by at most one, so m different queries are an L1 distance of m
# and an L2 distance of √m apart, and no smaller bound holds for every workload. A query that is
# asked twice is measured once. Answers are shares of the table, so its size must be public:
# neighbours replace one record.


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

    def answers(self, workload: Workload) -> Floats:
        if workload.fingerprint != self.fingerprint:
            raise QueryError(
                f"the {self.name} baseline answers only the workload whose counts it perturbed"
            )
        return self.noisy


class Laplace(_Noisy):
    """Laplace noise on the count of every different query.

    Guarantee: noise of scale b makes one count (1/b)-private. Over m counts that is ε = m/b, and
    for δ > 0 also ρ = m/(2b²) zero-concentrated, which allows far less noise where m is large;
    the smaller scale of the two is used.
    """

    @property
    def name(self) -> str:
        return "laplace"

    @classmethod
    def fit(
        cls,
        answers: Counted,
        workload: Workload,
        *,
        epsilon: float,
        delta: float,
        generator: np.random.Generator,
    ) -> Laplace:
        first, which = workload.different
        scale, proof = laplace_scale(len(first), epsilon, delta)
        noise = generator.laplace(0.0, scale, len(first))
        cost = Cost(
            epsilon, 0.0 if proof == "sum" else delta, Neighbours.REPLACE_ONE,
            f"Laplace noise, {proof}", FLOATING,
        )  # fmt: skip
        shares = _shares(answers, first, noise)
        return cls(shares[which], workload.fingerprint, scale, cost)


class Gaussian(_Noisy):
    """Gaussian noise on the count of every different query.

    Guarantee: the counts of neighbours are at most √m apart, so noise of standard deviation √m/μ
    is μ-Gaussian-private, with μ the largest that (ε, δ) allows.
    """

    @property
    def name(self) -> str:
        return "gaussian"

    @classmethod
    def fit(
        cls,
        answers: Counted,
        workload: Workload,
        *,
        epsilon: float,
        delta: float,
        generator: np.random.Generator,
    ) -> Gaussian:
        first, which = workload.different
        scale = float(np.sqrt(len(first))) / mu_of(epsilon, delta)
        noise = generator.normal(0.0, scale, len(first))
        cost = Cost(epsilon, delta, Neighbours.REPLACE_ONE, "Gaussian noise", FLOATING)
        shares = _shares(answers, first, noise)
        return cls(shares[which], workload.fingerprint, scale, cost)


def _shares(answers: Counted, chosen: npt.NDArray[np.int64], noise: Floats) -> Floats:
    return np.clip((answers.counts[chosen] + noise) / answers.rows, 0.0, 1.0)


def laplace_scale(queries: int, epsilon: float, delta: float) -> tuple[float, str]:
    """The smaller of the scales that two proofs allow for so many counts, and which proof it is."""
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
