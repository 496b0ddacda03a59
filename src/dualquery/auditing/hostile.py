"""Does a hostile record change how others are read? Private side."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

from dualquery.auditing.pieces import Marks, marks, parsed_in, weights
from dualquery.auditing.report import Finding
from dualquery.base.errors import TableError
from dualquery.domain.schema import Schema
from dualquery.domain.types import text_of
from dualquery.privacy.unit import Persons
from dualquery.rows.arrow import ArrowTable
from dualquery.rows.cells import python_cells
from dualquery.rows.encoding import OutOfDomain, plain_column
from dualquery.rows.ids import id_text
from dualquery.rows.opening import open_table

CELLS = (
    "abc", "True", "unknown", "+41", "99", "99.0", "-9.0", "inf", "-inf", "1e999", "nan", "NA",
    " 41 ", "1_0", "0x10", "٣", "1e5", "41.", ".5", "00041", "2022-03-01", "2022-03-01T12:30:00",
    "2022-03-01 12:30:00+02:00", "08:30:00", "9" * 400, "a;b", 'say "no"', '"', "two\nlines",
    "cr\r\nlf", "comma,cell", "é" * 40, "9007199254740993", "x" * 3000, "7,fine\n" * 600,
    '"",\r\n' * 600,
)  # fmt: skip
"""What a hostile record holds, in every column. Some are longer than what is parsed at a time, so
that a part of the file ends inside them."""

IDS: tuple[object, ...] = (2.5, "A2", 10**30, True, "007", " x ", "1e5", "é", "two\nlines", '"')
"""Ids of hostile persons."""

CALM_ROWS = 80
"""So many rows of the table are read together with a hostile one."""

SMALL_PART = 1 << 11
"""The bytes of a CSV file that are parsed at a time: the rows then make several parts."""

NOTE = "a note that the schema does not name"

Cells = dict[str, list[object]]
Flags = npt.NDArray[np.bool_]
Reader = Callable[[Cells, Path], object]


def look(table: ArrowTable, schema: Schema, persons: Persons | None, folder: Path) -> Finding:
    """Plant hostile records, one at a time and all at once, and count what else changes.

    Under every treatment and by every reader. Under refuse, other records must be refused or taken
    as they were: what is refused is the hostile record.

    Args:
        table: the private table.
        schema: as bound to it.
        persons: who the rows belong to; left out, rows are given to invented persons.
        folder: an empty one, which only its owner can read.
    """
    calm = _calm(table, schema)
    rows = len(calm[NOTE])
    planted, changed, worst = 0, 0, ""
    for name, reader in _readers().items():
        for treatment in OutOfDomain:
            with parsed_in(SMALL_PART):
                alone = marks(open_table(reader(calm, folder)), schema, treatment)
                for more in _plantings(rows):
                    planted += sum(len(cells) for _, cells in more)
                    both = reader(_planted(calm, more), folder)
                    others = _changed(both, schema, treatment, alone, _places(more, rows))
                    if others and not worst:
                        worst = f"first by {name} under {treatment}"
                    changed += others
    kept, strangers = _kept(table, persons, folder)
    told = f"{planted:,} planted: {changed:,} other codes change"
    told += f" ({worst})" if worst else ""
    told += f"; {strangers:,} strange ids: {kept:,} kept records of others change"
    figures = {
        "planted": planted, "other_codes_changed": changed, "strange_ids": strangers,
        "other_kept_records_changed": kept,
    }  # fmt: skip
    return Finding("b", "hostile records", not (changed or kept), told, figures)


def _calm(table: ArrowTable, schema: Schema) -> Cells:
    """Some rows of the table as text, and a column that nobody declared."""
    names = list(dict.fromkeys(one.column for one in schema.attributes))
    found: Cells = {name: [] for name in names}
    for batch in table.batches(names):
        for name in names:
            part = batch.column(name).slice(0, CALM_ROWS - len(found[name]))
            cells = python_cells(plain_column(part, name))
            found[name] += [None if cell is None else text_of(cell) for cell in cells]
        if len(found[names[0]]) >= CALM_ROWS:
            break
    note = NOTE
    return {**found, note: ["fine"] * len(found[names[0]])}


Planting = list[tuple[int, Sequence[str]]]
"""Hostile cells, each of which makes a record, and the row before which they stand."""


def _plantings(rows: int) -> Iterator[Planting]:
    """Each hostile record somewhere, then all of them at both ends and in the middle."""
    for number, cell in enumerate(CELLS):
        yield [((number * 37) % (rows + 1), [cell])]
    yield [(0, CELLS), (rows // 2, CELLS), (rows, CELLS)]


def _planted(calm: Cells, more: Planting) -> Cells:
    found: Cells = {}
    for name, cells in calm.items():
        mixed = list(cells)
        for before, planted in reversed(more):
            mixed[before:before] = planted
        found[name] = mixed
    return found


def _places(more: Planting, rows: int) -> Flags:
    """Which rows of the longer table are those of others."""
    held = np.ones(rows, dtype=bool)
    for before, planted in reversed(more):
        held = np.insert(held, before, np.zeros(len(planted), dtype=bool))
    return held


def _changed(
    source: object,
    schema: Schema,
    treatment: OutOfDomain,
    alone: list[Marks],
    others: Flags,
) -> int:
    """How many codes of other rows change; all of them if rows were lost or nothing can be read."""
    try:
        found = marks(open_table(source), schema, treatment)
    except TableError:
        return sum(len(one) for one in alone)
    if any(len(one) != len(others) for one in found):
        return sum(len(one) for one in alone)
    pairs = zip(found, alone, strict=True)
    return sum(int(np.count_nonzero(both[others] != one)) for both, one in pairs)


# Readers


def _readers() -> dict[str, Reader]:
    found: dict[str, Reader] = {
        "csv": _as_csv,
        "parquet": _as_parquet,
        "arrow": lambda cells, _: _as_arrow(cells),
        "dictionary": lambda cells, _: cells,
    }
    try:
        import pandas as pd
    except ImportError:
        return found
    return {**found, "pandas": lambda cells, _: pd.DataFrame(cells, dtype=object)}


def _as_csv(cells: Cells, folder: Path) -> Path:
    path = folder / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(cells)
        for row in zip(*cells.values(), strict=True):
            if len(row) == 1 and row[0] is None:
                file.write("\r\n")  # the one way to write a missing cell of a lone column
            else:
                writer.writerow(row)
    return path


def _as_arrow(cells: Cells) -> pa.Table:
    found = {}
    for name, column in cells.items():
        texts = [None if cell is None else str(cell) for cell in column]
        found[name] = pa.array(texts, pa.string())
    return pa.table(found)


def _as_parquet(cells: Cells, folder: Path) -> Path:
    path = folder / "rows.parquet"
    parquet.write_table(_as_arrow(cells), path, row_group_size=64)
    return path


# Persons


def _kept(table: ArrowTable, persons: Persons | None, folder: Path) -> tuple[int, int]:
    """How many records of others are kept, or left out, by a strange id; and how many ids."""
    if persons is None:
        persons = Persons("person", 2)
        # Five rows each, of which two are kept: another pick shows.
        own: list[object] = [number % (CALM_ROWS // 5) for number in range(CALM_ROWS)]
    else:
        own = []
        for batch in table.batches([persons.column]):
            own += python_cells(plain_column(batch.column(0), persons.column))
            if len(own) >= CALM_ROWS:
                break
    held = {id_text(one) for one in own}
    strangers = [one for one in IDS if id_text(one) not in held]
    changed = 0
    for reader in _readers().values():
        alone = weights(open_table(reader({persons.column: own}, folder)), persons)
        for stranger in strangers:
            both = reader({persons.column: [*own, stranger, stranger, stranger]}, folder)
            try:
                found = weights(open_table(both), persons)
            except TableError:
                changed += len(own)
                continue
            same = len(found) == len(own) + 3
            changed += int(np.count_nonzero(found[: len(own)] != alone)) if same else len(own)
    return changed, len(strangers)
