"""`report.html`: a release in one self-contained page, made from the public side only."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from string import Template

import numpy as np

from dualquery.privacy.rounding import decimals_up
from dualquery.release.asking.figure import WITHIN
from dualquery.release.certificate import describe_certificate
from dualquery.release.knowledge import FitDistance, KnownPairs
from dualquery.release.page.about import byline, citing, linked
from dualquery.release.page.card import best_guess, card
from dualquery.release.page.course import course
from dualquery.release.page.distributions import columns
from dualquery.release.page.download import Beside, download
from dualquery.release.page.files import (
    STYLES,
    asset,
    joined,
    script_elements,
    script_hashes,
)
from dualquery.release.page.numbers import half_interval
from dualquery.release.page.payload import payload, people, script_json
from dualquery.release.page.words import accountants_section, parameter_table, privacy_section
from dualquery.release.published import Published
from dualquery.release.resolution import fine_columns
from dualquery.version import __version__

TITLES = {
    "ask": "Ask",
    "columns": "Columns",
    "download": "Download",
    "privacy": "Privacy",
    "cite": "Cite",
    "specialists": "For specialists",
}

HEADINGS = {
    "columns": "Columns",
    "download": "Download",
    "privacy": "How private is this",
    "cite": "How to cite it",
    "specialists": "For specialists",
}

TYPICAL = 0.1
"""The share whose interval is shown at the top."""


def render_page(release: Published, files: Sequence[Beside] = ()) -> str:
    """The page as text. It uses no network, runs only its own scripts, and escapes every name.

    Args:
        release: what the page is about.
        files: those that lie beside it.
    """
    components = release.components
    digest = next((one.digest for one in files if one.name == "transcript.npz"), "")
    sections = {
        "columns": columns(release, components),
        "download": download(files),
        "privacy": card(release, digest),
        "cite": citing(release),
        "specialists": _specialists(release),
    }
    stamp = release.privacy.stamp
    return Template(asset("page.html")).substitute(
        title=escape(release.about.heading),
        summary=escape(f"{release.about.heading}: {_what(release)}"),
        style=joined(*STYLES),
        script_hashes=script_hashes(),
        scripts=script_elements(),
        payload=script_json(payload(release, components, digest)),
        stamp_meta=f'<meta name="dualquery-stamp" content="{escape(stamp)}">' if stamp else "",
        stamp=f'<p class="stamp">{escape(stamp)}</p>' if stamp else "",
        about=byline(release.about),
        glance=_glance(release),
        navigation=_navigation(),
        sections="".join(
            f'<section id="{name}" aria-labelledby="{name}-title">'
            f'<h2 id="{name}-title">{HEADINGS[name]}</h2>{content}</section>'
            for name, content in sections.items()
        ),
        footer=f"Written by dualquery {escape(__version__)}. This page is one file and loads "
        "nothing from anywhere.",
    )


def _what(release: Published) -> str:
    privacy = release.privacy
    size = f"{privacy.rows:,} " if privacy.unit.size_is_public else ""
    return (
        f"figures about a private table of {size}{people(release)} and {len(release.schema):,} "
        "columns, protected by differential privacy."
    )


def _glance(release: Published) -> str:
    """What a reader wants to know before anything else, each in a sentence or two."""
    privacy, about = release.privacy, release.about
    guess = decimals_up(100.0 * best_guess(privacy), 1)
    typical, what = _typical(release), _what(release)
    by = f" Published by {escape(about.publisher)}." if about.publisher else ""
    terms = f", under {linked(about.licence)}" if about.licence else ""
    unsaid = "" if about.licence else " Its publisher named no licence: ask before you reuse it."
    entries = {
        "What is this?": f"{what[0].upper()}{what[1:]}{by} It shows no person's record.",
        "How sure is a number?": (
            "Every number has a range that holds the true one in about 95 of 100 cases. A share "
            f"of 10 % is known to {typical}."
            if typical
            else release.parameters.accuracy
            or "This release does not say how far its numbers may be off."
        ),
        "May I publish it?": f"Yes{terms}: numbers, charts, rows.{unsaid} Say where it is from.",
        "How private is it?": (
            "A guess about one record that is right in 50 of 100 cases without this release is "
            f'right in at most {guess} of 100 with it. <a href="#privacy">The whole promise</a>'
        ),
        "How do I cite it?": (
            'Each answer can be copied as a sentence with its source. <a href="#cite">The whole '
            "release</a>"
        ),
    }
    if privacy.stamp:
        entries["May I publish it?"] = f"No. {escape(privacy.stamp)}: it was made for a test."
        entries["How private is it?"] = "Not at all: it was made with a fixed seed."
    return "".join(f"<div><dt>{name}</dt><dd>{text}</dd></div>" for name, text in entries.items())


def _typical(release: Published) -> str:
    """How far the share of a typical two-way cell may be off; empty if that is unknown."""
    if release.errors is None:
        return ""
    error = float(release.errors.at(np.array([2]), np.array([TYPICAL]))[0])
    if not np.isfinite(error):
        return ""
    reach = WITHIN * error
    return f"{half_interval(TYPICAL, TYPICAL - reach, TYPICAL + reach)} points"


def _navigation() -> str:
    items = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in TITLES.items())
    return f"<ul>{items}</ul>"


def _accuracy(release: Published) -> dict[str, str]:
    """What the paper's accuracy theorem says about the release, if it was asked."""
    if release.certificate is None:
        return {}
    told = describe_certificate(release.certificate, release.source)
    return {"Accuracy": f"<p>{escape(told[0].upper() + told[1:])}.</p>"}


def _relations(release: Published) -> dict[str, str]:
    """Which pairs were not measured, and how far the model is from what was."""
    pairs, fit = KnownPairs.of(release), FitDistance.of(release)
    told = [one.told for one in (pairs, fit) if one is not None]
    if not told:
        return {}
    content = "".join(f"<p>{escape(one[0].upper() + one[1:])}.</p>" for one in told)
    if pairs is not None and pairs.left_out:
        lines = "".join(
            f"<li>{escape(name)}: {escape(', '.join(others))}</li>"
            for name, others in pairs.left_out.items()
        )
        content += (
            "<details><summary>Columns that were not measured together</summary>"
            f"<ul>{lines}</ul></details>"
        )
    return {"Relations": content}


def _specialists(release: Published) -> str:
    """What few readers need, folded away and not printed."""
    privacy = release.privacy
    promise = privacy_section(
        privacy,
        sum(len(one.marginals) for one in release.transcript.measurements),
        fine_columns(release.schema, release.transcript),
        sum(len(one.cells) for one in release.transcript.rare),
        drawn=any(len(one.draws) for one in release.transcript),
    )
    parts = {
        "The promise in figures": promise,
        "Accountants": accountants_section(privacy),
        "The course of the game": course(release.transcript),
        **_relations(release),
        **_accuracy(release),
        "Parameters": parameter_table(release.parameters.to_dict()),
    }
    return (
        "<details><summary>The promise in figures, every accountant's view, the course of the "
        "game, and all parameters</summary>"
        + "".join(f"<h3>{title}</h3>{content}" for title, content in parts.items())
        + "</details>"
    )
