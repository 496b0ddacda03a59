"""Names in documents are names in the package: public ones, dotted paths, and paths of files."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dualquery as dq

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "dualquery"
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md")
    if path.relative_to(DOCS.parent).parts[:2] != ("docs", "results")
)
PUBLIC = set(dq.__all__) - {"__version__"}


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def backticked(page: str) -> list[str]:
    """What stands in backticks in running text; fenced blocks are left out."""
    prose = re.sub(r"^```.*?^```$", "", text_of(page), flags=re.M | re.S)
    return re.findall(r"`([^`\n]+)`", prose)


def resolve(name: str) -> Any:
    """The object of a dotted path: as much of it as is a module, then attributes."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:end]))
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                raise
            continue
        for part in parts[end:]:
            fields = getattr(found, "__dataclass_fields__", {})
            found = fields[part] if part in fields else getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


# Public names


def test_the_reference_documents_the_public_names_and_no_others() -> None:
    documented = re.findall(r"^::: (\S+)$", text_of("docs/reference/python.md"), re.M)
    assert len(documented) == len(set(documented))
    assert set(documented) == {f"dualquery.{name}" for name in PUBLIC}


def test_public_names_are_declared_once_for_people_and_once_for_type_checkers() -> None:
    declared = {
        (node.module, alias.name)
        for node in ast.walk(ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("dualquery.")
        for alias in node.names
    } - {("dualquery.version", "__version__")}
    assert declared == {(home, name) for name, home in dq._HOME_OF.items()}
    assert {name for _, name in declared} == PUBLIC
    assert dir(dq) == sorted(dq.__all__)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_public_name_leads_to_something_with_a_docstring(name: str) -> None:
    found = getattr(dq, name)
    assert found.__name__ == name
    assert inspect.getdoc(found)


def test_another_name_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'fit'"):
        _ = dq.fit


def test_importing_the_package_loads_nothing_and_takes_no_time() -> None:
    script = (
        "import sys, time; before = set(sys.modules); start = time.process_time(); "
        "import dualquery; dir(dualquery); took = time.process_time() - start; "
        "print(took); print(*sorted(name for name in set(sys.modules) - before "
        "if name.partition('.')[0] not in sys.stdlib_module_names))"
    )
    took = []
    for _ in range(3):
        out = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        took.append(float(out[0]))
        assert out[1].split() == ["dualquery", "dualquery.version"]
    assert min(took) < 0.1, f"import dualquery took {min(took):.3f} s"


GUIDES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*(DOCS / "guide").glob("*.md"), ROOT / "README.md", *ROOT.glob("examples/*.ipynb"))
)


@pytest.mark.parametrize("page", GUIDES)
def test_what_users_copy_imports_the_package_alone(page: str) -> None:
    inside = re.findall(r"^\s*(?:from|import) (dualquery\.\S+)", text_of(page), re.M)
    assert not inside, f"{page} imports what may change: {inside}"
    named = set(re.findall(r"\bdq\.(\w+)", text_of(page)))
    assert named <= PUBLIC | {"__version__"}, named - PUBLIC


@pytest.mark.parametrize("page", PAGES)
def test_public_names_in_running_text_exist(page: str) -> None:
    named = set(re.findall(r"`dq\.(\w+)", text_of(page)))
    assert named <= PUBLIC, named - PUBLIC


# Dotted paths

KEYS = {"dualquery.stamp", "dualquery.unknown"}
"""Keys of a file's metadata, not names of the package."""


def dotted_names() -> list[tuple[str, str]]:
    return [
        (page, name)
        for page in PAGES
        for name in sorted(set(backticked(page)))
        if re.fullmatch(r"dualquery(\.\w+)+(\(\))?", name) and name not in KEYS
    ]


@pytest.mark.parametrize(("page", "name"), dotted_names())
def test_a_dotted_name_leads_somewhere(page: str, name: str) -> None:
    resolve(name.removesuffix("()"))


def test_a_name_that_is_gone_would_be_noticed() -> None:
    resolve("dualquery.rows.encoding.encode_column")
    for gone in (
        "dualquery.rows.encoding.encode_rows",
        "dualquery.rows.coding",
        "dualquery.release.release.Release.ask",
    ):
        with pytest.raises((AttributeError, ModuleNotFoundError)):
            resolve(gone)


# Paths of files

OF_USERS = {"build", "out", "demo", "demo-input"}
"""Folders that the documents let a user make; `make docs` makes `build`."""


def paths() -> list[tuple[str, str]]:
    """Backticked paths of files with an ending, and of folders with a slash at their end."""
    return [
        (page, path)
        for page in PAGES
        for path in sorted(set(backticked(page)))
        if re.fullmatch(r"[\w.-]+/|[\w.-]+(/[\w.-]+)+(/|\.[a-z]+)", path)
        and path.split("/")[0] not in OF_USERS
    ]


@pytest.mark.parametrize(("page", "path"), paths())
def test_a_path_exists(page: str, path: str) -> None:
    assert (SOURCE / path).exists() or (ROOT / path).exists(), f"{page} names {path}"


def test_paths_are_found_in_the_text() -> None:
    found = {path for _, path in paths()}
    assert {"domain/query.py", "oracles/reduction/", "src/dualquery/oracles/"} <= found
    assert not any((SOURCE / gone).exists() for gone in ("refit/", "report/assets/model.js"))


# Rooms


def test_the_readme_lists_the_rooms_as_the_import_contract_does() -> None:
    settings = tomllib.loads(text_of("pyproject.toml"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["type"] == "layers")
    listed = text_of("README.md").split("## Where things are")[1].split("```")[1]
    shown = re.findall(r"^  (\w+)/? +(PRIVATE)?", listed, re.M)
    assert [room for room, _ in shown] == [r for r in layers if r not in ("__main__", "version")]
    for room, private in shown:
        first = SOURCE / room / "__init__.py"
        says = first.is_file() and '"""PRIVATE' in first.read_text(encoding="utf-8")
        assert says == bool(private), room


def test_every_room_says_who_may_import_it_and_where_to_start() -> None:
    for first in SOURCE.glob("*/__init__.py"):
        said = ast.get_docstring(ast.parse(first.read_text(encoding="utf-8"))) or ""
        assert re.search(r"\bimports?\b", said), first
        assert re.search(r"[Ss]tart reading at `", said), first
        assert len(said.splitlines()) <= 8, first
