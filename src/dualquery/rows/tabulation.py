"""Exact counts of all cells of whole marginals, counted from codes. Private side.

There are two routes, and they agree to the last row. A small table is counted by popcounts: the
rows of every code are marked in words of 64 rows, once for all tables, and a cell is the number
of rows that all its codes mark. A large table is filled row by row. The cheaper route by estimated
cost is taken; its constants were measured (docs/decisions/counting.md). Wrong ones would make
counting slower, never wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import ParameterError
from dualquery.base.ragged import offsets, taken
from dualquery.base.threads import over_ranges
from dualquery.rows.encoded import EncodedRows, NarrowCodes
from dualquery.workloads.marginals import Groups, Marginals

Cells = npt.NDArray[np.int64]

TILE = 1 << 14
"""The number of rows handled at a time: their cell numbers stay in a near cache."""

MARKED_WORDS, MARKED_BYTES = 128, 1 << 19
"""The most words of a mark that are handled at a time, and about how many bytes of all marks."""

CELL_NS, MARK_NS = 0.1, 1.4
"""Nanoseconds to count 64 rows of a cell by popcounts, and to mark 64 rows of a code."""

ROW_NS, PLACE_NS = 0.6, 0.12
"""Nanoseconds to enter one row into a table, and to find its place along one attribute."""

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
    marked = _worth_marks(marginals)
    if marked.any():
        _count_by_marks(columns, marginals, np.flatnonzero(marked), counted)
    left = np.flatnonzero(~marked).tolist()

    def task(first: int, last: int) -> None:
        for number in left[first:last]:
            part = slice(marginals.start[number], marginals.start[number + 1])
            chosen = [columns[int(a)] for a in marginals.attributes[number]]
            _count_cells(chosen, marginals.shapes[number], counted[part])

    over_ranges(task, len(left), grain=1)
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


def _worth_marks(marginals: Marginals) -> npt.NDArray[np.bool_]:
    """Per marginal, whether counting it by popcounts is cheaper than row by row.

    The marks of a code are made once for all tables, so every table bears its share of them.
    """
    by_rows = 64 * (ROW_NS + marginals.arity * PLACE_NS)
    cells = np.diff(marginals.start)
    before = cells // marginals.shapes[:, -1]  # the codes before the last are joined first
    by_cells = CELL_NS * (cells + before)
    small = by_cells < by_rows
    tables = np.bincount(
        marginals.attributes[small].reshape(-1), minlength=len(marginals.groups.sizes)
    )
    share = MARK_NS * marginals.shapes / np.maximum(tables[marginals.attributes], 1)
    worth: npt.NDArray[np.bool_] = small & (by_cells + share.sum(axis=1) < by_rows)
    return worth


def _count_by_marks(
    columns: Mapping[int, NarrowCodes],
    marginals: Marginals,
    chosen: npt.NDArray[np.int64],
    counted: Cells,
) -> None:
    """Count the cells of the chosen marginals by popcounts."""
    from dualquery.rows._tabulation_kernels import count_marked, mark_codes

    attributes, place = np.unique(marginals.attributes[chosen], return_inverse=True)
    sizes = marginals.groups.sizes[attributes].astype(np.int64)
    mark = offsets(sizes)
    literals = mark[place.reshape(len(chosen), -1)]
    start, cells = taken(marginals.start, chosen)
    shapes = marginals.shapes[chosen]
    words = max(16, min(MARKED_WORDS, MARKED_BYTES // (8 * int(mark[-1])) // 8 * 8))
    rows, tile = len(columns[int(attributes[0])]), 64 * words
    adding = Lock()

    def task(first: int, last: int) -> None:
        bits = np.empty((mark[-1], words), dtype=np.uint64)
        found = np.zeros(len(cells), dtype=np.int64)
        for begin in range(first * tile, min(last * tile, rows), tile):
            end = min(begin + tile, rows)
            for attribute, size, at in zip(attributes.tolist(), sizes, mark, strict=False):
                mark_codes(np.ascontiguousarray(columns[attribute][begin:end]), size, bits, at)
            count_marked(bits, -(-(end - begin) // 64), literals, shapes, start, found)
        with adding:
            counted[cells] += found

    over_ranges(task, -(-rows // tile), grain=4)
