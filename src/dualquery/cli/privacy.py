"""`dualquery privacy`: what a run of the classical game costs, by every accountant."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from dualquery.cli import options


def privacy(
    rows: Annotated[
        int,
        typer.Option(help="Public number of records n, or the reference n0 under add-remove."),
    ],
    eta: Annotated[float, typer.Option(help="Learning rate of the query player.")],
    samples: Annotated[int, typer.Option(help="Queries drawn per round.")],
    rounds: Annotated[int, typer.Option(help="Number of rounds; the first is free.")],
    delta: Annotated[
        float, typer.Option(help="The δ at which to state ε; at 0 by the pure theorem.")
    ],
    neighbours: options.Neighbours = "replace-one",
    as_json: options.Json = False,
) -> None:
    """Show what a run of the classical game costs by every accountant. Reads no data."""
    from dualquery.base.checks import positive, whole
    from dualquery.privacy.accountants import DEFAULT_ACCOUNTANT
    from dualquery.privacy.events import Events, record_player_temperatures
    from dualquery.privacy.neighbours import Neighbours
    from dualquery.privacy.rounding import rounded_up
    from dualquery.privacy.statement import PrivacyStatement, finite, four_digits

    unit = Neighbours.parse(neighbours)
    temperatures = record_player_temperatures(positive("eta", eta), rounds)
    events = Events.of(temperatures, whole("samples", samples), rows, unit)
    accountant = DEFAULT_ACCOUNTANT if delta else "pure"  # no other states an ε at δ = 0
    statement = PrivacyStatement.of(
        events, delta=delta, rows=rows, neighbours=unit, accountant=accountant
    )
    if as_json:
        figures = {name: finite(value) for name, value in statement.by_accountant.items()}
        options.echo(json.dumps(figures, allow_nan=False))
        return

    from rich.console import Console
    from rich.table import Table

    table = Table()
    table.add_column("accountant")
    table.add_column("ε", justify="right")
    if statement.replacement:
        table.add_column("ε if one record is replaced", justify="right")
    for name, value in statement.by_accountant.items():
        if finite(value) is None:
            continue
        replaced = statement.replacement.get(name)
        table.add_row(
            name, four_digits(value), *([] if replaced is None else [four_digits(replaced)])
        )
    console = Console()
    console.print(f"ε at δ = {rounded_up(delta)}, {unit} neighbours")
    console.print(table)
    console.print(
        f"μ = {four_digits(statement.mu)}, ρ = {four_digits(statement.rho)}; pure holds at δ = 0"
    )
