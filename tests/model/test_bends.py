"""How cells move together if a dependence is off, beside least squares and simulated tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from dualquery.model.bends import bends, scores

Floats = npt.NDArray[np.float64]


def by_least_squares(pair: Floats, one: Floats, other: Floats) -> Floats:
    """The product of two scores without what rows and columns explain, times the shares."""
    rows, columns = pair.shape
    design = np.concatenate(
        [
            np.kron(np.eye(rows), np.ones((1, columns))),
            np.kron(np.ones((1, rows)), np.eye(columns)),
        ]
    ).T
    root, product = np.sqrt(pair.reshape(-1)), np.outer(one, other).reshape(-1)
    explained = np.linalg.lstsq(design * root[:, None], product * root, rcond=None)[0]
    found: Floats = (pair.reshape(-1) * (product - design @ explained)).reshape(pair.shape)
    return found


def by_rank(shares: Floats) -> Floats:
    """The middle ranks of codes, with mean 0 and variance 1."""
    middle = np.array([shares[:code].sum() + share / 2.0 for code, share in enumerate(shares)])
    middle -= shares @ middle
    found: Floats = middle / np.sqrt(shares @ middle**2)
    return found


def nearly_independent(shape: Sequence[int], seed: int = 1) -> Floats:
    random = np.random.default_rng(seed)
    found = np.ones((1,) * len(shape))
    for axis, size in enumerate(shape):
        own = random.dirichlet(3.0 * np.ones(size))
        found = found * own.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    found = found * random.uniform(0.8, 1.2, tuple(shape))
    return found / found.sum()


def test_ordered_columns_move_along_their_ranks_alone() -> None:
    pair = nearly_independent((4, 5))
    (moved,) = bends(pair, [True, True], lambda i, j: 0.1)
    expected = 0.1 * by_least_squares(pair, by_rank(pair.sum(1)), by_rank(pair.sum(0)))
    np.testing.assert_allclose(moved.reshape(pair.shape), expected, atol=1e-9)


@pytest.mark.parametrize("linear", [True, False])
def test_directions_have_mean_zero_and_squares_of_mean_one(linear: bool) -> None:
    shares = np.random.default_rng(2).dirichlet(np.ones(6))
    found = scores(shares, linear=linear)
    assert len(found) == (1 if linear else 6)
    np.testing.assert_allclose(found @ shares, 0.0, atol=1e-12)
    assert shares @ (found**2).sum(axis=0) == pytest.approx(1.0)


def test_no_pair_moves_the_shares_of_its_columns() -> None:
    joint = nearly_independent((3, 4, 2))
    for pair in ((0, 1), (0, 2), (1, 2)):
        moved = bends(joint, [True, False, False], lambda i, j, own=pair: 0.2 * ((i, j) == own))
        for axis in pair:
            others = tuple(1 + a for a in range(3) if a != axis)
            rest = moved.reshape(-1, *joint.shape).sum(axis=others)
            np.testing.assert_allclose(rest, 0.0, atol=1e-9)


def test_each_pair_is_off_by_its_own_error() -> None:
    """Three yes/no columns: one direction per pair, and the third column moves nothing in it."""
    joint = nearly_independent((2, 2, 2))
    errors = {(0, 1): 0.1, (0, 2): 0.0, (1, 2): 0.3}
    moved = bends(joint, [False] * 3, lambda i, j: errors[i, j]).reshape(-1, 2, 2, 2)
    assert len(moved) == 2
    for one, (i, j) in zip(moved, [(0, 1), (1, 2)], strict=True):
        (other,) = {0, 1, 2} - {i, j}
        pair = joint.sum(axis=other)
        expected = by_least_squares(pair, by_rank(pair.sum(1)), by_rank(pair.sum(0)))
        np.testing.assert_allclose(one.sum(axis=other), errors[i, j] * expected, atol=1e-9)


def test_a_correlation_moves_by_its_error() -> None:
    """Of independent ordered columns, by rank: a bend is one standard error of the correlation."""
    one, other = (np.random.default_rng(seed).dirichlet(np.ones(7)) for seed in (3, 4))
    (moved,) = bends(np.outer(one, other), [True, True], lambda i, j: 0.07)
    assert by_rank(one) @ moved.reshape(7, 7) @ by_rank(other) == pytest.approx(0.07)
