"""The curator's page about one evaluation. NOT PRIVATE: all of it is computed from private rows."""

from __future__ import annotations

from html import escape
from itertools import pairwise
from string import Template

import numpy as np
import numpy.typing as npt

from dualquery.domain.attributes import Attribute
from dualquery.domain.printing import format_query
from dualquery.evaluation.coverage import EMPTY
from dualquery.evaluation.fidelity import Fidelity, K
from dualquery.evaluation.figures import BASELINES, Evaluation
from dualquery.evaluation.wording import (
    CLOSENESS_HEADS,
    COVERAGE_NOTE,
    NOTE,
    closeness_rows,
    coverage_heads,
    coverage_rows,
)
from dualquery.privacy.rounding import rounded_up
from dualquery.privacy.statement import PrivacyStatement, four_digits
from dualquery.release.page.charts import Axes, Bar, bars, legend
from dualquery.release.page.files import joined
from dualquery.release.page.payload import value_words

NOT_FOR_PUBLICATION = "NOT FOR PUBLICATION"
PROMISED = 0.95
"""The share of true figures that an interval is made to hold."""

WORST = 25
"""Queries in the table of the worst."""

CELLS = 96
"""Squares along one side of the scatter plot, which shows half a million queries as a density."""

Floats = npt.NDArray[np.float64]

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>$warning: evaluation of a release</title>
<style>$style</style>
</head>
<body>
<header>
<p class="stamp">$warning. This page was computed from the private table. No guarantee covers it:
do not publish it, and delete it when you are done.</p>
<h1>Evaluation of a release</h1>
<p class="lead">$lead</p>
</header>
<main>$sections</main>
<footer><p class="stamp">$warning</p></footer>
</body>
</html>
""")


def render_evaluation(result: Evaluation, privacy: PrivacyStatement) -> str:
    """The page as text; every query is escaped."""
    sections = {
        "Errors beside the baselines": _baselines(result),
        "What the intervals hold": _coverage(result),
        "Relations": _relations(result),
        "The strongest pairs, drawn": _pictures(result),
        "Pairs of columns": _pairs(result),
        "Intervals, by strength and by size": _classes(result),
        "Single columns": _columns(result),
        "Guessing a column": _guesses(result),
        "True against released answers": _scatter(result),
        "How large the errors are": _histogram(result),
        "Errors by the size of the answer": _by_size(result),
        "The worst queries": _worst(result),
    }
    return _PAGE.substitute(
        warning=NOT_FOR_PUBLICATION,
        style=joined("page.css", "media.css"),
        lead=f"{len(result.workload):,} queries, answers from the {escape(result.source)}, "
        f"ε = {four_digits(privacy.epsilon)} at δ = {rounded_up(privacy.delta)}, "
        f"{escape(str(privacy.neighbours))} neighbours.",
        sections="".join(
            f"<section><h2>{title}</h2>{content}</section>"
            for title, content in sections.items()
            if content
        ),
    )


def _table(heads: list[str], rows: list[list[str]], words: int = 1) -> str:
    """A table whose first `words` columns are text and the others numbers; cells are HTML."""
    kind = [""] * words + [' class="number"'] * (len(heads) - words)
    head = "".join(f'<th scope="col"{k}>{h}</th>' for h, k in zip(heads, kind, strict=True))
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>'
        + "".join(f"<td{k}>{cell}</td>" for cell, k in zip(row[1:], kind[1:], strict=True))
        + "</tr>"
        for row in rows
    )
    return (
        '<div class="scroll" tabindex="0" role="group" aria-label="Table">'
        f'<table class="plain"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _baselines(result: Evaluation) -> str:
    entries = [(f"this release ({result.source})", result.distance), *result.baselines.items()]
    rows = [
        [
            escape(name),
            BASELINES.get(name, "what was published"),
            f"{distance.max_error:.4f}",
            f"{distance.average_error:.5f}",
        ]
        for name, distance in entries
    ]
    said = "".join(f"<p>{escape(line)}</p>" for line in result.verdict)
    return said + _table(
        ["answers from", "what it does", "max error", "average error"], rows, words=2
    )


def _coverage(result: Evaluation) -> str:
    if result.coverage is None:
        return "<p>The release states no standard errors.</p>"
    rows = [[escape(name), f"{100 * share:.1f} %"] for name, share in result.coverage.items()]
    return (
        "<p>The share of true answers that lie in the release's 95 % intervals, by kind of "
        "query.</p>" + _table(["queries", "inside"], rows)
    )


def _columns(result: Evaluation) -> str:
    if result.fidelity is None or not result.fidelity.columns:
        return ""
    ordered = sorted(result.fidelity.columns.items(), key=lambda item: -item[1])
    return (
        "<p>Total variation: the share of rows that would have to change their value to make the "
        "two distributions equal.</p>"
        + _table(["column", "distance"], [[escape(name), f"{d:.4f}"] for name, d in ordered])
    )


def _pairs(result: Evaluation) -> str:
    found = result.fidelity
    if found is None or not found.pairs:
        return ""
    worst = sorted(found.pairs, key=lambda pair: -pair.distance)[:WORST]
    rows = [
        [
            f"{escape(pair.first)} and {escape(pair.second)}",
            f"{pair.distance:.4f}",
            f"{pair.true:.3f}",
            f"{pair.released:.3f}",
        ]
        for pair in worst
    ]
    score = (
        ""
        if found.k_marginal is None
        else f"<p>K-marginal score as NIST's SDNist defines it, computed by dualquery (k = {K}, "
        f"{found.marginals:,} tables): {found.k_marginal:.0f} of 1000.</p>"
    )
    return (
        score
        + "<p>How strongly columns hang together (Cramér's V). A good release makes two pictures "
        "that look the same.</p>"
        + _association(found)
        + _table(["the worst pairs", "distance", "true V", "released V"], rows)
    )


def _association(found: Fidelity) -> str:
    """Two matrices of squares side by side, the darker the stronger."""
    panels = "".join(
        f"<div><h3>{title}</h3>{_matrix(found, whose)}</div>"
        for title, whose in (("Private table", "true"), ("Release", "released"))
    )
    return f'<div class="grid-of wide">{panels}</div>'


def _matrix(found: Fidelity, whose: str) -> str:
    """How strongly all pairs of columns hang together, in one of the two tables."""
    names = list(found.columns)
    place = {name: i for i, name in enumerate(names)}
    size, margin = 18, 130
    side = margin + size * len(names)
    parts = [
        f'<text x="{margin - 6}" y="{margin + size * (i + 0.7):.0f}" text-anchor="end" '
        f'class="tick">{escape(name[:20])}</text>'
        f'<text transform="translate({margin + size * (i + 0.7):.0f},{margin - 6}) rotate(-60)" '
        f'class="tick">{escape(name[:20])}</text>'
        for i, name in enumerate(names)
    ]
    for pair in found.pairs:
        i, j = place[pair.first], place[pair.second]
        value = float(getattr(pair, whose))
        words = f"{escape(pair.first)} and {escape(pair.second)}: {value:.3f}"
        for row, column in ((i, j), (j, i)):
            parts.append(
                f'<rect class="area" x="{margin + size * column}" y="{margin + size * row}" '
                f'width="{size - 1}" height="{size - 1}" '
                f'fill-opacity="{min(max(value, 0.02), 1.0):.3f}"><title>{words}</title></rect>'
            )
    table = "private table" if whose == "true" else "release"
    return (
        f'<svg class="chart" viewBox="0 0 {side + 40} {side}" role="img" '
        f'aria-label="Association of all pairs of columns, {table}">{"".join(parts)}</svg>'
    )


def _relations(result: Evaluation) -> str:
    found = result.relations
    if found is None:
        return ""
    return f"<p>{escape(NOTE)}</p>" + _table(list(CLOSENESS_HEADS), closeness_rows(found))


def _classes(result: Evaluation) -> str:
    """Which share of the figures lies in the intervals: pictures first, then every number."""
    if result.relations is None or result.relations.coverage is None:
        return ""
    coverage = result.relations.coverage
    drawn = []
    for kind, found in coverage.items():
        entries = [
            Bar(f"{name} ({held.figures:,})", held.share)
            for name, held in found.items()
            if not name.endswith(EMPTY)
        ]
        drawn.append(bars(kind, entries, mark=PROMISED))
    return (
        f"<p>{escape(COVERAGE_NOTE)} The upright mark is at 95 %.</p>"
        f'<div class="columns">{"".join(drawn)}</div>'
        + _table(list(coverage_heads()), coverage_rows(coverage))
    )


def _pictures(result: Evaluation) -> str:
    """Pairs of columns as squares: the larger a square, the more records are in its cell."""
    if result.fidelity is None or not result.fidelity.pictures:
        return ""
    attributes = result.workload.schema.attributes
    drawn = []
    for one in result.fidelity.pictures:
        across, upward = attributes[one.first], attributes[one.second]
        panels = "".join(
            f"<div><h4>{whose}</h4>{_squares(shares, across, upward, whose)}</div>"
            for whose, shares in (("private table", one.true), ("release", one.released))
        )
        drawn.append(
            f"<figure><h3>{escape(upward.heading)} by {escape(across.heading)}</h3>"
            f'<div class="grid-of">{panels}</div></figure>'
        )
    return (
        "<p>The area of a square is the share of its cell within its column of squares. The line "
        "joins the middles of the columns where values have an order.</p>" + "".join(drawn)
    )


def _squares(
    shares: npt.NDArray[np.float64], across: Attribute, upward: Attribute, whose: str
) -> str:
    """One panel: codes of one column to the right, those of the other one upwards."""
    count, height = shares.shape
    side = 22
    left, below = 108, 20
    width, top = left + side * count + 6, side * height + 6
    parts = []
    ordered = upward.is_numeric or upward.ordered
    middles = []
    for i in range(count):
        whole = float(shares[i].sum())
        if whole <= 0.0:
            continue
        inner = shares[i] / whole
        for j in range(height):
            size = (side - 3) * float(np.sqrt(max(inner[j], 0.0)))
            x, y = left + side * (i + 0.5), top - side * (j + 0.5)
            parts.append(
                f'<rect class="area" x="{x - size / 2:.1f}" y="{y - size / 2:.1f}" '
                f'width="{size:.1f}" height="{size:.1f}"/>'
            )
        middle = float(inner[: upward.proper_size] @ np.arange(upward.proper_size))
        middles.append(f"{left + side * (i + 0.5):.1f},{top - side * (middle + 0.5):.1f}")
    if ordered:
        parts.append(f'<polyline class="second" points="{" ".join(middles)}"/>')
    for j, words in enumerate(value_words(upward)):
        parts.append(
            f'<text x="{left - 6}" y="{top - side * (j + 0.35):.0f}" class="end">'
            f"{escape(words[:15])}</text>"
        )
    for i, words in enumerate(value_words(across)):
        x = left + side * (i + 0.5)
        parts.append(
            f'<text transform="translate({x:.0f},{top + 10}) rotate(-50)" class="end">'
            f"{escape(words[:15])}</text>"
        )
    label = f"{upward.heading} by {across.heading}, {whose}"
    return (
        f'<svg class="chart" viewBox="0 0 {width} {top + 70 + below}" width="{width}" role="img" '
        f'aria-label="{escape(label)}" style="max-width:{width}px">{"".join(parts)}</svg>'
    )


def _guesses(result: Evaluation) -> str:
    one = result.usefulness
    if one is None:
        return ""
    rows = [
        ["synthetic rows", f"{100 * one.synthetic:.1f} %"],
        ["private rows", f"{100 * one.real:.1f} %"],
        ["nothing: always the most frequent value", f"{100 * one.frequent:.1f} %"],
    ]
    return (
        f"<p>How often <code>{escape(one.target)}</code> was guessed right from the other columns, "
        f"on {one.tested:,} private rows that no classifier had seen.</p>"
        + _table(["trained on", "right"], rows)
    )


def _scatter(result: Evaluation) -> str:
    """A density: the more queries fall into a square, the darker it is. Rings mark the worst."""
    axes = Axes((0.0, 1.0), (0.0, 1.0), width=560, height=520)
    counts, _, _ = np.histogram2d(
        result.truth, result.released, bins=CELLS, range=((0.0, 1.0), (0.0, 1.0))
    )
    strongest = np.log1p(counts.max())
    for i, j in np.argwhere(counts > 0):
        opacity = 0.15 + 0.85 * float(np.log1p(counts[i, j]) / strongest)
        axes.box(i / CELLS, (i + 1) / CELLS, j / CELLS, (j + 1) / CELLS, "area", opacity)
    axes.line([0.0, 1.0], [0.0, 1.0], "even")
    for position in _order(result)[:WORST]:
        text = format_query(result.workload.query(int(position)), result.workload.schema)
        axes.dot(float(result.truth[position]), float(result.released[position]), "worst", text)
    label = "Density of released answers against true answers; exact ones lie on the diagonal"
    return axes.svg(label, "true answer", "released answer") + legend(
        [
            ("first", "queries, darker where there are more"),
            ("even", "no error"),
            ("worst", "the worst queries (rings)"),
        ]
    )


def _histogram(result: Evaluation) -> str:
    errors = result.released - result.truth
    reach = max(float(np.abs(errors).max()), 1e-9)
    counts, edges = np.histogram(errors, bins=61, range=(-reach, reach))
    axes = Axes((-reach, reach), (0.0, float(counts.max())))
    width = float(edges[1] - edges[0])
    for count, low in zip(counts, edges[:-1], strict=True):
        axes.box(float(low) + 0.05 * width, float(low) + 0.95 * width, 0.0, float(count), "area")
    shares = [0.5, 0.9, 0.99, 0.999]
    bounds = np.quantile(np.abs(errors), shares)
    words = ", ".join(
        f"{100 * s:g} % of them below {b:.4f}" for s, b in zip(shares, bounds, strict=True)
    )
    return (
        f"<p>Absolute errors: {words}. Mean of the signed errors: {errors.mean():+.5f}.</p>"
        + axes.svg("How many queries have which error", "released minus true", "queries")
    )


def _by_size(result: Evaluation) -> str:
    ends = [0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0]
    errors = np.abs(result.released - result.truth)
    rows = []
    for low, high in pairwise(ends):
        held = (result.truth >= low) & ((result.truth < high) | (high == 1.0))
        if held.any():
            rows.append(
                [
                    f"{low:g} to {high:g}",
                    f"{int(held.sum()):,}",
                    f"{float(errors[held].max()):.4f}",
                    f"{float(errors[held].mean()):.5f}",
                    f"{float((result.released - result.truth)[held].mean()):+.5f}",
                ]
            )
    return _table(
        ["true answer", "queries", "max error", "average error", "mean signed error"], rows
    )


def _worst(result: Evaluation) -> str:
    rows = []
    for position in _order(result)[:WORST]:
        text = format_query(result.workload.query(int(position)), result.workload.schema)
        true, released = float(result.truth[position]), float(result.released[position])
        rows.append(
            [
                f"<code>{escape(text)}</code>",
                f"{true:.4f}",
                f"{released:.4f}",
                f"{released - true:+.4f}",
            ]
        )
    return _table(["query", "true", "released", "error"], rows)


def _order(result: Evaluation) -> npt.NDArray[np.int64]:
    """Queries by falling error; ties in the order of the workload."""
    return np.argsort(-np.abs(result.released - result.truth), kind="stable")
