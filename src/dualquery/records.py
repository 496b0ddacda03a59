"""Encoded rows: bit-packed columns, one per literal the workload uses, and only those.

This module is on the private side of the boundary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.encoding import OutOfDomain
from dualquery.errors import TableError
from dualquery.queries.workload import Literals
from dualquery.schema import Schema
from dualquery.table import Block, SparseBlock, Table

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Records:
    """Private rows as bits.

    `blocks[b][literal, w]` holds bit i of word w for row 64w + i of block b: whether the
    row satisfies the (positive) literal. Rows past the end are zero. Cutting the rows
    into blocks keeps a column's share in cache while many queries use it, and lets
    rows be packed while they are read.
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
    ) -> Records:
        """Read a table block by block and keep only the bits the literals need."""
        attributes = [int(a) for a in np.unique(literals.attribute)]
        blocks, block_rows = [], []
        for block in table.blocks(schema, attributes, out_of_domain):
            blocks.append(_pack_block(block, schema, literals))
            block_rows.append(block.rows)
        if not blocks:
            raise TableError("the table has no rows")
        return cls(sum(block_rows), literals, tuple(blocks), tuple(block_rows))


def _pack_block(block: Block, schema: Schema, literals: Literals) -> Words:
    words = -(-block.rows // 64)
    bits = np.zeros((len(literals), words), dtype=np.uint64)
    if isinstance(block, SparseBlock):
        _pack_sparse(block, literals, bits)
        return bits
    order = np.argsort(literals.attribute, kind="stable")
    attribute, codes = -1, np.empty(0, dtype=np.int32)
    flags = np.zeros(words * 64, dtype=bool)
    for literal in order:
        if literals.attribute[literal] != attribute:
            attribute = int(literals.attribute[literal])
            codes = block.codes(attribute)
        holds = literals.membership(literal, int(schema.sizes[attribute]))
        np.take(holds, codes, out=flags[: block.rows])
        bits[literal] = np.packbits(flags, bitorder="little").view("<u8")
    return bits


def _pack_sparse(block: SparseBlock, literals: Literals, bits: Words) -> None:
    from dualquery._kernels import set_bits

    for literal in range(len(literals)):
        attribute = literals.attribute[literal]
        ones = block.indices[block.start[attribute] : block.stop[attribute]]
        codes = literals.codes_of(literal)
        if 1 in codes:
            set_bits(bits[literal], ones, block.first_row)
        if 0 in codes:
            zeros = np.ones(block.rows, dtype=bool)
            zeros[ones - block.first_row] = False
            flags = np.zeros(bits.shape[1] * 64, dtype=bool)
            flags[: block.rows] = zeros
            bits[literal] |= np.packbits(flags, bitorder="little").view("<u8")
