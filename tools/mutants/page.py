"""The page that lists the mutants, and the names it lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tools.mutants.mutant import Mutant

PAGE = Path("docs/decisions/mutants.md")

_HEAD = """\
# Which mistakes the tests notice

**What is decided.** The code that the privacy of a release rests on is tested by mistakes made on
purpose. Every row below is one of them, a *mutant*: one piece of text in one file, replaced by a
wrong one. `make mutants` puts them into a copy of the tree one by one and runs the tests named
beside each. Every named test must fail. The command ends with code 1 if one passes, and writes
this page.

**Why.** A test that passes does not say what it would miss. Several of these mutants once passed
every test.

**How to add one.** Enter it in `tools/mutants/catalogue` and run
`python -m tools.mutants --only NAME`, which adds its row. The text that a mutant replaces occurs
exactly once in its file, so whoever changes that line changes the mutant too: `make test` checks
the list and this page against the tree. Mistakes that change nothing a user could observe are left
out.

| mutant | what it breaks | test that notices |
| --- | --- | --- |
"""


def rendered(mutants: Sequence[Mutant]) -> str:
    """The page for these mutants."""
    return _HEAD + "".join(_row(mutant) for mutant in mutants)


def listed(page: str) -> set[str]:
    """The names of the mutants on a page."""
    return set(re.findall(r"^\| `([\w-]+)`", page, re.M))


def _row(mutant: Mutant) -> str:
    tests = "<br>".join(f"`{test.removeprefix('tests/')}`" for test in mutant.tests)
    place = mutant.file.removeprefix("src/dualquery/")
    return f"| `{mutant.name}`<br>{place} | {_cell(mutant.why)} | {tests} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
