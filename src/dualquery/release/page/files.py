"""The files of the page that go into it unchanged: styles and scripts."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources

PURE = (
    "language.js", "numbers.js", "forest.js", "model.js", "bends.js", "cells.js", "inside.js",
    "questions.js", "words.js", "states.js", "views.js",
)  # fmt: skip
"""Scripts that know nothing of a document, in the order in which they need one another."""

SCRIPTS = (*PURE, "combobox.js", "conditions.js", "shown.js", "picture.js", "explorer.js")
STYLES = ("page.css", "explorer.css", "media.css")


@cache
def asset(name: str) -> str:
    """The text of a file of the package that goes into the page unchanged."""
    text = (resources.files("dualquery.release.page") / "assets" / name).read_text(encoding="utf-8")
    return text.strip()


def joined(*names: str) -> str:
    """Several files, one after the other."""
    return "\n".join(asset(name) for name in names)


def script_elements() -> str:
    """All scripts of the page."""
    return "\n".join(f"<script>{asset(name)}</script>" for name in SCRIPTS)


def script_hashes() -> str:
    """The page's own scripts, as its content security policy names them, so that no other runs."""
    digests = (hashlib.sha256(asset(name).encode()).digest() for name in SCRIPTS)
    return " ".join(f"'sha256-{base64.b64encode(d).decode()}'" for d in digests)
