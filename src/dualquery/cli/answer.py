"""`dualquery answer`: answers from a release."""

from __future__ import annotations

import json
import math
from typing import Annotated

import typer

from dualquery.cli import options


def answer(
    directory: options.ReleaseDir,
    queries: Annotated[
        list[str], typer.Argument(metavar="QUERY…", help='Such as "sex=Female & age>=50".')
    ],
    unknown: Annotated[
        str,
        typer.Option(
            help="Attributes that no query of the release names: refuse, or answer by their "
            "declared default."
        ),
    ] = "refuse",
    as_json: options.Json = False,
) -> None:
    """Answer queries from a release; the private table is not needed."""
    from dualquery.domain.language import parse
    from dualquery.domain.printing import format_query
    from dualquery.release.release import load as read_release
    from dualquery.release.unknown import listed
    from dualquery.workloads.workload import Workload

    release = read_release(directory)
    parsed = [parse(text, release.schema) for text in queries]
    asked = Workload.of(parsed, release.schema)
    values = release.answers(asked, unknown=unknown).tolist()
    found = release.standard_errors(asked)
    errors = [None] * len(parsed) if found is None else [_known(error) for error in found]
    texts = [format_query(query, release.schema) for query in parsed]
    rows = list(zip(texts, values, errors, strict=True))
    if as_json:
        answers = [{"query": t, "answer": a, "standard_error": e} for t, a, e in rows]
        told = {
            "source": release.source,
            "stamp": release.privacy.stamp,
            "unknown": list(release.unknown_in(asked)),
            "answers": answers,
        }
        typer.echo(json.dumps(told))
        return
    for text, value, error in rows:
        spread = "" if error is None else f" ± {error:.6f}"
        typer.echo(f"{value:.6f}{spread}  {text}")
    note = ""
    if found is not None:
        note = "; ± is one standard error"
        if any(error is None for _, _, error in rows):
            note += ", missing where no drawn query names an attribute"
    typer.echo(f"from the {release.source}{note}", err=True)
    blind = release.unknown_in(asked)
    if blind:
        typer.echo(
            f"unknown: no query of the release names {listed(blind)}; answers about that are what "
            "the declared default gives",
            err=True,
        )
    if release.privacy.stamp:
        typer.echo(release.privacy.stamp, err=True)


def _known(error: float) -> float | None:
    """A standard error, or None if the release has NaN for it."""
    return None if math.isnan(error) else float(error)
