"""How many rare cells every row is in, and how many rows are in each of them. Private side.

A row that is charged more than is allowed counts in some of its cells only: in as many as it may
pay for, beginning at a cell that follows from what it is charged. So whatever a row holds, it
changes no more than is paid for; and what it adds depends on nothing but the row itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from dualquery.base.threads import over_ranges
from dualquery.rows.packed import PackedRows, Words
from dualquery.workloads.rare import RareCells

Int64 = npt.NDArray[np.int64]
Terms = npt.NDArray[np.int32]

TILE_WORDS = 256
"""Words of a column that are walked through at a time: many columns of so few stay in a cache."""


class RareRows:
    """Packed rows, and what each of them is charged for some rare cells."""

    def __init__(self, packed: PackedRows, cells: RareCells) -> None:
        """Count the cells that every row is in.

        Args:
            packed: rows whose literals are single codes of 0/1 attributes, one per attribute.
            cells: of some of these attributes.
        """
        self._packed = packed
        self.cells = cells
        self._terms = _terms(packed, cells)
        self._sizes = [self._charged(bits) for bits in packed.blocks]

    @staticmethod
    def hold(packed: PackedRows, cells: RareCells) -> bool:
        """Whether the literals of packed rows tell all attributes of these cells apart."""
        single = np.diff(packed.literals.start) == 1
        return bool(np.isin(cells.used, packed.literals.attribute[single]).all())

    def histogram(self, edges: Int64) -> Int64:
        """How many rows are charged from `edges[i]` up to, but not including, `edges[i + 1]`.

        Args:
            edges: rising; the first is 0 and the last above what any row can be charged.
        """
        counts = np.zeros(len(edges) - 1, dtype=np.int64)
        for sizes, rows in zip(self._sizes, self._packed.block_rows, strict=True):
            place = np.searchsorted(edges, sizes[:rows], side="right") - 1
            counts += np.bincount(place, minlength=len(counts))
        return counts

    def counts(self, most: int) -> Int64:
        """How many rows are in each cell; no row counts in more than it can pay for with `most`."""
        from dualquery.rows._rare_kernels import count_cut, count_kept

        counts = np.zeros(len(self.cells), dtype=np.int64)
        for bits, sizes, rows in zip(
            self._packed.blocks, self._sizes, self._packed.block_rows, strict=True
        ):
            kept = _packed(sizes <= most, rows)
            for first in range(0, bits.shape[1], TILE_WORDS):
                tile = np.ascontiguousarray(bits[:, first : first + TILE_WORDS])
                part = kept[first : first + TILE_WORDS]
                task = partial(count_kept, tile, part, self._terms, counts)
                over_ranges(task, len(counts), 256)
            over = np.flatnonzero(sizes[:rows] > most)
            count_cut(bits, over, sizes[over], self._terms, self.cells.weights, most, counts)
        return counts

    def _charged(self, bits: Words) -> Int64:
        """What every row of a block is charged, those past its last row included."""
        from dualquery.rows._rare_kernels import cells_per_row

        sizes = np.zeros(64 * bits.shape[1], dtype=np.int64)
        for weight in np.unique(self.cells.weights).tolist():
            terms = self._terms[self.cells.weights == weight]
            task = partial(cells_per_row, bits, terms, weight, sizes)
            over_ranges(task, bits.shape[1], 64, work=terms.size * bits.shape[1])
        return sizes


@dataclass(frozen=True, eq=False)
class RareAsked:
    """What is asked of the rows of one part: the histogram of charges, or the counts.

    Attributes:
        cells: which.
        edges: of the bins of charges; None if counts are asked for.
        most: what a row may be charged; None if the histogram is asked for.
    """

    cells: RareCells
    edges: Int64 | None = None
    most: int | None = None

    def of(self, rows: RareRows) -> Int64:
        """What these rows say."""
        if self.edges is not None:
            return rows.histogram(self.edges)
        assert self.most is not None  # one of the two is asked for
        return rows.counts(self.most)

    def nothing(self) -> Int64:
        """What no rows say."""
        size = len(self.cells) if self.edges is None else len(self.edges) - 1
        return np.zeros(size, dtype=np.int64)


def _terms(packed: PackedRows, cells: RareCells) -> Terms:
    """The cells as terms of the packed literals."""
    literals = packed.literals
    single = np.flatnonzero(np.diff(literals.start) == 1)
    place = np.full(int(cells.used[-1]) + 1, -1, dtype=np.int64)
    inside = single[literals.attribute[single] < len(place)]
    place[literals.attribute[inside]] = inside
    literal = place[cells.attributes]
    code = literals.codes[literals.start[literal]]
    terms: Terms = (2 * literal + (code != cells.codes[cells.attributes])).astype(np.int32)
    return terms


def _packed(kept: npt.NDArray[np.bool_], rows: int) -> Words:
    """One bit per row; none for those past the last row."""
    kept[rows:] = False
    found: Words = np.packbits(kept, bitorder="little").view(np.uint64)
    return found
