"""A plain command line is read as Typer reads it; every other line is left to Typer."""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from dualquery.cli import options
from dualquery.cli.quick import QUICK, arguments_of

COMMANDS = {name: getattr(import_module(f"dualquery.cli.{name}"), name) for name in QUICK}
WORDS = [
    "out", "smoker", "age>=50 & sex=Female", "--given", "--where", "--by", "--unknown", "--json",
    "--format", "csv", "CSV", "xml", "--form", "-j", "-", "--", "--given=smoker", "", "é", "a\nb",
    "--help", "--jso", "--no-json", "-1",
]  # fmt: skip


def by_typer(name: str, line: list[str]) -> dict[str, Any] | None:
    """What Typer hands to a command; None if it refuses the line or shows help."""
    seen: list[dict[str, Any]] = []
    command = COMMANDS[name]

    @wraps(command)
    def note(**arguments: Any) -> None:
        seen.append(arguments)

    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(note)
    try:
        app(line, standalone_mode=False)
    except Exception:
        return None
    return seen[0] if seen else None


@given(st.sampled_from(sorted(QUICK)), st.lists(st.sampled_from(WORDS), max_size=6))
def test_a_line_is_read_as_typer_reads_it(name: str, line: list[str]) -> None:
    quick = arguments_of(COMMANDS[name], line)
    if quick is not None:
        assert quick == by_typer(name, line)


@pytest.mark.parametrize(
    ("line", "more"),
    [
        (["table", "out", "sex", "age"], {"columns": ["sex", "age"]}),
        (["table", "--json", "out", "--where", "smoker", "sex"], {"as_json": True}),
        (["table", "out", "sex", "--format", "csv"], {"form": options.Format.CSV}),
        (["summary", "out", "age", "--by", "sex"], {"by": "sex"}),
        (["answer", "out", "smoker", "--given", "sex=Male", "age>=50"], {"given": "sex=Male"}),
        (["answer", "out", "smoker", "--unknown", "default"], {"unknown": "default"}),
    ],
)
def test_plain_lines_are_read_at_once(line: list[str], more: dict[str, Any]) -> None:
    name, *rest = line
    quick = arguments_of(COMMANDS[name], rest)
    assert quick is not None
    assert quick == by_typer(name, rest)
    assert quick["directory"] == Path("out")
    assert quick.items() >= more.items()


def test_what_is_not_plain_is_left_to_typer() -> None:
    answer = COMMANDS["answer"]
    for line in (
        [], ["out"], ["out", "smoker", "--help"], ["out", "smoker", "--given"],
        ["out", "smoker", "--json", "--json"], ["out", "smoker", "--given", "-x"],
        ["out", "--", "smoker"], ["out", "smoker", "--unheard"], ["", "smoker"],
    ):  # fmt: skip
        assert arguments_of(answer, line) is None, line
    assert arguments_of(answer, ["out", "smoker"], ["_DUALQUERY_COMPLETE"]) is None

    def bounded(columns: Annotated[list[str], typer.Argument(min=1)]) -> None:
        """A declaration that asks for more than words is Typer's."""

    assert arguments_of(bounded, ["sex"]) is None
