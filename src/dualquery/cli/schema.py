"""`dualquery schema`: a draft for the curator to review."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dualquery.cli import options


def schema(
    table: options.TablePath,
    out: Annotated[Path, typer.Option("--out", "-o", help="The schema file to write.")],
    bins: Annotated[int, typer.Option(help="Bins of a numeric column.")] = 10,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
) -> None:
    """Draft a schema from a table. It READS THE TABLE: review every domain before use."""
    from dualquery.base.errors import SchemaError
    from dualquery.rows.drafting import HEADER, draft_schema

    if out.exists() and not overwrite:
        raise SchemaError(f"{str(out)!r} exists; choose another name or pass --overwrite")
    draft = draft_schema(table, bins=bins)
    draft.save(out, HEADER)
    typer.echo(f"draft of {len(draft)} attributes in {out}")
    typer.echo(
        "this command read the private table: values and edges in the draft were seen in it. "
        "Replace them by what is publicly known before you release anything.",
        err=True,
    )
