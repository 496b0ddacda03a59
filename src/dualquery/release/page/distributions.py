"""The columns of a release: distributions of one and of two, as charts with intervals."""

from __future__ import annotations

from html import escape
from itertools import groupby

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import QueryError
from dualquery.domain.query import Literal, Query
from dualquery.release.asking.questions import CrossTable
from dualquery.release.components import Components, shares
from dualquery.release.page.charts import Axes, Bar, Line, bars, heat, histogram
from dualquery.release.page.columns import column_words, declared, searched
from dualquery.release.page.first import strongest
from dualquery.release.page.numbers import percent
from dualquery.release.page.payload import value_words
from dualquery.release.published import Published
from dualquery.release.unknown import MOST_NAMES

MOST_ATTRIBUTES = 30
"""Attributes with a chart of their own. In a wider table they are those that draws named most."""

MOST_BARS = 14
"""The most bars of a column without an order; the rest of its values is one bar."""

MOST_IN_ORDER = 24
"""Up to so many values, a column with an order has a bar with a label for each."""

MOST_LISTED = 400
"""Up to so many values, a drawing is also there as a list."""

TOP = 20
"""Items of a wide table that are listed: the most frequent ones."""

MOST_PAIRS = 4
"""Pairs of columns that are shown as tables."""

Floats = npt.NDArray[np.float64]


def columns(release: Published, components: Components) -> str:
    """A search, a card per column in the order of the schema, and the strongest pairs."""
    schema = release.schema
    wide = len(schema) > MOST_ATTRIBUTES
    chosen = sorted(map(int, release.most_drawn[:MOST_ATTRIBUTES])) if wide else range(len(schema))
    shown = [a for a in chosen if release.actions.named[a]]
    binary = [a for a in range(len(schema)) if _is_binary(release, a) and release.actions.named[a]]
    parts = [
        '<div class="field find"><label for="find-column">Find a column</label>'
        '<input type="search" id="find-column" autocomplete="off"></div>',
        declared(release.privacy.public_header),
    ]
    if wide:
        parts.append(
            f"<p>Shown are the {len(shown):,} columns that the draws named most, of "
            f"{len(schema):,}; ask for any other one above.</p>"
        )
    if release.errors is not None:
        parts.append(
            "<p>The thin line across the end of a bar is the 95 % interval: about 95 of 100 such "
            "intervals hold the share in the private table. ± is half of it, in percentage "
            "points.</p>"
        )
    cards, several = [], len(binary) > TOP
    for is_binary, group in groupby(shown, key=lambda a: _is_binary(release, a)):
        members = list(group)
        if not is_binary:
            cards += [_card(release, a) for a in members]
        elif not several:  # yes/no columns that follow one another share a chart
            cards.append(_yes_no(release, members))
    if several:
        cards.append(_items(release, components, binary))
    parts.append(f'<div class="columns">{"".join(cards)}</div>')
    if wide:
        parts.append(_overview(components, binary))
    parts.append(_unknown(release))
    pairs = strongest(release, components, list(shown), MOST_PAIRS)
    if pairs:
        tables = [_two_way(release, a, b) for a, b in pairs]
        parts.append(
            '<h3 id="pairs">Pairs that tell most about each other</h3><p>Each line is a '
            "distribution of its own: its cells add up to 100 %.</p>"
            f'<div class="pairs">{"".join(tables)}</div>'
        )
    return "".join(parts)


def _card(release: Published, position: int) -> str:
    """A column: what it is called, what it can hold, and its distribution."""
    attribute = release.schema.attributes[position]
    return (
        f'<div class="column" data-words="{searched(attribute)}">{one_way(release, position)}'
        f"{column_words(attribute)}</div>"
    )


def _yes_no(release: Published, positions: list[int]) -> str:
    """Columns of yes and no that follow one another, as one chart."""
    attributes = [release.schema.attributes[a] for a in positions]
    words = " ".join(searched(attribute) for attribute in attributes)
    title = attributes[0].heading if len(positions) == 1 else "Yes or no: share of yes"
    return f'<div class="column" data-words="{words}">{share_bars(release, positions, title)}</div>'


def _is_binary(release: Published, position: int) -> bool:
    return release.schema.attributes[position].is_binary


def _unknown(release: Published) -> str:
    if not release.unknown:
        return ""
    few = ", ".join(f"<code>{escape(name)}</code>" for name in release.unknown[:MOST_NAMES])
    rest = len(release.unknown) - MOST_NAMES
    more = f" and {rest:,} more" if rest > 0 else ""
    return (
        f"<p>Unknown: {few}{more}. No query of this release names them, so it knows nothing "
        "about them. There is no chart of them; in synthetic rows they hold what was declared "
        "as their default.</p>"
    )


def table_bars(table: CrossTable, labels: list[str]) -> list[Bar]:
    """The cells of a table of one column."""
    ends = zip(table.low.tolist(), table.high.tolist(), strict=True)
    return [
        Bar(label, float(share), *((None, None) if np.isnan(low) else (low, high)))
        for label, share, (low, high) in zip(labels, table.share, ends, strict=True)
    ]


def one_way(release: Published, position: int) -> str:
    """The distribution of a column.

    A column with an order is shown whole and in order, another one by its largest values.
    """
    attribute = release.schema.attributes[position]
    entries = table_bars(release.questions.table([position], None), value_words(attribute))
    if attribute.is_numeric or attribute.ordered:
        if len(entries) <= MOST_IN_ORDER:
            return bars(attribute.heading, entries)
        listed = ""
        if len(entries) <= MOST_LISTED:
            listed = (
                '<details class="small"><summary>All values</summary>'
                f"{bars(attribute.heading, entries)}</details>"
            )
        return f"<div>{histogram(attribute.heading, entries)}{listed}</div>"
    if len(entries) > MOST_BARS:
        size = [-one.share for one in entries]
        largest = sorted(np.argsort(size, kind="stable")[: MOST_BARS - 1].tolist())
        rest = max(1.0 - sum(entries[code].share for code in largest), 0.0)
        others = Bar(f"{len(entries) - len(largest):,} others", rest)
        entries = [*(entries[code] for code in largest), others]
    return bars(attribute.heading, entries)


def _items(release: Published, components: Components, binary: list[int]) -> str:
    """Of many yes/no columns the most frequent, the largest first."""
    ones = np.array([shares(components, a)[1] for a in binary])
    chosen = [binary[i] for i in np.argsort(-ones, kind="stable")[:TOP]]
    title = f"The {TOP} most frequent of {len(binary):,} columns of yes or no: share of yes"
    return share_bars(release, chosen, title)


def share_bars(release: Published, positions: list[int], title: str) -> str:
    """The share of yes in yes/no columns, in the given order."""
    entries = []
    for attribute in positions:
        found = table_bars(release.questions.table([attribute], None), ["no", "yes"])[1]
        name = release.schema.attributes[attribute].heading
        entries.append(Bar(name, found.share, found.low, found.high))
    return bars(title, entries)


def _overview(components: Components, binary: list[int]) -> str:
    """For a wide table, how many yes/no columns have which share of yes."""
    if len(binary) <= TOP:  # each of them has a bar of its own
        return ""
    ones = np.array([shares(components, a)[1] for a in binary])
    counts, edges = np.histogram(ones, bins=20, range=(0.0, 1.0))
    axes = Axes((0.0, 1.0), (0.0, float(counts.max())), counts=True)
    for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True):
        axes.box(float(low) + 0.002, float(high) - 0.002, 0.0, float(count), "area")
    label = "How many yes/no columns have which share of yes"
    return (
        f"<figure><h3>All {len(binary):,} columns of yes or no</h3>"
        f"{axes.svg(label, 'share of yes', 'columns')}</figure>"
    )


def _two_way(release: Published, first: int, second: int) -> str:
    """The distribution of one column within each value of the other."""
    attributes = release.schema.attributes
    if attributes[first].size < attributes[second].size:
        first, second = second, first  # the longer side goes down the page
    down, across = attributes[first], attributes[second]
    rows = table_bars(release.questions.table([first], None), value_words(down))
    lines = []
    for code, row in enumerate(rows):
        where = Query("conjunction", (Literal(first, (code,)),))
        try:
            cells = table_bars(release.questions.table([second], where), value_words(across))
        except QueryError:  # no synthetic record has this value
            continue
        lines.append(Line(row.label, percent(row.share, row.low, row.high), cells))
    return heat(down.heading, across.heading, value_words(across), lines)
