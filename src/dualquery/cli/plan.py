"""`dualquery plan`: what a release would do and cost. It reads no data."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualquery.cli import options

if TYPE_CHECKING:
    from dualquery.domain.schema import Schema
    from dualquery.estimator.promise import Promise
    from dualquery.game.costs import Estimate
    from dualquery.game.plan import Plan


def plan(
    epsilon: options.Epsilon,
    delta: options.Delta,
    schema: Annotated[
        Path | None, typer.Option(help="Schema file (TOML, or an mbi domain JSON).")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="Rows of the table, or the add-remove reference.")
    ] = None,
    releases: Annotated[
        int | None, typer.Option(help="Say what each of so many releases may spend of ε and δ.")
    ] = None,
    queries: options.Queries = None,
    k: options.K = None,
    positive: options.Positive = False,
    parities: options.Parities = None,
    parity_share: options.ParityShare = None,
    marginals: options.Marginals = None,
    workload: options.Workload = None,
    focus: options.Focus = None,
    player: options.Player = None,
    rounds: options.Rounds = None,
    samples: options.Samples = None,
    eta: options.Eta = None,
    alpha: options.Alpha = None,
    beta: options.Beta = None,
    neighbours: options.Neighbours = "replace-one",
    unit: options.Unit = None,
    most_records: options.MostRecords = None,
    weigh: options.Weigh = "record",
    weight: options.Weight = None,
    weight_bound: options.WeightBound = None,
    accountant: options.Accountant = "gaussian",
    free: options.Free = "default",
    free_share: options.FreeShare = None,
    as_json: options.Json = False,
) -> None:
    """Show what a release would do and cost. Reads no data, only public quantities."""
    from dualquery.base.errors import ParameterError
    from dualquery.domain.schema import Schema
    from dualquery.estimator import DualQuery
    from dualquery.estimator.job import listed
    from dualquery.estimator.promise import promise_of
    from dualquery.estimator.visible import visible_relation
    from dualquery.game.costs import estimate
    from dualquery.privacy.statement import finite, weak_promises
    from dualquery.workloads.interest import names, numbers

    if releases is not None:
        epsilon = _each(releases, epsilon, delta, schema is None, as_json)
    if schema is None or rows is None:
        if releases is None:
            missing = "schema" if schema is None else "rows"
            raise ParameterError(f"--{missing} is missing; plan needs it, or --releases")
        return
    declared = Schema.load(schema).require_resolved()
    job = DualQuery(
        epsilon=epsilon, delta=delta, neighbours=neighbours, accountant=accountant, rows=rows,
        unit=unit, most_records=most_records, weigh=weigh, weight=weight,
        weight_bound=weight_bound, player=player, queries=queries, k=k,
        positive=positive, parities=parities, parity_share=parity_share,
        marginals=None if marginals is None else numbers(marginals),
        focus=() if focus is None else names(focus), rounds=rounds, samples=samples, eta=eta,
        alpha=alpha, beta=beta, free=free, free_share=free_share,
    )  # fmt: skip
    job.tuning.check()
    outline = job.tuning.outline(declared, listed(workload))
    promise = None
    if job.tuning.by_theorem:
        promise = promise_of(job, rows, declared, outline.queries, outline.named)
        made = promise.plan
    else:
        made = job.plan(rows, declared, listed(workload))
    for line in weak_promises(epsilon, delta, rows, accountant):
        options.warn(line)
    costs = estimate(made, declared, outline.queries, outline.widest)
    figures = {
        **({} if releases is None else {"releases": releases, "each": epsilon}),
        "rounds": made.rounds,
        "samples": made.samples,
        "eta": made.eta,
        "player": made.player,
        **({} if made.free is None else {"free": asdict(made.free)}),
        **asdict(costs),
        "visible": _visible(made),
        "visible_relation": visible_relation(made.tables, declared),
        "epsilon": {name: finite(value) for name, value in made.epsilon.items()},
        **({} if promise is None else {"theorem": promise.to_dict()}),
    }
    if as_json:
        options.echo(json.dumps(figures))
    else:
        _print(made, costs, declared)
        if promise is not None:
            _print_promise(promise)


def _visible(made: Plan) -> float | None:
    """What 95 of 100 measured shares of values, or of pairs of values, are known to."""
    from dualquery.game.tables_steps import Kind

    if made.tables is None:
        return None
    noise = [
        made.tables.purse.deviation(step.share, step.tables)
        for step in made.tables.steps
        if step.kind in (Kind.ONE_WAY, Kind.PAIRS, Kind.NAMED)
    ]
    return 1.96 * min(noise) / made.budget.rows if noise else None


def _print(made: Plan, costs: Estimate, schema: Schema) -> None:
    from dualquery.estimator.visible import visible_relation
    from dualquery.privacy.rounding import rounded_up
    from dualquery.privacy.statement import four_digits

    options.echo(f"player   {made.player}")
    options.echo(f"rounds   {made.rounds}")
    options.echo(f"samples  {made.samples}")
    options.echo(f"eta      {made.eta:g}")
    for step in () if made.tables is None else made.tables.steps:
        what = f"{step.tables} {step.kind}" if step.tables else str(step.kind)
        if step.draws:
            what = f"{step.draws} {step.kind}"
        options.echo(f"step     {what}, {step.share:.1%} of the budget")
    if made.free is not None:
        options.echo(
            f"free     {made.free.tables} one-way tables, {made.free.share:.1%} of the budget"
        )
    visible = _visible(made)
    if visible is not None:
        options.echo(
            f"visible  values and pairs are measured to ±{visible:.2%}, in 95 of 100 cases"
        )
    relation = visible_relation(made.tables, schema)
    if relation is not None:
        weak = f"correlations from {relation:.2g} on stand" if relation < 1.0 else "none will stand"
        options.echo(f"relation {weak} out of the noise, typically")
    options.echo(f"time     about {costs.seconds:.0f} s on two cores")
    options.echo(f"memory   about {costs.memory_bytes / 2**20:.0f} MiB")
    by_name = ", ".join(
        f"{name} {four_digits(value) if math.isfinite(value) else 'does not cover it'}"
        for name, value in made.epsilon.items()
    )
    budget = made.budget
    options.echo(f"epsilon  {by_name} (δ = {rounded_up(budget.delta)}, {budget.neighbours})")


def _print_promise(promise: Promise) -> None:
    from dualquery.privacy.rounding import rounded_up

    budget = promise.plan.budget
    wanted = f"ε = {rounded_up(budget.epsilon)}"
    kept = "" if promise.fits else f"; here it costs more than {wanted}"
    options.echo(f"alpha    {promise.alpha:g}, except with probability {promise.beta:g}{kept}")
    by_name = ", ".join(
        f"{name} {'never' if rows is None else f'{rows:,}'}"
        for name, rows in promise.smallest_rows.items()
    )
    options.echo(f"rows     {wanted} is kept from so many on: {by_name}")
    smallest = "none below 1" if promise.smallest is None else f"{promise.smallest:g}"
    options.echo(f"promise  the smallest alpha for {wanted} on {budget.size:,} rows: {smallest}")


def _each(releases: int, epsilon: float, delta: float, alone: bool, as_json: bool) -> float:
    """The ε of one of several releases; printed, unless a plan follows as JSON."""
    from dualquery.privacy.calibration import share_of_releases
    from dualquery.privacy.rounding import rounded_up

    each = share_of_releases(epsilon, delta, releases)
    shown = math.floor(each * 10_000) / 10_000
    if as_json:
        if alone:
            options.echo(json.dumps({"releases": releases, "each": each}))
        return each
    options.echo(
        f"each     --epsilon {shown:g} --delta {rounded_up(delta)}: {releases} releases then fit "
        f"into a ledger of ε = {rounded_up(epsilon)} at the same δ"
    )
    return each
