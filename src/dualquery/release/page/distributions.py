"""One-way and two-way distributions of the synthetic data, as charts."""

from __future__ import annotations

from html import escape
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dualquery.release.components import Components, joint, shares
from dualquery.release.page.charts import Axes, bars, heat
from dualquery.release.page.payload import code_labels
from dualquery.release.published import Published
from dualquery.release.unknown import MOST_NAMES

MOST_ATTRIBUTES = 30
"""Attributes with a chart of their own. In a wider table they are those that draws named most."""

MOST_BARS = 14
MOST_CELLS = 12
"""The most codes along one side of a two-way table."""

PAIRS = 4

Floats = npt.NDArray[np.float64]


def distributions(release: Published, components: Components) -> str:
    """One-way charts, an overview if the table is wide, and the strongest pairs."""
    schema = release.schema
    wide = len(schema) > MOST_ATTRIBUTES
    ordered = release.most_drawn[:MOST_ATTRIBUTES] if wide else range(len(schema))
    shown = [int(a) for a in ordered if release.actions.named[a]]
    many = [a for a in shown if not schema.attributes[a].is_binary]
    binary = [a for a in shown if schema.attributes[a].is_binary]
    charts = [_one_way(release, components, attribute) for attribute in many]
    if binary:
        ones = [float(shares(components, a)[1]) for a in binary]
        names = [schema.attributes[a].name for a in binary]
        title = "0/1 columns: share of 1"
        charts.append(bars(title, names, ones))
    parts = []
    if release.unknown:
        few = ", ".join(f"<code>{escape(name)}</code>" for name in release.unknown[:MOST_NAMES])
        rest = len(release.unknown) - MOST_NAMES
        more = f" and {rest:,} more" if rest > 0 else ""
        parts.append(
            f"<p>Unknown: {few}{more}. No query of this release names them, so it knows nothing "
            "about them. There is no chart of them; in synthetic rows they hold what was declared "
            "as their default.</p>"
        )
    if wide:
        parts.append(
            f"<p>The {len(shown)} attributes that the draws named most often, of "
            f"{len(schema):,}; ask for any other one above.</p>"
        )
    parts.append(f'<div class="columns">{"".join(charts)}</div>')
    if wide:
        parts.append(_overview(release, components))
    pairs = _strongest(release, components, list(shown))
    if pairs:
        tables = [_two_way(release, components, a, b) for a, b in pairs]
        parts.append(
            "<h3>Pairs that tell most about each other</h3><p>Chosen among the attributes above "
            "by the mutual information of the synthetic data. Cells are shares of all records.</p>"
            f'<div class="pairs">{"".join(tables)}</div>'
        )
    return "".join(parts)


def _one_way(release: Published, components: Components, position: int) -> str:
    attribute = release.schema.attributes[position]
    labels, values = code_labels(attribute), shares(components, position)
    if len(labels) > MOST_BARS:
        largest = np.sort(np.argsort(-values, kind="stable")[: MOST_BARS - 1])
        rest = float(1.0 - values[largest].sum())
        others = len(labels) - len(largest)
        labels = [*(labels[code] for code in largest), f"{others} others"]
        values = np.append(values[largest], max(rest, 0.0))
    return bars(attribute.name, labels, [float(v) for v in values])


def _overview(release: Published, components: Components) -> str:
    """For a wide table, how many 0/1 columns have which share of ones."""
    schema = release.schema
    binary = [
        a
        for a, attribute in enumerate(schema.attributes)
        if attribute.is_binary and release.actions.named[a]
    ]
    if len(binary) < 2:
        return ""
    ones = np.array([shares(components, a)[1] for a in binary])
    counts, edges = np.histogram(ones, bins=20, range=(0.0, 1.0))
    axes = Axes((0.0, 1.0), (0.0, float(counts.max())))
    for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True):
        axes.box(float(low) + 0.002, float(high) - 0.002, 0.0, float(count), "area")
    label = "How many 0/1 columns have which share of ones"
    return (
        f"<figure><h3>All {len(binary):,} 0/1 columns</h3>"
        f"{axes.svg(label, 'share of 1', 'columns')}</figure>"
    )


def _strongest(
    release: Published, components: Components, among: list[int]
) -> list[tuple[int, int]]:
    sizes = release.schema.sizes
    few = [a for a in among if 2 <= sizes[a] <= MOST_CELLS]
    # Attributes of few records look dependent by chance, the more so the larger their table. This
    # is the expected information per degree of freedom if they are independent.
    chance = 1.0 / (2.0 * len(components.weights)) if components.kind == "records" else 0.0
    scored = [
        (
            _information(joint(components, a, b)) - chance * float((sizes[a] - 1) * (sizes[b] - 1)),
            a,
            b,
        )
        for a, b in combinations(few, 2)
    ]
    scored.sort(key=lambda entry: (-round(entry[0], 9), entry[1], entry[2]))
    return [(a, b) for information, a, b in scored[:PAIRS] if information > 1e-6]


def _information(table: Floats) -> float:
    """The mutual information of a two-way table, in nats."""
    independent = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True)
    held = table > 1e-15
    return float(np.sum(table[held] * np.log(table[held] / independent[held])))


def _two_way(release: Published, components: Components, first: int, second: int) -> str:
    attributes = release.schema.attributes
    if attributes[first].size < attributes[second].size:
        first, second = second, first  # the longer side goes down the page
    one, other = attributes[first], attributes[second]
    return heat(
        one.name, other.name, code_labels(one), code_labels(other), joint(components, first, second)
    )
