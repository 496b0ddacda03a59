"""What a strict build refuses: dead links and anchors, loads from a network, pages in no menu."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

OUTSIDE_THE_MENU = "results/"
"""Stored results need not stand in the menu; everything else must."""


class Page(HTMLParser):
    """The addresses, anchors and loads of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self.anchors |= {told[key] or "" for key in ("id", "name") if key in told}
        if tag == "a" and told.get("href"):
            self.links.append(told["href"] or "")
        elif tag == "link" and told.get("rel") in ("stylesheet", "icon"):
            self.loads.append(told["href"] or "")
        elif tag in ("img", "script", "iframe", "source") and told.get("src"):
            self.loads.append(told["src"] or "")


def problems(site: Path, pages: Path, settings: Path) -> list[str]:
    """Everything that is wrong, one line each."""
    built = {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    built.pop(site / "demo.html", None)  # the page of a release, whose anchors are questions
    found = [
        f"{path.relative_to(site)}: {wrong}"
        for path, page in built.items()
        if path.name != "404.html"
        for wrong in wrong_on(path, page, built)
    ]
    return found + not_in_menu(pages, settings.read_text(encoding="utf-8"))


def wrong_on(path: Path, page: Page, built: dict[Path, Page]) -> Iterator[str]:
    """Dead links, dead anchors, and loads from a network, of one page."""
    for address in page.loads:
        if urlsplit(address).scheme not in ("", "data") or address.startswith("//"):
            yield f"loads {address} from a network"
    for address in page.links + page.loads:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        anchor = unquote(parts.fragment)
        if not target.exists():
            yield f"leads to {address}, which does not exist"
        elif anchor and target in built and anchor not in built[target].anchors:
            yield f"leads to {address}, where that anchor does not exist"


def not_in_menu(pages: Path, settings: str) -> list[str]:
    """Pages that no reader would find, and entries of the menu without a page."""
    listed = set(re.findall(r"([\w./-]+\.md)$", settings, re.M))
    there = {path.relative_to(pages).as_posix() for path in pages.rglob("*.md")}
    hidden = {path for path in there - listed if not path.startswith(OUTSIDE_THE_MENU)}
    return [f"{path}: stands in no menu" for path in sorted(hidden)] + [
        f"{path}: the menu names it, but there is no such page" for path in sorted(listed - there)
    ]
