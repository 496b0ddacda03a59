"""A Parquet folder cut into parts that are counted apart. Runs on workers: private side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from dualquery.base.errors import DualQueryError, EngineError, TableError, first_line
from dualquery.rows.arrow import ArrowTable, ParquetTable, parquet_batches
from dualquery.rows.counting import Counts, count_rows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.table import reading
from dualquery.version import __version__
from dualquery.workloads.workload import Workload

MOST_ROWS = 1 << 22
"""Rows of a part, about: what a worker holds at a time, packed."""

Piece = tuple[str, tuple[int, ...]]
"""A file, and some of its row groups."""


class PartTable(ArrowTable):
    """Some row groups of some files."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        from pyarrow import parquet

        self.pieces = pieces
        with reading(Path(pieces[0][0])), parquet.ParquetFile(pieces[0][0]) as file:
            super().__init__(file.schema_arrow.names)

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for path, groups in self.pieces:
            with reading(Path(path)):
                yield from parquet_batches(path, names, groups)


def cut(table: ParquetTable, parts: int) -> list[list[Piece]]:
    """The row groups of a table in at least `parts` parts of about equal size, where it has them.

    A part ends between row groups; it holds `MOST_ROWS` rows or a single row group.
    """
    with reading(table.path):
        groups = [
            (str(fragment.path), group.id, group.num_rows)
            for fragment in table.dataset.get_fragments()
            for group in fragment.row_groups
        ]
    total = sum(rows for _, _, rows in groups)
    wanted = max(1, min(MOST_ROWS, -(-total // max(1, parts))))
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
class Private:
    """A private value on its way between machines; it never shows in a log or a traceback.

    An error travels as a value too: a scheduler would write one that is raised to its log, and
    an error about a cell quotes the cell.
    """

    value: Any = field(default=None, repr=False)
    error: DualQueryError | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return "<private>"

    def open(self) -> Any:
        """The value; the error, if there is one, is raised here."""
        if self.error is not None:
            raise self.error
        return self.value


def enveloped(error: Exception) -> Private:
    """Whatever went wrong on a worker, as a value: what is raised there, a worker logs."""
    if isinstance(error, DualQueryError):
        return Private(error=error)
    if isinstance(error, OSError):
        return Private(error=TableError(f"a worker cannot read the table: {error.strerror}"))
    told = f"{type(error).__name__}: {first_line(error)}"
    return Private(error=EngineError(f"a worker failed: {told}"))


def count_part(
    pieces: list[Piece], workload: Workload, out_of_domain: OutOfDomain, version: str = __version__
) -> Private:
    """Counts over one part, and its rows; for a client of the same version only."""
    try:
        if version != __version__:
            raise another_version(__version__, version)
        answers = count_rows(PartTable(pieces), workload, out_of_domain)
        return Private((answers.counts, answers.rows))
    except Exception as error:
        return enveloped(error)


def another_version(theirs: str, ours: str) -> EngineError:
    """Workers count with code of their own: it must be the client's."""
    return EngineError(
        f"a Dask worker has dualquery {theirs} and this process {ours}; "
        "install the same version on all workers"
    )


def package_version() -> str:
    """The version of this package, for a client to ask its workers for."""
    return __version__


def add_parts(parts: Sequence[Private]) -> Private:
    """The sum of several counts."""
    try:
        for part in parts:
            if part.error is not None:
                return part
        counts: Counts = sum(part.value[0] for part in parts[1:]) + parts[0].value[0]
        return Private((counts, sum(part.value[1] for part in parts)))
    except Exception as error:
        return enveloped(error)
