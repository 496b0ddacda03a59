"""Projection: its promise by enumeration, its nearest point against a plain twin, its records."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.optimize import nnls

from dualquery.base.errors import ParameterError
from dualquery.baselines.hull import (
    exchanged,
    nearest_in_hull,
    quick_oracle,
    weighted_problem,
)
from dualquery.baselines.product import Uniform
from dualquery.baselines.projection import AllCounts, Projection, steps_for
from dualquery.baselines.reach import reach
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.oracles.oracle import Oracle
from dualquery.oracles.registry import oracle
from dualquery.privacy.accountants import get_accountant
from dualquery.privacy.events import Events, Noise
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sources import SeededSource, SystemSource
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import every_code, random_marginals
from dualquery.workloads.matching import add_matches
from dualquery.workloads.workload import Workload
from tests.baselines.exact import hockey_stick, log_laplace, log_rounded_gaussian
from tests.baselines.test_mwem import ASKED, ROWS, TABLES, counts_of, neighbours, wide

# The promise: the noisy counts are all that leaves the table.

MOVED = reach(ASKED, Neighbours.REPLACE_ONE)


def log_releases(noise: AllCounts, far: int) -> list[np.ndarray]:
    """Per table, the log-probability of every vector of noisy counts up to some distance."""
    law = log_laplace if noise.event.noise is Noise.LAPLACE else log_rounded_gaussian
    seen = np.arange(-far, ROWS + far + 1)
    found = []
    for table in TABLES:
        each = [law(seen - count, noise.event.scale) for count in counts_of(table).counts]
        found.append((each[0][:, None, None] + each[1][:, None] + each[2]).reshape(-1))
    return found


def worst_delta(noise: AllCounts, epsilon: float) -> float:
    logs = log_releases(noise, 11)
    return max(hockey_stick(logs[i], logs[j], epsilon) for i, j in neighbours())


def test_the_divergence_of_neighbours_is_below_the_gaussian_delta() -> None:
    noise = AllCounts.of(MOVED, 1.5, 1e-2)
    assert noise.cost(1e-2, private=True).epsilon <= 1.5
    for epsilon in (0.25, 0.75, 1.5):
        stated = get_accountant("gaussian").delta(Events.of_measurements(noise.event), epsilon)
        worst = worst_delta(noise, epsilon)
        # Replacing the record 00 by 11 moves all three counts.
        assert 0.7 * stated <= worst <= stated * (1.0 + 1e-9)


def test_no_noisy_counts_tell_neighbours_apart_by_more_than_the_pure_epsilon() -> None:
    noise = AllCounts.of(MOVED, 2.0, 0.0)
    stated = noise.cost(0.0, private=True).epsilon
    assert 2.0 * (1.0 - 1e-5) <= stated <= 2.0
    logs = log_releases(noise, 6)
    worst = max(float(np.max(logs[i] - logs[j])) for i, j in neighbours())
    assert worst <= stated * (1.0 + 1e-9)
    assert worst == pytest.approx(stated, rel=1e-6)


def test_the_sensitivity_of_one_count_for_all_of_them_is_caught() -> None:
    noise = AllCounts.of(MOVED, 1.5, 1e-2)
    wrong = replace(noise, event=replace(noise.event, scale=noise.event.scale / math.sqrt(3.0)))
    stated = get_accountant("gaussian").delta(Events.of_measurements(noise.event), 1.5)
    assert worst_delta(wrong, 1.5) > 1.5 * stated


def test_a_query_that_is_asked_twice_is_measured_once() -> None:
    _, workload, counted = wide(5, 200, 60)
    first, _ = workload.different
    made = Projection.fit(
        counted, workload, epsilon=1.0, delta=1e-3, source=SeededSource(0), steps=2
    )
    (event,) = made.privacy.events.measurements
    assert len(first) < len(workload)
    assert event.l1 == reach(workload.take(first), Neighbours.REPLACE_ONE) < len(first)
    assert made.privacy.by_accountant["gaussian"] == made.privacy.epsilon


# The nearest point


def universe(workload: Workload) -> np.ndarray:
    """One row per record of the universe: which queries it satisfies."""
    shape = [range(int(size)) for size in workload.schema.sizes]
    rows = []
    for record in product(*shape):
        matches = np.zeros(len(workload), dtype=np.int32)
        add_matches(workload, np.array(record, dtype=np.int32), matches)
        rows.append(matches)
    return np.array(rows, dtype=np.float64)


def twin(workload: Workload, target: np.ndarray) -> np.ndarray:
    """The nearest answers of any table, by least squares over all records with weights ≥ 0.

    A heavy equation makes the weights sum to one.
    """
    every = universe(workload)
    heavy = 1e4
    matrix = np.vstack([every.T, np.full(len(every), heavy)])
    weights, _ = nnls(matrix, np.append(target, heavy))
    return weights @ every


@pytest.mark.parametrize("finder", [oracle("exhaustive"), quick_oracle()], ids=["all", "quick"])
def test_the_nearest_point_is_that_of_the_plain_twin(finder: Oracle) -> None:
    _, workload, _ = wide(6, 300, 80)
    workload = workload.take(workload.different[0])
    random = np.random.default_rng(3)
    truth = random.dirichlet(np.full(64, 0.3)) @ universe(workload)
    target = truth + random.normal(0.0, 0.1, len(truth))
    expected = twin(workload, target)
    hull = nearest_in_hull(workload, target, Uniform().answers(workload), steps=200, oracle=finder)
    assert hull.weights.sum() == pytest.approx(1.0)
    assert np.all(hull.weights >= 0.0)
    nearest = float(np.sum((expected - target) ** 2))
    reached = float(np.sum((hull.answers - target) ** 2))
    assert reached <= nearest * 1.01
    np.testing.assert_allclose(hull.answers, expected, atol=0.02)
    # The gap bounds how far half the square is from the smallest one.
    assert 0.5 * (reached - nearest) <= hull.gap + 1e-3, "up to the rounding of weights"


def test_a_table_without_noise_is_found_again() -> None:
    _, workload, _ = wide(6, 300, 80)
    workload = workload.take(workload.different[0])
    truth = np.random.default_rng(1).dirichlet(np.full(64, 0.1)) @ universe(workload)
    hull = nearest_in_hull(
        workload, truth, Uniform().answers(workload), steps=200, oracle=oracle("exhaustive")
    )
    np.testing.assert_allclose(hull.answers, truth, atol=0.01)


def test_exchanges_reach_the_minimum_on_the_simplex() -> None:
    random = np.random.default_rng(0)
    vectors, target = random.random((5, 9)), random.random(9)
    gram, pull = vectors @ vectors.T, vectors @ target
    found = exchanged(gram, pull, np.full(5, 0.2), 5000)
    slope = pull - gram @ found
    assert found.sum() == pytest.approx(1.0)
    assert np.all(slope <= slope @ found + 1e-6), "no record would be worth more weight"


def test_the_linear_step_maximises_the_weighted_sum() -> None:
    _, workload, _ = wide(6, 10, 50)
    slope = np.random.default_rng(5).normal(size=50)
    problem = weighted_problem(workload, slope)
    response = oracle("exhaustive")(problem, generator=np.random.default_rng(0))
    matches = np.zeros(50, dtype=np.int32)
    add_matches(workload, response.record, matches)
    assert slope @ matches == pytest.approx((universe(workload) @ slope).max(), abs=1.0)
    assert problem.value(response.record) >= 0


# The whole


def test_projection_is_better_than_its_noise_and_gives_records() -> None:
    _, workload, counted = wide(8, 2000, 400)
    truth = counted.counts / counted.rows
    made = Projection.fit(
        counted, workload, epsilon=0.5, delta=1e-3, source=SeededSource(2), steps=40
    )
    error = np.abs(made.answers(workload) - truth)
    noise = made.privacy.events.measurements[0].scale / counted.rows
    assert error.mean() < 0.6 * noise * math.sqrt(2.0 / math.pi)
    assert "NOT PRIVATE" in made.privacy.text()
    rows = made.sample(1000)
    assert rows.shape == (1000, 8)
    shares = np.zeros(len(workload), dtype=np.int32)
    for row in rows:
        add_matches(workload, row, shares)
    assert np.abs(shares / 1000 - made.answers(workload)).max() < 0.05


@pytest.mark.slow
def test_it_runs_where_no_universe_fits() -> None:
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(300)))
    workload = random_marginals(schema, 3, 500)
    counted = Counted(np.full(500, 30, dtype=np.int64), 1000)
    made = Projection.fit(
        counted, workload, epsilon=1.0, delta=1e-6, source=SystemSource(), steps=3
    )
    assert made.privacy.private
    assert made.hull.records.shape == (3, 300)
    with pytest.raises(ParameterError, match="another schema"):
        made.answers(ASKED)


@pytest.mark.parametrize(
    ("columns", "steps"), [(20, 500), (1_000, 500), (2_000, 250), (9_000, 100)]
)
def test_wide_tables_get_fewer_records(columns: int, steps: int) -> None:
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(columns)))
    literals = every_code(schema, np.arange(columns))
    all_named = Workload.conjunctions(schema, literals, 2 * np.arange(len(literals))[:, None])
    assert steps_for(all_named) == steps
