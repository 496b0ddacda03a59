"""`dualquery schema`: a draft for the curator to review."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dualquery.cli import options


def schema(
    table: options.TablePath,
    out: Annotated[Path, typer.Option("--out", "-o", help="The schema file to write.")],
    bins: Annotated[int, typer.Option(help="Bins of a column of numbers or dates.")] = 10,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B", help="Only these columns, in this order.")
    ] = None,
    exclude: Annotated[
        str | None, typer.Option(metavar="C,D", help="All columns except these.")
    ] = None,
    long: options.Long = None,
    item_prefix: options.ItemPrefix = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
    as_json: options.Json = False,
) -> None:
    """Draft a schema from a table. It READS THE TABLE: review every domain before use."""
    from dualquery.base.errors import SchemaError
    from dualquery.rows.drafting import draft

    if out.exists() and not overwrite:
        raise SchemaError(f"{str(out)!r} exists; choose another name or pass --overwrite")
    made = draft(
        options.table_source(table, long, item_prefix, None),
        bins=bins,
        columns=options.names(columns),
        exclude=options.names(exclude) or (),
    )
    made.save(out)
    if as_json:
        told = {"file": str(out), "attributes": len(made.schema), "left_out": dict(made.left_out)}
        typer.echo(json.dumps(told))
    else:
        typer.echo(f"draft of {len(made.schema)} attributes in {out}")
        for name, reason in made.left_out.items():
            typer.echo(f"left out: {name} {reason}", err=True)
    typer.echo(
        "this command read the private table: values and edges in the draft were seen in it. "
        "Replace them by what is publicly known before you release anything.",
        err=True,
    )
