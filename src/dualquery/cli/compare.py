"""`dualquery compare`: several releases side by side."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualquery.cli import options

if TYPE_CHECKING:
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
    found: list[dict[str, Any]] = []
    for directory, release in zip(directories, releases, strict=True):
        entry: dict[str, Any] = {
            "release": str(directory),
            "attributes": len(release.schema),
            **release.summary(),
        }
        if table is not None:
            entry["evaluation"] = _errors(release, table, workload, out_of_domain)
        found.append(entry)
    if table is not None:
        typer.echo(WARNING, err=True)
    if as_json:
        typer.echo(json.dumps({"releases": found}))
        return
    _print(found)


def _errors(
    release: Release, table: Path, workload: Path | None, out_of_domain: str
) -> dict[str, Any]:
    from dualquery.evaluation.figures import evaluate
    from dualquery.workloads.generators import read_workload

    asked = None if workload is None else read_workload(workload, release.schema)
    return evaluate(release, table, asked, out_of_domain).to_dict()


def _print(found: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    shown = Table()
    shown.add_column("")
    for entry in found:
        shown.add_column(escape(entry["release"]), justify="right", overflow="fold")
    for name, cells in _rows(found):
        shown.add_row(escape(name), *(escape(cell) for cell in cells))
    Console().print(shown)


def _rows(found: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """Names, each with one cell per release; a dash if a release does not have the figure."""
    from dualquery.privacy.rounding import rounded_up
    from dualquery.privacy.statement import NOT_COVERED, figure

    def every(name: str, read: Callable[..., object]) -> tuple[str, list[str]]:
        return name, [_cell(read(entry)) for entry in found]

    def shown(value: float | None) -> str:
        return "∞" if value is None else figure(value)

    names = dict.fromkeys(ORDER[1:])
    for entry in found:
        names.update(dict.fromkeys(entry["parameters"]))
    accountants = dict.fromkeys(n for entry in found for n in entry["privacy"]["by_accountant"])
    rows = [
        every("private", lambda e: "yes" if e["privacy"]["private"] else e["privacy"]["stamp"]),
        every("ε", lambda e: shown(e["privacy"]["epsilon"])),
        every("δ", lambda e: rounded_up(e["privacy"]["delta"])),
        every("neighbours", lambda e: e["privacy"]["neighbours"]),
        every("accountant", lambda e: e["privacy"]["accountant"]),
    ]
    for name in accountants:
        rows.append(
            every(
                f"ε, {name}",
                lambda e, name=name: (
                    NOT_COVERED
                    if name in e["privacy"].get("not_covering", ())
                    else shown(e["privacy"]["by_accountant"][name])
                    if name in e["privacy"]["by_accountant"]
                    else None
                ),
            )
        )
    rows.append(every("attributes", lambda e: e["attributes"]))
    rows.append(every("answers from", lambda e: e["source"]))
    for name in names:
        if name in ("epsilon", "delta", "neighbours", "accountant"):
            continue  # these were asked for; what was spent is shown above
        rows.append(every(name, lambda e, name=name: e["parameters"].get(name)))
    if any("evaluation" in entry for entry in found):
        rows.append(
            every("max error (NOT PRIVATE)", lambda e: f"{e['evaluation']['max_error']:.4f}")
        )
        rows.append(
            every(
                "average error (NOT PRIVATE)", lambda e: f"{e['evaluation']['average_error']:.5f}"
            )
        )
    return rows


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)
