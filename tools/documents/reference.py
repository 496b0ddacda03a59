"""Pages that are made when the documents are built: commands, decisions, and the rooms."""

from __future__ import annotations

import ast
import re
import tomllib
from html import escape
from pathlib import Path
from typing import Any


def made(root: Path) -> dict[str, str]:
    """The pages by their paths."""
    return {
        "reference/commands.md": commands_page(),
        "develop/decisions.md": decisions_page(root / "docs"),
        "develop/rooms.md": rooms_page(root),
    }


def decisions_page(folder: Path) -> str:
    """Every lasting decision by its title."""
    lines = [
        "# Decisions\n",
        "Each page explains one lasting decision: what was decided, why, and what was measured.\n",
    ]
    for path in sorted((folder / "decisions").glob("*.md")):
        title = path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        lines.append(f"- [{title}](../decisions/{path.name})")
    return "\n".join(lines) + "\n"


def commands_page() -> str:
    """The command line as it is: names, help and defaults come from the code."""
    import typer

    from dualquery.cli import application

    group: Any = typer.main.get_command(application())
    parts = [
        "# Commands\n",
        "Every command ends with code 0 for done, 1 for failed, 2 for bad usage; an error is one "
        "line on stderr. Results go to stdout, progress and warnings to stderr.\n",
    ]
    for name, command in group.commands.items():
        parts.append(f"## dualquery {name} {{#{name}}}\n")
        parts.append(f"{_cell(command.help or '')}\n")
        parts.append(f"```text\n{usage(name, command)}\n```\n")
        rows = [row for row in map(_row, command.params) if row]
        if rows:
            parts.append("| option | meaning | default |\n| --- | --- | --- |")
            parts.append("\n".join(rows) + "\n")
    return "\n".join(parts)


def usage(name: str, command: Any) -> str:
    """The line that shows how a command is called: what is required is spelled out."""
    arguments = [_name(p) for p in command.params if p.param_type_name == "argument"]
    required = [
        f"{p.opts[0]} {p.metavar or p.name.upper()}"
        for p in command.params
        if p.param_type_name == "option" and p.required
    ]
    return " ".join(["dualquery", name, *arguments, *required, "[OPTIONS]"])


def _name(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper()).strip("{}")


def _row(parameter: Any) -> str:
    if parameter.name == "help" or getattr(parameter, "hidden", False):
        return ""
    if parameter.param_type_name == "argument":
        shown = _name(parameter)
    else:
        shown = ", ".join(parameter.opts)
    default = parameter.default
    if parameter.required:
        told = "required"
    elif default is None or default is False or callable(default) or default == []:
        told = ""
    else:
        told = f"`{default}`"
    return f"| `{shown}`{{ .option }} | {_cell(parameter.help or '')} | {told} |"


def _cell(text: str) -> str:
    """Help as one line of a table; a bar or a sign of HTML must not end it."""
    text = " ".join(text.split())
    return text.replace("|", "\\|").replace("<", "&lt;").replace("{", "&#123;")


def rooms_page(root: Path) -> str:
    """The rooms of the package from the roof to the ground, as `make lint` enforces them."""
    layers = room_layers(root)
    described = {room: _docstring(root / "src" / "dualquery", room) for room in layers}
    lines = [
        "# The rooms\n",
        "The package is a house. A room may import the rooms below it, and no other room. What",
        "holds private rows or counts is above the double line. Nothing below that line can reach",
        "it, and `make lint` checks this. The page is made from the import contract in",
        "`pyproject.toml` and from the first lines of every room, so the three cannot disagree.\n",
        "[The architecture](../guide/architecture.md) shows what passes between the rooms.\n",
        _picture(layers, described),
        "",
    ]
    for room in layers:
        lines.append(f"## {room}\n")
        lines.append(described[room] + "\n")
    return "\n".join(lines)


def room_layers(root: Path) -> list[str]:
    """The rooms in the order of the layers contract, the highest first."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["type"] == "layers")
    return [room for room in layers if room not in ("__main__", "version")]


def _docstring(source: Path, room: str) -> str:
    file = source / room / "__init__.py"
    if not file.is_file():
        file = source / f"{room}.py"
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""


def _picture(layers: list[str], described: dict[str, str]) -> str:
    """The rooms as storeys of a house, private ones shaded; the lines wrap on a phone."""
    parts, private = [], True
    for room in layers:
        holds_rows = described[room].startswith("PRIVATE") or room in ("cli", "estimator")
        if private and not holds_rows:
            parts.append('<p class="boundary">the privacy boundary</p>')
            private = False
        shade = " private" if holds_rows else ""
        parts.append(
            f'<p class="storey{shade}"><b><code>{room}</code></b>'
            f"<span>{escape(_in_short(described[room]))}</span></p>"
        )
    title = "The rooms of the package, one above the other"
    return f'<div class="house" role="group" aria-label="{title}">{"".join(parts)}</div>'


def _in_short(docstring: str) -> str:
    """The first sentence of a room, without the word that the shade stands for."""
    first = " ".join(docstring.split("\n\n")[0].split())
    first = re.sub(r"^PRIVATE( where it reads tables)?\. ", "", first)
    return first.split(". ")[0].rstrip(".").replace("`", "")
