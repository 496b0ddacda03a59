"""One card for lawyers and for the people in the table: what is promised, to whom, and what is not.

It has no formula. What stands behind it is under "For specialists".
"""

from __future__ import annotations

import math
from html import escape
from statistics import NormalDist

from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.rounding import decimals_up
from dualquery.privacy.statement import PrivacyStatement
from dualquery.release.page.about import day
from dualquery.release.page.payload import people
from dualquery.release.published import Published

FEW = 8
"""The most rules and known facts that are listed."""


def card(release: Published, digest: str = "") -> str:
    """What a lawyer reads, signs and files.

    Args:
        release: the release.
        digest: of the file with everything that was drawn and measured, if there is one.
    """
    privacy = release.privacy
    entries = {
        "Who is protected": _protected(release),
        "What they are promised": _promised(release),
        "What is public": _public(release),
        "What is not covered": _not_covered(release),
        "Rules and known facts that were used": _used(release),
        "Other releases of the same table": _others(release),
        "Which release this is": _which(release, digest),
    }
    if not privacy.private:
        entries["What they are promised"] = (
            f"<strong>{escape(privacy.stamp)}.</strong> This run used a fixed seed, so that it can "
            "be repeated. Nothing is promised. Do not publish it."
        )
    rows = "".join(f"<div><dt>{name}</dt><dd>{text}</dd></div>" for name, text in entries.items())
    lines = "".join(f"<div>{name}<span></span></div>" for name in ("Name", "Date", "Signature"))
    return (
        f'<div class="card"><dl>{rows}</dl><div class="sign" aria-hidden="true">{lines}</div></div>'
    )


def best_guess(privacy: PrivacyStatement) -> float:
    """How often the best guess between two equally likely tables is right, at most.

    A run that is (ε, δ)-private keeps any test's power within (e^ε − 1 + 2δ)/(e^ε + 1) of guessing,
    and one that is μ-GDP within 2Φ(μ/2) − 1. Both hold, so the smaller one does.
    """
    delta = 0.0 if privacy.accountant == "pure" else privacy.delta
    bounds = []
    if privacy.epsilon < 700.0:
        grown = math.exp(privacy.epsilon)
        bounds.append((grown - 1.0 + 2.0 * delta) / (grown + 1.0))
    if 0.0 < privacy.mu < math.inf:
        bounds.append(2.0 * NormalDist().cdf(privacy.mu / 2.0) - 1.0)
    return min([1.0, *((1.0 + bound) / 2.0 for bound in bounds)])


def _protected(release: Published) -> str:
    privacy, who = release.privacy, escape(people(release))
    kept = (
        "what the table says of them"
        if privacy.neighbours is Neighbours.REPLACE_ONE
        else "whether they are in the table at all"
    )
    if privacy.persons is not None:
        return (
            f"Every person, with {escape(privacy.about_persons)}. Protected is {kept}. The table "
            f"is about {who}."
        )
    named = f" The table is about {who}." if release.about.records else ""
    alone = "content" if privacy.neighbours is Neighbours.REPLACE_ONE else "presence"
    return (
        f"Every record (row of the table), each for itself: its {alone} is protected.{named} If a "
        "person has several records, the promise for all of them together is weaker."
    )


def _promised(release: Published) -> str:
    privacy = release.privacy
    one = "record" if privacy.persons is None else "person"
    guess = decimals_up(100.0 * best_guess(privacy), 1)
    about = (
        f"which of two things the table says of one {one}"
        if privacy.neighbours is Neighbours.REPLACE_ONE
        else f"whether one {one} is in the table"
    )
    return (
        f"Suppose somebody wants to find out {about}, and without this release would guess right "
        f"in 50 of 100 cases. With this release they guess right in <strong>at most {guess} of 100"
        "</strong>. This holds whatever else they know, and however they compute."
    )


def _public(release: Published) -> str:
    privacy = release.privacy
    parts = ["the names of the columns and what each can hold, as they were declared beforehand"]
    if privacy.unit.size_is_public:
        parts.append(
            f"the number of {'persons' if privacy.persons else 'records'}, {privacy.rows:,}"
        )
    if privacy.public_header:
        parts.append("column names that were read off the table's header")
    if privacy.weight is not None:
        parts.append("the largest weight that a record may have")
    parts.append("everything on this page, and every file of the release")
    return f"{_sentence(parts)} None of it adds to the cost."


def _not_covered(release: Published) -> str:
    parts = [
        "What is true of people in general. If smokers fall ill more often, the release says so, "
        "and that may be said of a smoker too, whether they are in the table or not.",
        "What others publish about the same people, and releases of this table that no common "
        "ledger counted.",
        "That a figure is right. Figures are estimates with a margin of error.",
        "How the table itself is kept.",
    ]
    if release.privacy.public_header:
        parts.append(f"{release.privacy.about_header.capitalize()}.")
    warnings = [f"Warning: {line}." for line in release.privacy.warnings]
    return f"<ul>{''.join(f'<li>{escape(part)}</li>' for part in [*parts, *warnings])}</ul>"


def _used(release: Published) -> str:
    constraints, parameters = release.schema.constraints, release.parameters
    parts = []
    if constraints is not None:
        rules = [constraints.describe(number) for number in range(len(constraints.entries))]
        more = f" and {len(rules) - FEW:,} more" if len(rules) > FEW else ""
        parts.append(f"rules of what cannot be: {'; '.join(rules[:FEW])}{more}")
    if parameters.known:
        parts.append(f"{len(parameters.known):,} publicly known shares")
    if parameters.start is not None:
        parts.append(f"a public source to begin with ({parameters.start})")
    if not parts:
        return "None."
    return escape(f"{_sentence(parts)} They come from public knowledge, not from the table.")


def _others(release: Published) -> str:
    mark = release.ledger
    if mark is None:
        return (
            "This release was not charged to a ledger. If the table was released before, or will "
            "be, the promises add up, and nobody counted them here."
        )
    if mark.position <= 1:
        before = "It was the first charge."
    else:
        before = f"{mark.position:,} entries came before it."
    return (
        f"This release was charged to a ledger, which adds up the cost of all releases and refuses "
        f"those beyond its limit. {before} The publisher can show the account: ledger "
        f"<code>{escape(mark.fingerprint)}</code>, entry {mark.position:,}."
    )


def _which(release: Published, digest: str) -> str:
    about = release.about
    parts = [escape(about.heading)]
    if about.publisher:
        parts.append(escape(about.publisher))
    if about.date:
        parts.append(day(about.date))
    told = ", ".join(parts) + "."
    if digest:
        told += (
            " SHA-256 of <code>transcript.npz</code>, which holds everything that was drawn and "
            f"measured: <code>{digest}</code>"
        )
    return told


def _sentence(parts: list[str]) -> str:
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."
