"""`dualquery evaluate`: the one command that compares with the private table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualquery.cli import options

if TYPE_CHECKING:
    from rich.table import Table

    from dualquery.evaluation.figures import Evaluation

WARNING = "NOT PRIVATE: these errors were computed from the private table; do not publish them"


def evaluate(
    directory: options.ReleaseDir,
    table: options.TablePath,
    workload: Annotated[
        Path | None, typer.Option(help="A file of queries instead of the release's own.")
    ] = None,
    out_of_domain: options.OutOfDomain = "refuse",
    report: Annotated[
        Path | None, typer.Option(help="Also write a page with charts: NOT FOR PUBLICATION.")
    ] = None,
    long: options.Long = None,
    item_prefix: options.ItemPrefix = "",
    records: options.LongRecords = None,
    as_json: options.Json = False,
) -> None:
    """Measure the error of a release against the private table. NOT PRIVATE."""
    from dualquery.evaluation.figures import evaluate as compare
    from dualquery.release.release import load as read_release
    from dualquery.workloads.generators import read_workload

    release = read_release(directory)
    asked = None if workload is None else read_workload(workload, release.schema)
    if report is not None:
        _check_report(report, directory)
    source = options.table_source(table, long, item_prefix, records)
    result = compare(release, source, asked, out_of_domain)
    typer.echo(WARNING, err=True)
    if report is not None:
        from dualquery.base.errors import ParameterError
        from dualquery.base.files import write_private
        from dualquery.evaluation.page import NOT_FOR_PUBLICATION, render_evaluation

        try:
            write_private(report, render_evaluation(result, release.privacy))
        except OSError as error:
            raise ParameterError(f"--report {str(report)!r}: {error.strerror}") from None
        typer.echo(f"{NOT_FOR_PUBLICATION}: {report}", err=True)
    if as_json:
        typer.echo(json.dumps(result.to_dict()))
        return
    from rich.console import Console

    Console().print(error_table(result))


def _check_report(report: Path, directory: Path) -> None:
    """Refuse a path that cannot be written, or that is inside the release."""
    from dualquery.base.errors import ParameterError

    if report.resolve().is_relative_to(directory.resolve()):
        raise ParameterError(
            f"--report {str(report)!r} is inside the release, which may be published; expected "
            "a file elsewhere"
        )
    if report.is_dir() or not report.parent.is_dir():
        raise ParameterError(f"--report {str(report)!r}; expected a file in a folder that exists")


def error_table(result: Evaluation) -> Table:
    """The errors of the release, then those of the baselines."""
    from rich.table import Table

    table = Table(
        title=f"evaluation over {len(result.workload):,} queries (NOT PRIVATE)",
        title_justify="left",
    )
    table.add_column("answers from")
    table.add_column("max error", justify="right")
    table.add_column("average error", justify="right")
    rows = [(f"this release ({result.source})", result.distance), *result.baselines.items()]
    for name, distance in rows:
        table.add_row(name, f"{distance.max_error:.4f}", f"{distance.average_error:.5f}")
    return table
