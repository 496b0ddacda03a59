"""Shrinkage that yields to what was measured: one strength per attribute.

One strength for all attributes is a bad compromise. Strong shrinkage has the least average error
and loses correlations; weak shrinkage fits the noise of attributes that depend on nothing. The
measured tables say, publicly, which attributes depend on others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dualquery.model.stack import Stack
from dualquery.privacy.measuring import Measurement

Floats = npt.NDArray[np.float64]

PER_ATTRIBUTE = 20.0
"""The strongest shrinkage, per attribute of the model: wider models have more to overfit."""

FAINT = 1.2
"""The same where every single pair drowns in noise. Departures say nothing there, and stronger
shrinkage would end at independence, which the fit could not tell from what it found: its stated
errors would be far too small."""

CLEAR_NOISE = 0.0053
"""Pairs are clear while their noise is at most this share of the records."""

HALVED = 5.0
"""An attribute whose tables depart from independence by so many standard deviations is shrunk by
half of the strongest."""


def strongest(noise: float, *, faint: bool = False) -> float:
    """The strongest shrinkage per attribute: 20 for clear pairs, less for noisy ones.

    Departures z are in units of noise and fall as 1/noise². So κ = κ₀/(1 + z/5) rises with the
    noise. But how much components differ is a property of the table, and noise is no reason to hold
    them closer. If κ₀ fell as z does, the κ of a clear dependence would stay the same; but the
    average error, of which weak dependences are a larger part, would like it to rise. 1/noise is
    between the two.

    Args:
        noise: of the cells of pairs, as a share of the records; 0 where it does not matter.
        faint: whether every single pair drowns in noise.
    """
    if faint:
        return FAINT
    return PER_ATTRIBUTE * CLEAR_NOISE / max(noise, CLEAR_NOISE)


def strengths(
    stack: Stack,
    measurements: Sequence[Measurement],
    shares: Floats,
    total: float,
    *,
    chance: float = 0.0,
    most: float = PER_ATTRIBUTE,
) -> Floats:
    """κ_a = max(1, κ₀/(1 + z_a/5)) per attribute of the stack.

    z_a is the largest departure from independence of the tables that name the attribute.

    Args:
        stack: the attributes that are modelled.
        measurements: what was measured; one-way tables say nothing about dependence.
        shares: the estimated share of every row of the stack.
        total: the number of records, or of the parts that they are counted in.
        chance: the variance of a count, per part, that chance alone makes; 0 where it is to be
            fitted like any dependence.
        most: κ₀ per attribute of the stack, see `strongest`.
    """
    largest = np.zeros(len(stack.attributes))
    for one in measurements:
        if one.marginals.arity == 1:
            continue
        departure, _ = beyond_chance(stack, one, shares, total, chance)
        for where in stack.positions(one.marginals.attributes).T:
            np.maximum.at(largest, where, departure)
    return _strengths(largest, most)


def strengths_of_pairs(attributes: int, sets: npt.NDArray[np.int64], departure: Floats) -> Floats:
    """The same from how far pairs depart from independence.

    Args:
        attributes: how many are modelled.
        sets: the positions of the pairs.
        departure: of each, in standard deviations.
    """
    largest = np.zeros(attributes)
    for where in sets.T:
        np.maximum.at(largest, where, departure)
    return _strengths(largest, PER_ATTRIBUTE)


def _strengths(largest: Floats, per_attribute: float) -> Floats:
    strongest = per_attribute * len(largest)
    return np.maximum(1.0, strongest / (1.0 + largest / HALVED))


def departures(stack: Stack, one: Measurement, shares: Floats, total: float) -> Floats:
    """Per table its departure from independence, in standard deviations.

    Args:
        stack: the attributes that are modelled.
        one: tables of the stack's groups.
        shares: the estimated share of every row of the stack.
        total: the number of records.
    """
    marginals = one.marginals
    first = stack.start[stack.positions(marginals.attributes)]
    found = np.empty(len(marginals))
    # Tables of the same shape are handled at once: there may be hundreds of thousands.
    kinds, kind = np.unique(marginals.shapes, axis=0, return_inverse=True)
    for number, shape in enumerate(kinds):
        chosen = np.flatnonzero(kind.reshape(-1) == number)
        cells = int(shape.prod())
        counts = one.counts[marginals.start[chosen][:, None] + np.arange(cells)]
        expected = np.ones((len(chosen), 1))
        for place, size in enumerate(shape):
            part = shares[first[chosen, place][:, None] + np.arange(size)]
            expected = (expected[:, :, None] * part[:, None, :]).reshape(len(chosen), -1)
        squares = ((counts - total * expected) ** 2).sum(axis=1) / one.variance
        found[chosen] = (squares - cells) / np.sqrt(2.0 * cells)
    return found


def beyond_chance(
    stack: Stack, one: Measurement, shares: Floats, total: float, chance: float
) -> tuple[Floats, Floats]:
    """Per table its departure from independence beyond chance, in standard deviations, and how
    large chance is beside noise.

    Let a be Σp² over the shares of an attribute. Rows scatter around one attribute's shares by
    1 − a. To the sum of squares over the cells of a pair chance adds n(1 − a)(1 − b), beyond what
    the attributes alone explain; of a triple the same for every set of two or three of them, times
    the a of the attribute that is left.
    """
    away = departures(stack, one, shares, total)
    alike = np.add.reduceat(shares**2, stack.start[:-1])
    each = alike[stack.positions(one.marginals.attributes)]
    alone = each.prod(axis=1) * (1.0 + ((1.0 - each) / each).sum(axis=1))
    scatter = np.maximum(0.0, 1.0 - alone)
    cells = one.marginals.shapes.prod(axis=1)
    more = total * chance * scatter / (one.variance * cells)
    return (away - more * np.sqrt(cells / 2.0)) / (1.0 + more), more
