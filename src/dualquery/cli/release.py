"""`dualquery release`: a private table in, a directory that is safe to publish out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from dualquery.cli import options

if TYPE_CHECKING:
    from dualquery.release.release import Release


def release(
    table: options.TablePath,
    schema: options.SchemaFile,
    out: options.Out,
    epsilon: options.ReleaseEpsilon = None,
    delta: options.DeltaOrUsual = None,
    paper: options.Paper = False,
    queries: options.Queries = None,
    k: options.K = None,
    positive: options.Positive = False,
    parities: options.Parities = None,
    parity_share: options.ParityShare = None,
    marginals: options.Marginals = None,
    workload: options.Workload = None,
    focus: options.Focus = None,
    player: options.Player = None,
    measure: options.Measure = True,
    bits: options.Bits = None,
    refit: options.Refit = None,
    errors: options.Errors = None,
    rounds: options.Rounds = None,
    samples: options.Samples = None,
    eta: options.Eta = None,
    alpha: options.Alpha = None,
    beta: options.Beta = None,
    oracle: options.Oracle = "annealing",
    time_limit: options.TimeLimit = None,
    certify: options.Certify = None,
    neighbours: options.ReleaseNeighbours = None,
    rows: options.Reference = None,
    unit: options.Unit = None,
    most_records: options.MostRecords = None,
    weigh: options.Weigh = "record",
    weight: options.Weight = None,
    weight_bound: options.WeightBound = None,
    accountant: options.ReleaseAccountant = None,
    free: options.ReleaseFree = None,
    free_share: options.FreeShare = None,
    out_of_domain: options.OutOfDomain = "refuse",
    engine: options.Engine = "local",
    scheduler: options.Scheduler = None,
    public_header: options.PublicHeader = False,
    long: options.Long = None,
    item_prefix: options.ItemPrefix = "",
    records: options.LongRecords = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    ledger: options.LedgerFile = None,
    note: options.Note = None,
    start: options.Start = None,
    known: options.Known = None,
    title: options.Title = None,
    description: options.Description = None,
    publisher: options.Publisher = None,
    date: options.Date = None,
    contact: options.Contact = None,
    licence: options.Licence = None,
    citation: options.Citation = None,
    url: options.Address = None,
    registry: options.Registry = None,
    seed: options.Seed = None,
    resume: options.Resume = False,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Run the game on a private table and write a release that is safe to publish."""
    from dualquery.base.errors import ParameterError
    from dualquery.base.files import check_target, write_whole
    from dualquery.cli.progress import Reporter
    from dualquery.domain.schema import Schema
    from dualquery.estimator import DualQuery
    from dualquery.release.directory import check_free
    from dualquery.release.knowledge import knowledge
    from dualquery.release.registry import registry_entry
    from dualquery.workloads.interest import names, numbers

    declared = Schema.load(schema).require_reviewed(schema)
    if registry is not None:
        check_target(registry)
    source = options.table_source(table, long, item_prefix, records, encoding=encoding, sheet=sheet)
    if delta is None and not paper:
        unit_is_row = neighbours in (None, "replace-one") and unit is None and weight is None
        delta = _usual_delta(rows, source if unit_is_row else None)
    settings = options.given(
        epsilon=epsilon, delta=delta, neighbours=neighbours, accountant=accountant, rows=rows,
        seed=seed, unit=unit, most_records=most_records, weigh=weigh, weight=weight,
        weight_bound=weight_bound, player=player, bits=bits,
        measure=measure, refit=refit, errors=errors, rounds=rounds, positive=positive,
        parities=parities, parity_share=parity_share,
        samples=samples, eta=eta, alpha=alpha, beta=beta, queries=queries, k=k, oracle=oracle,
        time_limit=time_limit, certify=certify, free=free, free_share=free_share,
        marginals=None if marginals is None else numbers(marginals),
        focus=() if focus is None else names(focus), out_of_domain=out_of_domain, engine=engine,
        scheduler=scheduler, public_header=public_header, start=start, known=known,
    )  # fmt: skip
    for name in () if paper else ("epsilon", "delta"):
        if name not in settings:
            raise ParameterError(f"--{name} is missing; a release needs it, except with --paper")
    job = DualQuery.paper(**settings) if paper else DualQuery(**settings)
    said = options.about(
        title=title, description=description, publisher=publisher, date=date, contact=contact,
        licence=licence, citation=citation, url=url,
    )  # fmt: skip
    if not resume:
        check_free(out, overwrite=overwrite)
    with Reporter(quiet) as progress:
        made = job.release(
            source,
            out,
            schema=declared,
            workload=workload,
            resume=resume,
            ledger=ledger,
            note=note,
            about=said,
            overwrite=overwrite,
            progress=progress,
            notice=options.warn,
        )
    if registry is not None:
        text = json.dumps(registry_entry(made), indent=2, ensure_ascii=False)
        write_whole(registry, text + "\n")
    if as_json:
        told = {"release": str(out), **made.summary(), "relations": knowledge(made)}
        options.echo(json.dumps(told))
    else:
        options.echo(describe(made, out))


def _usual_delta(size: int | None, source: object | None) -> float:
    """The δ of a release that was given none, and a line that says so.

    Args:
        size: the public reference size, if one was given.
        source: the table, if the number of its rows is public.
    """
    from dualquery.base.errors import ParameterError
    from dualquery.privacy.statement import usual_delta
    from dualquery.rows.arrow import ArrowTable
    from dualquery.rows.opening import open_table

    opened = None if size is not None or source is None else open_table(source)
    if isinstance(opened, ArrowTable):
        size = sum(batch.num_rows for batch in opened.batches([]))
    if not size:
        raise ParameterError(
            "--delta D is needed, because the number of units is not public or not known yet; "
            "expected far less than one over it, such as 1e-6"
        )
    delta = usual_delta(size)
    options.echo(f"δ = {delta:g}, as 1/n² for the public n = {size:,}, rounded down", err=True)
    return delta


def _course(made: Release) -> str:
    """What was released, in a few words."""
    from dualquery.release.resolution import fine_columns

    measured = made.transcript.measurements
    drawn = int(made.transcript.draw_counts.sum())
    if measured:
        tables = sum(len(one.marginals) for one in measured)
        fine = fine_columns(made.schema, made.transcript)
        noun = "column" if fine == 1 else "columns"
        finer = f" ({fine:,} {noun} measured in sub-bins)" if fine else ""
        cells = sum(len(one.cells) for one in made.transcript.rare)
        rare = f", {cells:,} rare cells" if cells else ""
        return f"{tables:,} measured tables{finer}{rare}, {drawn:,} draws"
    parameters = made.parameters
    return f"{parameters.rounds} rounds of {parameters.samples} draws, eta {parameters.eta:g}"


def describe(made: Release, out: Path) -> str:
    """The result of a run, in a few lines."""
    from dualquery.release.certificate import describe_certificate
    from dualquery.release.knowledge import FitDistance, KnownPairs

    lines = [
        f"release: {out}",
        made.privacy.text(warnings=False),  # printed before the first draw
        f"{len(made.workload):,} queries, {_course(made)}",
        f"answers and rows come from the {made.source}",
    ]
    known = KnownPairs.of(made), FitDistance.of(made)
    lines.extend(one.told for one in known if one is not None)
    if made.parameters.alpha is not None:
        lines.append(made.parameters.accuracy)
    if made.certificate is not None:
        lines.append(describe_certificate(made.certificate, made.source))
    return "\n".join(lines)
