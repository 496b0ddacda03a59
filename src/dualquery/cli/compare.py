"""`dualquery compare`: several releases side by side."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualquery.cli import options

if TYPE_CHECKING:
    from dualquery.base.stored import Json
    from dualquery.evaluation.figures import Evaluation
    from dualquery.privacy.statement import PrivacyStatement
    from dualquery.release.release import Release

ORDER = ("private", "player", "rounds", "samples", "eta", "queries", "oracle", "table_size")
"""The parameters that are shown first, in this order; all others follow."""


def compare(
    directories: Annotated[
        list[Path], typer.Argument(metavar="DIR…", help="Two or more release directories.")
    ],
    table: Annotated[
        Path | None, typer.Option(help="The private table: adds errors, which are NOT PRIVATE.")
    ] = None,
    workload: Annotated[
        Path | None, typer.Option(help="With --table: the same queries for every release.")
    ] = None,
    out_of_domain: options.OutOfDomain = "refuse",
    as_json: options.Json = False,
) -> None:
    """Show releases side by side: parameters, ε by every accountant, and with --table errors."""
    from dualquery.base.errors import ParameterError
    from dualquery.cli.evaluate import WARNING
    from dualquery.release.release import load as read_release

    if workload is not None and table is None:
        raise ParameterError("--workload needs --table: without it there is no error to measure")
    releases = [read_release(directory) for directory in directories]
    found = [
        Compared(
            str(directory),
            release,
            None if table is None else _errors(release, table, workload, out_of_domain),
        )
        for directory, release in zip(directories, releases, strict=True)
    ]
    if table is not None:
        options.echo(WARNING, err=True)
    if as_json:
        options.echo(json.dumps({"releases": [one.to_dict() for one in found]}))
        return
    _print(found)


@dataclass(frozen=True)
class Compared:
    """One of the releases.

    Attributes:
        name: its directory.
        release: itself.
        errors: against the private table, if that was given.
    """

    name: str
    release: Release
    errors: Evaluation | None

    def to_dict(self) -> Json:
        """All figures as plain data."""
        told = {
            "release": self.name,
            "attributes": len(self.release.schema),
            **self.release.summary(),
        }
        return told if self.errors is None else {**told, "evaluation": self.errors.to_dict()}


def _errors(release: Release, table: Path, workload: Path | None, out_of_domain: str) -> Evaluation:
    from dualquery.evaluation.figures import evaluate
    from dualquery.workloads.generators import read_workload

    asked = None if workload is None else read_workload(workload, release.schema)
    return evaluate(release, table, asked, out_of_domain)


def _print(found: Sequence[Compared]) -> None:
    from rich.console import Console
    from rich.table import Table

    shown = Table()
    shown.add_column("")
    for one in found:
        shown.add_column(options.shown(one.name), justify="right", overflow="fold")
    for name, cells in _rows(found):
        shown.add_row(options.shown(name), *(options.shown(cell) for cell in cells))
    Console().print(shown)


def _rows(found: Sequence[Compared]) -> list[tuple[str, list[str]]]:
    """Names, each with one cell per release; a dash if a release does not have the figure."""
    from dualquery.privacy.rounding import rounded_up

    privacy = [one.release.privacy for one in found]
    parameters = [one.release.parameters.to_dict() for one in found]
    errors = [one.errors for one in found if one.errors is not None]

    def promised(name: str, read: Callable[[PrivacyStatement], object]) -> tuple[str, list[str]]:
        return name, [_cell(read(one)) for one in privacy]

    rows = [
        promised("private", lambda p: "yes" if p.private else p.stamp),
        promised("ε", lambda p: _epsilon(p.epsilon)),
        promised("δ", lambda p: rounded_up(p.delta)),
        promised("neighbours", lambda p: str(p.neighbours)),
        promised("accountant", lambda p: p.accountant),
    ]
    for name in dict.fromkeys(name for one in privacy for name in one.by_accountant):
        rows.append((f"ε, {name}", [_epsilon_by(one, name) for one in privacy]))
    rows.append(("attributes", [_cell(len(one.release.schema)) for one in found]))
    rows.append(("answers from", [one.release.source for one in found]))
    for name in dict.fromkeys([*ORDER[1:], *(name for one in parameters for name in one)]):
        if name in ("epsilon", "delta", "neighbours", "accountant"):
            continue  # these were asked for; what was spent is shown above
        rows.append((name, [_cell(one.get(name)) for one in parameters]))
    if errors:
        rows.append(
            ("max error (NOT PRIVATE)", [f"{one.distance.max_error:.4f}" for one in errors])
        )
        rows.append(
            ("average error (NOT PRIVATE)", [f"{one.distance.average_error:.5f}" for one in errors])
        )
    return rows


def _epsilon(value: float) -> str:
    from dualquery.privacy.statement import four_digits

    return four_digits(value) if math.isfinite(value) else "∞"


def _epsilon_by(privacy: PrivacyStatement, accountant: str) -> str:
    """What one accountant says; a dash if it is newer than the release."""
    from dualquery.privacy.statement import NOT_COVERED

    if accountant in privacy.not_covering:
        return NOT_COVERED
    if accountant not in privacy.by_accountant:
        return "-"
    return _epsilon(privacy.by_accountant[accountant])


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)
