"""The codebook of sampled rows: for each column its meaning, its domain and its distribution."""

from __future__ import annotations

from html import escape
from string import Template

from dualquery.domain.attributes import Attribute
from dualquery.release.page.about import byline
from dualquery.release.page.columns import kind_of
from dualquery.release.page.distributions import one_way, share_bars
from dualquery.release.page.files import joined
from dualquery.release.page.payload import grouped
from dualquery.release.published import Published
from dualquery.version import __version__

MOST_PAGES = 300
"""The most columns that have a page of their own; all others are listed."""

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">$meta
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Codebook: $title</title>
<style>$style</style>
</head>
<body>
<header><h1>Codebook: $title</h1>$stamp$about
<p class="lead">What each column of the synthetic rows means, what it can hold, and how it is
distributed. All of it was declared by the curator or follows from the release; the private table
was not read for it.</p>
<nav aria-label="Columns"><ul>$contents</ul></nav></header>
<main>$sections</main>
<footer><p>Written by dualquery $version.</p></footer>
</body>
</html>
""")


def render_codebook(release: Published) -> str:
    """The codebook as one page; in print every column begins a page of its own."""
    schema = release.schema
    places = [a for a, one in enumerate(schema.attributes) if not one.is_binary][:MOST_PAGES]
    binary = [a for a, one in enumerate(schema.attributes) if one.is_binary]
    named = {a: f"column-{number}" for number, a in enumerate(places, start=1)}
    sections = [_column(release, a, anchor) for a, anchor in named.items()]
    contents = [(anchor, schema.names[a]) for a, anchor in named.items()]
    if binary:
        contents.append(("binary", f"{len(binary):,} columns of 0/1"))
        sections.append(_binary(release, binary))
    stamp = release.privacy.stamp
    return _PAGE.substitute(
        title=escape(release.about.heading),
        meta=f'<meta name="dualquery-stamp" content="{escape(stamp)}">' if stamp else "",
        stamp=f'<p class="stamp">{escape(stamp)}</p>' if stamp else "",
        style=joined("page.css", "media.css"),
        about=byline(release.about),
        contents="".join(f'<li><a href="#{a}">{escape(name)}</a></li>' for a, name in contents),
        sections="".join(sections),
        version=escape(__version__),
    )


def _column(release: Published, position: int, anchor: str) -> str:
    """The page of one column."""
    attribute = release.schema.attributes[position]
    facts = {
        "column": attribute.column,
        "type": str(attribute.type),
        "kind": kind_of(attribute),
        "codes": f"{attribute.size:,}",
        "can hold": attribute.describe(),
        "missing cells": "possible" if attribute.missing else "none",
    }
    known = bool(release.actions.named[position])
    figures = _figures(release, attribute) if known else ""
    chart = (
        one_way(release, position)
        if known
        else "<p>Unknown: no query of the release names this column, so it knows nothing about it. "
        "In sampled rows it holds its declared default.</p>"
    )
    rows = "".join(
        f'<tr><th scope="row">{name}</th><td>{escape(text)}</td></tr>'
        for name, text in facts.items()
    )
    return (
        f'<section id="{anchor}" class="sheet"><h2>{escape(attribute.name)}</h2>'
        f'<table class="plain facts"><tbody>{rows}</tbody></table>{figures}{chart}</section>'
    )


def _figures(release: Published, attribute: Attribute) -> str:
    """Mean and quartiles of a column of numbers, with intervals."""
    if attribute.type.is_temporal or attribute.answer is not None:
        return ""
    if not attribute.is_numeric and not all(isinstance(v, int | float) for v in attribute.values):
        return ""
    rows = "".join(
        f'<tr><th scope="row">{row["figure"]}</th><td class="number">{_number(row["value"])}</td>'
        f'<td class="number muted">{_ends(row["low"], row["high"])}</td></tr>'
        for row in release.description(attribute.name)
    )
    return (
        '<table class="plain facts"><caption>Mean and quartiles</caption><thead><tr>'
        '<th scope="col">figure</th><th scope="col" class="number">value</th>'
        '<th scope="col" class="number">95 % interval</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _number(value: object) -> str:
    if not isinstance(value, float):
        return "unknown"
    return grouped(f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}")


def _ends(low: object, high: object) -> str:
    if low is None or high is None:
        return "unknown"
    return f"{_number(low)} to {_number(high)}"


def _binary(release: Published, positions: list[int]) -> str:
    known = [a for a in positions if release.actions.named[a]]
    chart = share_bars(release, known, "Share of 1") if known else ""
    rest = len(positions) - len(known)
    more = f"<p>Nothing is known about {rest:,} more of them.</p>" if rest else ""
    return (
        f'<section id="binary" class="sheet"><h2>Columns of 0/1</h2>'
        "<p>1 means that the property holds, 0 that it does not.</p>"
        f"{chart}{more}</section>"
    )
