"""What fits lose of a dependence, and what that does to the errors of ranges."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.model.joined import Rehearsed, explained, lost_parts
from dualquery.model.mixture import Mixture
from dualquery.model.spread import independent
from dualquery.model.standard_errors import LEVELS, MOST_LITERALS, ErrorTable

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


def flat(scale: float) -> ErrorTable:
    return ErrorTable(np.full((MOST_LITERALS, len(LEVELS) - 1), scale))


def test_independent_cells_have_the_same_margins() -> None:
    random = np.random.default_rng(1)
    cells = random.dirichlet(np.ones(24)).reshape(2, 3, 4)
    found = independent(cells)
    plain = np.empty_like(cells)
    for i, j, k in np.ndindex(cells.shape):
        plain[i, j, k] = cells[i].sum() * cells[:, j].sum() * cells[:, :, k].sum()
    np.testing.assert_allclose(found, plain)


@pytest.mark.parametrize("part", [0.0, 0.1, 0.3])
def test_the_lost_part_is_found_beside_noise(part: float) -> None:
    """Errors of standard deviation √(2v), and λC that are always too small: λ comes out."""
    random = np.random.default_rng(2)
    variances = random.uniform(0.5, 2.0, 40_000)
    distances = random.normal(scale=10.0, size=len(variances))
    errors = np.sqrt(2.0 * variances) * random.standard_normal(len(variances)) - part * distances
    found = explained(errors**2, variances, distances)
    assert abs(found - part) < 0.03


def test_fits_that_lose_a_fifth_of_every_pair() -> None:
    """Both columns of a pair are tilted √0.8 times as much: 0.25 of what is left was lost."""
    weak = dependent(0.8 * np.sqrt(0.8))
    rehearsed = [Rehearsed(dependent(0.8), (weak, weak))]
    found = lost_parts(flat(1e-6), rehearsed, np.arange(3), np.random.default_rng(3))
    assert found[0] == 0.0
    np.testing.assert_allclose(found[1], 0.25, rtol=1e-3)
    assert 0.2 < found[2] < 0.3


def test_a_part_that_depends_on_the_start_is_taken_off() -> None:
    fits = (dependent(0.8), dependent(0.8 * np.sqrt(0.8)))
    both = lost_parts(
        flat(1e-6), [Rehearsed(dependent(0.8), fits)], np.arange(3), np.random.default_rng(3)
    )
    np.testing.assert_allclose(both, 0.0, atol=1e-3)


def test_nothing_is_joined_where_columns_have_two_codes() -> None:
    sizes = (2, 2, 2)
    rehearsed = [Rehearsed(dependent(0.8, sizes), (dependent(0.2, sizes),))]
    found = lost_parts(flat(1e-6), rehearsed, np.arange(3), np.random.default_rng(3))
    assert not found.any()
