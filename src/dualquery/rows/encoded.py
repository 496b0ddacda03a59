"""Rows as codes: one array per attribute, in the smallest type that holds its codes. Private side.

Whole marginals are counted from codes. Packed rows would need one column per cell and cost many
times as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import TableError
from dualquery.domain.schema import Schema
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.packed import PackedRows, SelfPacking
from dualquery.rows.table import ArrowBlock, DenseBlock, Table
from dualquery.rows.weighed import Strata, Weighed
from dualquery.workloads.workload import Literals

NarrowCodes = npt.NDArray[np.unsignedinteger[Any]]
"""Codes of one attribute, in the smallest type that holds its domain."""


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Private rows as codes: `columns[a][r]` is the code of attribute a in row r.

    Attributes:
        rows: how many there are.
        columns: the codes, by attribute.
        strata: what each row weighs, if they do not all count the same.
    """

    rows: int
    columns: dict[int, NarrowCodes]
    strata: Strata | None = None

    @classmethod
    def read(
        cls,
        table: Table,
        schema: Schema,
        attributes: Sequence[int],
        out_of_domain: OutOfDomain = OutOfDomain.REFUSE,
    ) -> EncodedRows:
        """Read a table block by block and keep the codes of some attributes.

        Args:
            table: the private table.
            schema: the schema as bound to the table.
            attributes: the positions of the attributes to keep.
            out_of_domain: what to do with a cell outside its declared domain.
        """
        if isinstance(table, Weighed):
            whole = cls.read(table.table, schema, attributes, out_of_domain)
            return replace(whole, strata=table.strata)
        if isinstance(table, SelfPacking):
            return cls._from_bits(table, schema, attributes, out_of_domain)
        parts: dict[int, list[NarrowCodes]] = {int(a): [] for a in attributes}
        rows = 0
        for block in table.blocks(schema, list(parts), out_of_domain):
            if not isinstance(block, DenseBlock | ArrowBlock):
                return cls._from_bits(table, schema, attributes, out_of_domain)
            for attribute, found in parts.items():
                found.append(block.codes(attribute).astype(_kind(int(schema.sizes[attribute]))))
            rows += block.rows
        if not rows:
            raise TableError("the table has no rows")
        return cls(rows, {a: np.concatenate(found) for a, found in parts.items()})

    def coarser(self, schema: Schema) -> EncodedRows:
        """The codes of a schema, from those of its sub-bins."""
        columns: dict[int, NarrowCodes] = {}
        for attribute, codes in self.columns.items():
            first, last = schema.fine.code_start[attribute : attribute + 2]
            found = schema.code_of_fine[first:last] - schema.code_start[attribute]
            columns[attribute] = found.astype(_kind(int(schema.sizes[attribute])))[codes]
        return replace(self, columns=columns)

    def by_layer(self) -> Iterator[tuple[int, EncodedRows]]:
        """The rows of every layer, with the parts that each of them counts there."""
        if self.strata is None:
            yield 1, self
            return
        for layer in self.strata.layers:
            chosen = self.strata.members(layer)
            yield (
                layer.parts,
                EncodedRows(len(chosen), {a: c[chosen] for a, c in self.columns.items()}),
            )

    @classmethod
    def _from_bits(
        cls, table: Table, schema: Schema, attributes: Sequence[int], out_of_domain: OutOfDomain
    ) -> EncodedRows:
        """The codes of 0/1 attributes, from their packed ones."""
        ones = Literals.of([(int(a), (1,)) for a in attributes])
        packed = PackedRows.pack(table, schema, ones, out_of_domain)
        columns: dict[int, NarrowCodes] = {}
        for place, attribute in enumerate(attributes):
            bits = [
                np.unpackbits(block[place].view(np.uint8), bitorder="little")[:rows]
                for block, rows in zip(packed.blocks, packed.block_rows, strict=True)
            ]
            columns[int(attribute)] = np.concatenate(bits)
        return cls(packed.rows, columns)


def _kind(size: int) -> type[np.unsignedinteger[Any]]:
    if size <= 1 << 8:
        return np.uint8
    return np.uint16 if size <= 1 << 16 else np.uint32
