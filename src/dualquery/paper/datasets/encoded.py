"""A table that is read once and kept as codes, for experiments that read it many times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dualquery.base.errors import SchemaError, TableError
from dualquery.domain.schema import Schema
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.rows.table import ArrowBlock, DenseBlock


class EncodedTable:
    """The rows of a frame or file as codes of one schema, in memory."""

    def __init__(
        self, source: object, schema: Schema, out_of_domain: OutOfDomain = OutOfDomain.REFUSE
    ) -> None:
        table = open_table(source)
        self.schema = table.bind(schema)
        every = range(len(self.schema))
        self._blocks = []
        for block in table.blocks(self.schema, every, out_of_domain):
            if not isinstance(block, ArrowBlock | DenseBlock):
                raise TableError("a sparse table is not kept as codes; use it as it is")
            self._blocks.append(DenseBlock(block.rows, {a: block.codes(a) for a in every}))
        self.rows = sum(block.rows for block in self._blocks)

    def bind(self, schema: Schema) -> Schema:
        if schema != self.schema:
            raise SchemaError("the table was encoded for another schema")
        return schema

    def blocks(
        self, schema: Schema, attributes: Sequence[int], out_of_domain: OutOfDomain
    ) -> Iterator[DenseBlock]:
        for block in self._blocks:
            yield DenseBlock(block.rows, {a: block.codes(a) for a in attributes})
