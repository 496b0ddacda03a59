"""`dualquery evaluate`: the one command that compares with the private table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualquery.cli import options

if TYPE_CHECKING:
    from rich.table import Table

    from dualquery.evaluation import Evaluation

WARNING = "NOT PRIVATE: these errors were computed from the private table; do not publish them"


def evaluate(
    directory: options.ReleaseDir,
    table: options.TablePath,
    workload: Annotated[
        Path | None, typer.Option(help="A file of queries instead of the release's own.")
    ] = None,
    out_of_domain: Annotated[
        str, typer.Option(help="Cells outside their domain: refuse, clamp or missing.")
    ] = "refuse",
    as_json: options.Json = False,
) -> None:
    """Error of a release against the private table. NOT PRIVATE."""
    from dualquery.evaluation import evaluate as compare
    from dualquery.queries.generators import read_workload
    from dualquery.release.directory import read_release

    release = read_release(directory)
    asked = None if workload is None else read_workload(workload, release.schema)
    result = compare(release, table, asked, out_of_domain)
    typer.echo(WARNING, err=True)
    if as_json:
        typer.echo(json.dumps(result.to_dict()))
        return
    from rich.console import Console

    Console().print(error_table(result))


def error_table(result: Evaluation) -> Table:
    """Errors of the release beside those of the baselines."""
    from rich.table import Table

    table = Table(
        title=f"evaluation over {len(result.workload):,} queries (NOT PRIVATE)",
        title_justify="left",
    )
    table.add_column("answers from")
    table.add_column("max error", justify="right")
    table.add_column("average error", justify="right")
    rows = [(f"this release ({result.source})", result.errors), *result.baselines.items()]
    for name, errors in rows:
        table.add_row(name, f"{errors.max_error:.4f}", f"{errors.average_error:.5f}")
    return table
