"""Small tables for notebooks; every text in them is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a title, as notebooks show it."""
    head = "".join(f'<th style="text-align:left">{escape(name)}</th>' for name in heads)
    body = "".join(
        "<tr>"
        + "".join(f'<td style="text-align:left">{escape(str(cell))}</td>' for cell in row)
        + "</tr>"
        for row in rows
    )
    return (
        f'<div><p>{escape(title)}</p><table class="dataframe"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
