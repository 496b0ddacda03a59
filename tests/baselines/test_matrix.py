"""The matrix mechanism: its promise, its variances against a plain twin, its error."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pytest

from dualquery.base.errors import ParameterError
from dualquery.baselines.matrix import (
    MatrixMechanism,
    Strategy,
    contrasts,
    measured_residual,
    sensitivity,
    squared_lengths,
)
from dualquery.baselines.universe import groups_of
from dualquery.domain.attributes import Attribute
from dualquery.domain.language import parse
from dualquery.domain.schema import Schema
from dualquery.privacy.accountants import get_accountant
from dualquery.privacy.events import Events
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sources import SeededSource, SystemSource
from dualquery.rows.opening import open_table
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.workload import Workload
from tests.baselines.exact import hockey_stick, log_rounded_gaussian
from tests.baselines.test_mwem import RECORDS, ROWS, TABLES, TINY, neighbours
from tests.baselines.test_projection import universe

SIZES = (3, 2, 4)
SMALL = Schema(
    tuple(
        Attribute.categorical(name, [f"{name}{code}" for code in range(size)])
        for name, size in zip("abc", SIZES, strict=True)
    )
)
QUERIES = Workload.of(
    [
        parse(text, SMALL)
        for text in (
            "a=a0", "a=a1 & b=b0", "a!=a2 & c=c3", "b=b1 & c in {c0, c2}",
            "a=a1 & b=b1 & c=c1", "parity(a=a0, b=b1)",
        )
    ],
    SMALL,
)  # fmt: skip


def strategy(mu: float = 0.7) -> Strategy:
    return Strategy.of(groups_of(QUERIES), SIZES, mu)


# The promise


def test_contrasts_are_orthogonal_and_have_the_stated_lengths() -> None:
    for size in (2, 3, 7):
        rows = contrasts(size)
        np.testing.assert_array_equal(rows @ rows.T, np.diag(squared_lengths([size])))
        assert not rows.sum(axis=1).any()


@pytest.mark.parametrize("sizes", [(2,), (5,), (2, 2), (3, 4), (2, 3, 5), (3, 3, 3)])
def test_the_sensitivity_is_the_largest_distance_of_two_records(sizes: tuple[int, ...]) -> None:
    def residual(record: tuple[int, ...]) -> np.ndarray:
        found = np.ones(())
        for code, size in zip(record, sizes, strict=True):
            found = np.multiply.outer(found, np.eye(size)[code] - 1.0 / size)
        return found

    every = [residual(record) for record in product(*(range(size) for size in sizes))]
    widest = max(float(((one - other) ** 2).sum()) for one in every for other in every)
    assert sensitivity(sizes) == pytest.approx(widest)
    longest = max(float((one**2).sum()) for one in every)
    assert sensitivity(sizes, Neighbours.ADD_REMOVE) == pytest.approx(longest)


def test_the_strategy_spends_what_it_may() -> None:
    made = strategy(0.7)
    assert made.mu_squared == pytest.approx(0.49)
    other = Strategy.of(groups_of(QUERIES), SIZES, 0.7, Neighbours.ADD_REMOVE)
    assert other.mu_squared == pytest.approx(0.49)
    # An added record moves a residual by at most half of what a replaced one does (squared).
    assert all(other.sigma[chosen] < 0.75 * made.sigma[chosen] for chosen in made.sigma)
    assert math.sqrt(Events.of_measurements(made.event).mu_squared) == pytest.approx(0.7)


PAIR = Workload.of([parse(q, TINY) for q in ("a=1", "b=1", "a=1 & b=1")], TINY)
SEEN = np.arange(-18, 19)


def log_releases(made: Strategy) -> list[np.ndarray]:
    """Per table, the log-probability of all contrasts of {a}, {b} and {a, b} with noise."""
    found = []
    for table in TABLES:
        counts = np.zeros((2, 2), dtype=np.int64)
        for record in table:
            counts[tuple(RECORDS[record])] += 1
        exact = {
            (0,): int(counts.sum(axis=1) @ [1, -1]),
            (1,): int(counts.sum(axis=0) @ [1, -1]),
            (0, 1): int(np.array([1, -1]) @ counts @ np.array([1, -1])),
        }
        logs = [
            log_rounded_gaussian(SEEN - value, made.sigma[chosen] * math.sqrt(2.0) ** len(chosen))
            for chosen, value in exact.items()
        ]
        found.append((logs[0][:, None, None] + logs[1][:, None] + logs[2]).reshape(-1))
    assert ROWS == 3
    return found


def worst_delta(made: Strategy, epsilon: float) -> float:
    logs = log_releases(made)
    return max(hockey_stick(logs[i], logs[j], epsilon) for i, j in neighbours())


def test_the_divergence_of_neighbours_is_below_the_gaussian_delta() -> None:
    made = Strategy.of(groups_of(PAIR), (2, 2), 0.7)
    events = Events.of_measurements(made.event)
    for epsilon in (0.25, 0.75):
        stated = get_accountant("gaussian").delta(events, epsilon)
        worst = worst_delta(made, epsilon)
        assert 0.3 * stated <= worst <= stated * (1.0 + 1e-9)


def test_noise_of_half_the_size_is_caught() -> None:
    made = Strategy.of(groups_of(PAIR), (2, 2), 0.7)
    wrong = replace(made, sigma={chosen: 0.5 * s for chosen, s in made.sigma.items()})
    stated = get_accountant("gaussian").delta(Events.of_measurements(made.event), 0.75)
    assert worst_delta(wrong, 0.75) > 1.5 * stated


# The variances


def twin_variances(made: Strategy) -> np.ndarray:
    """The variance of each query by dense linear algebra over the universe.

    Residuals are rows of one strategy matrix, in units of their noise; the best estimate of the
    workload from them has the covariance W·(BᵀB)⁺·Wᵀ. The number of rows is known exactly.
    """
    rows = [np.full((1, math.prod(SIZES)), 1e3)]
    for chosen, sigma in made.sigma.items():
        part = np.ones((1, 1))
        for place, size in enumerate(SIZES):
            helmert = contrasts(size) / np.sqrt(squared_lengths([size]))[:, None]
            part = np.kron(part, helmert if place in chosen else np.ones((1, size)))
        rows.append(part / sigma)
    matrix = np.vstack(rows)
    asked = universe(QUERIES).T
    inverse = np.linalg.pinv(matrix.T @ matrix, rcond=1e-13, hermitian=True)
    return np.einsum("ij,jk,ik->i", asked, inverse, asked)


def test_the_total_variance_is_that_of_the_dense_twin() -> None:
    made = strategy()
    assert made.total_variance == pytest.approx(twin_variances(made).sum(), rel=1e-4)


def test_no_other_noise_of_the_same_cost_has_a_smaller_total_variance() -> None:
    best = strategy()
    random = np.random.default_rng(0)
    for _ in range(30):
        moved = {c: s * math.exp(0.3 * random.normal()) for c, s in best.sigma.items()}
        other = replace(best, sigma=moved)
        scale = math.sqrt(other.mu_squared / best.mu_squared)
        other = replace(best, sigma={chosen: s * scale for chosen, s in moved.items()})
        assert other.mu_squared == pytest.approx(best.mu_squared)
        assert other.total_variance >= best.total_variance * (1.0 - 1e-12)


def test_a_measured_residual_has_the_stated_noise() -> None:
    counts = np.array([[40, 3, 9], [5, 60, 2]])
    centred = counts - counts.mean(axis=0) - counts.mean(axis=1, keepdims=True) + counts.mean()
    source = SeededSource(4)
    found = np.array([measured_residual(counts, 5.0, source) for _ in range(400)])
    np.testing.assert_allclose(found.mean(axis=0), centred, atol=1.0)
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-9)
    np.testing.assert_allclose(found.var(axis=0), 25.0 * (1 / 2) * (2 / 3), rtol=0.3)


# The whole


@pytest.fixture(scope="module")
def table() -> pa.Table:
    random = np.random.default_rng(7)
    a = random.integers(0, 3, 800)
    b = (random.random(800) < 0.2 + 0.3 * a).astype(int)
    c = np.minimum(a + random.integers(0, 2, 800), 3)
    return pa.table({n: [f"{n}{v}" for v in x] for n, x in zip("abc", (a, b, c), strict=True)})


def truth_of(table: pa.Table) -> np.ndarray:
    codes = [[int(v[1:]) for v in table[name].to_pylist()] for name in "abc"]
    index = np.ravel_multi_index(codes, SIZES)
    return np.bincount(index, minlength=math.prod(SIZES)) @ universe(QUERIES) / len(table)


def test_errors_are_as_large_as_the_strategy_says(table: pa.Table) -> None:
    truth, squares = truth_of(table), 0.0
    for seed in range(12):
        made = MatrixMechanism.fit(
            open_table(table), QUERIES, epsilon=1.0, delta=1e-4, source=SeededSource(seed)
        )
        squares += float(((made.answers(QUERIES) - truth) ** 2).sum()) / 12
    assert squares == pytest.approx(made.strategy.total_variance / 800**2, rel=0.4)
    assert 1.0 - 1e-6 <= made.privacy.epsilon <= 1.0
    assert made.privacy.by_accountant["zcdp"] > made.privacy.epsilon


def test_with_hardly_any_noise_answers_are_true(table: pa.Table) -> None:
    made = MatrixMechanism.fit(
        open_table(table), QUERIES, epsilon=500.0, delta=0.1, source=SystemSource()
    )
    np.testing.assert_allclose(made.answers(QUERIES), truth_of(table), atol=0.01)
    assert made.privacy.private
    everything = Workload.of([parse("a=a0 & b=b0 & c=c0", SMALL)], SMALL)
    assert made.answers(everything).shape == (1,)


def test_under_add_remove_the_number_of_rows_is_not_read(table: pa.Table) -> None:
    given = {"epsilon": 500.0, "delta": 0.1, "neighbours": Neighbours.ADD_REMOVE}
    with pytest.raises(ParameterError, match="reference is missing"):
        MatrixMechanism.fit(open_table(table), QUERIES, source=SeededSource(0), **given)
    made = MatrixMechanism.fit(
        open_table(table), QUERIES, source=SeededSource(0), reference=1600, **given
    )
    assert made.rows == 1600
    assert made.privacy.neighbours is Neighbours.ADD_REMOVE


def test_a_marginal_that_was_not_asked_for_is_refused(table: pa.Table) -> None:
    narrow = QUERIES.take(np.array([0, 1]))
    made = MatrixMechanism.fit(
        open_table(table), narrow, epsilon=1.0, delta=1e-4, source=SeededSource(0)
    )
    with pytest.raises(ParameterError, match="only queries on marginals that its workload asks"):
        made.answers(QUERIES)


def test_what_it_cannot_do_it_says_in_one_line(table: pa.Table) -> None:
    with pytest.raises(ParameterError, match="needs delta above 0"):
        MatrixMechanism.fit(
            open_table(table), QUERIES, epsilon=1.0, delta=0.0, source=SeededSource(0)
        )
    large = Schema(
        tuple(Attribute.categorical(f"x{i}", [str(c) for c in range(300)]) for i in range(3))
    )
    asked = random_marginals(large, 3, 1)
    with pytest.raises(ParameterError, match="would measure 26,999,999 coefficients"):
        MatrixMechanism.fit(
            open_table(table), asked, epsilon=1.0, delta=1e-3, source=SystemSource()
        )


def test_all_subsets_of_asked_marginals_are_measured() -> None:
    expected = {chosen for length in (1, 2, 3) for chosen in combinations(range(3), length)}
    assert set(strategy().sigma) == expected
