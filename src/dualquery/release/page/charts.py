"""Charts as HTML and SVG text. Every label is escaped here, once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from dualquery.release.page.numbers import half_interval, percent


@dataclass(frozen=True)
class Bar:
    """A share with a label, and the ends of its interval where they are known."""

    label: str
    share: float
    low: float | None = None
    high: float | None = None

    @property
    def half(self) -> str:
        """Half of the interval, in words."""
        return half_interval(self.share, self.low, self.high)


LONG = 18
"""A label with more characters has a line of its own, so that its bar keeps its room."""


def bars(title: str, entries: Sequence[Bar], *, mark: float | None = None) -> str:
    """One bar per entry, as a table, so that screen readers can read it and no script is needed.

    Args:
        title: what the shares are of.
        entries: the bars.
        mark: a share that every bar is to be compared with.
    """
    widest = max([1e-12, *(one.share for one in entries), *(one.high or 0.0 for one in entries)])
    long = any(len(one.label) > LONG for one in entries)
    upright = "" if mark is None else f'<b style="left:{100 * mark / widest:.1f}%"></b>'
    rows = []
    for one in entries:
        scope = 'rowgroup" colspan="3' if long else "row"
        apart = "</tr><tr>" if long else ""
        row = (
            f'<tr><th scope="{scope}">{escape(one.label)}</th>{apart}'
            f'<td class="bar" aria-hidden="true"><span><i style="width:'
            f'{100 * one.share / widest:.1f}%"></i>{_reach(one, widest)}{upright}</span></td>'
            f'<td class="number">{percent(one.share, one.low, one.high)}</td>'
            f'<td class="number muted">{one.half}</td></tr>'
        )
        rows.append(f"<tbody>{row}</tbody>" if long else row)
    body = "".join(rows) if long else f"<tbody>{''.join(rows)}</tbody>"
    style = "bars long" if long else "bars"
    return f'<table class="{style}"><caption>{escape(title)}</caption>{body}</table>'


def _reach(one: Bar, widest: float) -> str:
    """The interval as a line across the end of a bar."""
    if one.low is None or one.high is None:
        return ""
    left, width = 100 * one.low / widest, 100 * (one.high - one.low) / widest
    return f'<u style="left:{left:.1f}%;width:{width:.1f}%"></u>'


@dataclass(frozen=True)
class Line:
    """A row of a table of shares: its label, what it weighs, and its cells."""

    label: str
    weight: str
    cells: Sequence[Bar]


def heat(row_name: str, column_name: str, columns: Sequence[str], lines: Sequence[Line]) -> str:
    """A table of shares; the larger a share, the darker its cell.

    Args:
        row_name: the attribute down the page.
        column_name: the attribute across it.
        columns: its codes, in words.
        lines: one per code of the attribute down the page.
    """
    head = "".join(f'<th scope="col">{escape(label)}</th>' for label in columns)
    body = "".join(
        f'<tr><th scope="row">{escape(line.label)}</th><td class="weight">{line.weight}</td>'
        + "".join(
            f'<td style="--heat:{100 * one.share:.0f}%">'
            f'{percent(one.share, one.low, one.high)}<small class="muted">{one.half}</small></td>'
            for one in line.cells
        )
        + "</tr>"
        for line in lines
    )
    title = f"{escape(column_name)} (across) within each {escape(row_name)} (down)"
    return (
        '<div class="scroll" tabindex="0" role="group" aria-label="Table: '
        f'{escape(column_name)} within each {escape(row_name)}">'
        f'<table class="heat"><caption>{title}</caption><thead><tr><td></td>'
        f'<th scope="col">of all</th>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def histogram(title: str, entries: Sequence[Bar]) -> str:
    """Many bars side by side, whole and in order, with their intervals."""
    tallest = max([1e-12, *(one.share for one in entries), *(one.high or 0.0 for one in entries)])
    axes = Axes((0.0, float(len(entries))), (0.0, 100.0 * tallest))
    for place, one in enumerate(entries):
        axes.box(place + 0.08, place + 0.92, 0.0, 100.0 * one.share, "area")
        if one.low is not None and one.high is not None:
            axes.line([place + 0.5] * 2, [100.0 * one.low, 100.0 * one.high], "reach")
    step = max(1, -(-len(entries) // 6))
    named = {place + 0.5: entries[place].label for place in range(0, len(entries), step)}
    told = f"Distribution of {title}, {len(entries)} values in order"
    return f"<figure><h3>{escape(title)}</h3>{axes.svg(told, '', 'percent', named)}</figure>"


WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 240, 70, 14, 12, 40


class Axes:
    """A frame with two linear scales, which keeps what is drawn into it as SVG text."""

    def __init__(
        self,
        horizontal: tuple[float, float],
        vertical: tuple[float, float],
        *,
        width: int = WIDTH,
        height: int = HEIGHT,
        counts: bool = False,
    ) -> None:
        self.horizontal, self.vertical = _widened(horizontal), _widened(vertical)
        self.width, self.height, self.counts = width, height, counts
        self.parts: list[str] = []

    def x(self, value: float) -> float:
        low, high = self.horizontal
        return LEFT + (value - low) / (high - low) * (self.width - LEFT - RIGHT)

    def y(self, value: float) -> float:
        low, high = self.vertical
        return self.height - BOTTOM - (value - low) / (high - low) * (self.height - TOP - BOTTOM)

    def line(self, xs: Sequence[float], ys: Sequence[float], style: str) -> None:
        points = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in zip(xs, ys, strict=True))
        self.parts.append(f'<polyline class="{style}" points="{points}"/>')

    def dot(self, x: float, y: float, style: str, title: str = "") -> None:
        """A small circle.

        Args:
            x: where it is.
            y: where it is.
            style: a class of the style sheet.
            title: what pointing at it shows.
        """
        told = f"<title>{escape(title)}</title>" if title else ""
        self.parts.append(
            f'<circle class="{style}" cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="3">'
            f"{told}</circle>"
        )

    def box(
        self, x0: float, x1: float, y0: float, y1: float, style: str, opacity: float = 1.0
    ) -> None:
        """A filled box.

        Args:
            x0: its left side.
            x1: its right side.
            y0: its lower side.
            y1: its upper side.
            style: a class of the style sheet.
            opacity: from 0 to 1.
        """
        left, right, top, bottom = self.x(x0), self.x(x1), self.y(y1), self.y(y0)
        self.parts.append(
            f'<rect class="{style}" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
            f'height="{max(bottom - top, 0.0):.1f}" fill-opacity="{opacity:.2f}"/>'
        )

    def svg(
        self, label: str, x_title: str, y_title: str, named: Mapping[float, str] | None = None
    ) -> str:
        """The whole drawing, with ticks.

        Args:
            label: says in words what the drawing shows.
            x_title: what goes to the right.
            y_title: what goes up.
            named: places to the right with a word each, instead of numbers.
        """
        grid = []
        for tick in ticks(*self.vertical, whole=self.counts):
            y = self.y(tick)
            grid.append(
                f'<line class="grid" x1="{LEFT}" x2="{self.width - RIGHT}" y1="{y:.1f}" '
                f'y2="{y:.1f}"/><text x="{LEFT - 8}" y="{y + 4:.1f}" class="end">{tick:.4g}</text>'
            )
        below = named or {tick: f"{tick:.4g}" for tick in ticks(*self.horizontal)}
        for tick, words in below.items():
            grid.append(
                f'<text x="{self.x(tick):.1f}" y="{self.height - BOTTOM + 16}" '
                f'class="middle">{escape(words)}</text>'
            )
        middle = (LEFT + self.width - RIGHT) / 2
        return (
            f'<svg class="chart" viewBox="0 0 {self.width} {self.height}" role="img" '
            f'aria-label="{escape(label)}">'
            f"{''.join(grid)}{''.join(self.parts)}"
            f'<text x="{middle:.0f}" y="{self.height - 6}" class="middle title">'
            f"{escape(x_title)}</text>"
            f'<text x="14" y="{self.height / 2:.0f}" class="middle title" '
            f'transform="rotate(-90 14 {self.height / 2:.0f})">{escape(y_title)}</text></svg>'
        )


def ticks(low: float, high: float, count: int = 5, *, whole: bool = False) -> list[float]:
    """Round numbers between two ends, about `count` of them; `whole` allows no parts of one."""
    step = 10.0 ** math.floor(math.log10((high - low) / count))
    for factor in (1, 2, 5, 10):
        if (high - low) / (step * factor) <= count:
            step *= factor
            break
    step = max(step, 1.0) if whole else step
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def _widened(ends: tuple[float, float]) -> tuple[float, float]:
    low, high = ends
    return (low, high) if high - low > 1e-12 else (low, low + max(abs(low), 1.0) * 1e-3)


def legend(entries: Sequence[tuple[str, str]]) -> str:
    """A legend of (style, words) pairs. The words carry the meaning, not the colour alone."""
    items = "".join(
        f'<li><svg width="22" height="10" aria-hidden="true"><line class="{style}" x1="1" x2="21" '
        f'y1="5" y2="5"/></svg> {escape(words)}</li>'
        for style, words in entries
    )
    return f'<ul class="legend">{items}</ul>'
