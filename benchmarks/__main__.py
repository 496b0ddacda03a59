"""Run benchmarks and print their figures, as JSON and as tables.

    python -m benchmarks                      all of them
    python -m benchmarks counting sampler     these modules
    python -m benchmarks scale.ratings        one part of a module that has parts
    python -m benchmarks scale ratings        the same
    python -m benchmarks scale --json FILE    also keep the figures, beside those that are in FILE
    python -m benchmarks --list

A benchmark is a module of this package with a function `run() -> list[dict]`; a module may name
parts of it in `PARTS`. Figures that compare two ways of doing a thing come from the same run.
"""

from __future__ import annotations

import argparse
import json
import pkgutil
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import benchmarks

Run = Callable[[], list[dict[str, Any]]]


def found() -> dict[str, Run]:
    """Every benchmark, by name."""
    runs: dict[str, Run] = {}
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if module.name.startswith("_"):
            continue
        try:
            content = import_module(f"benchmarks.{module.name}")
        except ModuleNotFoundError as error:
            runs[module.name] = partial(_absent, module.name, error.name)
            continue
        if hasattr(content, "run"):
            runs[module.name] = content.run
    return runs


def _absent(name: str, package: str | None) -> list[dict[str, Any]]:
    raise SystemExit(
        f"benchmark {name!r} needs {package}: pip install --group dev (from a clone, with pip 25.1 "
        "or later), or make bench"
    )


def parts_of(name: str) -> dict[str, Run]:
    """The parts of a module, if it names any."""
    try:
        parts: dict[str, Run] = getattr(import_module(f"benchmarks.{name}"), "PARTS", {})
    except ModuleNotFoundError as error:
        _absent(name, error.name)
    return parts


def chosen(names: list[str]) -> dict[str, Run]:
    """The benchmarks that were asked for; all of them where none was."""
    runs = found()
    if not names:
        return runs
    wanted: dict[str, Run] = {}
    for name in _dotted(names, runs):
        module, _, part = name.partition(".")
        if module not in runs:
            raise SystemExit(f"no benchmark {module!r}; there are {', '.join(runs)}")
        if part and part not in parts_of(module):
            raise SystemExit(
                f"no part {part!r} of {module}; there are {', '.join(parts_of(module))}"
            )
        wanted[name] = parts_of(module)[part] if part else runs[module]
    return wanted


def _dotted(names: list[str], runs: dict[str, Run]) -> list[str]:
    """Parts that follow their module's name, as `module.part`."""
    found: list[str] = []
    module = None
    for name in names:
        if name in runs:
            module = name
        elif module is not None and name in parts_of(module):
            if found[-1] == module:  # its parts are named, so not all of them are wanted
                found.pop()
            name = f"{module}.{name}"
        found.append(name)
    return found


def keep(file: Path, results: dict[str, list[dict[str, Any]]]) -> None:
    """Add results to a file of results; those of the same name are replaced."""
    stored = json.loads(file.read_text()) if file.is_file() else {}
    file.write_text(json.dumps(stored | results, indent=1) + "\n")


def show(name: str, rows: list[dict[str, Any]]) -> None:
    """The rows as tables, one for each set of columns."""
    from rich.console import Console
    from rich.table import Table

    kinds: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        kinds.setdefault(tuple(row), []).append(row)
    for columns, alike in kinds.items():
        # A line per figure: names of figures are long, and there are few rows.
        table = Table(title=name, title_justify="left", show_header=False)
        table.add_column()
        for _ in alike:
            table.add_column(justify="right")
        for column in columns:
            table.add_row(column.replace("_", " "), *(text(row[column]) for row in alike))
        Console(stderr=True).print(table)


def text(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "names", nargs="*", help="modules, or parts of them; all where none is given"
    )
    parser.add_argument("--list", action="store_true", help="what there is")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also keep the figures in a file")
    options = parser.parse_args()
    if options.list:
        for name in found():
            print(name, *(f"{name}.{part}" for part in parts_of(name)))
        return
    results: dict[str, list[dict[str, Any]]] = {}
    for name, run in chosen(options.names).items():
        results[name] = run()
        show(name, results[name])
        if options.json is not None:  # after each, because the next one may take hours
            keep(options.json, results)
    json.dump(results, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
