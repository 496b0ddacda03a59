"""`dualquery ledger`: declare a budget for a data set, and see what is spent of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dualquery.base.escapes import for_terminal
from dualquery.cli import options


def ledger(
    file: Annotated[Path, typer.Argument(help="The ledger file.")],
    create: Annotated[
        bool, typer.Option("--create", help="Declare a budget in a new file.")
    ] = False,
    epsilon: Annotated[float | None, typer.Option(help="Total ε, with --create.")] = None,
    delta: Annotated[float | None, typer.Option(help="The ledger's δ, with --create.")] = None,
    neighbours: Annotated[
        str | None,
        typer.Option(
            "--neighbours",
            "--neighbors",
            help="replace-one (default) or add-remove, with --create.",
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(help="The column that names persons, with --create; default: single records."),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="The data set's name, with --create; default: the file's.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show what the releases of a data set have spent of its declared budget."""
    from dualquery.base.errors import ParameterError
    from dualquery.privacy.ledger import Ledger
    from dualquery.privacy.neighbours import Neighbours
    from dualquery.privacy.rounding import rounded_up
    from dualquery.privacy.statement import four_digits

    declared = {
        "epsilon": epsilon,
        "delta": delta,
        "neighbours": neighbours,
        "unit": unit,
        "label": label,
    }
    if create:
        if epsilon is None or delta is None:
            raise ParameterError("--create needs --epsilon and --delta")
        book = Ledger.create(
            file,
            epsilon=epsilon,
            delta=delta,
            label=label or "",
            neighbours=Neighbours.parse(neighbours or Neighbours.REPLACE_ONE),
            unit=unit or "",
        )
    else:
        for name, value in declared.items():
            if value is not None:
                raise ParameterError(f"--{name} is declared once, with --create")
        book = Ledger(file)
    account = book.account()
    if as_json:
        options.echo(json.dumps(account.to_dict(), allow_nan=False))
        return

    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(
        f"{for_terminal(account.label)}: spent ε = {four_digits(account.spent)} of "
        f"{rounded_up(account.epsilon)} at δ = {rounded_up(account.delta)}, "
        f"{account.neighbours} neighbours, {account.protects}",
        markup=False,
    )
    if not account.entries:
        console.print("no releases yet")
        return
    table = Table()
    for heading in ("release", "state", "since", "id"):
        table.add_column(heading, overflow="fold")
    table.add_column("ε alone", justify="right")
    for entry in account.entries:
        table.add_row(
            options.shown(entry.note or "without a note"),
            entry.state,
            (entry.spent_at or entry.reserved_at)[:16].replace("T", " "),
            entry.release[:8],
            four_digits(entry.charge.epsilon(account.delta)),
        )
    console.print(table)
