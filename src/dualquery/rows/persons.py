"""Rows of persons: who they belong to, which are kept, and what each of them weighs. Private side.

The cap is enforced here. Which records of a person are kept depends on that person's records
alone, so changing one person changes nothing for the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dualquery.base.errors import TableError
from dualquery.domain.schema import Schema
from dualquery.privacy.unit import Persons, Weigh
from dualquery.rows import table as tables
from dualquery.rows.arrow import ArrowTable
from dualquery.rows.encoding import Codes, OutOfDomain
from dualquery.rows.long import LongTable
from dualquery.rows.table import ArrowBlock, Block, DenseBlock, Ones, Table

DROPPED = 0
"""The stratum of rows that are not kept."""

_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Strata:
    """Rows by what they weigh; `of_row[r]` is 0 for a row that is left out.

    Attributes:
        of_row: the stratum of every row.
        weights: in parts, of a row of stratum 1, 2, …
        persons: how many persons there are.
    """

    of_row: npt.NDArray[np.uint16]
    weights: tuple[int, ...]
    persons: int

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """How many rows each stratum has, the one of dropped rows first."""
        return np.bincount(self.of_row, minlength=len(self.weights) + 1)

    @cached_property
    def place(self) -> npt.NDArray[np.int64]:
        """The number of every row within its stratum."""
        order = np.argsort(self.of_row, kind="stable")
        first = np.cumsum(self.sizes) - self.sizes
        found = np.empty(len(order), dtype=np.int64)
        found[order] = np.arange(len(order)) - np.repeat(first, self.sizes)
        return found

    @property
    def parts(self) -> int:
        """The weight of all rows together."""
        return int(self.sizes[1:] @ np.array(self.weights, dtype=np.int64))

    @property
    def dropped(self) -> int:
        """How many rows are left out. Private: for the curator's eyes."""
        return int(self.sizes[DROPPED])


class ByPerson:
    """A table whose rows belong to persons. Its rows are counted by what they weigh."""

    def __init__(self, table: Table, persons: Persons) -> None:
        self.table = table
        self.persons = persons

    def bind(self, schema: Schema) -> Schema:
        return self.table.bind(schema)

    @cached_property
    def strata(self) -> Strata:
        """Read the column of persons, and say which rows are kept and what they weigh."""
        return weigh_rows(persons_of_rows(self.table, self.persons.column), self.persons)

    def blocks(
        self, schema: Schema, attributes: Sequence[int], out_of_domain: OutOfDomain
    ) -> Iterator[Block]:
        """All rows, those that are left out included: use `by_weight` to count."""
        return self.table.blocks(schema, attributes, out_of_domain)

    def by_weight(
        self, schema: Schema, attributes: Sequence[int], out_of_domain: OutOfDomain
    ) -> Iterator[tuple[int, Block]]:
        """The rows that are kept, in one pass: (stratum, block) by (stratum, block)."""
        strata, seen = self.strata, 0
        waiting = {number: _Waiting() for number in range(1, len(strata.weights) + 1)}
        for block in self.table.blocks(schema, attributes, out_of_domain):
            if isinstance(block, Ones):
                yield from self._ones(block)
                continue
            if not isinstance(block, DenseBlock | ArrowBlock):
                raise TableError("a sparse matrix has no column that names persons")
            stratum = strata.of_row[seen : seen + block.rows]
            seen += block.rows
            codes = {a: block.codes(a) for a in attributes}
            for number in np.unique(stratum[stratum != DROPPED]).tolist():
                chosen = np.flatnonzero(stratum == number)
                part = {a: column[chosen] for a, column in codes.items()}
                for full in waiting[number].add(len(chosen), part):
                    yield number, full
        for number, rest in waiting.items():
            if rest.rows:
                yield number, rest.take(rest.rows)

    def _ones(self, ones: Ones) -> Iterator[tuple[int, Ones]]:
        strata = self.strata
        stratum = strata.of_row[ones.row]
        for number in range(1, len(strata.weights) + 1):
            chosen = stratum == number
            row = strata.place[ones.row[chosen]]
            yield number, Ones(int(strata.sizes[number]), row, ones.attribute[chosen])


def reads_cells(table: Table) -> bool:
    """Whether a table reads cells, and not codes: only cells can be told apart inside a bin."""
    return isinstance(table.table if isinstance(table, ByPerson) else table, ArrowTable)


class _Waiting:
    """Rows of one stratum, until they fill a block, because small blocks take long to count."""

    def __init__(self) -> None:
        self.rows = 0
        self._parts: list[dict[int, Codes]] = []

    def add(self, rows: int, part: dict[int, Codes]) -> Iterator[DenseBlock]:
        self._parts.append(part)
        self.rows += rows
        while self.rows >= tables.BLOCK_ROWS:
            yield self.take(tables.BLOCK_ROWS)

    def take(self, rows: int) -> DenseBlock:
        columns = {a: np.concatenate([p[a] for p in self._parts]) for a in self._parts[0]}
        self._parts = [{a: column[rows:] for a, column in columns.items()}]
        self.rows -= rows
        return DenseBlock(rows, {a: column[:rows] for a, column in columns.items()})


def persons_of_rows(table: Table, column: str) -> pa.Array:
    """The person of every row, in the order of the rows."""
    if isinstance(table, LongTable):
        return table.owners(column)
    if not isinstance(table, ArrowTable):
        raise TableError(f"unit = {column!r} needs a frame, a CSV or a Parquet file")
    if column not in table.header:
        raise TableError(
            f"unit = {column!r}: the table has no such column; it has "
            f"{', '.join(table.header[:6])}{' …' if len(table.header) > 6 else ''}"
        )
    found = [batch.column(0) for batch in table.batches([column])]
    if not found:
        raise TableError("the table has no rows")
    whole = pa.chunked_array(found).combine_chunks()
    if whole.null_count:
        raise TableError(f"unit = {column!r}: a cell is missing; every row needs its person")
    return whole


def weigh_rows(owners: pa.Array, persons: Persons) -> Strata:
    """Which rows are kept, and the stratum of each.

    At most `persons.most` rows of a person are kept. They are picked by numbers that are made from
    the person's id and the row's place among the rows of that person, as if at random, but
    the same in every run.
    """
    if isinstance(owners, pa.ChunkedArray):
        owners = owners.combine_chunks()
    coded = owners if pa.types.is_dictionary(owners.type) else owners.dictionary_encode()
    person = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    names = coded.dictionary.to_pylist()
    order = np.argsort(person, kind="stable")
    counts = np.bincount(person, minlength=len(names))
    first = np.cumsum(counts) - counts
    within = np.arange(len(person)) - np.repeat(first, counts)
    picked = _mixed(np.repeat(_digests(names), counts), within.astype(np.uint64))
    by_number = np.lexsort((picked, np.repeat(np.arange(len(names)), counts)))
    rank = np.empty(len(person), dtype=np.int64)
    rank[by_number] = within  # persons stay in their order, so the ranks run as `within` does
    kept = np.minimum(counts, persons.most)
    owner = np.repeat(np.arange(len(names)), counts)
    weight = np.where(rank < kept[owner], _weights(rank, kept[owner], persons), 0)
    values, stratum = np.unique(np.append(weight, 0), return_inverse=True)
    of_row = np.empty(len(person), dtype=np.uint16)
    of_row[order] = stratum[:-1]
    return Strata(of_row, tuple(int(v) for v in values[1:]), int((counts > 0).sum()))


def _weights(
    rank: npt.NDArray[np.int64], kept: npt.NDArray[np.int64], persons: Persons
) -> npt.NDArray[np.int64]:
    """The parts of each row: one, or an equal share of its person's."""
    if persons.weigh is Weigh.RECORD:
        return np.ones(len(rank), dtype=np.int64)
    share, over = np.divmod(persons.parts, np.maximum(kept, 1))
    found: npt.NDArray[np.int64] = share + (rank < over)
    return found


def _digests(names: Sequence[Any]) -> npt.NDArray[np.uint64]:
    """A number per person, made from the id alone."""
    made = b"".join(blake2b(repr(name).encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(made, dtype="<u8").astype(np.uint64)


def _mixed(seeds: npt.NDArray[np.uint64], places: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """A number per row that looks random, by the finalizer of splitmix64."""
    x = seeds + places * _MIX
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: npt.NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return mixed
