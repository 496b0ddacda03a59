"""`report.html`: a release in one self-contained page, made from the public side only."""

from __future__ import annotations

from html import escape
from string import Template

import numpy as np

from dualquery.privacy.rounding import rounded_up
from dualquery.privacy.statement import four_digits
from dualquery.release.certificate import describe_certificate
from dualquery.release.page.about import byline, citing
from dualquery.release.page.columns import columns_section
from dualquery.release.page.course import course
from dualquery.release.page.distributions import distributions
from dualquery.release.page.files import (
    STYLES,
    asset,
    joined,
    script_elements,
    script_hashes,
)
from dualquery.release.page.numbers import half_interval
from dualquery.release.page.payload import payload, script_json
from dualquery.release.page.words import accountants_section, parameter_table, privacy_section
from dualquery.release.published import Published
from dualquery.release.resolution import fine_columns
from dualquery.version import __version__

TITLES = {
    "ask": "Ask",
    "distributions": "Distributions",
    "columns": "Columns",
    "privacy": "Privacy",
    "cite": "Cite",
    "specialists": "For specialists",
}

HEADINGS = {
    "distributions": "Distributions of the synthetic data",
    "columns": "What each column can hold",
    "privacy": "How private it is",
    "cite": "How to cite it",
    "specialists": "For specialists",
}

TYPICAL = 0.1
"""The share whose interval is shown at the top."""


def render_page(release: Published) -> str:
    """The page as text. It uses no network, runs only its own scripts, and escapes every name."""
    components = release.components
    sections = {
        "distributions": distributions(release, components),
        "columns": columns_section(release.schema, release.privacy.public_header),
        "privacy": privacy_section(
            release.privacy,
            sum(len(one.marginals) for one in release.transcript.measurements),
            fine_columns(release.schema, release.transcript),
            sum(len(one.cells) for one in release.transcript.rare),
        ),
        "cite": citing(release),
        "specialists": _specialists(release),
    }
    stamp = release.privacy.stamp
    return Template(asset("page.html")).substitute(
        title=escape(release.about.heading),
        style=joined(*STYLES),
        script_hashes=script_hashes(),
        scripts=script_elements(),
        payload=script_json(payload(release, components)),
        stamp_meta=f'<meta name="dualquery-stamp" content="{escape(stamp)}">' if stamp else "",
        stamp=f'<p class="stamp">{escape(stamp)}</p>' if stamp else "",
        about=byline(release.about),
        lead=_lead(release),
        figures=_figures(release),
        navigation=_navigation(),
        sections="".join(
            f'<section id="{name}" aria-labelledby="{name}-title">'
            f'<h2 id="{name}-title">{HEADINGS[name]}</h2>{content}</section>'
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
    entries = {"privacy cost ε": four_digits(privacy.epsilon), "δ": delta}
    if privacy.unit.size_is_public:
        entries["persons" if privacy.persons else "records"] = f"{privacy.rows:,}"
    entries["attributes"] = f"{len(release.schema):,}"
    typical = _typical(release)
    if typical:
        entries["a share of 10 % is known to"] = typical
    else:
        entries["queries"] = f"{len(release.workload):,}"
    if release.parameters.alpha is not None:
        entries["every answer is within α"] = f"{release.parameters.alpha:g}"
    if privacy.stamp:
        entries["privacy cost ε"] = "none: seeded"
    return "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in entries.items()
    )


def _typical(release: Published) -> str:
    """How far the share of a typical two-way cell may be off; empty if that is unknown."""
    if release.errors is None:
        return ""
    error = float(release.errors.at(np.array([2]), np.array([TYPICAL]))[0])
    if not np.isfinite(error):
        return ""
    reach = 1.96 * error
    return f"{half_interval(TYPICAL, TYPICAL - reach, TYPICAL + reach)} points"


def _navigation() -> str:
    items = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in TITLES.items())
    return f"<ul>{items}</ul>"


def _accuracy(release: Published) -> str:
    """What the paper's accuracy theorem says about the release, if it was asked."""
    if release.certificate is None:
        return ""
    told = describe_certificate(release.certificate, release.source)
    promised = f"{release.parameters.accuracy}; " if release.parameters.accuracy else ""
    return f"<h3>Accuracy</h3><p>{escape(promised + told)}.</p>"


def _specialists(release: Published) -> str:
    """What few readers need, folded away."""
    return (
        "<details><summary>Every accountant's view, the course of the game, and all parameters"
        f"</summary><h3>Accountants</h3>{accountants_section(release.privacy)}{_accuracy(release)}"
        f"<h3>The course of the game</h3>{course(release.transcript)}"
        f"<h3>Parameters</h3>{parameter_table(release.parameters.to_dict())}</details>"
    )
