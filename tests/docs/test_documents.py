"""What the documents show is run: the quick start line by line, and every block of Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PYTHON_PAGES = sorted(
    path.relative_to(DOCS).as_posix()
    for folder in ("guide", "develop")
    for path in (DOCS / folder).glob("*.md")
    if "```python" in path.read_text(encoding="utf-8") and path.stem != "quick-start"
)
SHELL_PAGES = ("guide/quick-start.md", "guide/parameters.md", "guide/monthly.md")


def blocks(page: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page that are to be run: (language, text)."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)
    return [(language, body) for language, body in found if language in ("sh", "python")]


def run(command: list[str] | str, folder: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        shell=isinstance(command, str),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", SHELL_PAGES)
def test_a_page_can_be_followed(page: str, tmp_path: Path) -> None:
    """Its commands and its Python, in order, in an empty folder."""
    python: list[str] = []
    for language, body in blocks(page):
        if language == "sh":
            for line in body.replace("\\\n", " ").splitlines():
                run(line, tmp_path)
        else:
            python.append(body)
            run([sys.executable, "-W", "error", "-c", "\n".join(python)], tmp_path)
    if page.endswith("quick-start.md"):
        assert (tmp_path / "out" / "report.html").is_file()
        assert (tmp_path / "private.html").is_file()


@pytest.mark.parametrize("page", PYTHON_PAGES)
def test_the_python_of_a_page_runs(page: str, tmp_path: Path) -> None:
    code = "\n".join(body for language, body in blocks(page) if language == "python")
    run([sys.executable, "-W", "error", "-c", code], tmp_path)


@pytest.mark.slow
def test_the_lines_of_readme_run(tmp_path: Path) -> None:
    """All queries of the default workload, as a visitor would run them."""
    found = re.search(
        r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.M | re.S
    )
    assert found is not None
    run([sys.executable, "-W", "error", "-c", found.group(1)], tmp_path)
    assert (tmp_path / "out" / "report.html").is_file()


def test_the_documents_build_without_a_warning(tmp_path: Path) -> None:
    run(
        # not --quiet: what is not shown is not counted as a warning either
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path)],
        ROOT,
    )
    commands = (tmp_path / "reference" / "commands.html").read_text(encoding="utf-8")
    for name in ("release", "answer", "compare", "evaluate"):
        assert f"dualquery {name}" in commands
    assert "--report" in commands
    python = (tmp_path / "reference" / "python.html").read_text(encoding="utf-8")
    assert "random_marginals" in python
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"(https?:[^\"]+)", text)
        assert not [url for url in loaded if "canonical" not in url], (page.name, loaded)


def test_every_command_is_in_the_reference() -> None:
    sys.path.insert(0, str(DOCS))
    try:
        from hooks import commands_page
    finally:
        sys.path.pop(0)
    text = commands_page()
    assert text.count("## dualquery ") >= 10
    assert "| `--epsilon` | Privacy budget ε, above 0. | required |" in text


def test_every_setting_stands_in_the_table_of_settings() -> None:
    from dataclasses import fields

    import dualquery as dq

    page = (ROOT / "docs" / "guide" / "parameters.md").read_text(encoding="utf-8")
    part = page.split("## All settings")[1].split("\n## ")[0]
    listed = [line.split("`")[1] for line in part.splitlines() if line.startswith("| `")]
    assert sorted(listed) == sorted(one.name for one in fields(dq.DualQuery))
