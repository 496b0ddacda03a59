"""What each column can hold, as it was declared."""

from __future__ import annotations

from html import escape

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema

MOST_ATTRIBUTES = 60
"""The most attributes that are listed one by one; of a wider table the explorer finds the rest."""


def columns_section(schema: Schema, public_header: tuple[str, ...]) -> str:
    """The columns with their kinds and domains."""
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
        f'<tr><th scope="row">{escape(a.name)}</th><td data-head="kind">{kind_of(a)}</td>'
        f'<td class="number" data-head="codes">{a.size:,}</td>'
        f'<td data-head="can hold">{escape(a.describe())}</td></tr>'
        for a in attributes
    )
    return (
        '<table class="plain stacked"><thead><tr><th scope="col">column</th>'
        '<th scope="col">kind</th><th scope="col" class="number">codes</th>'
        f'<th scope="col">can hold</th></tr></thead><tbody>{rows}</tbody></table>'
    )


def kind_of(attribute: Attribute) -> str:
    """The kind of a column, in a word or two."""
    if attribute.is_numeric:
        return "ranges"
    if attribute.values == (0, 1):
        return "0/1"
    return "ordered values" if attribute.ordered else "values"
