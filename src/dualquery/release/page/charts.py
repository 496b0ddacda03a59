"""Charts as HTML and SVG text. Every label is escaped here, once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def percent(share: float) -> str:
    """A share for people, with enough digits to tell a small one from zero."""
    if share == 0.0 or share >= 0.1:
        return f"{100 * share:.1f} %"
    if share >= 0.001:
        return f"{100 * share:.2f} %"
    return "< 0.1 %"


def bars(title: str, labels: Sequence[str], values: Sequence[float]) -> str:
    """One bar per label, as a table, so that screen readers can read it and no script is needed."""
    widest = max([*values, 1e-12])
    rows = "".join(
        f'<tr><th scope="row">{escape(label)}</th>'
        f'<td class="bar" aria-hidden="true"><i style="width:{100 * value / widest:.1f}%"></i></td>'
        f'<td class="number">{percent(value)}</td></tr>'
        for label, value in zip(labels, values, strict=True)
    )
    return f'<table class="bars"><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>'


def heat(
    row_name: str,
    column_name: str,
    row_labels: Sequence[str],
    column_labels: Sequence[str],
    values: Floats,
) -> str:
    """A table of shares; the larger a share, the darker its cell.

    Args:
        row_name: the attribute down the page.
        column_name: the attribute across it.
        row_labels: its codes, in words.
        column_labels: the codes of the other.
        values: the shares, one row per row label.
    """
    strongest = max(float(values.max()), 1e-12)
    head = "".join(f'<th scope="col">{escape(label)}</th>' for label in column_labels)
    body = "".join(
        f'<tr><th scope="row">{escape(label)}</th>'
        + "".join(
            f'<td style="--heat:{100 * value / strongest:.0f}%">{percent(float(value))}</td>'
            for value in line
        )
        + "</tr>"
        for label, line in zip(row_labels, values, strict=True)
    )
    title = f"{escape(row_name)} (rows) and {escape(column_name)} (columns)"
    return (
        '<div class="scroll" tabindex="0" role="group" aria-label="Table: '
        f'{escape(row_name)} and {escape(column_name)}">'
        f'<table class="heat"><caption>{title}</caption><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


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
    ) -> None:
        self.horizontal, self.vertical = _widened(horizontal), _widened(vertical)
        self.width, self.height = width, height
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

    def svg(self, label: str, x_title: str, y_title: str) -> str:
        """The whole drawing, with ticks; `label` says in words what the drawing shows."""
        grid = []
        for tick in ticks(*self.vertical):
            y = self.y(tick)
            grid.append(
                f'<line class="grid" x1="{LEFT}" x2="{self.width - RIGHT}" y1="{y:.1f}" '
                f'y2="{y:.1f}"/><text x="{LEFT - 8}" y="{y + 4:.1f}" class="end">{tick:.4g}</text>'
            )
        for tick in ticks(*self.horizontal):
            grid.append(
                f'<text x="{self.x(tick):.1f}" y="{self.height - BOTTOM + 16}" '
                f'class="middle">{tick:.4g}</text>'
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


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers between two ends, about `count` of them."""
    step = 10.0 ** math.floor(math.log10((high - low) / count))
    for factor in (1, 2, 5, 10):
        if (high - low) / (step * factor) <= count:
            step *= factor
            break
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
