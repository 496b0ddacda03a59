"""A mirror of the package's structure: `python -m tools.house`.

It judges nothing. It prints what a reviewer wants to see before and after a change: which modules
import one another in a circle, which ones know or are known by many others, what needs scrolling,
what stands in two places, and how often a type is left open. Every import counts: at the top of a
file, inside a function, and those for type checkers alone.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import grimp
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).parents[1]
PACKAGE = "dualquery"
SOURCE = ROOT / "src" / PACKAGE
SHOWN = 8
"""How many entries of each ranking are printed."""


@dataclass(frozen=True)
class Ranked:
    """Something with a size, for a ranking."""

    size: int
    name: str


def import_graph() -> dict[str, set[str]]:
    """Per module, the modules of the package that it imports, in whatever way."""
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=False, cache_dir=None)
    return {
        module: set(graph.find_modules_directly_imported_by(module))
        for module in sorted(graph.modules)
    }


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that reach one another."""
    names = sorted(graph)
    place = {name: i for i, name in enumerate(names)}
    edges = [(place[a], place[b]) for a, imported in graph.items() for b in imported]
    if not edges:
        return []
    rows, columns = np.array(edges).T
    matrix = csr_array((np.ones(len(edges)), (rows, columns)), shape=(len(names),) * 2)
    _, group = connected_components(matrix, connection="strong")
    members: dict[int, list[str]] = {}
    for name, number in zip(names, group.tolist(), strict=True):
        members.setdefault(number, []).append(name)
    return [found for found in members.values() if len(found) > 1]


def rooms(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Per room (a folder, or a module beside the folders), the rooms that it imports."""
    found: dict[str, set[str]] = {}
    for module, imported in graph.items():
        mine = room_of(module)
        known = found.setdefault(mine, set())
        known.update(room_of(other) for other in imported)
        known.discard(mine)
    return found


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else PACKAGE


def python_files() -> Iterator[Path]:
    return iter(sorted(SOURCE.rglob("*.py")))


def longest_modules() -> list[Ranked]:
    sizes = [
        Ranked(len(f.read_text().splitlines()), str(f.relative_to(SOURCE))) for f in python_files()
    ]
    return sorted(sizes, key=lambda one: -one.size)


def longest_functions() -> list[Ranked]:
    found = []
    for file in python_files():
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                found.append(Ranked(length, f"{file.relative_to(SOURCE)}:{node.name}"))
    return sorted(found, key=lambda one: -one.size)


def lines_with_any() -> int:
    """Lines of code that leave a type open."""
    return sum(
        bool(re.search(r"\bAny\b", line)) and not line.lstrip().startswith(("from ", "import "))
        for file in python_files()
        for line in file.read_text().splitlines()
    )


def undocumented() -> list[str]:
    """Public functions with four or more parameters that are documented nowhere."""
    found = []
    promised = _documented_in_protocols()
    for file in python_files():
        if file.name.startswith("_"):
            continue
        for node in _public_functions(ast.parse(file.read_text())):
            arguments = [a.arg for a in (*node.args.args, *node.args.kwonlyargs)]
            named = [a for a in arguments if a not in ("self", "cls")]
            text = ast.get_docstring(node) or ""
            if len(named) < 4 or "Args:" in text or _is_command(node):
                continue
            if len(named) == len(arguments) or node.name not in promised:
                found.append(f"{file.relative_to(SOURCE)}:{node.name}")
    return found


def _documented_in_protocols() -> set[str]:
    """Methods that a protocol documents: whoever implements it need not repeat that."""
    return {
        inner.name
        for file in python_files()
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef) and "Protocol" in "".join(map(ast.unparse, node.bases))
        for inner in node.body
        if isinstance(inner, ast.FunctionDef) and "Args:" in (ast.get_docstring(inner) or "")
    }


def _is_command(function: ast.FunctionDef) -> bool:
    """Whether every parameter is an option of the command line: its help is its documentation."""
    arguments = (*function.args.args, *function.args.kwonlyargs)
    kinds = [ast.unparse(a.annotation) if a.annotation else "" for a in arguments]
    return all(kind.startswith(("options.", "Annotated[")) for kind in kinds)


def _public_functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Functions of a module and methods of its public classes, unless they are private."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            protocol = any("Protocol" in ast.unparse(base) for base in node.bases)
            for inner in node.body:
                if (
                    isinstance(inner, ast.FunctionDef)
                    and not inner.name.startswith("_")
                    and not protocol
                ):
                    yield inner


def duplicated() -> Sequence[str]:
    """What the `duplicates` command says, where the machine has it."""
    command = shutil.which("duplicates")
    if command is None:
        return ["(the `duplicates` command is not on this machine)"]
    done = subprocess.run(
        [command, "--repo", str(SOURCE), "--most", str(SHOWN)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.splitlines()


def main() -> None:
    graph = import_graph()
    fan_in = Counter(other for imported in graph.values() for other in imported)
    fan_out = {module: len(imported) for module, imported in graph.items()}
    print(f"{len(graph)} modules, {sum(fan_out.values())} imports between them")
    print("\nrooms and what they import:")
    for room, imported in sorted(rooms(graph).items()):
        print(f"  {room}: {', '.join(sorted(imported)) or '—'}")
    circles = cycles(graph)
    print(f"\nimport cycles: {len(circles)}")
    for circle in circles:
        print(f"  {' ↔ '.join(name.removeprefix(PACKAGE + '.') for name in circle)}")
    circles = cycles(rooms(graph))
    print(f"cycles between rooms: {len(circles)}")
    for circle in circles:
        print(f"  {' ↔ '.join(circle)}")
    _show("imports the most modules", [Ranked(n, m) for m, n in fan_out.items()])
    _show("is imported by the most modules", [Ranked(n, m) for m, n in fan_in.items()])
    _show("longest modules", longest_modules())
    _show("longest functions", longest_functions())
    print(f"\nlines with Any: {lines_with_any()}")
    missing = undocumented()
    print(f"public functions with four or more parameters and no Args: {len(missing)}")
    for name in missing[:SHOWN]:
        print(f"  {name}")
    print("\nduplicated lines:")
    for line in duplicated():
        print(f"  {line}")


def _show(title: str, entries: Sequence[Ranked]) -> None:
    print(f"\n{title}:")
    for one in sorted(entries, key=lambda entry: -entry.size)[:SHOWN]:
        print(f"  {one.size:4d}  {one.name.removeprefix(PACKAGE + '.')}")


if __name__ == "__main__":
    main()
