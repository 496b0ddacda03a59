"""Tables of figures on the command line: as text, as CSV, as JSON."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from dualquery.base.escapes import for_spreadsheet, printable
from dualquery.cli.options import Format, echo


@dataclass(frozen=True)
class Sheet:
    """Rows of cells; the last `figures` columns are a figure and the ends of its interval."""

    names: Sequence[str]
    rows: Sequence[Sequence[Any]]
    figures: int


def print_sheet(
    sheet: Sheet, form: Format, told: Mapping[str, Any], out: TextIO, *, raw: bool = False
) -> None:
    """Print a table of figures.

    Args:
        sheet: the table.
        form: text, csv or json.
        told: what JSON says besides the rows; text says what matters of it on stderr.
        out: where to.
        raw: whether CSV cells stay as they are if a spreadsheet would take them for formulas.
    """
    if form is Format.JSON:
        rows = [dict(zip(sheet.names, row, strict=True)) for row in sheet.rows]
        echo(json.dumps({**told, "rows": rows}))
        return
    if form is Format.CSV:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([_cell(name, raw) for name in sheet.names])
        writer.writerows([_cell(cell, raw) for cell in row] for row in sheet.rows)
    else:
        lines = [
            [printable(name) for name in sheet.names],
            *(_texts(row, sheet.figures) for row in sheet.rows),
        ]
        widths = [max(len(line[i]) for line in lines) for i in range(len(sheet.names))]
        words = len(sheet.names) - sheet.figures
        for line in lines:
            cells = [
                cell.ljust(width) if place < words else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            echo("  ".join(cells).rstrip())
    known = any(row[-1] is not None for row in sheet.rows)
    note = "95 of 100 true figures lie between low and high" if known else "errors are unknown"
    echo(f"from the {told['source']}; {note}", err=True)
    if told["stamp"]:
        echo(str(told["stamp"]), err=True)


def _cell(cell: Any, raw: bool) -> Any:
    if isinstance(cell, str) and not raw:
        return for_spreadsheet(cell)
    return "" if cell is None else cell


def _texts(row: Sequence[Any], figures: int) -> list[str]:
    words, (value, low, high) = row[: len(row) - figures], row[len(row) - figures :]
    places = decimals(value, low, high)
    shown = ["unknown" if cell is None else f"{cell:,.{places}f}" for cell in (value, low, high)]
    return ["missing" if word is None else printable(str(word)) for word in words] + shown


def decimals(value: float | None, low: float | None, high: float | None) -> int:
    """How many decimals a figure deserves: two digits of half its interval."""
    if value is None:
        return 0
    if low is None or high is None or high <= low:
        return 4 if abs(value) < 10 else 2
    return min(max(1 - math.floor(math.log10((high - low) / 2.0)), 0), 9)
