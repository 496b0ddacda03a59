"""Sheets of Excel and LibreOffice, through python-calamine, cell by cell. Private side.

A sheet declares no types: each of its cells has its own. So every cell is read as the text that it
would have in a CSV file. A blank row is no row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from dualquery.base.errors import TableError
from dualquery.base.similar import did_you_mean
from dualquery.rows.arrow import ArrowTable, batch_rows, refuse_repeated
from dualquery.rows.cells import column_of_objects
from dualquery.rows.files.needed import needed

ENDINGS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


class SheetTable(ArrowTable):
    """One sheet; its first row that is not blank is the header."""

    def __init__(self, path: Path, sheet: str | None = None) -> None:
        calamine = needed("python_calamine", "excel", "a spreadsheet")
        self.path = path
        try:
            book = calamine.CalamineWorkbook.from_path(str(path))
            name = _chosen(path, book.sheet_names, sheet)
            rows = book.get_sheet_by_name(name).to_python(skip_empty_area=True)
        except TableError:
            raise
        except Exception as error:  # of calamine, whose text may quote a cell
            raise TableError(
                f"cannot read {str(path)!r}: it is damaged, locked, or no spreadsheet "
                f"({type(error).__name__})"
            ) from None
        self.where = f"{str(path)!r}, sheet {name!r}"
        self.rows = [row for row in rows if any(cell != "" for cell in row)]
        if not self.rows:
            raise TableError(f"{self.where} is empty; expected a header and rows")
        header = [str(cell).strip() for cell in self.rows.pop(0)]
        width = max((at + 1 for at, text in enumerate(header) if text), default=0)
        header = header[:width]
        if "" in header:
            raise TableError(
                f"{self.where}: column {header.index('') + 1} has no name in the first row; "
                "expected the names of all columns there, and nothing above them"
            )
        if width == 1:
            raise TableError(
                f"{self.where} has one column, in which a missing cell cannot be told from no "
                "row; save it as CSV, or add a column such as a running number"
            )
        if any(cell != "" for row in self.rows for cell in row[width:]):
            raise TableError(
                f"{self.where} has cells to the right of its last named column; expected a name "
                "for every column"
            )
        refuse_repeated(header)
        super().__init__(header)

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        places = [self.header.index(name) for name in names]
        step = batch_rows(len(names))
        for first in range(0, len(self.rows), step):
            part = self.rows[first : first + step]
            if not names:
                yield pa.table({"": pa.nulls(len(part))}).to_batches()[0].select([])
                continue
            arrays = [column_of_objects(_cell(row[place]) for row in part) for place in places]
            yield pa.RecordBatch.from_arrays(arrays, names=list(names))


def _cell(cell: Any) -> object:
    return None if cell == "" else cell


def _chosen(path: Path, sheets: Sequence[str], sheet: str | None) -> str:
    """The sheet that was asked for; the only one, if nothing was said."""
    listed = ", ".join(repr(name) for name in sheets[:6])
    if sheet is None:
        if len(sheets) != 1:
            raise TableError(
                f"{str(path)!r} has the sheets {listed}; say which one (--sheet NAME, in Python "
                "TableFile(path, sheet=NAME))"
            )
        return sheets[0]
    if sheet not in sheets:
        hint = did_you_mean(sheet, list(sheets)) or f"; it has {listed}"
        raise TableError(f"{str(path)!r} has no sheet {sheet!r}{hint}")
    return sheet
