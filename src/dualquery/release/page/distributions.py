"""One-way and two-way distributions of the synthetic data, as charts with intervals."""

from __future__ import annotations

from html import escape

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import QueryError
from dualquery.domain.query import Literal, Query
from dualquery.release.asking.questions import CrossTable
from dualquery.release.components import Components, shares
from dualquery.release.page.charts import Axes, Bar, Line, bars, heat, histogram
from dualquery.release.page.first import strongest
from dualquery.release.page.numbers import percent
from dualquery.release.page.payload import code_labels
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

PAIRS = 4

Floats = npt.NDArray[np.float64]


def distributions(release: Published, components: Components) -> str:
    """One-way charts, an overview if the table is wide, and the strongest pairs."""
    schema = release.schema
    wide = len(schema) > MOST_ATTRIBUTES
    ordered = release.most_drawn[:MOST_ATTRIBUTES] if wide else range(len(schema))
    shown = [int(a) for a in ordered if release.actions.named[a]]
    charts = [
        one_way(release, attribute) for attribute in shown if not _is_binary(release, attribute)
    ]
    binary = [a for a in range(len(schema)) if _is_binary(release, a) and release.actions.named[a]]
    if binary:
        charts.append(_items(release, components, binary))
    parts = [_unknown(release)]
    if wide:
        parts.append(
            f"<p>The {len(shown):,} attributes that the draws named most often, of "
            f"{len(schema):,}; ask for any other one above.</p>"
            if len(charts) > 1
            else ""
        )
    if release.errors is not None:
        parts.append(
            "<p>The thin line across the end of a bar is the 95 % interval: about 95 of 100 such "
            "intervals hold the share in the private table. ± is half of it, in percentage "
            "points.</p>"
        )
    parts.append(f'<div class="columns">{"".join(charts)}</div>')
    if wide:
        parts.append(_overview(components, binary))
    pairs = strongest(release, components, list(shown), PAIRS)
    if pairs:
        tables = [_two_way(release, a, b) for a, b in pairs]
        parts.append(
            "<h3>Pairs that tell most about each other</h3><p>Chosen among the attributes above "
            "by the mutual information of the synthetic data. Each line is a distribution of its "
            "own: its cells add up to 100 %.</p>"
            f'<div class="pairs">{"".join(tables)}</div>'
        )
    return "".join(parts)


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
    entries = table_bars(release.questions.table([position], None), code_labels(attribute))
    if attribute.is_numeric or attribute.ordered:
        if len(entries) <= MOST_IN_ORDER:
            return bars(attribute.name, entries)
        listed = ""
        if len(entries) <= MOST_LISTED:
            listed = (
                '<details class="small"><summary>All values</summary>'
                f"{bars(attribute.name, entries)}</details>"
            )
        return f"<div>{histogram(attribute.name, entries)}{listed}</div>"
    if len(entries) > MOST_BARS:
        size = [-one.share for one in entries]
        largest = sorted(np.argsort(size, kind="stable")[: MOST_BARS - 1].tolist())
        rest = max(1.0 - sum(entries[code].share for code in largest), 0.0)
        others = Bar(f"{len(entries) - len(largest):,} others", rest)
        entries = [*(entries[code] for code in largest), others]
    return bars(attribute.name, entries)


def _items(release: Published, components: Components, binary: list[int]) -> str:
    """The shares of ones; of many columns the most frequent, the largest first."""
    title = "0/1 columns: share of 1"
    chosen = binary
    if len(binary) > TOP:
        ones = np.array([shares(components, a)[1] for a in binary])
        chosen = [binary[i] for i in np.argsort(-ones, kind="stable")[:TOP]]
        title = f"The {TOP} most frequent of {len(binary):,} columns of 0/1: share of 1"
    return share_bars(release, chosen, title)


def share_bars(release: Published, positions: list[int], title: str) -> str:
    """The share of ones in 0/1 columns, in the given order."""
    entries = []
    for attribute in positions:
        found = table_bars(release.questions.table([attribute], None), ["0", "1"])[1]
        name = release.schema.attributes[attribute].name
        entries.append(Bar(name, found.share, found.low, found.high))
    return bars(title, entries)


def _overview(components: Components, binary: list[int]) -> str:
    """For a wide table, how many 0/1 columns have which share of ones."""
    if len(binary) <= TOP:  # each of them has a bar of its own
        return ""
    ones = np.array([shares(components, a)[1] for a in binary])
    counts, edges = np.histogram(ones, bins=20, range=(0.0, 1.0))
    axes = Axes((0.0, 1.0), (0.0, float(counts.max())), counts=True)
    for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True):
        axes.box(float(low) + 0.002, float(high) - 0.002, 0.0, float(count), "area")
    label = "How many 0/1 columns have which share of ones"
    return (
        f"<figure><h3>All {len(binary):,} 0/1 columns</h3>"
        f"{axes.svg(label, 'share of 1', 'columns')}</figure>"
    )


def _two_way(release: Published, first: int, second: int) -> str:
    """The distribution of one column within each value of the other."""
    attributes = release.schema.attributes
    if attributes[first].size < attributes[second].size:
        first, second = second, first  # the longer side goes down the page
    down, across = attributes[first], attributes[second]
    rows = table_bars(release.questions.table([first], None), code_labels(down))
    lines = []
    for code, row in enumerate(rows):
        where = Query("conjunction", (Literal(first, (code,)),))
        try:
            cells = table_bars(release.questions.table([second], where), code_labels(across))
        except QueryError:  # no synthetic record has this value
            continue
        lines.append(Line(row.label, percent(row.share, row.low, row.high), cells))
    return heat(down.name, across.name, code_labels(across), lines)
