"""A part of the queries in place of all of them."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.domain.schema import Schema
from dualquery.model.compiled import CompiledWorkload
from dualquery.model.drawn import Buffers, Drawn, answers_of
from dualquery.model.glimpse import enough_queries, glimpse
from dualquery.model.likelihood import Likelihood
from dualquery.model.training import Ascent, Parameters
from dualquery.privacy.sampler import Draws
from dualquery.workloads.generators import parities, random_marginals


@pytest.fixture(scope="module")
def scene(schema: Schema) -> tuple[Ascent, Drawn, Parameters]:
    workload = random_marginals(schema, 3, 4000) + parities(schema, 2, 500)
    compiled = CompiledWorkload.of(workload)
    ascent = Ascent(compiled.stack, 6)
    likelihood = Likelihood(compiled, np.zeros(len(workload)), 3)
    random = np.random.default_rng(0)
    for t in range(3):
        draws = Draws(random.integers(0, len(workload), 20), random.random(20) < 0.5)
        likelihood.add(4.0 * t, draws, random.random(len(workload)).astype(np.float32))
    drawn = Drawn(compiled, likelihood, Buffers(compiled, 6))
    return ascent, drawn, Parameters.start(compiled.stack, 6, 1.0, 1)


def answers(ascent: Ascent, drawn: Drawn, parameters: Parameters) -> np.ndarray:
    tables, weights = ascent.tables(parameters), parameters.weights.astype(np.float32)
    return answers_of(drawn.compiled, tables, weights, drawn.buffers)


def gradient(ascent: Ascent, drawn: Drawn, parameters: Parameters) -> np.ndarray:
    tables = ascent.tables(parameters)
    slopes = drawn.slopes(tables, parameters.weights.astype(np.float32))
    return ascent.gradient(parameters, tables, slopes, parameters.weights).astype(np.float64)


def test_few_queries_are_all_seen(scene) -> None:
    _, drawn, _ = scene
    assert glimpse(drawn, np.random.default_rng(0)) is drawn


def test_a_part_answers_like_the_whole(scene) -> None:
    ascent, drawn, parameters = scene
    part = glimpse(drawn, np.random.default_rng(1), enough=1000)
    assert 200 < len(part.compiled.order) < 2000
    whole = drawn.compiled.in_query_order(answers(ascent, drawn, parameters))
    np.testing.assert_allclose(
        answers(ascent, part, parameters), whole[part.compiled.order], rtol=1e-5, atol=1e-6
    )
    assert part.likelihood.drawn.sum() == drawn.likelihood.drawn.sum(), "drawn queries are kept"


def test_a_part_of_the_likelihood_is_laid_out_along_the_queries(scene) -> None:
    _, drawn, _ = scene
    part = glimpse(drawn, np.random.default_rng(1), enough=1000)
    laid = part.likelihood._against.flags.c_contiguous
    assert laid, "a stride of one round makes steps ten times slower"


def test_more_rounds_show_fewer_queries_and_more_codes_more() -> None:
    assert enough_queries(0, 400) == enough_queries(100, 400) == 500_000
    assert enough_queries(500, 400) == 100_000
    assert enough_queries(50, 4_000) == 600_000, "more codes need more queries"
    assert enough_queries(50, 35_000) == 1_000_000
    assert enough_queries(500, 35_000) == 100_000


def test_the_gradient_is_right_on_average(scene) -> None:
    ascent, drawn, parameters = scene
    exact = gradient(ascent, drawn, parameters)
    found = []
    for seed in range(400):
        part = glimpse(drawn, np.random.default_rng(seed), enough=2500)
        found.append(gradient(ascent, part, parameters))
    mean, spread = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    off = np.abs(mean - exact) / (spread + 1e-3)
    assert np.percentile(off, 95) < 3.0
    assert np.linalg.norm(mean - exact) < 0.05 * np.linalg.norm(exact)
