"""`dualquery release`: a private table in, a directory that is safe to publish out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualquery.cli import options

if TYPE_CHECKING:
    from dualquery.release.release import Release


def release(
    table: options.TablePath,
    schema: options.SchemaFile,
    epsilon: options.Epsilon,
    delta: options.Delta,
    out: Annotated[Path, typer.Option(help="The release directory to write.")],
    queries: options.Queries = None,
    k: options.K = None,
    marginals: options.Marginals = None,
    workload: options.Workload = None,
    focus: options.Focus = None,
    player: options.Player = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure",
            help="Measure whole marginals where they are affordable, or leave it to the draws.",
        ),
    ] = True,
    refit: Annotated[
        bool, typer.Option("--refit/--no-refit", help="Fit a model to the draws at the end.")
    ] = True,
    errors: Annotated[
        bool,
        typer.Option("--errors/--no-errors", help="Compute standard errors by a rehearsal."),
    ] = True,
    rounds: options.Rounds = None,
    samples: options.Samples = None,
    eta: options.Eta = None,
    oracle: Annotated[str, typer.Option(help="How best responses are found.")] = "annealing",
    certify: Annotated[
        float | None,
        typer.Option(help="Bound every round's gap and check the accuracy theorem for this α."),
    ] = None,
    neighbours: options.Neighbours = "replace-one",
    rows: Annotated[
        int | None, typer.Option(help="Public reference size, with add-remove neighbours.")
    ] = None,
    accountant: options.Accountant = "gaussian",
    free: Annotated[
        str, typer.Option(help="Value of attributes that no draw names: zero, random or default.")
    ] = "default",
    out_of_domain: Annotated[
        str, typer.Option(help="Cells outside their domain: refuse, clamp or missing.")
    ] = "refuse",
    engine: Annotated[str, typer.Option(help="Where counting runs: local or dask.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler. [default: a local cluster]")
    ] = None,
    public_header: Annotated[
        bool,
        typer.Option(
            "--public-header", help="The table's column names are public; a pattern may name them."
        ),
    ] = False,
    long: options.Long = None,
    item_prefix: options.ItemPrefix = "",
    records: options.LongRecords = None,
    ledger: Annotated[Path | None, typer.Option(help="Charge this budget ledger.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Repeatable draws, for experiments: NOT PRIVATE.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a run that was killed.")] = (
        False
    ),
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing release at --out.")
    ] = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Run the game on a private table and write a release that is safe to publish."""
    from dualquery.cli.progress import Reporter
    from dualquery.domain.schema import Schema
    from dualquery.estimator import DualQuery
    from dualquery.release.directory import check_free
    from dualquery.workloads.interest import names, numbers

    declared = Schema.load(schema).require_reviewed(schema)
    job = DualQuery(
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        accountant=accountant,
        rows=rows,
        seed=seed,
        player=player,
        refit=refit,
        measure=measure,
        errors=errors,
        rounds=rounds,
        samples=samples,
        eta=eta,
        queries=queries,
        k=k,
        marginals=None if marginals is None else numbers(marginals),
        focus=() if focus is None else names(focus),
        oracle=oracle,
        certify=certify,
        free=free,
        out_of_domain=out_of_domain,
        engine=engine,
        scheduler=scheduler,
        public_header=public_header,
    )
    if not resume:
        check_free(out, overwrite=overwrite)
    with Reporter(quiet) as progress:
        made = job.release(
            options.table_source(table, long, item_prefix, records),
            out,
            schema=declared,
            workload=workload,
            resume=resume,
            ledger=ledger,
            overwrite=overwrite,
            progress=progress,
            notice=options.warn,
        )
    if as_json:
        typer.echo(json.dumps({"release": str(out), **made.summary()}))
    else:
        typer.echo(describe(made, out))


def _course(made: Release) -> str:
    """What was released, in a few words."""
    measured = made.transcript.measurements
    drawn = int(made.transcript.draw_counts.sum())
    if measured:
        tables = sum(len(one.marginals) for one in measured)
        return f"{tables:,} measured tables, {drawn:,} draws"
    parameters = made.parameters
    return f"{parameters.rounds} rounds of {parameters.samples} draws, eta {parameters.eta:g}"


def describe(made: Release, out: Path) -> str:
    """The result of a run, in a few lines."""
    from dualquery.release.certificate import describe_certificate

    lines = [
        f"release: {out}",
        made.privacy.text(warnings=False),  # printed before the first draw
        f"{len(made.workload):,} queries, {_course(made)}",
        f"answers and rows come from the {made.source}",
    ]
    if made.certificate is not None:
        lines.append(describe_certificate(made.certificate))
    return "\n".join(lines)
