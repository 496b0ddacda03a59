"""`dualquery evaluate`: the one command that compares with the private table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualquery.cli import options

if TYPE_CHECKING:
    from rich.table import Table

    from dualquery.evaluation.figures import Evaluation
    from dualquery.release.release import Release

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
    target: Annotated[
        str | None,
        typer.Option(help="Guess this column from the others, trained on synthetic rows."),
    ] = None,
    sdmetrics: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Also write the input of an SDMetrics report: NOT FOR PUBLICATION.",
        ),
    ] = None,
    long: options.Long = None,
    item_prefix: options.ItemPrefix = "",
    records: options.LongRecords = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
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
    if sdmetrics is not None:
        _check_folder(sdmetrics, directory)
    source = options.table_source(table, long, item_prefix, records, encoding=encoding, sheet=sheet)
    result = compare(release, source, asked, out_of_domain, target=target)
    options.echo(WARNING, err=True)
    if sdmetrics is not None:
        _write_sdmetrics(release, source, sdmetrics, out_of_domain)
    if report is not None:
        from dualquery.base.errors import ParameterError
        from dualquery.base.files import write_private
        from dualquery.evaluation.page import NOT_FOR_PUBLICATION, render_evaluation

        try:
            write_private(report, render_evaluation(result, release.privacy))
        except OSError as error:
            raise ParameterError(f"--report {str(report)!r}: {error.strerror}") from None
        options.echo(f"{NOT_FOR_PUBLICATION}: {report}", err=True)
    if as_json:
        options.echo(json.dumps({"not_private": WARNING, **result.to_dict()}))
        return
    from rich.console import Console

    console = Console()
    console.print(error_table(result))
    for line in details(result):
        console.print(options.shown(line), highlight=False)
    for table_of in relation_tables(result):
        console.print(table_of)


def details(result: Evaluation) -> list[str]:
    """What the figures say besides the errors, a line each."""
    from dualquery.evaluation.fidelity import K
    from dualquery.evaluation.figures import ALL, BASELINES

    lines = [f"{name}: {BASELINES[name]}" for name in result.baselines]
    if result.coverage is not None:
        parts = [f"{k} {100 * v:.1f} %" for k, v in result.coverage.items() if k != ALL]
        lines.append(
            f"95 % intervals hold {100 * result.coverage[ALL]:.1f} % of the true answers "
            f"({', '.join(parts)})"
        )
    found = result.fidelity
    if found is not None and found.columns:
        worst, distance = max(found.columns.items(), key=lambda item: item[1])
        lines.append(
            f"single columns: total variation {_mean(found.columns.values()):.4f} on average, "
            f"{distance:.4f} at most ({worst})"
        )
    if found is not None and found.pairs:
        apart = max(found.pairs, key=lambda pair: pair.distance)
        lines.append(
            f"pairs of columns: total variation {_mean(p.distance for p in found.pairs):.4f} on "
            f"average, {apart.distance:.4f} at most ({apart.first} and {apart.second})"
        )
    if found is not None and found.k_marginal is not None:
        lines.append(
            f"K-marginal score of NIST's SDNist, computed by us (k = {K}, "
            f"{found.marginals:,} tables): {found.k_marginal:.0f} of 1000"
        )
    if result.usefulness is not None:
        one = result.usefulness
        lines.append(
            f"guessing {one.target!r} on {one.tested:,} private rows: right in "
            f"{100 * one.synthetic:.1f} % after synthetic rows, {100 * one.real:.1f} % after "
            f"private rows, {100 * one.frequent:.1f} % by the most frequent value"
        )
    return [*lines, *result.verdict]


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)


def _check_folder(folder: Path, directory: Path) -> None:
    """Refuse a folder that cannot be used, or that is inside the release."""
    from dualquery.base.errors import ParameterError
    from dualquery.base.files import is_ours

    if folder.resolve().is_relative_to(directory.resolve()):
        raise ParameterError(
            f"--sdmetrics {str(folder)!r} is inside the release, which may be published; expected "
            "a folder elsewhere"
        )
    if os.path.lexists(folder) and not is_ours(folder):
        raise ParameterError(
            f"--sdmetrics {str(folder)!r} is a link, or of another user; expected a folder of yours"
        )
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"--sdmetrics {str(folder)!r} is a file; expected a folder")


def _write_sdmetrics(release: Release, source: object, folder: Path, out_of_domain: str) -> None:
    from dualquery.base.errors import ParameterError
    from dualquery.evaluation.sdmetrics import write_input
    from dualquery.rows.encoding import OutOfDomain
    from dualquery.rows.opening import open_table

    opened = open_table(source)
    schema = opened.bind(release.schema)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        written = write_input(release, opened, schema, folder, OutOfDomain.parse(out_of_domain))
    except OSError as error:
        raise ParameterError(f"--sdmetrics {str(folder)!r}: {error.strerror}") from None
    options.echo(
        f"NOT FOR PUBLICATION: {', '.join(file.name for file in written)} in {folder}; "
        "sdmetrics.reports.single_table.QualityReport().generate(real, synthetic, metadata) "
        "takes them",
        err=True,
    )


def _check_report(report: Path, directory: Path) -> None:
    """Refuse a path that cannot be written, or that is inside the release."""
    from dualquery.base.errors import ParameterError
    from dualquery.base.files import check_target

    if report.resolve().is_relative_to(directory.resolve()):
        raise ParameterError(
            f"--report {str(report)!r} is inside the release, which may be published; expected "
            "a file elsewhere"
        )
    if report.is_dir() or not report.parent.is_dir():
        raise ParameterError(f"--report {str(report)!r}; expected a file in a folder that exists")
    check_target(report)


def relation_tables(result: Evaluation) -> list[Table]:
    """How well relations between columns came through, and whether intervals hold there."""
    from rich.table import Table

    from dualquery.evaluation.wording import (
        CLOSENESS_HEADS,
        COVERAGE_NOTE,
        NOTE,
        closeness_rows,
        coverage_heads,
        coverage_rows,
    )

    found = result.relations
    if found is None:
        return []
    shown: list[tuple[tuple[str, ...], list[list[str]], str]] = [
        (CLOSENESS_HEADS, closeness_rows(found), NOTE)
    ]
    if found.coverage is not None:
        shown.append((coverage_heads(short=True), coverage_rows(found.coverage), COVERAGE_NOTE))
    tables = []
    for heads, rows, note in shown:
        table = Table(
            title="NOT PRIVATE",
            title_justify="left",
            caption=note,
            caption_justify="left",
            padding=(0, 0),
            pad_edge=False,
        )
        for place, head in enumerate(heads):
            table.add_column(head, justify="right" if place else "left")
        for row in rows:
            table.add_row(*row)
        tables.append(table)
    return tables


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
