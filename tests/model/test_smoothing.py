"""The algebra behind a smooth density, against plain dense matrices."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.model.smoothing import (
    Cells,
    Chance,
    Curvature,
    Observed,
    Smoothing,
    applied,
    differences,
    squared,
)


def dense_rows(rows: np.ndarray) -> np.ndarray:
    width = rows.shape[1]
    dense = np.zeros((len(rows), len(rows) + width - 1))
    for i in range(len(rows)):
        dense[i, i : i + width] = rows[i]
    return dense


@pytest.mark.parametrize("order", [2, 3])
def test_the_banded_matrix_is_the_dense_one(order: int) -> None:
    random = np.random.default_rng(3)
    rows = differences(np.sort(random.random(9)), order)
    dense, dear = dense_rows(rows), random.random(9 - order)
    expected = dense.T @ np.diag(dear) @ dense
    found = squared(rows, dear, order + 1)
    for above in range(order + 1):
        np.testing.assert_allclose(found[order - above, above:], np.diag(expected, above))
    f = random.random(9)
    np.testing.assert_allclose(applied(rows, f), dense @ f)


@pytest.mark.parametrize("order", [2, 3])
def test_differences_are_those_of_a_derivative(order: int) -> None:
    """Polynomials of a lower degree cost nothing; the others cost the integral of the square."""
    at = np.linspace(0.0, 1.0, 201) ** 1.1
    rows = differences(at, order)
    for degree in range(order):
        np.testing.assert_allclose(applied(rows, at**degree), 0.0, atol=1e-4)
    power = order + 1
    factor = float(np.prod(np.arange(2, power + 1)))  # of x in the derivative
    assert (applied(rows, at**power) ** 2).sum() == pytest.approx(factor**2 / 3.0, rel=0.05)


def test_the_curvature_is_bands_and_ranks() -> None:
    random = np.random.default_rng(5)
    rows = differences(np.sort(random.random(12)), 3)
    bands = squared(rows, np.full(9, 1e-6), 4)
    bands[-1] += 1.0 + random.random(12)
    pulls, weights = random.random((3, 12)), 1.0 + random.random(3)
    held = Curvature(bands, pulls, weights)
    dense = np.zeros((12, 12))
    for above in range(4):
        dense += np.diag(bands[3 - above, above:], above)
    dense = dense + np.triu(dense, 1).T + pulls.T @ np.diag(weights) @ pulls
    right = random.random(12)
    np.testing.assert_allclose(held.solve(right), np.linalg.solve(dense, right))
    assert held.log_determinant == pytest.approx(np.linalg.slogdet(dense)[1])
    plain = Curvature(bands, pulls[:0], weights[:0])
    np.testing.assert_allclose(
        plain.solve(right), np.linalg.solve(dense - pulls.T @ np.diag(weights) @ pulls, right)
    )


def test_tables_are_put_together() -> None:
    counts = np.array([10.0, 20.0, 30.0, 40.0])
    again = Cells(np.array([0, 1, 1, 2]), np.array([16.0, 51.0, 40.0]), 2.0)
    found = Observed.of(counts, 4.0, (again,))
    np.testing.assert_allclose(found.counts, [(10 / 16 + 16 / 4) / (1 / 16 + 1 / 4), 20, 30, 40])
    np.testing.assert_allclose(found.noise, [3.2**0.5, 4.0, 4.0, 3.2**0.5])
    assert found.members.tolist() == [[False, True, True, False]]
    assert found.sums.tolist() == [51.0]
    assert found.sum_noise.tolist() == [2.0]


def test_a_fit_is_where_nothing_nearby_is_better() -> None:
    random = np.random.default_rng(1)
    middles = np.linspace(0.05, 0.95, 10)
    true = 1000.0 * np.exp(-((middles - 0.4) ** 2) * 8.0)
    again = Cells(np.arange(10) // 5, np.array([true[:5].sum(), true[5:].sum()]), 5.0)
    observed = Observed.of(true + random.normal(0.0, 30.0, 10), 30.0, (again,))
    problem = Smoothing(
        observed, float(true.sum()), np.full(10, 0.1), middles, 3, np.zeros(8, dtype=bool)
    )
    precision, sums = problem.precision, problem.sum_precision
    f, cost = problem._fit(np.zeros(10), 1e-4, precision, sums)
    for _ in range(50):
        moved = f + 1e-3 * random.normal(size=10)
        assert problem._cost(moved, 1e-4, precision, sums) >= cost - 1e-9


def test_rows_that_are_known_leave_every_count_that_holds_them() -> None:
    again = Cells(np.array([0, 1, 1, 1]), np.array([16.0, 90.0]), 2.0)
    observed = Observed.of(np.array([10.0, 20.0, 30.0, 40.0]), 4.0, (again,))
    found = observed.without(np.array([0.0, 0.0, 0.0, 1.0]))
    np.testing.assert_allclose(found.counts, observed.counts - [0.0, 0.0, 0.0, 1.0])
    assert found.sums.tolist() == [89.0]
    np.testing.assert_array_equal(found.noise, observed.noise)


@pytest.mark.parametrize("tables", [0, 1, 3])
def test_counts_that_overlap_are_heard_together(tables: int) -> None:
    """A plain twin: rows are independent normals, and all counts are conditions on them at once."""
    random = np.random.default_rng(tables)
    expected = random.uniform(5.0, 400.0, 9)
    rows = expected + np.sqrt(expected) * random.normal(size=9)
    cells = [np.arange(9) // 3, np.arange(9) // 5, np.zeros(9, dtype=int)][:tables]
    again = [
        Cells(of, np.bincount(of, rows) + random.normal(0.0, 7.0 - i, of.max() + 1), 7.0 - i)
        for i, of in enumerate(cells)
    ]
    observed = Observed.of(rows + random.normal(0.0, 12.0, 9), 12.0, again)
    seen = np.vstack([np.eye(9), *(np.eye(of.max() + 1)[:, of] for of in cells)])
    told = np.concatenate([observed.counts, *(one.counts for one in again)])
    noise = np.concatenate(
        [np.full(9, 12.0), *(np.full(len(one.counts), one.noise) for one in again)]
    )
    prior = np.diag(expected)
    both = seen @ prior @ seen.T + np.diag(noise**2)
    gain = prior @ seen.T @ np.linalg.inv(both)
    found = Chance.of(expected, observed)
    np.testing.assert_allclose(found.counts, expected + gain @ (told - seen @ expected))
    moves = random.normal(size=(4, 9))
    left = prior - gain @ seen @ prior
    np.testing.assert_allclose(found.covariance(moves), moves @ left @ moves.T)
