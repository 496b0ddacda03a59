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
    from dualquery.queries import format_query, parse
    from dualquery.release.directory import read_release

    release = read_release(directory)
    parsed = [parse(text, release.schema) for text in queries]
    rows = [
        (format_query(query, release.schema), *release.answer_with_error(query)) for query in parsed
    ]
    if as_json:
        answers = [{"query": t, "answer": a, "standard_error": e} for t, a, e in rows]
        typer.echo(json.dumps({"source": release.source, "answers": answers}))
        return
    for text, value, error in rows:
        spread = "" if error is None else f" ± {error:.6f}"
        typer.echo(f"{value:.6f}{spread}  {text}")
    note = ""
    if release.errors is not None:
        note = "; ± is one standard error"
        if any(error is None for _, _, error in rows):
            note += ", absent where no drawn query names an attribute"
    typer.echo(f"from the {release.source}{note}", err=True)
    if release.privacy.stamp:
        typer.echo(release.privacy.stamp, err=True)
