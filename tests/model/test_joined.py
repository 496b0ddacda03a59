"""What fits lose of a dependence, and what that does to the errors of ranges."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.model.joined import Rehearsed, lost_part, lost_parts
from dualquery.model.mixture import Mixture
from dualquery.model.spread import independent

SIZES = (6, 5, 2)


def schema(sizes: tuple[int, ...] = SIZES) -> Schema:
    return Schema(
        tuple(Attribute.categorical(f"a{i}", list(range(s))) for i, s in enumerate(sizes))
    )


def dependent(strength: float, sizes: tuple[int, ...] = SIZES) -> Mixture:
    """Two components that pull all columns the same way; the margins do not depend on it.

    Every pair is as far from independence as the square of the strength says.
    """
    tables = []
    for size in sizes:
        tilt = strength * np.linspace(-1.0, 1.0, size) / size
        tables.append(np.column_stack([1.0 / size + tilt, 1.0 / size - tilt]))
    return Mixture(schema(sizes), np.array([0.5, 0.5]), np.concatenate(tables))


def test_independent_cells_have_the_same_margins() -> None:
    random = np.random.default_rng(1)
    cells = random.dirichlet(np.ones(24)).reshape(2, 3, 4)
    found = independent(cells)
    plain = np.empty_like(cells)
    for i, j, k in np.ndindex(cells.shape):
        plain[i, j, k] = cells[i].sum() * cells[:, j].sum() * cells[:, :, k].sum()
    np.testing.assert_allclose(found, plain)


@pytest.mark.parametrize("part", [0.0, 0.05, 0.3])
def test_the_lost_part_is_found_beside_noise(part: float) -> None:
    """Fits that keep 1/(1 + λ) of C, with noise as large as C: λ comes out."""
    random = np.random.default_rng(2)
    true = random.normal(scale=10.0, size=40_000)
    kept = true / (1.0 + part) + random.normal(scale=10.0, size=len(true))
    assert abs(lost_part(true, kept) - part) < 0.02


def test_where_nothing_depends_nothing_is_lost() -> None:
    none = np.zeros(5)
    assert lost_part(none, none) == 0.0
    assert lost_part(np.ones(5), np.full(5, 1.2)) == 0.0


def test_fits_that_lose_a_fifth_of_every_pair() -> None:
    """Both columns of a pair are tilted √0.8 times as much: 0.25 of what is left was lost."""
    weak = dependent(0.8 * np.sqrt(0.8))
    rehearsed = [Rehearsed(dependent(0.8), (weak, weak))]
    found = lost_parts(rehearsed, np.arange(3), np.random.default_rng(3))
    assert found[0] == 0.0
    np.testing.assert_allclose(found[1], 0.25, rtol=1e-3)
    assert 0.2 < found[2] < 0.3


def test_an_average_of_fits_loses_what_they_lose_on_average() -> None:
    """One fit loses nothing, the other a fifth of every pair: a tenth of it all is gone."""
    fits = (dependent(0.8), dependent(0.8 * np.sqrt(0.8)))
    both = lost_parts([Rehearsed(dependent(0.8), fits)], np.arange(3), np.random.default_rng(3))
    np.testing.assert_allclose(both[1], 1.0 / 0.9 - 1.0, rtol=1e-3)


def test_nothing_is_joined_where_columns_have_two_codes() -> None:
    sizes = (2, 2, 2)
    rehearsed = [Rehearsed(dependent(0.8, sizes), (dependent(0.2, sizes),))]
    found = lost_parts(rehearsed, np.arange(3), np.random.default_rng(3))
    assert not found.any()
