"""Is a table read the same whole and cut in pieces? Private side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dualquery.auditing.report import Finding
from dualquery.domain.schema import Schema
from dualquery.domain.types import text_of
from dualquery.privacy.unit import Persons
from dualquery.rows import csv_file
from dualquery.rows.arrow import ArrowTable
from dualquery.rows.cells import CellReader, python_cells
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.encoding import OutOfDomain, judge_column, plain_column
from dualquery.rows.opening import open_table
from dualquery.rows.persons import ByPerson
from dualquery.rows.table import Table

Marks = npt.NDArray[np.int32]

SMALLEST_PART = 997
"""The bytes of a CSV file that are parsed at a time: a prime, so that borders fall anywhere."""

PACKED = 6
"""About how many bytes one byte of a compressed table stands for."""

MOST_PIECES = 100
"""About how many pieces a table is cut into; more would take long, and find the same."""

ALONE = 500
"""So many rows are read cell by cell, by the one function that says what a cell means."""


def look(
    table: ArrowTable, schema: Schema, treatment: OutOfDomain, persons: Persons | None
) -> Finding:
    """Compare codes, rows and kept records of a table that is read whole and in pieces.

    Args:
        table: the private table.
        schema: as bound to it.
        treatment: of cells outside their domain.
        persons: who the rows belong to, if they belong to persons.
    """
    whole = EncodedRows.read(table, schema, range(len(schema)), treatment)
    part = _part_bytes(table)
    step = max(7, whole.rows // MOST_PIECES)
    rows = changed = alone = at = 0
    chosen = set(np.linspace(0, whole.rows - 1, min(ALONE, whole.rows)).astype(int).tolist())
    readers = [CellReader(one, treatment) for one in schema.attributes]
    with parsed_in(part):
        for piece in _pieces(table, _columns(schema), step):
            rows += piece.num_rows
            for number, attribute in enumerate(schema.attributes):
                column = piece.column(attribute.column)
                expected = whole.columns[number][at : at + piece.num_rows]
                codes = judge_column(column, attribute, treatment).codes
                changed += _unlike(codes, expected)
                for place in [r for r in range(piece.num_rows) if at + r in chosen]:
                    (cell,) = python_cells(plain_column(column.slice(place, 1), attribute.column))
                    code = readers[number].code(cell)
                    alone += place >= len(expected) or code != int(expected[place])
            at += piece.num_rows
    kept = 0 if persons is None else _kept(table, persons, part)
    missing = abs(rows - whole.rows)
    told = [
        f"{whole.rows:,} rows, {whole.rows * len(schema):,} codes: {changed:,} differ",
        f"{len(chosen) * len(schema):,} cells alone: {alone:,} differ",
    ]
    if missing:
        told.insert(0, f"{missing:,} rows more or fewer")
    if persons is not None:
        told.append(f"kept records: {kept:,} differ")
    holds = not (changed or alone or kept or missing)
    figures = {
        "rows": whole.rows, "rows_in_pieces": rows, "codes_changed": changed,
        "cells_changed": alone, "kept_records_changed": kept,
    }  # fmt: skip
    return Finding("a", "read whole and in pieces", holds, "; ".join(told), figures)


@contextmanager
def parsed_in(size: int) -> Iterator[None]:
    """CSV files are parsed so many bytes at a time, for as long as this lasts."""
    usual = csv_file.PART_BYTES
    csv_file.PART_BYTES = size
    try:
        yield
    finally:
        csv_file.PART_BYTES = usual


def marks(table: Table, schema: Schema, treatment: OutOfDomain) -> list[Marks]:
    """The codes of every attribute as a release reads them; refused cells have negative ones."""
    found: list[list[Marks]] = [[] for _ in schema.attributes]
    for block in table.blocks(schema, range(len(schema)), treatment):
        for place, one in enumerate(schema.attributes):
            column = block.table.column(one.column)  # type: ignore[union-attr]
            found[place].append(judge_column(column, one, treatment).codes)
    return [np.concatenate(parts) if parts else np.zeros(0, np.int32) for parts in found]


def weights(table: Table, persons: Persons) -> npt.NDArray[np.int64]:
    """What every row counts; 0 if it is left out."""
    strata = ByPerson(table, persons).strata
    return np.array((0, *strata.weights), dtype=np.int64)[strata.of_row]


def _kept(table: ArrowTable, persons: Persons, part: int) -> int:
    """How many rows count otherwise if the table comes in small parts, or its ids as text."""
    whole = weights(table, persons)
    with parsed_in(part):
        again = weights(table, persons)
        cells: list[object] = []
        for batch in table.batches([persons.column]):
            cells += python_cells(plain_column(batch.column(0), persons.column))
    frame = pa.table({persons.column: pa.array([text_of(cell) for cell in cells], pa.string())})
    return _unlike(again, whole) + _unlike(weights(open_table(frame), persons), whole)


def _columns(schema: Schema) -> list[str]:
    return list(dict.fromkeys(one.column for one in schema.attributes))


def _pieces(table: ArrowTable, names: Sequence[str], step: int) -> Iterator[pa.RecordBatch]:
    """A table's batches, each cut again."""
    for batch in table.batches(names):
        for first in range(0, batch.num_rows, step):
            yield batch.slice(first, step)


def _part_bytes(table: ArrowTable) -> int:
    path = getattr(table, "path", None)
    if not isinstance(path, Path) or not path.is_file():
        return SMALLEST_PART
    size = path.stat().st_size * (PACKED if path.suffix == ".gz" else 1)
    return max(SMALLEST_PART, size // MOST_PIECES)


def _unlike(found: npt.NDArray[np.integer], expected: npt.NDArray[np.integer]) -> int:
    """At how many places two arrays differ; those that only one of them has count too."""
    both = min(len(found), len(expected))
    return int(np.count_nonzero(found[:both] != expected[:both])) + abs(len(found) - len(expected))
