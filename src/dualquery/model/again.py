"""Columns of numbers that are worth measuring again, and what two tables of a column say together.

The mean of a long tail rests on few records. After the first one-way tables it is public how
unsure the mean of each column still is. Where it is too unsure, the column is measured once more,
in a few wide cells: each holds an equal part of what decides the mean, so that no cell drowns in
its noise. Cells are sets of sub-bins that do not overlap, so the second table costs what any other
costs. Releases of earlier versions may hold third tables, too.

All of it is a function of what was measured before, so it is public.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dualquery.domain.schema import Schema
from dualquery.domain.sub_bins import SubBins
from dualquery.model.inside import Spread, spread_inside
from dualquery.model.smoothing import Cells
from dualquery.privacy.measuring import Measurement
from dualquery.workloads.marginals import Groups, Marginals

Floats = npt.NDArray[np.float64]

UNSURE = 0.005
"""A column is measured a second time if the standard error of its mean is above this share of it.
"""

CELLS = 6
"""Cells of the second table, besides those of heaps and of missing cells."""

EXACT = 1.0
"""The standard deviation of a count that is public. With none, a fit would stand still."""


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


def spread_of(
    attribute: int, schema: Schema, tables: list[Cells], total: float, *, public: bool = False
) -> Spread:
    """How the values of a column are spread, by all of its own tables.

    Args:
        attribute: the position of the column.
        schema: of the table.
        tables: as `own_tables` gives them.
        total: the number of records.
        public: whether that number is public, and not an estimate.
    """
    first, *again = tables
    sub_bins = SubBins.of(schema.attributes[attribute])
    counts = first.counts[: len(sub_bins)]
    if public:
        again = [*again, _all_cells(tables, total)]
    return spread_inside(counts, first.noise, total, sub_bins, again)


def _all_cells(tables: list[Cells], total: float) -> Cells:
    """A table with one cell: what is not missing, if the number of records is public."""
    missing, noise = missing_cells(tables)
    return Cells(
        np.zeros_like(tables[0].of_part), np.array([total - missing]), float(np.hypot(noise, EXACT))
    )


def missing_cells(tables: list[Cells]) -> tuple[float, float]:
    """How many cells are missing by all tables, and the standard deviation of that; else zeros.

    Args:
        tables: of one column, as `own_tables` gives them.
    """
    found = [one for one in tables if len(one.counts) > one.of_part.max() + 1]
    if not found:
        return 0.0, 0.0
    precision = np.array([one.noise**-2.0 for one in found])
    counts = np.array([one.counts[-1] for one in found])
    return float(precision @ counts / precision.sum()), float(precision.sum() ** -0.5)


def unsure_columns(
    schema: Schema,
    used: npt.NDArray[np.integer],
    first: Measurement,
    total: float,
    *,
    public: bool = False,
) -> dict[int, npt.NDArray[np.int32]]:
    """The columns whose means are unsure, and the cells in which each is to be measured again.

    Args:
        schema: of the table.
        used: the attributes that are asked about.
        first: the one-way tables, in sub-bins.
        total: the number of records.
        public: whether the number of records is public, and not an estimate.
    """
    found = {}
    for attribute in sorted(set(schema.long) & set(used.tolist())):
        tables = own_tables(attribute, schema, (first,))
        spread = spread_of(attribute, schema, tables, total, public=public)
        if relative_error(spread, schema, attribute) > UNSURE:
            found[attribute] = _cells(spread, schema, attribute)
    return found


def relative_error(spread: Spread, schema: Schema, attribute: int) -> float:
    """The standard error of a column's mean, as a share of the mean of its absolute values."""
    means, shares, mean = _mean(spread, schema, attribute)
    size = float(np.abs(means) @ shares)
    if size <= 0.0:
        return np.inf
    # The shares that are surely known are of all records, those with a missing cell included.
    there = float(spread.surety.spread.sum())
    return float(np.sqrt(spread.surety.variance((means - mean) / there))) / size


def _mean(spread: Spread, schema: Schema, attribute: int) -> tuple[Floats, Floats, float]:
    """The mean of each sub-bin, their shares of what is not missing, and the mean of the column."""
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
    heaps = spread.surety.heaps
    mass = np.where(heaps, 0.0, shares * np.abs(means - mean)) + 1e-300
    middle = np.cumsum(mass) - mass / 2.0
    run = np.minimum(CELLS * middle / mass.sum(), CELLS - 1).astype(np.int64)
    cell = np.arange(int(schema.fine.sizes[attribute])) + len(run)
    cell[: len(run)] = np.where(heaps, cell[: len(run)], run)
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
    schema: Schema,
    first: Measurement,
    again: tuple[Measurement, ...],
    total: float,
    *,
    public: bool = False,
) -> Measurement:
    """What all tables of each column that was measured again say about its bins.

    The count of a bin is that of the smooth density, with the variance that it has. The noise of
    all sub-bins of a bin together would be larger by far.

    Args:
        schema: of the table.
        first: all one-way tables, in sub-bins.
        again: the second tables, and the third ones if there are any.
        total: the number of records.
        public: whether that number is public, and not an estimate.
    """
    columns = np.unique(np.concatenate([one.marginals.attributes for one in again]), axis=0)
    marginals, last = Marginals(Groups.single(schema), columns), again[-1]
    counts, variances = [], []
    for attribute in marginals.attributes[:, 0].tolist():
        sub_bins = SubBins.of(schema.attributes[attribute])
        tables = own_tables(attribute, schema, (first, *again))
        spread = spread_of(attribute, schema, tables, total, public=public)
        surety, bins = spread.surety, len(sub_bins.start) - 1
        counts.append(total * np.bincount(sub_bins.bin_of, surety.spread, bins))
        inside = (sub_bins.bin_of == np.arange(bins)[:, None]).astype(np.float64)
        variances.append(total**2 * np.array([surety.variance(one) for one in inside]))
        if schema.sizes[attribute] > bins:  # missing cells
            missing, noise = missing_cells(tables[1:])
            counts.append(np.array([missing]))
            variances.append(np.array([noise**2]))
    every = np.maximum(np.concatenate(variances), 1.0)
    return Measurement(
        marginals,
        last.noise,
        last.scale,
        np.rint(np.concatenate(counts)).astype(np.int64),
        parts=every / last.variance,
    )
