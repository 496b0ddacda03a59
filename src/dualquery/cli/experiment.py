"""`dualquery experiment`: a figure of the paper, run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dualquery.base.errors import ParameterError
from dualquery.cli import options

REPORT = "report"


def experiment(
    name: Annotated[
        str,
        typer.Argument(
            help="accuracy, queries, attributes, mwem, parities or accountants; "
            "or report, which writes a page of all results stored in --out."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder for all results.")] = Path("results"),
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: under two minutes.")] = False,
    runs: Annotated[int | None, typer.Option(help="Runs per setting.")] = None,
    queries: Annotated[int | None, typer.Option(help="How many queries.")] = None,
    epsilon: Annotated[
        list[float] | None, typer.Option(help="ε; may be given several times.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="adult, kdd99, ratings or netflix.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="The data set's file (Netflix: its folder).")
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch a missing data set from the UCI archive.")
    ] = False,
    series: Annotated[
        list[str] | None, typer.Option(help="Only these series; may be given several times.")
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Run one of the paper's experiments, or resume it. Seeded: NOT PRIVATE."""
    from dualquery.paper.experiments import page
    from dualquery.paper.experiments.experiment import Options, file_stem, load, perform
    from dualquery.paper.experiments.plots import require_matplotlib
    from dualquery.paper.experiments.store import Store

    require_matplotlib()
    chosen = Options(
        quick=quick,
        runs=runs,
        queries=queries,
        epsilon=tuple(epsilon) if epsilon else None,
        dataset=dataset,
        data=data,
        download=download,
        series=tuple(series) if series else None,
    )
    if name == REPORT:
        if chosen != Options(quick=quick):
            raise ParameterError("report reads what is stored: it takes --out and --quick only")
        typer.echo(page.write_page(out, quick=quick))
        return
    from dualquery.cli.progress import Reporter

    found, stem = load(name), file_stem(name, quick)
    page.known_machines(out)
    before = len(Store(out / f"{stem}.csv").runs)
    with Reporter(quiet) as progress:
        finished = perform(found, chosen, out, progress)
    if len(finished) > before:
        page.record_machine(out, stem)
    made = [*page.write_figures(found, finished, out, quick)]
    made.append(page.write_summary(found, finished, out, quick))
    if as_json:
        from dualquery.paper.experiments.summary import as_json as encoded

        typer.echo(encoded(finished, found.claims(finished)))
    else:
        typer.echo(made[-1].read_text(encoding="utf-8"))
    for path in made:
        typer.echo(path, err=True)
