"""`dualquery experiment`: a figure of the paper, run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualquery.base.checks import one_of
from dualquery.base.errors import ParameterError
from dualquery.cli import options

if TYPE_CHECKING:
    from dualquery.paper.experiments.experiment import Options

REPORT = "report"


def experiment(
    name: Annotated[
        str,
        typer.Argument(
            help="accuracy, queries, attributes, mwem, parities or accountants; field, all "
            "methods on the same tables; published, settings of other papers; "
            "or report, which writes the pages of all results stored in --out."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder for all results.")] = Path("results"),
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: under two minutes.")] = False,
    runs: Annotated[int | None, typer.Option(help="Runs per setting.")] = None,
    queries: Annotated[int | None, typer.Option(help="How many queries.")] = None,
    epsilon: Annotated[
        list[float] | None, typer.Option(help="ε; may be given several times.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="adult, kdd99, ratings, netflix, or biased (field).")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The data set's file (Netflix: its folder).")
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch a missing data set from the UCI archive.")
    ] = False,
    series: Annotated[
        list[str] | None, typer.Option(help="Only these series; may be given several times.")
    ] = None,
    oracle: options.ExperimentOracle = None,
    time_limit: options.TimeLimit = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Run one of the paper's experiments or a comparison, or resume it. Seeded: NOT PRIVATE."""
    from dualquery.paper.experiments import NAMES, page
    from dualquery.paper.experiments.experiment import Options, file_stem, load, perform
    from dualquery.paper.experiments.plots import require_matplotlib
    from dualquery.paper.experiments.solving import SOLVED
    from dualquery.paper.experiments.store import PAPER, Store
    from dualquery.paper.field.runs import COMPARISONS

    # A name that does not exist is said before what is not installed.
    one_of("experiment", name, (*NAMES, *COMPARISONS, REPORT))
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
        oracle=oracle,
        time_limit=time_limit,
    )
    if name == REPORT:
        if chosen != Options(quick=quick):
            raise ParameterError("report reads what is stored: it takes --out and --quick only")
        for path in pages_of(out, quick=quick):
            options.echo(str(path))
        return
    from dualquery.cli.progress import Reporter

    if name in COMPARISONS:
        compare_methods(name, chosen, out, as_json=as_json, quiet=quiet)
        return
    found, stem = load(name), file_stem(name, quick, oracle)
    page.known_machines(out)
    before = len(Store(out / f"{stem}.csv", SOLVED if oracle else PAPER).runs)
    with Reporter(quiet) as progress:
        finished = perform(found, chosen, out, progress)
    if len(finished) > before:
        page.record_machine(out, stem)
    made = [page.write_figures(found, finished, out, stem)]
    made.append(page.write_summary(found, finished, out, quick, stem))
    if as_json:
        from dualquery.paper.experiments.summary import as_json as encoded

        options.echo(encoded(finished, found.verdicts(finished, quick)))
    else:
        options.echo(made[-1].read_text(encoding="utf-8"))
    for path in made:
        options.echo(str(path), err=True)


def pages_of(out: Path, *, quick: bool) -> list[Path]:
    """Write the pages of all that is stored: the paper's experiments, and the comparison."""
    from dualquery.paper.experiments import page
    from dualquery.paper.field.page import write_page

    field = write_page(out, quick=quick)
    if field is not None and not page.is_stored(out, quick=quick):
        return [field]  # the comparison alone
    return [*page.write_page(out, quick=quick), *([field] if field else [])]


def compare_methods(name: str, chosen: Options, out: Path, *, as_json: bool, quiet: bool) -> None:
    """Make the missing runs of a comparison and write its page.

    Args:
        name: `field` or `published`.
        chosen: what the user changed about it.
        out: the folder of the results.
        as_json: whether to print rows and verdicts for programs.
        quiet: whether to show no progress.
    """
    import json

    from dualquery.cli.progress import Reporter
    from dualquery.paper.experiments import page as machines
    from dualquery.paper.experiments.experiment import file_stem
    from dualquery.paper.field import page
    from dualquery.paper.field.runs import perform

    machines.known_machines(out)
    with Reporter(quiet) as progress:
        finished = perform(
            name, chosen, out, progress, notice=lambda line: options.echo(line, err=True)
        )
    machines.record_machine(out, file_stem(name, chosen.quick))
    written = page.write_page(out, quick=chosen.quick)
    if as_json:
        options.echo(json.dumps({"rows": [dict(run.cells) for run in finished]}))
    elif written is not None:
        options.echo(written.read_text(encoding="utf-8"))
