"""`dualquery answer`: answers from a release."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from dualquery.cli import options


def answer(
    directory: options.ReleaseDir,
    queries: Annotated[
        list[str], typer.Argument(metavar="QUERY…", help='Such as "sex=Female & age>=50".')
    ],
    as_json: options.Json = False,
) -> None:
    """Answer queries from a release; the private table is not needed."""
    from dualquery.queries import Workload, format_query, parse
    from dualquery.release.directory import read_release

    release = read_release(directory)
    parsed = [parse(text, release.schema) for text in queries]
    values = release.answers(Workload.of(parsed, release.schema))
    if as_json:
        rows = [
            {"query": format_query(query, release.schema), "answer": float(value)}
            for query, value in zip(parsed, values, strict=True)
        ]
        typer.echo(json.dumps({"source": release.source, "answers": rows}))
        return
    for query, value in zip(parsed, values, strict=True):
        typer.echo(f"{value:.6f}  {format_query(query, release.schema)}")
    typer.echo(f"from the {release.source}", err=True)
