"""A table in the paper's binary view: every value of a column is a 0/1 column. Private side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dualquery.base.errors import TableError
from dualquery.base.ragged import offsets
from dualquery.domain.schema import Schema
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.table import ArrowBlock, DenseBlock, Table
from dualquery.workloads.binary_view import binarised, bits_of


class BitColumns:
    """The rows of a table, read by its declared schema and given out bit by bit.

    Args:
        table: the table.
        declared: its schema, as resolved against it.
    """

    def __init__(self, table: Table, declared: Schema) -> None:
        self._table = table
        self._declared = declared
        self._view = binarised(declared)
        bits = bits_of(declared)
        self._owner = np.repeat(np.arange(len(declared)), bits)
        self._code = np.arange(len(self._owner)) - np.repeat(offsets(bits)[:-1], bits)
        for number, attribute in enumerate(declared.attributes):
            if attribute.is_binary:
                self._code[self._owner == number] = 1

    def bind(self, schema: Schema) -> Schema:
        if schema != self._view:
            raise TableError("the bits of this table are not the columns of the schema")
        return schema

    def blocks(
        self, schema: Schema, attributes: Sequence[int], out_of_domain: OutOfDomain
    ) -> Iterator[DenseBlock]:
        owners = np.unique(self._owner[list(attributes)]).tolist()
        for block in self._table.blocks(self._declared, owners, out_of_domain):
            if not isinstance(block, ArrowBlock | DenseBlock):
                raise TableError("pairs of a record and an item are 0/1 columns already")
            codes = {a: block.codes(a) for a in owners}
            yield DenseBlock(
                block.rows,
                {
                    bit: (codes[int(self._owner[bit])] == self._code[bit]).astype(np.int32)
                    for bit in attributes
                },
            )
