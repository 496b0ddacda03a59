"""`dualquery plan`: what a release would do and cost. It reads no data."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from dualquery.cli import options


def plan(
    schema: options.SchemaFile,
    rows: Annotated[int, typer.Option(help="Rows of the table, or the add-remove reference.")],
    epsilon: options.Epsilon,
    delta: options.Delta,
    queries: options.Queries = None,
    k: options.K = None,
    marginals: options.Marginals = None,
    workload: options.Workload = None,
    focus: options.Focus = None,
    player: options.Player = None,
    rounds: options.Rounds = None,
    samples: options.Samples = None,
    eta: options.Eta = None,
    neighbours: options.Neighbours = "replace-one",
    unit: options.Unit = None,
    most_records: options.MostRecords = None,
    weigh: options.Weigh = "record",
    accountant: options.Accountant = "gaussian",
    as_json: options.Json = False,
) -> None:
    """Show what a release would do and cost. Reads no data, only public quantities."""
    from dualquery.domain.schema import Schema
    from dualquery.estimator import DualQuery
    from dualquery.estimator.job import listed
    from dualquery.game.plan import estimate
    from dualquery.privacy.rounding import rounded_up
    from dualquery.privacy.statement import finite, four_digits, weak_promises
    from dualquery.workloads.interest import names, numbers

    declared = Schema.load(schema).require_resolved()
    job = DualQuery(
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        accountant=accountant,
        rows=rows,
        unit=unit,
        most_records=most_records,
        weigh=weigh,
        player=player,
        queries=queries,
        k=k,
        marginals=None if marginals is None else numbers(marginals),
        focus=() if focus is None else names(focus),
        rounds=rounds,
        samples=samples,
        eta=eta,
    )
    outline = job.tuning.outline(declared, listed(workload))
    made = job.tuning.plan(job.mechanism.budget(rows), declared, outline.queries, outline.shape)
    for line in weak_promises(epsilon, delta, rows, accountant):
        options.warn(line)
    costs = estimate(made, declared, outline.queries, outline.widest)
    figures = {
        "rounds": made.rounds,
        "samples": made.samples,
        "eta": made.eta,
        "player": made.player,
        **asdict(costs),
        "epsilon": {name: finite(value) for name, value in made.epsilon.items()},
    }
    if as_json:
        typer.echo(json.dumps(figures))
        return
    typer.echo(f"player   {made.player}")
    typer.echo(f"rounds   {made.rounds}")
    typer.echo(f"samples  {made.samples}")
    typer.echo(f"eta      {made.eta:g}")
    for step in () if made.tables is None else made.tables.steps:
        number = f"{step.draws} draws" if step.draws else f"{step.tables} {step.kind}"
        typer.echo(f"step     {number}, {step.share:.1%} of the budget")
    typer.echo(f"time     about {costs.seconds:.0f} s on two cores")
    typer.echo(f"memory   about {costs.memory_bytes / 2**20:.0f} MiB")
    by_name = ", ".join(f"{name} {four_digits(value)}" for name, value in made.epsilon.items())
    typer.echo(f"epsilon  {by_name} (δ = {rounded_up(delta)}, {neighbours})")
