"""The notebooks of `examples` as pages: text, code, and what was printed when they last ran."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STYLE = re.compile(r'<style.*?</style>| border="1" class="dataframe"', re.DOTALL)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def made(root: Path) -> dict[str, str]:
    """A page per notebook, under the name that the navigation has."""
    pages = {}
    for path in sorted((root / "examples").glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        pages[f"examples/{path.stem}.md"] = "\n\n".join(blocks(notebook, path.name)) + "\n"
    return pages


def blocks(notebook: dict[str, Any], name: str) -> Iterator[str]:
    """The cells as Markdown, one after the other."""
    first = True
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield source
        else:
            yield f"```python\n{source}\n```"
            yield from outputs(cell["outputs"])
        if first:
            yield f"*This page is the notebook `examples/{name}`, with what it printed.*"
            first = False


def outputs(printed: list[dict[str, Any]]) -> Iterator[str]:
    """What a cell printed: frames as tables, and the lines between them as one text."""
    lines: list[str] = []
    for output in printed:
        data = output.get("data", {})
        html = "".join(data.get("text/html", ""))
        if "<table" in html:
            yield from text(lines)
            # A blank line would end the block of HTML.
            yield re.sub(r"\n\s*\n", "\n", STYLE.sub("", html)).strip()
            lines = []
        else:
            lines.append("".join(output.get("text", "") or data.get("text/plain", "")).rstrip())
    yield from text(lines)


def text(lines: list[str]) -> Iterator[str]:
    """Printed lines as they stand, without the colours of a terminal."""
    joined = COLOUR.sub("", "\n".join(filter(None, lines)))
    if joined:
        yield f"```text\n{joined}\n```"
