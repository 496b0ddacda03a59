"""A Parquet folder cut into parts that are counted apart. Runs on workers: private side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import numpy as np
import pyarrow as pa

from dualquery.base.errors import (
    DualQueryError,
    EngineError,
    NoRowsError,
    TableError,
)
from dualquery.domain.schema import Schema
from dualquery.rows.arrow import ArrowTable, ParquetTable, parquet_batches
from dualquery.rows.counting import count_rows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.packed import PackedRows
from dualquery.rows.rare import RareAsked, RareRows
from dualquery.rows.table import reading
from dualquery.version import __version__
from dualquery.workloads.counts import Counted
from dualquery.workloads.workload import Workload

T = TypeVar("T")

MOST_ROWS = 1 << 22
"""About how many rows a part has. A worker holds the packed rows of one part at a time."""

MOST_BYTES = 1 << 29
"""About how many bytes the packed rows of a part have: of 17,770 columns, 240,000 rows."""

MOST_FOOTERS = 16
"""The footers of so many files are read by one task."""

RowGroup = tuple[str, int, int]
"""A file, the number of one of its row groups, and the rows of that."""

Piece = tuple[str, tuple[int, ...]]
"""A file, and some of its row groups."""


class PartTable(ArrowTable):
    """The rows of some row groups of some files."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        from pyarrow import parquet

        self.pieces = pieces
        with reading(Path(pieces[0][0])), parquet.ParquetFile(pieces[0][0]) as file:
            super().__init__(file.schema_arrow.names)

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for path, groups in self.pieces:
            with reading(Path(path)):
                yield from parquet_batches(path, names, groups)


def cut(table: ParquetTable, parts: int, bits: int = 1) -> list[list[Piece]]:
    """Cut the row groups of a table into parts; see `arranged`."""
    return arranged(row_groups(files_of(table)).open(), parts, bits)


def files_of(table: ParquetTable) -> list[str]:
    """The files of a table, in order."""
    return [str(path) for path in table.dataset.files]


def row_groups(files: Sequence[str]) -> Private[list[RowGroup]]:
    """The row groups of some files, from their footers. Runs on workers, or on the client."""
    from pyarrow import parquet

    try:
        found = []
        for path in files:
            with reading(Path(path)):
                footer = parquet.read_metadata(path)
            found += [(path, i, footer.row_group(i).num_rows) for i in range(footer.num_row_groups)]
        return Private(found)
    except Exception as error:
        return enveloped(error)


def arranged(groups: Sequence[RowGroup], parts: int, bits: int) -> list[list[Piece]]:
    """Row groups in parts of about equal size.

    There are at least `parts` parts if there are that many row groups. A row group is never split.
    A part holds at most `MOST_ROWS` rows and `MOST_BYTES` of packed rows, or a single row group.

    Args:
        groups: all row groups.
        parts: how many are wanted at least.
        bits: how many a packed row has.
    """
    total = sum(rows for _, _, rows in groups)
    most = min(MOST_ROWS, 8 * MOST_BYTES // max(1, bits))
    wanted = max(1, min(most, -(-total // max(1, parts))))
    cuts: list[list[tuple[str, int]]] = [[]]
    held = 0
    for path, group, rows in groups:
        if cuts[-1] and held + rows > wanted:
            cuts.append([])
            held = 0
        cuts[-1].append((path, group))
        held += rows
    return [_by_file(part) for part in cuts if part]


def _by_file(groups: Sequence[tuple[str, int]]) -> list[Piece]:
    files: dict[str, list[int]] = {}
    for path, group in groups:
        files.setdefault(path, []).append(group)
    return [(path, tuple(chosen)) for path, chosen in files.items()]


@dataclass(frozen=True)
class Private(Generic[T]):
    """A private value on its way between machines; it never shows in a log or a traceback.

    An error travels as a value too. If it were raised, a scheduler would write it to its log, with
    a traceback.
    """

    value: T | None = field(default=None, repr=False)
    error: DualQueryError | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return "<private>"

    def open(self) -> T:
        """The value; the error, if there is one, is raised here."""
        if self.error is not None:
            raise self.error
        return cast(T, self.value)  # it is None only beside an error, or where T allows None


def enveloped(error: Exception) -> Private[Any]:
    """An error of a worker as a value. If it were raised, the worker would log it."""
    if isinstance(error, DualQueryError):
        return Private(error=error)
    if isinstance(error, OSError):
        return Private(error=TableError(f"a worker cannot read the table: {error.strerror}"))
    # Its text may quote a cell.
    return Private(error=EngineError(f"a worker failed: {type(error).__name__}"))


def count_part(
    pieces: list[Piece], workload: Workload, out_of_domain: OutOfDomain, version: str = __version__
) -> Private[Counted]:
    """Count one part.

    Args:
        pieces: the row groups of the part.
        workload: the queries.
        out_of_domain: what to do with a cell outside its declared domain.
        version: the client's version; a worker of another version refuses.
    """
    try:
        if version != __version__:
            raise another_version(__version__, version)
        return Private(count_rows(PartTable(pieces), workload, out_of_domain))
    except Exception as error:
        return enveloped(error)


def rare_part(
    pieces: list[Piece],
    asked: tuple[Schema, RareAsked],
    out_of_domain: OutOfDomain,
    version: str = __version__,
) -> Private[Counted]:
    """Count what is asked about rare cells in one part.

    Args:
        pieces: the row groups of the part.
        asked: the schema of the rows, and what is counted.
        out_of_domain: what to do with a cell outside its declared domain.
        version: the client's version; a worker of another version refuses.
    """
    try:
        if version != __version__:
            raise another_version(__version__, version)
        schema, rare = asked
        try:
            literals = rare.cells.literals()
            packed = PackedRows.pack(PartTable(pieces), schema, literals, out_of_domain)
        except NoRowsError:
            return Private(Counted(rare.nothing(), 0))
        return Private(Counted(rare.of(RareRows(packed, rare.cells)), packed.rows))
    except Exception as error:
        return enveloped(error)


def another_version(theirs: str, ours: str) -> EngineError:
    """The error about a worker of another version: it would count with other code."""
    return EngineError(
        f"a Dask worker has dualquery {theirs} and this process {ours}; "
        "install the same version on all workers"
    )


def package_version() -> str:
    """The version of this package. A client asks its workers for it."""
    return __version__


def add_parts(parts: Sequence[Private[Counted]]) -> Private[Counted]:
    """The counts of several parts together."""
    try:
        opened = [part.open() for part in parts]
        counts = reduce(np.add, (part.counts for part in opened))
        return Private(Counted(counts, sum(part.rows for part in opened)))
    except Exception as error:
        return enveloped(error)
