"""`dualquery schema`: a draft for the curator to review."""

from __future__ import annotations

from typing import Annotated

import typer

from dualquery.cli import options


def schema(
    table: options.TablePath,
    out: Annotated[str, typer.Option("--out", "-o", help="The schema file to write.")],
    bins: Annotated[int, typer.Option(help="Bins of a numeric column.")] = 10,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
) -> None:
    """Draft a schema from a table. It READS THE TABLE: review every domain before use."""
    from pathlib import Path

    from dualquery.base.errors import SchemaError
    from dualquery.rows.drafting import HEADER, draft_schema

    path = Path(out)
    if path.exists() and not overwrite:
        raise SchemaError(f"{out!r} exists; choose another name or pass --overwrite")
    draft = draft_schema(table, bins=bins)
    draft.save(path, HEADER)
    typer.echo(f"draft of {len(draft)} attributes in {path}")
    typer.echo(
        "this command read the private table: values and edges in the draft were seen in it. "
        "Replace them by what is publicly known before you release anything.",
        err=True,
    )
