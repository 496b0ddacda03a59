"""What the documents show is run: the quick start line by line, and every block of Python."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.documents import checks
from tools.documents.reference import commands_page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GUIDES = sorted(
    path.relative_to(DOCS).as_posix()
    for folder in ("guide", "develop")
    for path in (DOCS / folder).glob("*.md")
)
FOLLOWED = [page for page in GUIDES if "```sh\n" in (DOCS / page).read_text(encoding="utf-8")]
QUICK = ("guide/quick-start.md", "guide/parameters.md", "guide/queries.md")
"""Followed pages that the fast lane can afford."""
PYTHON_PAGES = [
    page
    for page in GUIDES
    if page not in FOLLOWED and "```python" in (DOCS / page).read_text(encoding="utf-8")
]


def blocks(page: str) -> list[tuple[str, str, str]]:
    """The fenced blocks of a page that can be followed: (language, name of the file, text)."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", text, re.M | re.S)
    return [block for block in found if block[0] in ("sh", "python") or block[1]]


def run(command: list[str], folder: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=() if page in QUICK else pytest.mark.slow, id=page)
        for page in FOLLOWED
    ],
)
def test_a_page_can_be_followed(page: str, tmp_path: Path) -> None:
    """Its files, its commands and its Python, in order, in an empty folder and in one session."""
    session = ["import subprocess"]
    for language, file, body in blocks(page):
        if file:
            (tmp_path / file).write_text(body, encoding="utf-8")
        elif language == "python":
            session.append(body)
        else:
            for line in body.replace("\\\n", " ").splitlines():
                code = 1 if line.endswith("# exit code 1") else 0
                session.append(f"assert subprocess.run({line!r}, shell=True).returncode == {code}")
    run([sys.executable, "-W", "error", "-c", "\n".join(session)], tmp_path)
    if page.endswith("quick-start.md"):
        assert (tmp_path / "out" / "report.html").is_file()
        assert (tmp_path / "private.html").is_file()


@pytest.fixture(scope="module")
def warm() -> Iterator[subprocess.Popen[str]]:
    """A process that runs Python in forks of itself; see warm.py."""
    script = Path(__file__).with_name("warm.py")
    with subprocess.Popen(
        [sys.executable, "-W", "error", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.parametrize("page", PYTHON_PAGES)
def test_the_python_of_a_page_runs(page: str, warm: subprocess.Popen[str], tmp_path: Path) -> None:
    code = "\n".join(body for language, _, body in blocks(page) if language == "python")
    assert warm.stdin is not None
    assert warm.stdout is not None
    warm.stdin.write(json.dumps({"code": code, "folder": str(tmp_path)}) + "\n")
    warm.stdin.flush()
    left, printed = json.loads(warm.stdout.readline())
    assert left == 0, printed


@pytest.mark.slow
def test_the_lines_of_readme_run(tmp_path: Path) -> None:
    """All queries of the default workload, as a visitor would run them."""
    found = re.search(
        r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.M | re.S
    )
    assert found is not None
    run([sys.executable, "-W", "error", "-c", found.group(1)], tmp_path)
    assert (tmp_path / "out" / "report.html").is_file()


def test_the_documents_build_and_nothing_in_them_leads_nowhere(tmp_path: Path) -> None:
    run([sys.executable, "-m", "tools.documents", str(tmp_path)], ROOT)
    site = tmp_path / "docs"
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    for name in ("release", "answer", "compare", "evaluate"):
        assert f"dualquery {name}" in commands
    assert "--report" in commands
    python = (site / "reference" / "python.html").read_text(encoding="utf-8")
    assert "random_marginals" in python
    assert "assets/extra.css" in (site / "index.html").read_text(encoding="utf-8")


def test_what_leads_nowhere_would_be_noticed(tmp_path: Path) -> None:
    """Links, anchors, pictures, loads from a network, and pages that no menu has."""
    site, pages = tmp_path / "docs", tmp_path / "pages"
    site.mkdir()
    pages.mkdir()
    good = '<h1 id="top">x</h1><a href="b.html#top"></a><a href="#top"></a><a href="https://a.b">'
    (site / "a.html").write_text(good)
    (site / "b.html").write_text(good + '<img src="data:,">')
    (pages / "a.md").write_text("")
    settings = tmp_path / "settings.yml"
    settings.write_text("nav:\n  - A: a.md\n")
    assert checks.problems(site, pages, settings) == []
    (site / "b.html").write_text(
        '<a href="c.html"></a><a href="a.html#down"></a><a href="#down"></a><img src="d.png">'
        '<script src="https://a.b/c.js"></script><link rel="stylesheet" href="//a.b/c.css">'
    )
    (pages / "c.md").write_text("")
    settings.write_text("nav:\n  - A: a.md\n  - D: d.md\n")
    wrong = checks.problems(site, pages, settings)
    assert [line.split(" ", 1)[1] for line in wrong] == [
        "leads to b.html#top, where that anchor does not exist",
        "loads https://a.b/c.js from a network",
        "loads //a.b/c.css from a network",
        "leads to c.html, which does not exist",
        "leads to a.html#down, where that anchor does not exist",
        "leads to #down, where that anchor does not exist",
        "leads to d.png, which does not exist",
        "stands in no menu",
        "the menu names it, but there is no such page",
    ]


def test_every_command_is_in_the_reference() -> None:
    text = commands_page()
    assert text.count("## dualquery ") >= 10
    assert "| `--epsilon`{ .option } | Privacy budget ε, above 0. | required |" in text


def test_every_setting_stands_in_the_table_of_settings() -> None:
    from dataclasses import fields

    import dualquery as dq

    page = (ROOT / "docs" / "guide" / "parameters.md").read_text(encoding="utf-8")
    part = page.split("## All settings")[1].split("\n## ")[0]
    listed = [line.split("`")[1] for line in part.splitlines() if line.startswith("| `")]
    assert sorted(listed) == sorted(one.name for one in fields(dq.DualQuery))
