"""Private 0/1 tables in long format: pairs of a row's id and an item. Private side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dualquery.base.errors import NoRowsError, TableError
from dualquery.domain.schema import Schema
from dualquery.rows import sparse
from dualquery.rows.arrow import ArrowTable, joined
from dualquery.rows.encoding import OutOfDomain, plain_column
from dualquery.rows.opening import open_table
from dualquery.rows.sparse import no_ones, require_binary
from dualquery.rows.table import Ones


class LongTable:
    """A 0/1 table given as pairs: row r has a 1 in the column of item i if the pair (r, i) occurs.

    Items are declared: `prefix` followed by an item's text must name a 0/1 attribute of the
    schema. Rows are numbered in the order in which their ids appear, and only the ids are held, so
    the pairs may come in any order and number.

    A row without any item does not occur among the pairs. `declared_rows` says how many rows there
    are, those without items included. Without it the rows that occur are the table. Their number
    then tells whether a row has an item, so replace-one neighbours, which publish it, need a
    declared one.
    """

    def __init__(
        self,
        source: object,
        row: str,
        item: str,
        *,
        prefix: str = "",
        declared_rows: int | None = None,
    ) -> None:
        """Open the pairs; nothing except their header is read yet.

        Args:
            source: a frame, or the path of a CSV or Parquet file.
            row: the column that holds the id of a pair's row.
            item: the column that holds the item.
            prefix: what stands before an item's text in the name of its attribute.
            declared_rows: the public number of rows, those without items included.
        """
        table = open_table(source)
        if not isinstance(table, ArrowTable):
            raise TableError("a table in long format is a frame, a CSV or a Parquet file")
        for name in (row, item):
            if name not in table.header:
                raise TableError(
                    f"the table has no column {name!r}; it has {', '.join(table.header[:6])}"
                )
        self.table = table
        self.row = row
        self.item = item
        self.prefix = prefix
        self.declared_rows = declared_rows

    def named(self, item: object) -> str:
        """The name of an item's attribute."""
        return self.prefix + _text(item)

    def bind(self, schema: Schema) -> Schema:
        return require_binary(schema.require_resolved(), "a table in long format")

    def blocks(
        self, schema: Schema, attributes: Sequence[int], out_of_domain: OutOfDomain
    ) -> Iterator[Ones]:
        used = np.zeros(len(schema), dtype=bool)
        used[np.asarray(attributes, dtype=np.int64)] = True
        known: pa.Array | None = None
        for pairs in _gather(self.table.batches([self.row, self.item])):
            ids = _whole_column(pairs, self.row)
            if known is None:
                known = pc.unique(ids)
            else:
                seen = pc.is_in(ids, value_set=known)
                fresh = pc.unique(ids.filter(pc.invert(seen)))
                known = pa.concat_arrays([known, fresh])
            self._check_declared(len(known))
            place = pc.index_in(ids, value_set=known).to_numpy(zero_copy_only=False)
            attribute = self._attributes(_whole_column(pairs, self.item), schema, out_of_domain)
            # The last entry of `used` stands for items that are left out.
            on = np.append(used, False)[attribute]
            yield Ones(len(known), place[on].astype(np.int64), attribute[on].astype(np.int32))
        total = self.declared_rows or (0 if known is None else len(known))
        if total:
            yield no_ones(total)

    def owners(self, column: str) -> pa.Array:
        """The person of every row, in the order in which rows are numbered."""
        if column not in self.table.header:
            raise TableError(
                f"unit = {column!r}: the table has no such column; it has "
                f"{', '.join(self.table.header[:6])}"
            )
        names = [self.row] if column == self.row else [self.row, column]
        batches = list(self.table.batches(names))
        if not batches:
            raise NoRowsError
        pairs = joined(batches)
        # Codes run in the order of first appearance, as the numbers of rows do.
        row = _whole_column(pairs, self.row).dictionary_encode().indices.to_numpy()
        coded = _whole_column(pairs, column).dictionary_encode()
        person = coded.indices.to_numpy()
        _, first = np.unique(row, return_index=True)
        if np.any(person[first][row] != person):
            raise TableError(
                f"unit = {column!r}: a row of the long table belongs to two persons; expected one"
            )
        return coded.dictionary.take(pa.array(person[first]))

    def _check_declared(self, found: int) -> None:
        if self.declared_rows is not None and found > self.declared_rows:
            raise TableError(
                f"the table has more rows than the {self.declared_rows:,} that were declared"
            )

    def _attributes(
        self, items: pa.Array, schema: Schema, out_of_domain: OutOfDomain
    ) -> npt.NDArray[np.int64]:
        """The attribute of each item; −1 for an undeclared one that may be left out."""
        coded = items if pa.types.is_dictionary(items.type) else items.dictionary_encode()
        places = np.array(
            [schema.index.get(self.named(v), -1) for v in coded.dictionary.to_pylist()],
            dtype=np.int64,
        )
        attribute: npt.NDArray[np.int64] = places[coded.indices.to_numpy(zero_copy_only=False)]
        if out_of_domain is OutOfDomain.REFUSE and attribute.size and attribute.min() < 0:
            item = items[int(np.argmin(attribute))].as_py()
            raise TableError(
                f"column {self.item!r}: item {item!r} is not declared; expected an attribute "
                f"{self.named(item)!r} in the schema"
            )
        return attribute


def _text(item: object) -> str:
    return str(int(item)) if isinstance(item, float) and item.is_integer() else str(item)


def _gather(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches joined into larger ones, because each one costs a look at all ids known so far."""
    waiting: list[pa.RecordBatch] = []
    held = 0
    for batch in batches:
        waiting.append(batch)
        held += batch.num_rows
        if held >= sparse.BATCH // 4:
            yield joined(waiting)
            waiting, held = [], 0
    if held:
        yield joined(waiting)


def _whole_column(pairs: pa.Table, name: str) -> pa.Array:
    column = pairs.column(name)
    if column.null_count:
        raise TableError(
            f"column {name!r}: a cell is missing; a pair needs the id of a row and an item"
        )
    cells = plain_column(column, name)
    return cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells
