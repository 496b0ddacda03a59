"""How much of a dependence a fit loses, and what that means for the error of a range.

A share such as that of `age>=55 & region=south` is a sum of cells. The noise of cells is
independent, and `spread` adds it up so. What a fit loses of a dependence is not: all cells of a
corner are too small together, and the more so the further the corner is from what independent
columns would have. That distance C is public. Rehearsals know the truth, so they say which part λ
of C is typically lost. The error of a range then has the variance v of independent cells and λ²C².
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.model.mixture import Mixture
from dualquery.model.spread import free_variances, independent
from dualquery.model.standard_errors import MOST_LITERALS, ErrorTable

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]

SETS = 30
"""Sets of attributes that are looked at, for each number of attributes."""

RANGES = 20
"""Ranges of each set."""

MOST_CELLS = 5_000
"""Sets with more cells are left out."""


@dataclass(frozen=True, eq=False)
class Rehearsed:
    """What a rehearsal took for the truth, and the fits that it found."""

    truth: Mixture
    fits: tuple[Mixture, ...]


def lost_parts(
    table: ErrorTable,
    rehearsals: Sequence[Rehearsed],
    attributes: Ints,
    generator: np.random.Generator,
) -> Floats:
    """λ for ranges of one attribute, of two and of three.

    The squared errors m² of random ranges are explained as αv + λ²C², by least squares. One
    attribute has no dependence, so its λ is 0; so is that of columns with two codes each, because
    nothing is joined.

    Args:
        table: the standard errors of single cells.
        rehearsals: with truths and fits.
        attributes: those that were modelled.
        generator: public randomness.
    """
    found = np.zeros(MOST_LITERALS)
    sizes = rehearsals[0].truth.schema.sizes
    for count in range(2, MOST_LITERALS + 1):
        seen = [
            _ranges(table, one, chosen, generator)
            for chosen in _sets(attributes, sizes, count, generator)
            for one in rehearsals
        ]
        if seen:
            found[count - 1] = explained(*np.concatenate(seen, axis=1))
    return found


def explained(squares: Floats, variances: Floats, distances: Floats) -> float:
    """λ of m² = αv + λ²C², by least squares; 0 where C explains nothing.

    Args:
        squares: m², the squared error of each range.
        variances: v, that of independent cells.
        distances: C, how far each range is from independence.
    """
    terms = np.column_stack([variances, distances**2])
    scale = np.maximum(np.linalg.norm(terms, axis=0), 1e-300)
    (_, part), *_ = np.linalg.lstsq(terms / scale, squares, rcond=None)
    return float(np.sqrt(max(part / scale[1], 0.0)))


def _sets(
    attributes: Ints, sizes: Ints, count: int, generator: np.random.Generator
) -> list[list[int]]:
    """Random sets of attributes that have codes to join, and not too many cells."""
    found = []
    several = attributes[sizes[attributes] > 2]
    if len(attributes) < count or not len(several):
        return []
    for _ in range(SETS):
        first = generator.choice(several)
        others = generator.choice(attributes[attributes != first], count - 1, replace=False)
        chosen = [int(first), *others.tolist()]
        if sizes[chosen].astype(float).prod() <= MOST_CELLS:
            found.append(chosen)
    return found


def _ranges(
    table: ErrorTable, one: Rehearsed, chosen: list[int], generator: np.random.Generator
) -> Floats:
    """Rows m², v and C of some random ranges of these attributes."""
    fits = np.stack([_cells(fit, chosen) for fit in one.fits])
    away = fits - _cells(one.truth, chosen)
    middle = fits.mean(axis=0)
    apart = middle - independent(middle)
    errors = table.at(np.full(middle.size, len(chosen)), middle.reshape(-1))
    free = free_variances(errors).reshape(middle.shape)
    total = max(float(free.sum()), 1e-300)
    found = np.empty((3, RANGES))
    for number in range(RANGES):
        block = np.ix_(
            *(
                _run(size, generator, least=2 if place == 0 else 1)
                for place, size in enumerate(middle.shape)
            )
        )
        missed = np.array([one[block].sum() for one in away])
        inside = float(free[block].sum())
        square = float(missed.mean()) ** 2
        if len(fits) > 1:  # what depends on the start is taken off, as for single cells
            square -= float(missed.var(ddof=1)) / len(fits)
        found[:, number] = square, inside - inside**2 / total, apart[block].sum()
    return found


def _run(size: int, generator: np.random.Generator, least: int) -> Ints:
    """A run of codes, at least so many and not all of them."""
    length = int(generator.integers(least, max(size, least + 1)))
    first = int(generator.integers(0, size - length + 1))
    return np.arange(first, first + length)


def _cells(model: Mixture, chosen: Sequence[int]) -> Floats:
    """The share of every cell of some attributes, one axis for each."""
    start = model.schema.code_start
    tables = [model.tables[start[a] : start[a + 1]] for a in chosen]
    joint = model.weights[None, :]
    for table in tables[:-1]:
        joint = (joint[:, None, :] * table[None, :, :]).reshape(-1, len(model.weights))
    cells: Floats = (joint @ tables[-1].T).reshape([len(table) for table in tables])
    return cells
