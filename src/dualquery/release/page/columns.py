"""What each column can hold, as it was declared."""

from __future__ import annotations

from html import escape

from dualquery.domain.attributes import Attribute
from dualquery.release.page.payload import value_words


def declared(public_header: tuple[str, ...]) -> str:
    """Where the columns come from."""
    ranges = (
        "A range includes its lower end and excludes its upper end; the last range includes both."
    )
    if not public_header:
        return f"<p>What each column can hold was declared before the table was read. {ranges}</p>"
    patterns = ", ".join(f"<code>{escape(pattern)}</code>" for pattern in public_header)
    return (
        f"<p>The names of the 0/1 columns that match {patterns} were read off the table's header, "
        "which its curator declared public: the privacy statement does not cover them. What each "
        f"of the other columns can hold was declared before the table was read. {ranges}</p>"
    )


def column_words(attribute: Attribute) -> str:
    """Below the name of a column: its name in files, what it means and what it can hold."""
    parts = []
    if attribute.heading != attribute.name:
        parts.append(f"<code>{escape(attribute.name)}</code>")
    if attribute.meaning.description:
        parts.append(escape(attribute.meaning.description))
    if attribute.is_numeric:
        unit = f", in {attribute.meaning.unit}" if attribute.meaning.unit else ""
        parts.append(escape(f"{attribute.describe()}{unit}"))
    return f'<p class="hint">{" · ".join(parts)}</p>' if parts else ""


def searched(attribute: Attribute) -> str:
    """What a search for a column looks at, in small letters."""
    words = [attribute.heading, attribute.name, attribute.meaning.description]
    if not attribute.is_numeric:
        words += value_words(attribute)[:200]
    return escape(" ".join(words).lower())


def kind_of(attribute: Attribute) -> str:
    """The kind of a column, in a word or two."""
    if attribute.is_numeric:
        return "ranges"
    if attribute.values == (0, 1):
        return "yes or no"
    return "ordered values" if attribute.ordered else "values"
