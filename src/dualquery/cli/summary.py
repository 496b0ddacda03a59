"""`dualquery summary`: means and quartiles from a release."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dualquery.cli import options


def summary(
    directory: options.ReleaseDir,
    columns: Annotated[
        list[str], typer.Argument(metavar="COLUMN…", help="Columns of numbers, one or several.")
    ],
    where: options.Where = None,
    by: Annotated[
        str | None, typer.Option(help="A column; figures are then given for each of its values.")
    ] = None,
    unknown: options.Unknown = "refuse",
    form: options.TableFormat = options.Format.TEXT,
    raw: options.Raw = False,
    as_json: options.Json = False,
) -> None:
    """Means and quartiles of columns of numbers, with 95 % intervals."""
    from dualquery.cli.figures import Sheet, print_sheet
    from dualquery.release.reading import read_asked

    release = read_asked(directory)
    rows = release.description(*columns, where=where, by=by, unknown=unknown)
    sheet = Sheet(list(rows[0]), [list(row.values()) for row in rows], figures=3)
    told = {"source": release.source, "stamp": release.stamp, "where": where}
    print_sheet(sheet, options.Format.JSON if as_json else form, told, sys.stdout, raw=raw)
