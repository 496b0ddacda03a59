"""`dualquery ledger`: declare a budget for a data set, see what is spent of it, verify it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualquery.base.escapes import for_terminal
from dualquery.base.stored import Json
from dualquery.cli import options

if TYPE_CHECKING:
    from dualquery.privacy.ledger import Account, Ledger


def ledger(
    file: Annotated[Path, typer.Argument(help="The ledger file.")],
    releases: Annotated[
        list[Path] | None,
        typer.Argument(help="Releases, or OUT.partial of unfinished ones, with --verify."),
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Declare a budget in a new file.")
    ] = False,
    epsilon: Annotated[float | None, typer.Option(help="Total ε, with --create.")] = None,
    delta: Annotated[float | None, typer.Option(help="The ledger's δ, with --create.")] = None,
    slack: Annotated[
        float | None,
        typer.Option(
            help="The share of δ that schemas with a price may use, with --create; default: 0.1."
        ),
    ] = None,
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
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Compute all digests again, and look for what the releases have seen; exit code 1 "
            "if something is wrong.",
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Show what the releases of a data set have spent of its declared budget."""
    from dualquery.base.errors import ParameterError
    from dualquery.privacy.ledger import SLACK, Ledger
    from dualquery.privacy.neighbours import Neighbours
    from dualquery.privacy.rounding import rounded_up
    from dualquery.privacy.statement import four_digits

    declared = {
        "epsilon": epsilon,
        "delta": delta,
        "slack": slack,
        "neighbours": neighbours,
        "unit": unit,
        "label": label,
    }
    if releases and not verify:
        raise ParameterError("releases are looked at with --verify")
    if create and verify:
        raise ParameterError("--verify is for a ledger that exists; leave out --create")
    if create:
        if epsilon is None or delta is None:
            raise ParameterError("--create needs --epsilon and --delta")
        book = Ledger.create(
            file,
            epsilon=epsilon,
            delta=delta,
            slack=SLACK if slack is None else slack,
            label=label or "",
            neighbours=Neighbours.parse(neighbours or Neighbours.REPLACE_ONE),
            unit=unit or "",
        )
    else:
        for name, value in declared.items():
            if value is not None:
                raise ParameterError(f"--{name} is declared once, with --create")
        if verify:
            _verify(file, releases or [], as_json)
            return
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
    for line in account.warnings:
        console.print(f"note: {line}", markup=False)
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


def _verify(file: Path, releases: list[Path], as_json: bool) -> None:
    """Say what is right and wrong about a ledger, and end with 1 if anything is wrong."""
    from dualquery.privacy.ledger import Ledger, LedgerError
    from dualquery.privacy.rounding import rounded_up
    from dualquery.privacy.statement import four_digits

    found: Json = {"ledger": str(file)}
    lines = []
    try:
        book = Ledger(file)
        account = book.account()
    except LedgerError as error:
        found |= {"right": False, "problem": str(error)}
        lines.append(error.on_the_command_line)
    else:
        seen = [_seen(book, release) for release in releases]
        right = all(one["right"] for one in seen)
        found |= {"right": right, "account": account.to_dict(), "releases": seen}
        lines.append(
            f"{_links(account)}; spent ε = {four_digits(account.spent)} of "
            f"{rounded_up(account.epsilon)} at δ = {rounded_up(account.delta)}"
        )
        lines += [f"note: {line}" for line in account.warnings]
        lines += [str(one["said"]) for one in seen]
    if as_json:
        options.echo(json.dumps(found, allow_nan=False))
    else:
        for line in lines:
            options.echo(line)
    if not found["right"]:
        raise typer.Exit(1)


def _links(account: Account) -> str:
    if account.mark is None:
        return f"{account.label}: of version 0.2, without a chain; its next release begins one"
    position, head = account.mark.position, account.mark.head
    return f"{account.label}: {position + 1} links, none changed, head {head[:16]}"


def _seen(book: Ledger, release: Path) -> Json:
    """Whether a ledger holds what a release, or an unfinished run, has seen of it."""
    from dualquery.base.errors import DualQueryError
    from dualquery.game import journal
    from dualquery.release.reading import opened, read_mark, refusing

    said: Json = {"release": str(release), "right": False}
    try:
        unfinished = journal.charged(release)
        if unfinished is not None:
            mark = unfinished[1]
        else:
            with refusing(release):
                mark = read_mark(opened(release))
        if mark is None:
            return said | {
                "said": f"{release}: carries no mark of a ledger; it was made without one, or "
                "before version 0.3"
            }
        book.check(mark, str(release))
    except DualQueryError as error:
        return said | {"said": f"{release}: {error.on_the_command_line}"}
    what = f"link {mark.position} of this ledger, which holds it"
    return said | {"right": True, "said": f"{release}: has seen {what}"}
