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

from dualquery.base.errors import NoRowsError
from dualquery.base.threads import over_ranges
from dualquery.domain.schema import Schema
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.packed import PackedRows, Packer, SelfPacking
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
            raise NoRowsError
        return cls(rows, {a: np.concatenate(found) for a, found in parts.items()})

    @classmethod
    def read_packed(
        cls,
        table: Table,
        schema: Schema,
        literals: Literals,
        out_of_domain: OutOfDomain,
        keep: Schema,
    ) -> tuple[PackedRows, EncodedRows | None]:
        """Read a table once, for the packed rows of some literals and for codes.

        Args:
            table: the private table.
            schema: the schema as bound to the table.
            literals: what is packed; the codes of their attributes are kept.
            out_of_domain: what to do with a cell outside its declared domain.
            keep: the schema of the codes: the same, or its `fine` one.

        Returns:
            Both; None instead of codes if the table gives no rows of codes.
        """
        if isinstance(table, SelfPacking):
            return PackedRows.pack(table, schema, literals, out_of_domain), None
        packer = Packer(schema, literals)
        kept = _Kept(schema, keep, packer.attributes)
        for block in table.blocks(keep, packer.attributes, out_of_domain):
            if isinstance(block, DenseBlock | ArrowBlock):
                packer.add(kept.block(block))
            else:
                packer.add(block)
        packed = packer.finish()
        if not packed.rows:
            raise NoRowsError
        return packed, kept.rows(packed.rows)

    def coarser(self, schema: Schema) -> EncodedRows:
        """The codes of a schema, from those of its sub-bins."""
        columns: dict[int, NarrowCodes] = {}
        for attribute, codes in self.columns.items():
            if schema.fine.sizes[attribute] == schema.sizes[attribute]:
                columns[attribute] = codes  # not cut finer, so the same codes
                continue
            found = _bins_of_fine(schema, attribute)
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


class _Kept:
    """Keeps the codes of blocks while they are packed."""

    def __init__(self, schema: Schema, keep: Schema, attributes: Sequence[int]) -> None:
        self._sizes = keep.sizes
        self._parts: dict[int, list[NarrowCodes]] = {a: [] for a in attributes}
        # A column that is not cut finer has the same codes in both schemas.
        self._bins = {
            a: _bins_of_fine(schema, a).astype(np.int32)
            for a in attributes
            if keep is not schema and keep.sizes[a] != schema.sizes[a]
        }

    def block(self, block: DenseBlock | ArrowBlock) -> DenseBlock:
        """The codes of a block in the coarse schema; in the other they are kept."""
        columns = {}
        waiting = list(self._parts)

        def task(first: int, last: int) -> None:
            for attribute in waiting[first:last]:
                codes = block.codes(attribute)
                self._parts[attribute].append(codes.astype(_kind(int(self._sizes[attribute]))))
                bins = self._bins.get(attribute)
                columns[attribute] = codes if bins is None else bins[codes]

        over_ranges(task, len(waiting), grain=8)
        return DenseBlock(block.rows, columns)

    def rows(self, rows: int) -> EncodedRows | None:
        """All codes that were kept; None if there were none."""
        if not all(self._parts.values()):
            return None
        columns = {}
        for attribute, parts in self._parts.items():
            columns[attribute] = np.concatenate(parts)
            parts.clear()
        return EncodedRows(rows, columns)


def _bins_of_fine(schema: Schema, attribute: int) -> npt.NDArray[np.int64]:
    """The bin of every sub-bin of an attribute."""
    first, last = schema.fine.code_start[attribute : attribute + 2]
    found: npt.NDArray[np.int64] = schema.code_of_fine[first:last] - schema.code_start[attribute]
    return found


def _kind(size: int) -> type[np.unsignedinteger[Any]]:
    if size <= 1 << 8:
        return np.uint8
    return np.uint16 if size <= 1 << 16 else np.uint32
