"""Private 0/1 tables in long format: pairs of a row's id and an item. Private side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dualquery.base.errors import NoRowsError, TableError
from dualquery.domain.schema import Schema
from dualquery.domain.types import text_of
from dualquery.rows import sparse
from dualquery.rows.arrow import ArrowTable, joined
from dualquery.rows.cells import python_cells
from dualquery.rows.encoding import OutOfDomain, decoded, plain_column
from dualquery.rows.ids import coded_ids
from dualquery.rows.opening import open_table
from dualquery.rows.refusals import WAY_OUT
from dualquery.rows.sparse import no_ones, require_binary
from dualquery.rows.streams import LazyTable
from dualquery.rows.table import Ones

Int64 = npt.NDArray[np.int64]


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
        self._kept: _Runs | None = None

    def named(self, item: object) -> str:
        """The name of an item's attribute."""
        return self.prefix + text_of(item)

    @staticmethod
    def undeclared_text(column: str) -> str:
        """What is said about an item that is no attribute."""
        return (
            f"column {column!r}: an item is not declared; expected an attribute in the schema for "
            "every item, named by the prefix and the item"
        )

    def undeclared(self, schema: Schema) -> Counter[str]:
        """How many pairs name each item that the schema does not declare."""
        found: Counter[str] = Counter()
        for batch in self.table.batches([self.item]):
            for one in pc.value_counts(plain_column(batch.column(0), self.item)).to_pylist():
                name = self.named(one["values"])
                if one["values"] is not None and name not in schema.index:
                    found[name] += one["counts"]
        return found

    def bind(self, schema: Schema) -> Schema:
        return require_binary(schema.require_resolved(), "a table in long format")

    def blocks(
        self, schema: Schema, attributes: Sequence[int], out_of_domain: OutOfDomain
    ) -> Iterator[Ones]:
        items = _Items(self, schema, attributes, out_of_domain)
        total = 0
        for runs, total, cells in self._pairs(out_of_domain is OutOfDomain.REFUSE):
            yield items.ones(total, runs.row, runs, cells)
        total = self.declared_rows or total
        if total:
            yield no_ones(total)

    def renumbered(
        self,
        schema: Schema,
        attributes: Sequence[int],
        out_of_domain: OutOfDomain,
        numbers: Int64,
    ) -> Iterator[Ones]:
        """The same ones, row r having the number `numbers[r]`; one of −1 is left out.

        The numbers are looked up once per run of pairs, not once per pair.
        """
        items = _Items(self, schema, attributes, out_of_domain)
        total = int(numbers.max(initial=-1)) + 1
        numbers = np.append(numbers, -1)  # of a pair that names no row
        for runs, _, cells in self._pairs(out_of_domain is OutOfDomain.REFUSE):
            row = numbers[runs.row]
            # In the order of numbers: then the ones need not be sorted by their blocks.
            yield items.ones(total, row, runs, cells, np.argsort(row, kind="stable"))

    def _pairs(self, refuses: bool) -> Iterator[tuple[_Runs, int, pa.Array]]:
        """Runs of pairs, how many rows are known after them, and the items of the pairs.

        Where cells are not refused, a pair without an id is of row −1, which nobody counts, and
        one without an item says only that there is such a row.
        """
        if self._kept is not None:
            yield from self._pairs_again(self._kept, refuses)
            return
        known = _Numbers()
        for pairs in _gather(self.table.batches([self.row, self.item])):
            ids, ends = _runs(_whole_column(pairs, self.row, refuses))
            runs = _Runs(known.of_ids(ids, self.row, refuses, self.table.inferred), ends)
            self._check_declared(len(known))
            yield runs, len(known), _whole_column(pairs, self.item, refuses)

    def _pairs_again(self, kept: _Runs, refuses: bool) -> Iterator[tuple[_Runs, int, pa.Array]]:
        """The same of a table whose rows were numbered when their persons were read."""
        total = int(kept.row.max()) + 1
        self._check_declared(total)
        done = 0
        for pairs in _gather(self.table.batches([self.item])):
            cells = _whole_column(pairs, self.item, refuses)
            end = done + len(cells)
            if end > kept.ends[-1]:
                raise _changed()
            yield kept.between(done, end), total, cells
            done = end
        if done != kept.ends[-1]:
            raise _changed()

    def owners(self, column: str, *, refuses: bool = True) -> pa.Array:
        """The person of every row, in the order in which rows are numbered.

        Where cells are not refused, a row of which no pair names the person belongs to nobody.
        """
        if column not in self.table.header:
            raise TableError(
                f"unit = {column!r}: the table has no such column; it has "
                f"{', '.join(self.table.header[:6])}"
            )
        names = [self.row] if column == self.row else [self.row, column]
        known, persons = _Numbers(), _Numbers()
        owner = np.empty(0, dtype=np.int64)
        keeping = _Keeping() if self._same_order else None
        for pairs in _gather(self.table.batches(names)):
            ids, ends = _runs(_whole_column(pairs, self.row, refuses))
            people, changes = _runs(_whole_column(pairs, column, refuses))
            inferred = self.table.inferred
            row = known.of_ids(ids, self.row, refuses, inferred)
            who = persons.of_ids(people, column, refuses, inferred)
            if keeping is not None and not keeping.add(row, ends, len(known)):
                keeping = None
            # Where the person changes, the row has to change too, so runs are all that is read.
            # A person or a row that is written in two ways only makes more runs.
            row_changes = np.array_equal(ends[np.searchsorted(ends, changes)], changes)
            if not (row_changes or refuses):  # a pair may name its row and nobody, or the reverse
                both = np.union1d(ends, changes)
                row, ends, row_changes = row[np.searchsorted(ends, both)], both, True
            person = who[np.searchsorted(changes, ends)]
            said = (row >= 0) & (person >= 0)
            place, person = row[said], person[said]
            owner = np.concatenate([owner, np.full(len(known) - len(owner), -1)])
            new = owner[place] < 0
            owner[place[new]] = person[new]
            if not (row_changes and np.array_equal(owner[place], person)):
                raise TableError(
                    f"unit = {column!r}: a row of the long table belongs to two persons; "
                    "expected one"
                )
        if not len(known):
            raise NoRowsError
        self._kept = None if keeping is None else keeping.runs()
        texts = pa.array([], pa.string()) if not len(persons) else persons.values.cast(pa.string())
        indices = pa.array(owner, pa.int32(), mask=owner < 0)
        return pa.DictionaryArray.from_arrays(indices, texts)

    def _check_declared(self, found: int) -> None:
        if self.declared_rows is not None and found > self.declared_rows:
            raise TableError(
                f"the table has more rows than the {self.declared_rows:,} that were declared"
            )

    @property
    def _same_order(self) -> bool:
        """Whether pairs come in the same order whichever columns are read; a query may not."""
        return not isinstance(self.table, LazyTable)


@dataclass(frozen=True, eq=False)
class _Runs:
    """Neighbouring pairs of the same row: run i is of `row[i]` and ends before `ends[i]`."""

    row: Int64
    ends: Int64

    def between(self, first: int, last: int) -> _Runs:
        """The runs of the pairs from `first` up to `last`, whose ends count from `first`."""
        part = slice(
            int(np.searchsorted(self.ends, first, side="right")),
            int(np.searchsorted(self.ends, last, side="left")) + 1,
        )
        return _Runs(self.row[part], np.minimum(self.ends[part], last) - first)


MOST_RUNS = 2
"""Runs are kept, 16 bytes each, if there are at most so many per row; else they are read again."""


class _Keeping:
    """Collects runs while they are few, so that the column of rows need not be read again."""

    def __init__(self) -> None:
        self._rows: list[Int64] = []
        self._ends: list[Int64] = []
        self._held, self._pairs = 0, 0

    def add(self, row: Int64, ends: Int64, rows: int) -> bool:
        """Add the runs of a batch; False if there are too many for so many rows."""
        self._rows.append(row)
        self._ends.append(ends + self._pairs)
        self._held += len(row)
        self._pairs += int(ends[-1])
        # A row may have one run more for each batch that ends in the middle of it.
        return self._held <= MOST_RUNS * rows + len(self._rows)

    def runs(self) -> _Runs:
        return _Runs(np.concatenate(self._rows), np.concatenate(self._ends))


class _Items:
    """Turns pairs into ones: it knows which attribute an item is, and which are asked for."""

    def __init__(
        self,
        table: LongTable,
        schema: Schema,
        attributes: Sequence[int],
        out_of_domain: OutOfDomain,
    ) -> None:
        self._table, self._schema, self._out_of_domain = table, schema, out_of_domain
        self._used = np.zeros(len(schema) + 1, dtype=bool)  # the last is for undeclared items
        self._used[np.asarray(attributes, dtype=np.int64)] = True
        self._known = _Numbers()
        self._attribute = np.zeros(0, dtype=np.int32)

    def ones(
        self,
        rows: int,
        row: Int64,
        runs: _Runs,
        items: pa.Array,
        order: Int64 | slice = slice(None),
    ) -> Ones:
        """The ones of some pairs: those of run i belong to `row[i]`.

        Args:
            rows: how many rows are known so far.
            row: per run, the number of its row; −1 leaves it out.
            runs: where runs end.
            items: of all pairs.
            order: in which runs are listed.
        """
        from dualquery.rows._kernels import list_runs

        coded = items.dictionary_encode()
        attribute = self._attributes(coded.dictionary)
        # A missing item has the last place, and is wanted by nobody.
        wanted = np.append(np.where(self._used[attribute], attribute, -1), -1).astype(np.int32)
        given = coded.indices.fill_null(len(attribute)).to_numpy(zero_copy_only=False)
        place = np.empty(len(items), dtype=np.int64)
        found = np.empty(len(items), dtype=np.int32)
        begins = np.append(0, runs.ends[:-1])
        parts = row[order], begins[order], runs.ends[order]
        total = list_runs(*parts, given, wanted, place, found)
        return Ones(rows, place[:total], found[:total])

    def _attributes(self, different: pa.Array) -> npt.NDArray[np.int32]:
        """The attributes of different items; −1 for an undeclared one that may be left out."""
        numbers = self._known.of_different(different)
        fresh = python_cells(self._known.values[len(self._attribute) :])
        index = self._schema.index
        new = [index.get(self._table.named(item), -1) for item in fresh]
        if self._out_of_domain is OutOfDomain.REFUSE and -1 in new:
            raise TableError(LongTable.undeclared_text(self._table.item), **WAY_OUT)
        self._attribute = np.append(self._attribute, np.array(new, dtype=np.int32))
        return self._attribute[numbers]


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

    def of_ids(self, cells: pa.Array, column: str, refuses: bool, inferred: bool) -> Int64:
        """The number of every id, however it is written (`rows.ids`); −1 for a cell that is none.

        Args:
            cells: the ids.
            column: their column, for messages.
            refuses: whether to refuse a cell that is no id instead.
            inferred: whether a library chose the type of the column.
        """
        if pa.types.is_integer(cells.type):  # then it is written in one way
            coded = cells.dictionary_encode()
        else:
            missing = _missing(column) if refuses else None
            coded = coded_ids(cells, column, missing, inferred=inferred)
        places = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        found: Int64 = np.append(self.of_different(coded.dictionary), -1)[places]
        return found

    def of_different(self, different: pa.Array) -> Int64:
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


def _runs(cells: pa.Array) -> tuple[pa.Array, Int64]:
    """Equal neighbours as one: their values, and where each run ends.

    The pairs of a row mostly stand together, and there are far fewer runs than pairs.
    """
    try:
        coded = pc.run_end_encode(cells)
    except pa.ArrowNotImplementedError:  # of a few types; then every cell is a run
        return cells, np.arange(1, len(cells) + 1)
    return coded.values, coded.run_ends.to_numpy().astype(np.int64)


def _changed() -> TableError:
    return TableError("the pairs of the long table changed while they were read")


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


def _whole_column(pairs: pa.Table, name: str, refuses: bool) -> pa.Array:
    column = pairs.column(name)
    cells = plain_column(column, name)
    cells = decoded(cells)  # it may list an item twice, or a missing one
    if refuses and cells.null_count:
        raise TableError(_missing(name))
    return cells


def _missing(column: str) -> str:
    return f"column {column!r}: a cell is missing; a pair needs the id of a row and an item"
