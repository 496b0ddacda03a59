"""Per-query noise: the scale, and what it may answer."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dualquery.base.errors import QueryError
from dualquery.baselines.perturbation import Gaussian, Laplace, laplace_scale
from dualquery.baselines.reach import reach
from dualquery.domain.language import parse
from dualquery.domain.schema import Schema
from dualquery.privacy.accountants import zcdp
from dualquery.privacy.accountants.gaussian import mu_of
from dualquery.privacy.events import Events
from dualquery.privacy.neighbours import Neighbours
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.workload import Workload


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
    different, _ = workload.different
    assert 100 < len(different) < 3900, "the schema is small: some queries are asked twice"
    rows = 10**9  # large, so that clipping does not matter
    answers = Counted(np.full(4000, rows // 2), rows)
    made: dict[type, list[float]] = {Laplace: [], Gaussian: []}
    for kind, seed in itertools.product(made, range(20)):
        fitted = kind.fit(
            answers, workload, epsilon=0.7, delta=1e-5, generator=np.random.default_rng(seed)
        )
        made[kind].extend(rows * (fitted.answers(workload)[different] - 0.5))
        assert not fitted.privacy.private
        assert fitted.privacy.epsilon == 0.7
    moved = reach(workload.take(different), Neighbours.REPLACE_ONE)
    assert moved < len(different), "some queries exclude each other"
    expected = math.sqrt(moved) / mu_of(0.7, 1e-5)
    assert np.std(made[Gaussian]) == pytest.approx(expected, rel=0.05)
    scale, _ = laplace_scale(moved, 0.7, 1e-5)
    assert np.std(made[Laplace]) == pytest.approx(math.sqrt(2) * scale, rel=0.07)


def test_a_query_asked_twice_is_measured_once(schema: Schema) -> None:
    texts = ["smoker=1 & sex=Male", "sex=Male", "sex=Male & smoker=1", "parity(smoker, sex=Male)"]
    workload = Workload.of([parse(text, schema) for text in texts], schema)
    answers = Counted(np.array([30, 50, 30, 60]), 100)
    for kind in (Laplace, Gaussian):
        noise = np.random.default_rng(0)
        fitted = kind.fit(answers, workload, epsilon=1.0, delta=1e-3, generator=noise)
        found = fitted.answers(workload)
        assert found[0] == found[2]
        assert len(set(found.tolist())) == 3
        three = workload.take(np.array([0, 1, 3]))
        once = kind.fit(
            Counted(answers.counts[[0, 1, 3]], 100), three,
            epsilon=1.0, delta=1e-3, generator=np.random.default_rng(0),
        )  # fmt: skip
        assert once.scale == fitted.scale


def test_other_workloads_are_refused(schema: Schema) -> None:
    workload = random_marginals(schema, 3, 20)
    fitted = Gaussian.fit(
        Counted(np.zeros(20, dtype=np.int64), 50), workload,
        epsilon=1.0, delta=1e-3, generator=np.random.default_rng(0),
    )  # fmt: skip
    with pytest.raises(QueryError, match="gaussian baseline answers only the workload"):
        fitted.answers(random_marginals(schema, 3, 20, seed=9))
