"""`dualquery refit`: fit a model to an existing release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dualquery.cli import options


def refit(
    directory: options.ReleaseDir,
    out: Annotated[
        Path | None, typer.Option(help="Write a new release there. (default: in place)")
    ] = None,
    components: Annotated[
        int | None, typer.Option(help="Components of the mixture. (default: the release's)")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Training steps after the game. (default: the release's)")
    ] = None,
    errors: Annotated[
        bool,
        typer.Option("--errors/--no-errors", help="Compute standard errors by a rehearsal."),
    ] = True,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Fit a model to the draws of a release. It needs no private table and costs no privacy."""
    from dualquery.cli.progress import Reporter
    from dualquery.release.refitting import refitted
    from dualquery.release.release import load as read_release

    release = read_release(directory)
    with Reporter(quiet) as progress:
        made = refitted(release, progress, components=components, steps=steps, errors=errors)
    path = made.save(directory if out is None else out, overwrite=out is None)
    if as_json:
        options.echo(json.dumps({"release": str(path), **made.summary()}))
        return
    options.echo(f"release: {path}")
    options.echo(
        f"answers and rows come from the {made.source}; the privacy statement is unchanged"
    )
