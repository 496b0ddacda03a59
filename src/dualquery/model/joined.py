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
from dualquery.model.spread import independent
from dualquery.model.standard_errors import MOST_LITERALS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer]

SETS = 30
"""Sets of attributes that are looked at, for each number of attributes."""

RANGES = 20
"""Ranges of each set."""

LEAST_LEFT = 0.25
"""A fit that has lost more than the rest of this says nothing about how much there was."""

MOST_CELLS = 5_000
"""Sets with more cells are left out."""


@dataclass(frozen=True, eq=False)
class Rehearsed:
    """What a rehearsal took for the truth, and the fits that it found."""

    truth: Mixture
    fits: tuple[Mixture, ...]


def lost_parts(
    rehearsals: Sequence[Rehearsed], attributes: Ints, generator: np.random.Generator
) -> Floats:
    """λ for ranges of one attribute, of two and of three.

    One attribute has no dependence, so its λ is 0; so is that of columns with two codes each,
    because nothing is joined.

    Args:
        rehearsals: with truths and fits.
        attributes: those that were modelled.
        generator: public randomness.
    """
    found = np.zeros(MOST_LITERALS)
    sizes = rehearsals[0].truth.schema.sizes
    for count in range(2, MOST_LITERALS + 1):
        seen = [
            _ranges(one, chosen, generator)
            for chosen in _sets(attributes, sizes, count, generator)
            for one in rehearsals
        ]
        if seen:
            found[count - 1] = lost_part(*np.concatenate(seen, axis=1))
    return found


def lost_part(true: Floats, kept: Floats) -> float:
    """λ: what is lost, as a part of what is left.

    What is lost has a sign: fits draw every range towards independence. So the line through zero
    that gives C in the fits from C in the truth says which part is left. Noise of the fits leaves
    that line where it is. Squared errors, which this rule looked at before, are mostly noise.

    Args:
        true: how far each range of the truth is from independence.
        kept: how far it is in the fits.
    """
    square = float(true @ true)
    left = float(true @ kept) / square if square > 0.0 else 1.0
    return max(0.0, 1.0 / max(left, LEAST_LEFT) - 1.0)


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


def _ranges(one: Rehearsed, chosen: list[int], generator: np.random.Generator) -> Floats:
    """Rows of C in the truth and in the fits, of some random ranges of these attributes."""
    true = one.truth.table(chosen)
    fits = np.mean([fit.table(chosen) for fit in one.fits], axis=0)
    apart = np.stack([true - independent(true), fits - independent(fits)])
    found = np.empty((2, RANGES))
    for number in range(RANGES):
        block = np.ix_(
            *(
                _run(size, generator, least=2 if place == 0 else 1)
                for place, size in enumerate(true.shape)
            )
        )
        found[:, number] = [side[block].sum() for side in apart]
    return found


def _run(size: int, generator: np.random.Generator, least: int) -> Ints:
    """A run of codes, at least so many and not all of them."""
    length = int(generator.integers(least, max(size, least + 1)))
    first = int(generator.integers(0, size - length + 1))
    return np.arange(first, first + length)
