"""The notebooks run as they stand, and what they show was printed by this version of them."""

from __future__ import annotations

import ast
from pathlib import Path

import nbformat
import pytest
from tools.notebooks import FOLDER, executed

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def named(path: Path) -> str:
    return path.stem


def test_what_people_copy() -> None:
    assert [path.stem for path in NOTEBOOKS] == [
        "hospital", "monthly", "own_oracle", "paper", "ratings", "survey",
    ]  # fmt: skip


@pytest.mark.parametrize("path", NOTEBOOKS, ids=named)
def test_it_is_stored_as_it_ran(path: Path) -> None:
    """Every cell was run once, in order, without an error or a warning, and shows no path."""
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    printed = str([cell.outputs for cell in cells])
    assert "Traceback" not in printed
    assert "Warning" not in printed
    assert "/tmp/" not in printed
    for cell in cells:
        ast.parse("\n".join(line for line in cell.source.splitlines() if line[:1] != "!"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=named)
def test_it_runs(path: Path) -> None:
    notebook = executed(path)  # a cell that raises fails the test
    printed = str([cell.get("outputs") for cell in notebook.cells])
    assert "Warning" not in printed


def test_the_landing_page_leads_to_every_notebook() -> None:
    landing = (FOLDER.parent / "docs" / "index.md").read_text(encoding="utf-8")
    assert [path.stem for path in NOTEBOOKS if f"(examples/{path.stem}.md)" not in landing] == []
