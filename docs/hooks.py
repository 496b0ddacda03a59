"""Pages that are made when the documents are built: the commands, and the list of decisions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is generated; decisions and results are listed rather than named one by one."""
    made = {
        "reference/commands.md": commands_page(),
        "develop/decisions.md": decisions_page(Path(config.docs_dir)),
    }
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    for file in files.documentation_pages():
        if file.src_uri.startswith(("decisions/", "results/")):
            file.inclusion = InclusionLevel.NOT_IN_NAV
    return files


def decisions_page(folder: Path) -> str:
    """Every lasting decision by its title."""
    lines = ["# Decisions\n", "Why things are as they are; one page for each lasting decision.\n"]
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
    return f"| `{shown}` | {_cell(parameter.help or '')} | {told} |"


def _cell(text: str) -> str:
    """Help as one line of a table; a bar or a sign of HTML must not end it."""
    text = " ".join(text.split())
    return text.replace("|", "\\|").replace("<", "&lt;").replace("{", "&#123;")
