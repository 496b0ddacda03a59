"""Columns of numbers that are worth measuring again, and what two tables of a column say together.

The mean of a long tail rests on few records. After the first one-way tables it is public how
unsure the mean of each column still is. Where it is too unsure, the column is measured once more,
in a few wide cells: each holds an equal part of what decides the mean, so that no cell drowns in
its noise. Cells are sets of sub-bins that do not overlap, so the second table costs what any other
costs. If the mean is still unsure after that, the same cells are measured a third time: two
measurements with a share each tell as much as one with both.

All of it is a function of what was measured before, so it is public.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dualquery.domain.schema import Schema
from dualquery.domain.sub_bins import SubBins
from dualquery.model.inside import Spread, spread_inside
from dualquery.model.smoothing import Cells, pooled
from dualquery.privacy.measuring import Measurement
from dualquery.workloads.marginals import Groups, Marginals

Floats = npt.NDArray[np.float64]

UNSURE, STILL_UNSURE = 0.005, 0.01
"""A column is measured a second and a third time if the standard error of its mean is above this
share of it."""

CELLS = 6
"""Cells of the second table, besides those of heaps and of missing cells."""


def own_tables(
    attribute: int, schema: Schema, measurements: tuple[Measurement, ...]
) -> list[Cells]:
    """The tables of one column in sub-bins, or in cells of several of them; the first comes first.

    Args:
        attribute: the position of a column with edges.
        schema: of the table.
        measurements: what was measured.
    """
    if schema.fine is schema:
        return []
    found, parts = [], len(SubBins.of(schema.attributes[attribute]))
    for one in measurements:
        marginals = one.marginals
        if marginals.arity > 1 or not in_sub_bins(marginals, schema):
            continue
        for place in np.flatnonzero(marginals.attributes[:, 0] == attribute).tolist():
            counts = one.counts[marginals.start[place] : marginals.start[place + 1]]
            of_part = marginals.groups.of_attribute(attribute)[:parts]
            found.append(Cells(of_part, counts.astype(np.float64), float(np.sqrt(one.variance))))
    return found


def in_sub_bins(marginals: Marginals, schema: Schema) -> bool:
    """Whether tables partition the sub-bins of a schema, and not its bins."""
    return schema.fine is not schema and np.array_equal(
        marginals.groups.code_start, schema.fine.code_start
    )


def spread_of(attribute: int, schema: Schema, tables: list[Cells], total: float) -> Spread:
    """How the values of a column are spread, by all of its own tables.

    Args:
        attribute: the position of the column.
        schema: of the table.
        tables: as `own_tables` gives them.
        total: the number of records.
    """
    first, *again = tables
    sub_bins = SubBins.of(schema.attributes[attribute])
    counts = first.counts[: len(sub_bins)]
    return spread_inside(counts, first.noise, total, sub_bins, again)


def unsure_columns(
    schema: Schema,
    used: npt.NDArray[np.integer],
    measured: tuple[Measurement, ...],
    total: float,
) -> dict[int, npt.NDArray[np.int32]]:
    """The columns whose means are unsure, and the cells in which each is to be measured again.

    Args:
        schema: of the table.
        used: the attributes that are asked about.
        measured: the first tables, in sub-bins, and what was measured again since.
        total: the number of records.
    """
    found = {}
    for attribute in sorted(set(schema.long) & set(used.tolist())):
        tables = own_tables(attribute, schema, measured)
        spread = spread_of(attribute, schema, tables, total)
        error = relative_error(spread, schema, attribute)
        if len(tables) == 1 and error > UNSURE:
            found[attribute] = _cells(spread, schema, attribute)
        elif len(tables) > 1 and error > STILL_UNSURE:
            found[attribute] = _same_cells(attribute, measured)
    return found


def _same_cells(attribute: int, measured: tuple[Measurement, ...]) -> npt.NDArray[np.int32]:
    """The cells in which a column was measured last, that of missing cells included."""
    last = next(one for one in reversed(measured) if attribute in one.marginals.attributes[:, 0])
    return last.marginals.groups.of_attribute(attribute).astype(np.int32)


def relative_error(spread: Spread, schema: Schema, attribute: int) -> float:
    """The standard error of a column's mean, as a share of the mean of its absolute values."""
    means, shares, mean = _mean(spread, schema, attribute)
    size = float(np.abs(means) @ shares)
    if size <= 0.0:
        return np.inf
    return float(np.sqrt(spread.surety.variance((means - mean) / shares.sum()))) / size


def _mean(spread: Spread, schema: Schema, attribute: int) -> tuple[Floats, Floats, float]:
    """The mean of each sub-bin, their shares, and the mean of the column."""
    means = SubBins.of(schema.attributes[attribute]).means
    shares = spread.surety.spread
    shares = shares / max(float(shares.sum()), 1e-300)
    return means, shares, float(means @ shares)


def _cells(spread: Spread, schema: Schema, attribute: int) -> npt.NDArray[np.int32]:
    """The cell of each sub-bin, and of the bucket of missing cells if there is one.

    What a sub-bin does to the mean is its share times its distance from the mean. Cells have
    about equal parts of that. Heaps, and missing cells, stand alone.
    """
    means, shares, mean = _mean(spread, schema, attribute)
    alone = spread.surety.heaps
    mass = np.where(alone, 0.0, shares * np.abs(means - mean)) + 1e-300
    middle = np.cumsum(mass) - mass / 2.0
    run = np.minimum(CELLS * middle / mass.sum(), CELLS - 1).astype(np.int64)
    codes = int(schema.fine.sizes[attribute])
    cell = np.arange(codes) + CELLS
    cell[: len(run)] = np.where(alone, cell[: len(run)], run)
    return np.unique(cell, return_inverse=True)[1].reshape(-1).astype(np.int32)


def again_marginals(schema: Schema, chosen: dict[int, npt.NDArray[np.int32]]) -> Marginals:
    """The tables that measure some columns again.

    Args:
        schema: of the table.
        chosen: as `unsure_columns` gives them.
    """
    groups = Groups.single(schema.fine)
    for attribute, cell in chosen.items():
        groups = groups.merged(attribute, cell)
    return Marginals(groups, np.array(sorted(chosen), dtype=np.int32)[:, None])


def smoothed_bins(
    schema: Schema, first: Measurement, again: tuple[Measurement, ...], total: float
) -> Measurement:
    """What all tables of each column that was measured again say about its bins.

    The count of a bin is that of the smooth density, with the variance that it has. The noise of
    all sub-bins of a bin together would be larger by far.

    Args:
        schema: of the table.
        first: all one-way tables, in sub-bins.
        again: the second tables, and the third ones if there are any.
        total: the number of records.
    """
    columns = np.unique(np.concatenate([one.marginals.attributes for one in again]), axis=0)
    marginals, last = Marginals(Groups.single(schema), columns), again[-1]
    counts, variances = [], []
    for attribute in marginals.attributes[:, 0].tolist():
        sub_bins = SubBins.of(schema.attributes[attribute])
        spread = spread_of(attribute, schema, own_tables(attribute, schema, (first, *again)), total)
        surety, bins = spread.surety, len(sub_bins.start) - 1
        counts.append(total * np.bincount(sub_bins.bin_of, surety.spread, bins))
        inside = (sub_bins.bin_of == np.arange(bins)[:, None]).astype(np.float64)
        variances.append(total**2 * np.array([surety.variance(one) for one in inside]))
        if schema.sizes[attribute] > bins:  # missing cells
            table = pooled(own_tables(attribute, schema, again))[0]
            counts.append(table.counts[-1:])
            variances.append(np.array([table.noise**2]))
    every = np.maximum(np.concatenate(variances), 1.0)
    return Measurement(
        marginals,
        last.noise,
        last.scale,
        np.rint(np.concatenate(counts)).astype(np.int64),
        parts=every / last.variance,
    )
