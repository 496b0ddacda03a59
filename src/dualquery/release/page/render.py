"""`report.html`: a release in one self-contained page, made from the public side only."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape
from importlib import resources
from string import Template

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.privacy.rounding import rounded_up
from dualquery.privacy.statement import four_digits
from dualquery.release.page.course import course
from dualquery.release.page.distributions import distributions
from dualquery.release.page.payload import payload, script_json
from dualquery.release.page.words import parameter_table, privacy_section
from dualquery.release.published import Published
from dualquery.version import __version__

MOST_ATTRIBUTES = 60
"""The most attributes that are listed one by one; of a wider table the explorer finds the rest."""

TITLES = {
    "ask": "Ask",
    "privacy": "Privacy",
    "data": "The data",
    "distributions": "Distributions",
    "course": "Course of the game",
    "parameters": "Parameters",
}


def render_page(release: Published) -> str:
    """The page as text. It uses no network, runs only its own scripts, and escapes every name."""
    components = release.components
    sections = {
        "privacy": privacy_section(
            release.privacy,
            sum(len(one.marginals) for one in release.transcript.measurements),
        ),
        "data": _schema_section(release.schema, release.privacy.public_header),
        "distributions": distributions(release, components),
        "course": course(release.transcript),
        "parameters": parameter_table(release.parameters.to_dict()),
    }
    headings = {
        "privacy": "How private it is",
        "data": "What the data is",
        "distributions": "Distributions of the synthetic data",
        "course": "The course of the game",
        "parameters": "Parameters",
    }
    stamp = release.privacy.stamp
    return Template(asset("page.html")).substitute(
        style=asset("page.css"),
        script_hashes=script_hashes("model.js", "explorer.js"),
        model_script=asset("model.js"),
        explorer_script=asset("explorer.js"),
        payload=script_json(payload(release, components)),
        stamp_meta=f'<meta name="dualquery-stamp" content="{escape(stamp)}">' if stamp else "",
        stamp=f'<p class="stamp">{escape(stamp)}</p>' if stamp else "",
        lead=_lead(release),
        figures=_figures(release),
        navigation=_navigation(),
        sections="".join(
            f'<section id="{name}" aria-labelledby="{name}-title">'
            f'<h2 id="{name}-title">{headings[name]}</h2>{content}</section>'
            for name, content in sections.items()
        ),
        footer=f"Written by dualquery {escape(__version__)}. This page is one file and loads "
        "nothing from anywhere.",
    )


def _lead(release: Published) -> str:
    source = {
        "records": "the synthetic records of the game",
        "model": "a model fitted to what the game made public",
    }.get(release.source, escape(release.source))
    return (
        f"Answers to counting queries, and synthetic rows, about a private table of "
        f"{len(release.schema):,} attributes. They come from {source}, not from the table."
    )


def _figures(release: Published) -> str:
    privacy = release.privacy
    delta = "0" if privacy.accountant == "pure" else rounded_up(privacy.delta)
    entries = {
        "privacy cost ε": four_digits(privacy.epsilon),
        "δ": delta,
        "neighbours": str(privacy.neighbours),
        "attributes": f"{len(release.schema):,}",
        "queries": f"{len(release.workload):,}",
        "answers from": release.source,
    }
    if privacy.stamp:
        entries["privacy cost ε"] = "none: seeded"
    return "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in entries.items()
    )


def _navigation() -> str:
    items = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in TITLES.items())
    return f"<ul>{items}</ul>"


def _schema_section(schema: Schema, public_header: tuple[str, ...]) -> str:
    intro = (
        f"<p>{_declared(public_header)} "
        "A range includes its lower end and excludes its upper end, except for the last range, "
        "which includes both.</p>"
    )
    binary = [a for a in schema.attributes if a.is_binary]
    others = [a for a in schema.attributes if not a.is_binary]
    parts = [intro]
    if others:
        parts.append(_attribute_table(others[:MOST_ATTRIBUTES]))
        parts.append(_left_out(len(others)))
    if binary:
        names = ", ".join(f"<code>{escape(a.name)}</code>" for a in binary[:MOST_ATTRIBUTES])
        parts.append(f"<p>{len(binary):,} columns of 0/1: {names}</p>{_left_out(len(binary))}")
    return "".join(parts)


def _declared(public_header: tuple[str, ...]) -> str:
    """Where the columns come from."""
    if not public_header:
        return "What each column can hold was declared before the table was read."
    patterns = ", ".join(f"<code>{escape(pattern)}</code>" for pattern in public_header)
    return (
        f"The names of the 0/1 columns that match {patterns} were read off the table's header, "
        "which its curator declared public: the privacy statement does not cover them. What each "
        "of the other columns can hold was declared before the table was read."
    )


def _left_out(count: int) -> str:
    rest = count - MOST_ATTRIBUTES
    return f'<p class="hint">and {rest:,} more: search for them above</p>' if rest > 0 else ""


def _attribute_table(attributes: list[Attribute]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(a.name)}</th><td>{_kind(a)}</td>'
        f'<td class="number">{a.size}</td><td>{escape(a.describe())}</td></tr>'
        for a in attributes
    )
    return (
        '<div class="scroll" tabindex="0" role="group" aria-label="Table: attributes">'
        '<table class="plain"><thead><tr><th scope="col">attribute</th><th scope="col">kind</th>'
        '<th scope="col" class="number">codes</th><th scope="col">can hold</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _kind(attribute: Attribute) -> str:
    if attribute.is_numeric:
        return "ranges"
    if attribute.values == (0, 1):
        return "0/1"
    return "ordered values" if attribute.ordered else "values"


@cache
def asset(name: str) -> str:
    """The text of a file of the package that goes into the page unchanged."""
    text = (resources.files("dualquery.release.page") / "assets" / name).read_text(encoding="utf-8")
    return text.strip()


def script_hashes(*names: str) -> str:
    """The page's own scripts, as its content security policy names them, so that no other runs."""
    digests = (hashlib.sha256(asset(name).encode()).digest() for name in names)
    return " ".join(f"'sha256-{base64.b64encode(d).decode()}'" for d in digests)
