"""A part of the queries in place of all of them."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.privacy.sampler import Draws
from dualquery.queries import parities, random_marginals
from dualquery.refit.compiled import CompiledWorkload
from dualquery.refit.glimpse import enough_queries, glimpse
from dualquery.refit.likelihood import Likelihood
from dualquery.refit.training import Ascent, Parameters
from dualquery.schema import Schema


@pytest.fixture(scope="module")
def scene(schema: Schema) -> tuple[Ascent, Likelihood, Parameters]:
    workload = random_marginals(schema, 3, 4000) + parities(schema, 2, 500)
    compiled = CompiledWorkload.of(workload)
    ascent = Ascent(compiled, 6)
    likelihood = Likelihood(compiled, np.zeros(len(workload)), 3)
    random = np.random.default_rng(0)
    for t in range(3):
        draws = Draws(random.integers(0, len(workload), 20), random.random(20) < 0.5)
        likelihood.add(4.0 * t, draws, random.random(len(workload)).astype(np.float32))
    return ascent, likelihood, Parameters.start(compiled, 6, 1.0, 1)


def test_few_queries_are_all_seen(scene) -> None:
    ascent, likelihood, _ = scene
    assert glimpse(ascent, likelihood, np.random.default_rng(0)) == (ascent, likelihood)


def test_a_part_answers_like_the_whole(scene) -> None:
    ascent, likelihood, parameters = scene
    part, seen = glimpse(ascent, likelihood, np.random.default_rng(1), enough=1000)
    assert 200 < len(part.compiled.order) < 2000
    whole = ascent.compiled.in_query_order(ascent.answers(parameters))
    np.testing.assert_allclose(
        part.answers(parameters), whole[part.compiled.order], rtol=1e-5, atol=1e-6
    )
    assert seen.drawn.sum() == likelihood.drawn.sum(), "every drawn query is kept"


def test_a_part_of_the_likelihood_is_laid_out_along_the_queries(scene) -> None:
    ascent, likelihood, _ = scene
    _, seen = glimpse(ascent, likelihood, np.random.default_rng(1), enough=1000)
    assert seen._against.flags.c_contiguous, "a stride of one round makes steps ten times slower"


def test_more_rounds_show_fewer_queries_and_more_codes_more() -> None:
    assert enough_queries(0, 400) == enough_queries(100, 400) == 500_000
    assert enough_queries(500, 400) == 100_000
    assert enough_queries(50, 4_000) == 600_000, "more codes need more queries"
    assert enough_queries(50, 35_000) == 1_000_000
    assert enough_queries(500, 35_000) == 100_000


def test_the_gradient_is_right_on_average(scene) -> None:
    ascent, likelihood, parameters = scene
    _, slope = likelihood.slopes(ascent.answers(parameters))
    exact = ascent.gradient(parameters, slope).astype(np.float64)
    found = []
    for seed in range(400):
        part, seen = glimpse(ascent, likelihood, np.random.default_rng(seed), enough=2500)
        _, slope = seen.slopes(part.answers(parameters))
        found.append(part.gradient(parameters, slope).astype(np.float64))
    mean, spread = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    off = np.abs(mean - exact) / (spread + 1e-3)
    assert np.percentile(off, 95) < 3.0
    assert np.linalg.norm(mean - exact) < 0.05 * np.linalg.norm(exact)
