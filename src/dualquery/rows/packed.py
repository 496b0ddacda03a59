"""Packed rows: a column of bits per literal that the workload uses, and no others. Private side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import NoRowsError
from dualquery.base.threads import over_ranges
from dualquery.domain.schema import Schema
from dualquery.rows import table as tables
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.table import ArrowBlock, Block, Columns, DenseBlock, Ones, Table
from dualquery.workloads.workload import Literals

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class PackedRows:
    """Private rows as bits.

    Bit i of word `blocks[b][literal, w]` says whether row 64w + i of block b satisfies the
    (positive) literal. Bits past the last row are zero. The rows are cut into blocks for two
    reasons: the part of a column in one block stays in the cache while many queries use it, and
    rows are packed while they are read.

    Attributes:
        rows: the number of rows in all blocks.
        literals: the literals, one per column of bits.
        blocks: the bits of each block.
        block_rows: the number of rows in each block.
    """

    rows: int
    literals: Literals
    blocks: tuple[Words, ...]
    block_rows: tuple[int, ...]

    @classmethod
    def pack(
        cls,
        table: Table,
        schema: Schema,
        literals: Literals,
        out_of_domain: OutOfDomain = OutOfDomain.REFUSE,
    ) -> PackedRows:
        """Read a table block by block and keep only the bits that the literals need.

        Args:
            table: the private table.
            schema: the schema as bound to the table.
            literals: one column of bits is made for each of them.
            out_of_domain: what to do with a cell outside its declared domain.
        """
        if isinstance(table, SelfPacking):
            return table.pack(literals)
        packer = Packer(schema, literals)
        for block in table.blocks(schema, packer.attributes, out_of_domain):
            packer.add(block)
        packed = packer.finish()
        if not packed.rows:
            raise NoRowsError
        return packed


class Packer:
    """Packs blocks as they come. A table's blocks are all rows of codes, or all ones."""

    def __init__(
        self, schema: Schema, literals: Literals, block_rows: Sequence[int] | None = None
    ) -> None:
        """Begin without a row.

        Args:
            schema: of the rows.
            literals: which bits every row gets.
            block_rows: of ones, how many rows each block will have, if that is known. Then no
                room is left over. Block b begins at row b·`BLOCK_ROWS`, however few it has.
        """
        self.attributes = [int(a) for a in np.unique(literals.attribute)]
        self._literals = literals
        self._dense = _DensePacker(schema, literals)
        self._sparse = _OnesPacker(schema, literals, block_rows)

    def add(self, block: Block) -> None:
        if isinstance(block, Ones):
            self._sparse.add(block)
        elif isinstance(block, Columns):
            self._sparse.add_columns(block)
        else:
            self._dense.add(block)

    def finish(self) -> PackedRows:
        """What was packed; it may be no row at all."""
        blocks, rows = self._sparse.finish() if self._sparse.rows else self._dense.finish()
        return PackedRows(sum(rows), self._literals, tuple(blocks), tuple(rows))


def rows_of_blocks(rows: int) -> list[int]:
    """How many rows the blocks of so many rows have: all are full but the last."""
    size = tables.BLOCK_ROWS
    return [min(size, rows - first) for first in range(0, rows, size)]


@runtime_checkable
class SelfPacking(Protocol):
    """A table that makes its packed rows itself, because it has a faster way than blocks."""

    def pack(self, literals: Literals) -> PackedRows: ...


class _DensePacker:
    """Packs rows of codes. One pass over an attribute sets the bits of all its literals."""

    def __init__(self, schema: Schema, literals: Literals) -> None:
        self.literals = literals
        self.sizes = schema.sizes
        owner = literals.owner
        order = np.lexsort((literals.codes, literals.attribute[owner]))
        self._owner, self._codes = owner[order], literals.codes[order]
        self._attributes, first = np.unique(literals.attribute[owner][order], return_index=True)
        self._ends = np.append(first, len(order))
        self._blocks: list[Words] = []
        self._rows: list[int] = []

    def add(self, block: DenseBlock | ArrowBlock) -> None:
        from dualquery.rows._kernels import pack_codes

        bits, first_word = self._room(block.rows)

        def task(first: int, last: int) -> None:
            for place in range(first, last):
                attribute = int(self._attributes[place])
                part = slice(self._ends[place], self._ends[place + 1])
                start = np.searchsorted(self._codes[part], np.arange(self.sizes[attribute] + 1))
                pack_codes(block.codes(attribute), start, self._owner[part], bits, first_word)

        over_ranges(task, len(self._attributes), grain=8)
        self._rows[-1] += block.rows

    def _room(self, rows: int) -> tuple[Words, int]:
        """Where the next rows go: a block, and its first free word."""
        size = tables.BLOCK_ROWS
        if not self._rows or self._rows[-1] % 64 or self._rows[-1] + rows > size:
            self._trim()
            shape = len(self.literals), -(-max(size, rows) // 64)
            self._blocks.append(np.zeros(shape, dtype=np.uint64))
            self._rows.append(0)
        return self._blocks[-1], self._rows[-1] // 64

    def _trim(self) -> None:
        if self._rows:
            words = -(-self._rows[-1] // 64)
            self._blocks[-1] = np.ascontiguousarray(self._blocks[-1][:, :words])

    def finish(self) -> tuple[list[Words], list[int]]:
        self._trim()
        return self._blocks, self._rows


class _OnesPacker:
    """Packs the ones of 0/1 attributes, in any order, into blocks that are made as rows appear."""

    def __init__(
        self, schema: Schema, literals: Literals, block_rows: Sequence[int] | None
    ) -> None:
        self.rows = 0
        self.literals = literals
        self._block_rows = block_rows
        owner = literals.owner
        self._holds = np.zeros((len(literals), 2), dtype=bool)
        binary = literals.codes < 2
        self._holds[owner[binary], literals.codes[binary]] = True
        # The bits of "is 1" are the ones. Those of "is 0" are the ones, flipped at the end. Those
        # of "is 0 or 1" are zeros, flipped at the end.
        self._places = np.full((len(schema), 2), -1, dtype=np.int64)
        # If a literal occurs twice, one of them is packed and the other is copied at the end.
        self._same = np.arange(len(literals))
        for code in (0, 1):
            plain = np.flatnonzero(self._holds[:, code] & ~self._holds[:, 1 - code])
            self._places[literals.attribute[plain], code] = plain
            self._same[plain] = self._places[literals.attribute[plain], code]
        self._blocks: list[Words] = []
        self._size = tables.BLOCK_ROWS

    def add(self, ones: Ones) -> None:
        from dualquery.rows._kernels import pack_ones

        self._grow(ones.rows)
        row, attribute = ones.row, ones.attribute
        number = (row // self._size).astype(np.uint16)
        if (number[1:] < number[:-1]).any():
            order = np.argsort(number, kind="stable")  # a radix sort for 16 bits
            row, attribute, number = row[order], attribute[order], number[order]
        ends = np.searchsorted(number, np.arange(len(self._blocks) + 1))

        def task(first: int, last: int) -> None:
            for block in range(first, last):
                part = slice(ends[block], ends[block + 1])
                if part.start < part.stop:
                    pack_ones(
                        row[part],
                        attribute[part],
                        self._places,
                        block * self._size,
                        self._blocks[block],
                    )

        over_ranges(task, len(self._blocks), grain=1)

    def add_columns(self, columns: Columns) -> None:
        """Add all ones at once, by column. They are walked block by block, each of them once."""
        from dualquery.rows._kernels import pack_columns

        self._grow(columns.rows)
        cursor, stop = columns.start[:-1].copy(), columns.start[1:]
        attributes = np.flatnonzero((self._places >= 0).any(axis=1))
        for number, bits in enumerate(self._blocks):
            task = partial(
                pack_columns,
                columns.indices,
                cursor,
                stop,
                attributes,
                self._places,
                number * self._size,
                (number + 1) * self._size,
                bits,
            )
            over_ranges(task, len(attributes), grain=64)

    def _grow(self, rows: int) -> None:
        """Make blocks for this number of rows."""
        self.rows = max(self.rows, rows)
        while len(self._blocks) * self._size < self.rows:
            held = self._size
            if self._block_rows is not None:  # many small tables would else waste much of a block
                held = self._block_rows[len(self._blocks)]
            self._blocks.append(np.zeros((len(self.literals), -(-held // 64)), dtype=np.uint64))

    def finish(self) -> tuple[list[Words], list[int]]:
        turned = np.flatnonzero(self._holds[:, 0])
        copies = np.flatnonzero(self._same != np.arange(len(self._same)))
        block_rows = []
        for number, bits in enumerate(self._blocks):
            rows = min(self._size, self.rows - number * self._size)
            if self._block_rows is not None:
                rows = self._block_rows[number]
            words = -(-rows // 64)
            if words < bits.shape[1]:
                bits = self._blocks[number] = np.ascontiguousarray(bits[:, :words])
            bits[copies] = bits[self._same[copies]]
            bits[turned] = ~bits[turned]
            bits[turned, words - 1] &= last_word(rows)
            block_rows.append(rows)
        return self._blocks, block_rows


def last_word(rows: int) -> np.uint64:
    """A block's last word with ones at its rows and zeros past them."""
    return np.uint64(2 ** (((rows - 1) % 64) + 1) - 1)
