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
    asked = Workload.of(parsed, release.schema)
    values, errors = release.answers(asked), release.standard_errors(asked)
    texts = [format_query(query, release.schema) for query in parsed]
    if as_json:
        rows = [
            {
                "query": text,
                "answer": float(values[i]),
                "standard_error": None if errors is None else float(errors[i]),
            }
            for i, text in enumerate(texts)
        ]
        typer.echo(json.dumps({"source": release.source, "answers": rows}))
        return
    for i, text in enumerate(texts):
        spread = "" if errors is None else f" ± {errors[i]:.6f}"
        typer.echo(f"{values[i]:.6f}{spread}  {text}")
    note = "" if errors is None else "; ± is one standard error"
    typer.echo(f"from the {release.source}{note}", err=True)
    if release.privacy.stamp:
        typer.echo(release.privacy.stamp, err=True)
