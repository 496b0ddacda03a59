"""Measured tables beside what a public start expects of them.

The start may be good or poor, and the measurement itself says which: if the start were right, the
squares of the differences would add up to what noise alone explains. What they are larger by is
how far the start is off. Cells are then moved towards the start as far as it deserves.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dualquery.privacy.events import Noise
from dualquery.privacy.measuring import Measurement
from dualquery.workloads.marginals import Marginals

Floats = npt.NDArray[np.float64]

DOUBT = 2.0
"""Standard deviations of what noise adds to a sum of squares: as much is held against a start, and
a table must exceed it to be called worse than the others."""

STEPS = 12
"""Tables are told apart by how sure they have become, in steps of a factor of two."""

LEAST = 1.0 / 12.0
"""The variance of counts that are rounded to whole numbers: nothing is surer than that."""


def informed(
    measurement: Measurement, total: float, chance: float = 1.0
) -> tuple[Measurement, ...]:
    """The measurement, moved towards what was expected of it; surer tables apart from others.

    A start that is off by d in a cell of N·s records is taken to be off in proportion: the variance
    of d is φ·N·s. One φ is estimated from all tables together, and a table that is clearly worse
    than that gets its own. The result has the mean and variance of the cell given both. One-way
    tables stay together, because later steps need them whole.

    Args:
        measurement: noisy counts, with or without what was expected.
        total: N, the number of records.
        chance: the least φ, see `departures`.
    """
    if measurement.expected is None:
        return (measurement,)
    start = measurement.marginals.start
    cells = np.diff(start)
    table = np.repeat(np.arange(len(cells)), cells)
    known = _known(measurement)
    covered = known[table]
    expected = np.where(covered, total * measurement.expected, 0.0)
    noise = measurement.variance
    off = np.where(covered, measurement.counts - expected, 0.0)
    spread = np.zeros(len(cells))
    spread[known] = departures(measurement, total, chance)
    spread = spread[table] * expected
    kept = np.where(covered, spread / (spread + noise), 1.0)
    moved = np.where(covered, expected + kept * off, measurement.counts)
    # One figure per table: the mean of what is left of the noise in its cells.
    left = np.bincount(table, kept) / cells
    step = np.minimum(np.rint(-np.log2(np.maximum(left, 2.0**-STEPS))), STEPS)
    if measurement.marginals.arity == 1:
        step[:] = step.min()
    return tuple(
        _part(measurement, moved, np.flatnonzero(step == s), 0.5**s) for s in np.unique(step)
    )


def departures(measurement: Measurement, total: float, chance: float = 1.0) -> Floats:
    """φ of each table that the start knows: how far it is off there.

    No φ is smaller than `chance`. Two tables of different people differ by chance, even if nothing
    has changed, and the noise cannot rule that out: if a record counts 1, by N·s and more.

    Args:
        measurement: noisy counts, with what was expected.
        total: N, the number of records.
        chance: what one record counts.
    """
    assert measurement.expected is not None  # who asks has looked
    start = measurement.marginals.start
    cells, known = np.diff(start), _known(measurement)
    table = np.repeat(np.arange(len(cells)), cells)
    off = np.where(known[table], measurement.counts - total * measurement.expected, 0.0)
    squares: Floats = np.bincount(table, off**2).astype(np.float64)
    found = _spread(squares[known], measurement.variance, cells[known], total)
    return np.maximum(found, chance)


def like_the_start(
    measurement: Measurement, records: npt.NDArray[np.int32], total: float, chance: float
) -> Floats:
    """Expected shares that are off as far as the start is: those of a table with fewer records.

    Cells of a table with N/φ records, scaled to N, have the variance φ·N·s. All tables are of the
    same records, so they are off together, as those of a start are.

    Args:
        measurement: noisy counts, with what the start expected.
        records: codes of at least N/φ records of the truth.
        total: N, the number of records.
        chance: the least φ.
    """
    marginals = measurement.marginals
    found = np.full(marginals.cells, np.nan)
    known = np.flatnonzero(_known(measurement))
    off = float(np.mean(departures(measurement, total, chance)))
    few = records[: max(1, min(len(records), round(total / off)))]
    for t in known.tolist():
        part = slice(marginals.start[t], marginals.start[t + 1])
        cells = part.stop - part.start
        found[part] = np.bincount(marginals.cell_of(t, few), minlength=cells) / len(few)
    return found


def _known(measurement: Measurement) -> npt.NDArray[np.bool_]:
    """Whether the start knows each table."""
    assert measurement.expected is not None  # who asks has looked
    return np.isfinite(np.add.reduceat(measurement.expected, measurement.marginals.start[:-1]))


def _spread(squares: Floats, noise: float, cells: npt.NDArray[np.int64], total: float) -> Floats:
    """φ of each table, from what its sum of squares exceeds the noise by.

    Args:
        squares: the sum of the squares of each table's differences.
        noise: the variance of the noise in one cell.
        cells: per table.
        total: N, the number of records, which every table adds up to.
    """
    excess = squares - noise * cells
    blurred = DOUBT * noise * np.sqrt(2.0 * cells)
    together = excess.sum() + DOUBT * noise * math.sqrt(2.0 * cells.sum())
    common = max(together, 0.0) / (len(cells) * total)
    own = excess - common * total
    spread: Floats = common + np.where(own > blurred, own, 0.0) / total
    return spread


def _part(
    measurement: Measurement, moved: Floats, tables: npt.NDArray[np.int64], left: float
) -> Measurement:
    """Some tables of a measurement, with the noise that is left in them."""
    marginals = measurement.marginals
    cells = np.concatenate([np.arange(*marginals.start[t : t + 2]) for t in tables])
    variance = max(left * measurement.variance, 2.0 * LEAST)
    return replace(
        measurement,
        marginals=Marginals(marginals.groups, marginals.attributes[tables]),
        noise=Noise.GAUSSIAN,
        scale=math.sqrt(variance - LEAST),
        counts=np.rint(moved[cells]).astype(np.int64),
        expected=None,
    )
