"""What noisy pair tables say: the table without noise, the forest, what determines what."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ndtr

import dualquery as dq
from dualquery.model.forest._cleaning_kernels import slopes_beyond_margins
from dualquery.model.forest.cleaning import cleaned, raked, smoothed
from dualquery.model.forest.pairs import Pairs
from dualquery.model.stack import Stack
from dualquery.privacy.events import Noise
from dualquery.privacy.measuring import Measurement
from dualquery.workloads.marginals import Groups, Marginals

ROWS, NOISE = 50_000.0, 95.0


def normal(correlation: float, rows: int = 14, columns: int = 12) -> np.ndarray:
    """Two normal variables that were cut into bins."""
    random = np.random.default_rng(7)
    one = random.normal(size=400_000)
    other = correlation * one + np.sqrt(1 - correlation**2) * random.normal(size=400_000)
    found, *_ = np.histogram2d(ndtr(one), ndtr(other), [rows, columns], [[0, 1], [0, 1]])
    return found * ROWS / found.sum()


def categories(codes: int = 40, kinds: int = 8) -> np.ndarray:
    """Codes and the one category of each; later codes are rarer."""
    shares = 0.9 ** np.arange(codes)
    table = np.zeros((codes, kinds))
    table[np.arange(codes), np.arange(codes) % kinds] = shares * ROWS / shares.sum()
    return table


def noisy(table: np.ndarray, seed: int) -> np.ndarray:
    return table + NOISE * np.random.default_rng(seed).standard_normal(table.shape)


def away(found: np.ndarray, table: np.ndarray) -> float:
    return float(np.abs(found - table).sum() / 2.0 / ROWS)


@pytest.mark.parametrize("correlation", [0.3, 0.8])
def test_a_smooth_relation_loses_nearly_all_of_its_noise(correlation: float) -> None:
    table = normal(correlation)
    for seed in range(3):
        counts = noisy(table, seed)
        found = cleaned(counts, table.sum(1), table.sum(0), NOISE, ordered=True)
        assert away(found, table) < 0.04
        assert away(raked(np.maximum(counts, 1.0), table.sum(1), table.sum(0)), table) > 0.08


def test_empty_cells_of_a_determined_pair_stay_empty() -> None:
    table = categories()
    for seed in range(3):
        found = cleaned(noisy(table, seed), table.sum(1), table.sum(0), NOISE, ordered=False)
        assert away(found, table) < 0.05
        frequent, empty = found[:8], table[:8] == 0.0
        assert frequent[empty].sum() < 0.02 * frequent.sum()
        assert (frequent[empty] < 1.0).mean() > 0.9


def test_independence_is_not_fitted_with_noise() -> None:
    table = np.outer([0.5, 0.2, 0.2, 0.1], [0.3, 0.3, 0.4]) * 4_000.0
    found = cleaned(noisy(table, 1), table.sum(1), table.sum(0), NOISE, ordered=True)
    assert np.abs(found - table).sum() < np.abs(noisy(table, 1) - table).sum() / 2.0


def test_the_margins_are_kept_and_nothing_is_below_zero() -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        rows, columns = random.dirichlet(np.ones(5)) * 1e4, random.dirichlet(np.ones(4)) * 1e4
        counts = random.normal(0.0, 300.0, (5, 4)) + np.outer(rows, columns) / 1e4
        found = cleaned(counts, rows, columns, 300.0, ordered=bool(random.integers(2)))
        assert (found > 0.0).all()
        assert np.allclose(found.sum(axis=1), rows, rtol=0.02, atol=1.0)
        assert np.allclose(found.sum(axis=0), columns, rtol=0.02, atol=1.0)


def test_the_same_counts_are_cleaned_alike() -> None:
    counts = noisy(normal(0.5), 4)
    margins = normal(0.5).sum(1), normal(0.5).sum(0)
    one, other = (cleaned(counts, *margins, NOISE, ordered=True) for _ in range(2))
    assert np.array_equal(one, other)


# Kernels and their twins


def test_raking_is_its_plain_twin() -> None:
    random = np.random.default_rng(5)
    rows, columns = random.dirichlet(np.ones(6)), random.dirichlet(np.ones(3))
    table = random.random((6, 3))
    plain = table.copy()
    for _ in range(200):
        plain *= (rows / plain.sum(axis=1))[:, None]
        plain *= columns / plain.sum(axis=0)
    found = raked(table, rows, columns)
    assert np.allclose(found, plain, rtol=1e-3)
    odds = found / table
    assert np.allclose(odds[1:, 1:] * odds[0, 0], odds[1:, :1] * odds[:1, 1:])


def test_slopes_are_the_difference_quotients_of_raked_tables() -> None:
    random = np.random.default_rng(6)
    rows, columns = 100 * random.dirichlet(np.ones(5)), 100 * random.dirichlet(np.ones(4))
    columns *= rows.sum() / columns.sum()
    table = np.outer(rows, columns) / rows.sum()
    for _ in range(100):
        table = raked(table, rows, columns)
    powers = random.normal(size=(2, 5, 4))
    found = np.empty((2, 20))
    slopes_beyond_margins(powers, table, 60, found)
    for power, slope in zip(powers, found, strict=True):
        sides = []
        for step in (1e-4, -1e-4):
            moved = table * np.exp(step * power)
            for _ in range(100):
                moved = moved * (rows / moved.sum(axis=1))[:, None]
                moved = moved * (columns / moved.sum(axis=0))
            sides.append(moved)
        assert np.allclose((sides[0] - sides[1]).ravel() / 2e-4, slope, atol=1e-3)


def test_a_higher_degree_fits_no_worse() -> None:
    table = normal(0.8)
    counts = noisy(table, 8)
    squares = [
        float(((smoothed(counts, table.sum(1), table.sum(0), NOISE, order) - counts) ** 2).sum())
        for order in (0, 1, 2)
    ]
    assert all(one > other for one, other in pairwise(squares[:2]))
    assert squares[2] < 1.001 * squares[1]


# Pairs together


def pairs_of(tables: dict[tuple[int, int], np.ndarray], *, noise: float = 20.0) -> Pairs:
    """Measured pairs of some attributes; a pair may be measured as a chain of two tables."""
    sizes: dict[int, int] = {}
    for (a, b), table in tables.items():
        sizes[a], sizes[b] = table.shape
    schema = dq.Schema.from_dict(
        {"attributes": {f"a{i}": {"values": list(range(sizes[i]))} for i in sorted(sizes)}}
    )
    stack = Stack.of(schema, sorted(sizes))
    shares = np.empty(stack.rows)
    for (a, b), table in tables.items():
        for i, axis in ((a, 1), (b, 0)):
            shares[stack.start[i] : stack.start[i + 1]] = table.sum(axis=axis) / table.sum()
    marginals = Marginals(Groups.single(schema), np.array(sorted(tables), dtype=np.int32))
    random = np.random.default_rng(9)
    cells = np.concatenate([tables[pair].ravel() for pair in sorted(tables)])
    measured = [
        Measurement(
            marginals, Noise.GAUSSIAN, noise,
            np.rint(cells + noise * random.standard_normal(len(cells))).astype(np.int64),
        )
        for _ in range(2)
    ]  # fmt: skip
    return Pairs(stack, shares, ROWS).of(measured)


def chain() -> dict[tuple[int, int], np.ndarray]:
    """a1 is a coarser a0; a2 depends on a0, and on a1 only through it; a3 on nothing."""
    random = np.random.default_rng(10)
    fine = random.dirichlet(np.full(6, 5.0))
    given = random.dirichlet(np.full(4, 0.7), 6)
    coarse = np.zeros((6, 2))
    coarse[np.arange(6), np.arange(6) // 3] = 1.0
    last = np.full(3, 1.0 / 3.0)
    table = fine[:, None] * given
    return {
        (0, 1): ROWS * fine[:, None] * coarse,
        (0, 2): ROWS * table,
        (1, 2): ROWS * coarse.T @ table,
        (2, 3): ROWS * table.sum(axis=0)[:, None] * last,
    }


def test_two_measurements_are_one_that_is_more_precise() -> None:
    found = pairs_of(chain()).measured[0, 2]
    assert found.variance == pytest.approx((20.0**2 + 1 / 12) / 2.0, rel=0.01)


def test_a_determined_attribute_hangs_on_what_determines_it() -> None:
    found = pairs_of(chain())
    assert found.determined() == {1: 0}
    trees = found.forest(8, np.zeros(4, dtype=bool))
    edges = {tuple(sorted((int(trees.parent[c]), int(c)))) for c in trees.children}
    assert edges == {(0, 1), (0, 2)}  # neither a1 and a2, nor the independent a3


def test_nothing_hangs_on_a_bin_whose_number_is_measured() -> None:
    """The bin's table is smaller, so that noise may make it seem to say more."""
    tables = chain()
    fine, last = tables[0, 1].sum(axis=1), tables[1, 2].sum(axis=0)
    strong = 0.5 * np.outer(tables[0, 1].sum(axis=0), last) / ROWS
    strong[0, 0] += 0.5 * tables[1, 2].sum(axis=1)[0]
    strong[1, 1:] += 0.5 * tables[1, 2].sum(axis=1)[1] * last[1:] / last[1:].sum()
    tables[1, 2] = strong
    tables[0, 2] = np.outer(fine, strong.sum(axis=0)) / ROWS * 0.2 + 0.8 * (
        fine[:, None] * (strong / strong.sum(axis=1, keepdims=True))[np.arange(6) // 3]
    )
    tables[2, 3] = np.outer(strong.sum(axis=0), np.full(3, 1.0 / 3.0))
    found = pairs_of(tables)  # as if noise had taken a part of the number's relation
    said = {
        pair: float(
            (found.table(*pair) * np.log(found.table(*pair) / found.independent(*pair))).sum()
        )
        for pair in ((0, 2), (1, 2))
    }
    trees = found.forest(8, np.zeros(4, dtype=bool))
    edges = {tuple(sorted((int(trees.parent[c]), int(c)))) for c in trees.children}
    assert said[1, 2] > said[0, 2]
    assert edges == {(0, 1), (0, 2)}


def test_a_table_is_turned_with_its_pair() -> None:
    found = pairs_of(chain())
    assert np.array_equal(found.table(2, 0), found.table(0, 2).T)


def test_an_attribute_that_must_stand_alone_does() -> None:
    trees = pairs_of(chain()).forest(8, np.array([True, False, False, False]))
    assert 0 not in trees.parent.tolist()
    assert trees.parent[0] == -1


def test_ties_make_the_cleaned_table() -> None:
    found = pairs_of(chain())
    trees = found.forest(8, np.zeros(4, dtype=bool))
    ties = found.ties(trees)
    start = trees.tie_start(np.diff(found.stack.start))
    for e, (a, b) in enumerate(zip(trees.parents.tolist(), trees.children.tolist(), strict=True)):
        block = ties[start[e] : start[e + 1]].reshape(len(found.alone(a)), -1)
        shares = np.exp(block) * found.alone(b)
        shares /= shares.sum(axis=1, keepdims=True)
        table = found.alone(a)[:, None] * shares
        assert np.abs(table - found.table(a, b)).sum() < 0.01 * ROWS
        true = chain()[min(a, b), max(a, b)]
        assert np.abs(table - (true.T if a > b else true)).sum() < 0.03 * ROWS
