"""Exact counts of all cells of whole marginals, counted from codes. Private side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import ParameterError
from dualquery.base.threads import over_ranges
from dualquery.rows.encoded import EncodedRows, NarrowCodes
from dualquery.workloads.marginals import Groups, Marginals

Cells = npt.NDArray[np.int64]

TILE = 1 << 14
"""The number of rows handled at a time: their cell numbers stay in a near cache."""

MOST_CELLS = 1 << 28
"""The most cells of one marginal: a larger table would not fit into memory."""


def tabulate(rows: EncodedRows, marginals: Marginals) -> Cells:
    """The private counts of every cell of every marginal, laid end to end.

    If rows have weights or belong to persons, every row counts what it weighs.
    """
    if rows.strata is not None:
        counts: Cells = np.zeros(marginals.cells, dtype=np.int64)
        for parts, layer in rows.by_layer():
            counts += parts * tabulate(layer, marginals)
        return counts
    largest = int(np.diff(marginals.start).max(initial=0))
    if largest > MOST_CELLS:
        raise ParameterError(
            f"a marginal of {largest:,} cells is too large; "
            f"expected at most {MOST_CELLS:,}: group its codes"
        )
    counted: Cells = np.zeros(marginals.cells, dtype=np.int64)
    columns = _grouped(rows, marginals)

    def task(first: int, last: int) -> None:
        for number in range(first, last):
            part = slice(marginals.start[number], marginals.start[number + 1])
            chosen = [columns[int(a)] for a in marginals.attributes[number]]
            _count_cells(chosen, marginals.shapes[number], counted[part])

    over_ranges(task, len(marginals), grain=1)
    return counted


def _grouped(rows: EncodedRows, marginals: Marginals) -> dict[int, NarrowCodes]:
    """Per attribute in use, the group of every row."""
    groups: Groups = marginals.groups
    columns = {}
    for attribute in np.unique(marginals.attributes).tolist():
        codes = rows.columns[attribute]
        if not groups.is_single(attribute):
            codes = groups.of_attribute(attribute).astype(codes.dtype)[codes]
        columns[attribute] = codes
    return columns


def _count_cells(
    columns: Sequence[NarrowCodes], shape: npt.NDArray[np.int64], counted: Cells
) -> None:
    from dualquery.rows._tabulation_kernels import add_strides, count_places

    strides = np.cumprod([1, *shape[::-1]])[-2::-1].astype(np.uint32)
    copies = np.zeros((4, len(counted)), dtype=np.uint32)
    places = np.empty(TILE, dtype=np.uint32)
    for first in range(0, len(columns[0]), TILE):
        part = places[: min(TILE, len(columns[0]) - first)]
        part[:] = 0
        for column, stride in zip(columns, strides, strict=True):
            add_strides(column[first : first + TILE], stride, part)
        count_places(part, copies)
    copies.sum(axis=0, dtype=np.int64, out=counted)
