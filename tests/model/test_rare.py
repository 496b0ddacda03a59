"""Rare cells in the model: the term, independent attributes, and dependence."""

import numpy as np
import pytest

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.model.product import fitted_product, margins
from dualquery.model.rare import (
    RareTerm,
    charges_of_independent,
    departures_of_pairs,
    rare_sums,
)
from dualquery.model.stack import Stack
from dualquery.model.strengths import strengths_of_pairs
from dualquery.privacy.events import Noise
from dualquery.privacy.measuring import Measurement
from dualquery.privacy.rare import Rare
from dualquery.workloads.marginals import Groups, Marginals
from dualquery.workloads.rare import RareCells
from tests.rows.test_rare import sets_of

WIDTH, ROWS = 9, 4_000
SCHEMA = Schema(tuple(Attribute.binary(f"x{i}") for i in range(WIDTH + 2)))
USED = np.arange(1, WIDTH + 1)  # not all attributes of the schema are modelled
STACK = Stack.of(SCHEMA, USED)
CODES = np.array([0, 1, 0, 1, 1, 0, 0, 1, 1, 0, 0], np.uint8)


def rare_of(codes: np.ndarray, arity: int, scale: float, random: np.random.Generator) -> Rare:
    sets = (sets_of(WIDTH, arity) + 1).astype(np.int32)
    weights = np.where(np.arange(len(sets)) % 2, 4, 1).astype(np.int64)
    cells = RareCells(sets, CODES, weights)
    counts = (codes[:, sets] == CODES[sets]).all(axis=2).sum(axis=0)
    noise = scale / np.sqrt(weights) * random.standard_normal(len(sets))
    return Rare(cells, 100, scale, np.rint(counts + noise).astype(np.int64))


def one_way(codes: np.ndarray, scale: float, random: np.random.Generator) -> Measurement:
    marginals = Marginals(Groups.single(SCHEMA), USED[:, None].astype(np.int32))
    ones = codes[:, USED].sum(axis=0)
    counts = np.column_stack([len(codes) - ones, ones]).reshape(-1)
    noise = scale * random.standard_normal(len(counts))
    return Measurement(marginals, Noise.GAUSSIAN, scale, np.rint(counts + noise).astype(np.int64))


def rows_of(random: np.random.Generator, shares: np.ndarray | None = None) -> np.ndarray:
    shares = random.uniform(0.1, 0.9, WIDTH + 2) if shares is None else shares
    return (random.random((ROWS, WIDTH + 2)) < shares).astype(np.int64)


def test_the_term_is_the_sum_of_squares_and_its_slopes() -> None:
    random = np.random.default_rng(0)
    codes = rows_of(random)
    measured = [rare_of(codes, arity, 20.0, random) for arity in (1, 2, 3)]
    measured.append(rare_of(codes, 1, 35.0, random))  # measured again
    term = RareTerm(STACK, measured, ROWS)

    def value(tables: np.ndarray, weights: np.ndarray) -> float:
        found = 0.0
        for one in measured:
            for t, chosen in enumerate(one.cells.attributes):
                rows = 2 * (chosen - 1) + CODES[chosen]
                share = float((tables[rows].prod(axis=0) * weights).sum())
                found -= 0.5 * (one.counts[t] - ROWS * share) ** 2 / one.variances[t]
        return found

    tables = random.uniform(0.05, 0.95, (2 * WIDTH, 3))
    weights = np.array([0.5, 0.3, 0.2])
    found = term.slopes(tables.astype(np.float32), weights.astype(np.float32))
    # Sums about the same set are pooled, which changes the value by a constant.
    others = random.uniform(0.05, 0.95, (2 * WIDTH, 3))
    other = term.slopes(others.astype(np.float32), weights.astype(np.float32))
    expected = value(tables, weights) - value(others, weights)
    assert found.value - other.value == pytest.approx(expected, rel=1e-3)
    for row, component in ((0, 0), (5, 2), (9, 1), (14, 0)):
        up, down = tables.copy(), tables.copy()
        up[row, component] += 1e-5
        down[row, component] -= 1e-5
        slope = (value(up, weights) - value(down, weights)) / 2e-5
        assert found.by_table[row, component] == pytest.approx(slope, rel=2e-3, abs=2e-2)
    for component in range(3):
        step = 1e-5 * np.eye(3)[component]
        slope = (value(tables, weights + step) - value(tables, weights - step)) / 2e-5
        assert found.by_weight[component] == pytest.approx(slope, rel=2e-3)


def test_independent_attributes_are_found_with_the_stated_variance() -> None:
    """From tables and rare cells together; rare cells of both codes are among them."""
    random = np.random.default_rng(3)
    codes = rows_of(random)
    shares = codes[:, USED].mean(axis=0)
    ratios, plain = [], []
    for _ in range(80):
        tables = [one_way(codes, 60.0, random)]
        rare = [rare_of(codes, 1, 50.0, random), rare_of(codes, 2, 90.0, random)]
        found = fitted_product(STACK, tables, ROWS, rare)
        ratios.append((found.share - shares) ** 2 / found.variance)
        alone = margins(STACK, tables, ROWS, rare[:1])
        plain.append((alone.share - shares) ** 2 / alone.variance)
        assert (found.variance < alone.variance).all()
    # Pairs of the table depart from independence by chance, which is not noise.
    assert 0.8 < np.mean(ratios) < 1.6
    assert 0.85 < np.mean(plain) < 1.15


def test_sums_of_the_same_cell_are_pooled() -> None:
    random = np.random.default_rng(1)
    codes = rows_of(random)
    first, second = rare_of(codes, 2, 10.0, random), rare_of(codes, 2, 20.0, random)
    pooled = rare_sums(STACK, [first, second, rare_of(codes, 1, 5.0, random)], 2)
    precision = 1 / first.variances + 1 / second.variances
    np.testing.assert_allclose(pooled.precision, precision)
    expected = (first.counts / first.variances + second.counts / second.variances) / precision
    np.testing.assert_allclose(pooled.sums, expected)


def shares_and_variance(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rare = (codes[:, USED] == CODES[USED]).mean(axis=0)
    return rare, np.full(WIDTH, 1e-9)


def test_independent_columns_depart_from_independence_by_chance_and_noise_only() -> None:
    random = np.random.default_rng(5)
    overall, shared = [], []
    for _ in range(200):
        codes = rows_of(random, np.linspace(0.1, 0.6, WIDTH + 2))
        pairs = rare_of(codes, 2, 15.0, random)
        share, variance = shares_and_variance(codes)
        found = departures_of_pairs(STACK, [pairs], share, variance, ROWS, 1.0)
        overall.append(found.overall)
        shared.append(found.shared)
    assert abs(np.mean(shared)) < 0.25
    assert 0.85 < np.std(shared) < 1.15
    assert abs(np.mean(overall)) < 0.35


def test_records_with_more_rare_codes_are_seen_where_no_pair_shows_them() -> None:
    random = np.random.default_rng(6)
    busy = random.random(ROWS) < 0.3
    shares = np.where(busy[:, None], 0.30, 0.14) * np.ones(WIDTH + 2)
    on = random.random((ROWS, WIDTH + 2)) < shares
    codes = np.where(CODES == 1, on, ~on).astype(np.int64)
    pairs = rare_of(codes, 2, 30.0, random)
    share, variance = shares_and_variance(codes)
    found = departures_of_pairs(STACK, [pairs], share, variance, ROWS, 1.0)
    assert found.shared > 1.5 * found.overall
    assert found.shared > 3.0
    precise = rare_of(codes, 2, 5.0, random)
    precise = departures_of_pairs(STACK, [precise], share, variance, ROWS, 1.0)
    assert precise.square == pytest.approx(_mean_square(codes), rel=0.4)


def _mean_square(codes: np.ndarray) -> float:
    found = np.corrcoef(codes[:, USED].T)[np.triu_indices(WIDTH, 1)]
    return float((found**2).mean() - 1.0 / ROWS)


def test_charges_of_independent_attributes() -> None:
    random = np.random.default_rng(7)
    share = random.uniform(0.05, 0.5, 30)
    rows = random.random((40_000, 30)) < share
    for sets, weights in (
        (np.arange(30)[:, None], random.integers(1, 9, 30)),
        (sets_of(30, 2)[::3].astype(np.int64), np.ones(145, np.int64)),
    ):
        charged = rows[:, sets].all(axis=2) @ weights
        mean, spread = charges_of_independent(share, sets, weights)
        assert mean == pytest.approx(charged.mean(), rel=0.01)
        assert spread == pytest.approx(charged.std(), rel=0.03)


def test_attributes_whose_pairs_depart_are_shrunk_less() -> None:
    found = strengths_of_pairs(4, np.array([[0, 1], [1, 2]]), np.array([0.0, 50.0]))
    assert found[0] == found[3] == 80.0
    assert found[1] == found[2] == pytest.approx(80.0 / 11.0)
