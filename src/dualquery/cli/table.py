"""`dualquery table`: a cross table from a release."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dualquery.cli import options


def table(
    directory: options.ReleaseDir,
    columns: Annotated[list[str], typer.Argument(metavar="COLUMN…", help="One column or several.")],
    where: options.Where = None,
    unknown: options.Unknown = "refuse",
    top: Annotated[
        int | None, typer.Option(help="Only the N cells with the largest shares, largest first.")
    ] = None,
    sort: Annotated[bool, typer.Option("--sort", help="The largest shares first.")] = False,
    form: options.TableFormat = options.Format.TEXT,
    raw: options.Raw = False,
    as_json: options.Json = False,
) -> None:
    """A cross table of columns: the share of every cell, with a 95 % interval."""
    from dualquery.base.checks import whole
    from dualquery.cli.figures import Sheet, print_sheet
    from dualquery.release.asking.labels import labelled
    from dualquery.release.reading import read_asked

    if top is not None:
        whole("--top", top)
    release = read_asked(directory)
    found = labelled(release.cross_table(*columns, where=where, unknown=unknown), release.schema)
    cells = found.num_rows
    if sort or top is not None:
        found = found.sort_by([("share", "descending")]).slice(0, top)
    sheet = Sheet(found.column_names, [list(row.values()) for row in found.to_pylist()], figures=3)
    told = {"source": release.source, "stamp": release.stamp, "where": where, "cells": cells}
    print_sheet(sheet, options.Format.JSON if as_json else form, told, sys.stdout, raw=raw)
    if found.num_rows < cells:
        shown = float(sum(found.column("share").to_pylist()))
        options.echo(f"{found.num_rows:,} of {cells:,} cells, with {shown:.1%} of all", err=True)
