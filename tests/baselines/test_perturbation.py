"""Per-query noise: the scale, and what it may answer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualquery.baselines.perturbation import Gaussian, Laplace, laplace_scale
from dualquery.errors import QueryError
from dualquery.privacy.accountants import zcdp
from dualquery.privacy.accountants.gaussian import mu_of
from dualquery.privacy.events import Events
from dualquery.queries.counting import Answers
from dualquery.queries.generators import random_marginals
from dualquery.schema import Schema


def test_laplace_scale_is_the_smaller_of_two_proofs() -> None:
    assert laplace_scale(10, 1.0, 0.0) == (10.0, "sum")
    assert laplace_scale(1, 1.0, 1e-9) == (1.0, "sum")
    scale, proof = laplace_scale(100_000, 1.0, 1e-3)
    assert proof == "zero-concentrated"
    assert scale < 100_000
    cost = zcdp.epsilon(Events(np.array([100_000]), np.array([2.0 / scale])), 1e-3)
    assert 0.999 <= cost <= 1.0


def test_noise_has_the_stated_scale(schema: Schema) -> None:
    workload = random_marginals(schema, 3, 4000)
    rows = 10**9  # large, so that clipping does not matter
    answers = Answers(np.full(4000, rows // 2), rows)
    made = {}
    for kind in (Laplace, Gaussian):
        fitted = kind.fit(
            answers, workload, epsilon=0.7, delta=1e-5, generator=np.random.default_rng(3)
        )
        made[kind] = rows * (fitted.answers(workload) - 0.5)
        assert not fitted.privacy.private
        assert fitted.privacy.epsilon == 0.7
    assert made[Gaussian].std() == pytest.approx(math.sqrt(4000) / mu_of(0.7, 1e-5), rel=0.05)
    scale, _ = laplace_scale(4000, 0.7, 1e-5)
    assert made[Laplace].std() == pytest.approx(math.sqrt(2) * scale, rel=0.07)


def test_other_workloads_are_refused(schema: Schema) -> None:
    workload = random_marginals(schema, 3, 20)
    fitted = Gaussian.fit(
        Answers(np.zeros(20, dtype=np.int64), 50), workload,
        epsilon=1.0, delta=1e-3, generator=np.random.default_rng(0),
    )  # fmt: skip
    with pytest.raises(QueryError, match="gaussian baseline answers only the workload"):
        fitted.answers(random_marginals(schema, 3, 20, seed=9))
