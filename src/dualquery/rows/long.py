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
        known = _Numbers()
        for pairs in _gather(self.table.batches([self.row, self.item])):
            ids, ends = _runs(_whole_column(pairs, self.row))
            place = np.repeat(known.of(ids), np.diff(ends, prepend=0))
            self._check_declared(len(known))
            attribute = self._attributes(_whole_column(pairs, self.item), schema, out_of_domain)
            # The last entry of `used` stands for items that are left out.
            on = np.append(used, False)[attribute]
            yield Ones(len(known), place[on], attribute[on].astype(np.int32))
        total = self.declared_rows or len(known)
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
        known, persons = _Numbers(), _Numbers()
        owner = np.empty(0, dtype=np.int64)
        for pairs in _gather(self.table.batches(names)):
            ids, ends = _runs(_whole_column(pairs, self.row))
            people, changes = _runs(_whole_column(pairs, column))
            # Where the person changes, the row has to change too, so runs are all that is read.
            run = np.searchsorted(changes, ends)
            place, person = known.of(ids), persons.of(people)[run]
            owner = np.concatenate([owner, np.full(len(known) - len(owner), -1)])
            new = owner[place] < 0
            owner[place[new]] = person[new]
            if not (np.isin(changes, ends).all() and np.array_equal(owner[place], person)):
                raise TableError(
                    f"unit = {column!r}: a row of the long table belongs to two persons; "
                    "expected one"
                )
        if not len(known):
            raise NoRowsError
        return pa.DictionaryArray.from_arrays(pa.array(owner, pa.int32()), persons.values)

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


class _Numbers:
    """Numbers of values, in the order in which they first appear, over several batches.

    Only the different values of a batch are looked up among those of earlier batches.
    """

    def __init__(self) -> None:
        self._values: pa.Array | None = None

    def __len__(self) -> int:
        return 0 if self._values is None else len(self._values)

    @property
    def values(self) -> pa.Array:
        """All values so far."""
        return self._values

    def of(self, cells: pa.Array) -> npt.NDArray[np.int64]:
        """The number of every cell."""
        coded = cells.dictionary_encode()
        found: npt.NDArray[np.int64] = self._look_up(coded.dictionary)[coded.indices.to_numpy()]
        return found

    def _look_up(self, different: pa.Array) -> npt.NDArray[np.int64]:
        """The numbers of values that are all different; those that are new follow in order."""
        if self._values is None:
            self._values = different
            return np.arange(len(different), dtype=np.int64)
        # The smaller set is hashed, because hashing takes longer than looking up.
        place = np.full(len(different), -1, dtype=np.int64)
        if len(different) < len(self):
            known = pc.index_in(self._values, value_set=different).fill_null(-1).to_numpy()
            at = np.flatnonzero(known >= 0)
            place[known[at]] = at
        else:
            place[:] = pc.index_in(different, value_set=self._values).fill_null(-1).to_numpy()
        new = place < 0
        fresh = different.filter(pa.array(new))
        place[new] = len(self) + np.arange(len(fresh))
        self._values = pa.concat_arrays([self._values, fresh])
        return place


def _runs(cells: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Equal neighbours as one: their values, and where each run ends.

    The pairs of a row mostly stand together, and there are far fewer runs than pairs.
    """
    try:
        coded = pc.run_end_encode(cells)
    except pa.ArrowNotImplementedError:  # of a few types; then every cell is a run
        return cells, np.arange(1, len(cells) + 1)
    return coded.values, coded.run_ends.to_numpy().astype(np.int64)


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
