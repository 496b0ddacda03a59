"""Who publishes the release, and how to cite it."""

from __future__ import annotations

from datetime import date
from html import escape

from dualquery.domain.about import About, link
from dualquery.release.published import Published


def byline(about: About) -> str:
    """Below the title: the description, publisher, date, licence and contact; or nothing."""
    entries = {
        "Published by": escape(about.publisher),
        "Date": day(about.date),
        "Licence": linked(about.licence),
        "Contact": linked(about.contact),
    }
    listed = "".join(
        f"<div><dt>{name}</dt><dd>{text}</dd></div>" for name, text in entries.items() if text
    )
    told = f"<p>{escape(about.description)}</p>" if about.description else ""
    return (f'<dl class="byline">{listed}</dl>' if listed else "") + told


def citing(release: Published) -> str:
    """How to cite the release, under which terms, and whom to ask."""
    about = release.about
    body = [f'<p class="cite">{escape(release.citation)}</p>']
    if about.licence:
        body.append(f"<p>Licence: {linked(about.licence)}.</p>")
    if about.contact:
        body.append(f"<p>Questions: {linked(about.contact)}.</p>")
    if about.url:
        body.append(f"<p>Published at {linked(about.url)}.</p>")
    if not about.to_dict():
        body.append(
            "<p>Its publisher gave no title, no licence and no contact. They are said with "
            "<code>--title</code>, <code>--publisher</code>, <code>--licence</code> and "
            "<code>--contact</code>, or as <code>[about]</code> in the schema file.</p>"
        )
    return "".join(body)


def linked(text: str) -> str:
    """Words as they are; an address of mail or web as a link."""
    address = link(text)
    if address is None:
        return escape(text)
    return f'<a href="{escape(address)}" rel="noreferrer">{escape(text)}</a>'


def day(text: str) -> str:
    """A day for people; the machine's spelling stays in the attribute."""
    if not text:
        return ""
    day = date.fromisoformat(text)
    return f'<time datetime="{day.isoformat()}">{day.day} {day:%B %Y}</time>'
