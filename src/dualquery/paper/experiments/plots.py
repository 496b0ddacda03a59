"""Figures of the experiments, as SVG with text that stays text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dualquery.base.errors import UnavailableError
from dualquery.paper.experiments.experiment import Panel
from dualquery.paper.experiments.series import DATA_FREE, LABELS
from dualquery.paper.experiments.store import FinishedRun, where

WORDS = {
    "epsilon": "ε",
    "queries": "queries",
    "bits": "attributes",
    "max_error": "max error",
    "average_error": "average error",
    "seconds": "seconds",
    "rounds": "rounds",
}
Paint = Callable[[Any, int], None]
"""Draws a diagram on given axes, by its number."""

DASHED = ("zeros", "uniform", "independent", "laplace", "gaussian", "mwem", "mwem-improved")


def require_matplotlib() -> None:
    """Refuse before the runs are made, rather than after."""
    if find_spec("matplotlib") is None:
        raise UnavailableError("figures need matplotlib: pip install dualquery[plots]")


def draw_panel(ax: Any, panel: Panel, runs: Sequence[FinishedRun]) -> None:
    """One diagram on given axes: the mean of the runs and their spread; for times, the least."""
    chosen = where(runs, **panel.select)
    lines = _lines(chosen, panel)
    for place, ((name, suffix), runs) in enumerate(lines.items()):
        points = _points(runs, panel)
        if not points:
            continue
        x, low, middle, high = (list(column) for column in zip(*points, strict=True))
        dashed = panel.line == "series" and name in DASHED
        style: dict[str, Any] = {
            "color": colour(list(LABELS).index(name) if panel.line == "series" else place),
            "linestyle": "--" if dashed else "-",
            "label": (LABELS.get(name, name) if panel.line == "series" else name) + suffix,
        }
        siblings = [suffix for other, suffix in lines if other == name]
        marker = (
            ("." if dashed else "o") if len(siblings) == 1 else "osv^D"[siblings.index(suffix) % 5]
        )
        ax.plot(x, middle, marker=marker, markersize=4, linewidth=1.4, **style)
        ax.fill_between(x, low, high, color=style["color"], alpha=0.15, linewidth=0)
    if panel.log_x:
        ax.set_xscale("log")
    if panel.log_y and any(run.number(panel.y) > 0 for run in chosen):
        ax.set_yscale("log")
    ax.set_xlabel(WORDS[panel.x])
    ax.set_ylabel(WORDS[panel.y])
    ax.set_title(panel.title, fontsize=10)
    ax.grid(visible=True, which="major", linewidth=0.4, alpha=0.5)


def _lines(runs: Sequence[FinishedRun], panel: Panel) -> dict[tuple[str, str], list[FinishedRun]]:
    """The runs of each line, by the line's name and by what the legend adds to it.

    If the horizontal axis is not ε and the runs have several ε, each ε has lines of its own.
    """
    names = list(dict.fromkeys(run[panel.line] for run in runs))
    if panel.line == "series":
        names = [name for name in LABELS if name in names]
    several = panel.x != "epsilon" and len({run["epsilon"] for run in runs}) > 1
    lines: dict[tuple[str, str], list[FinishedRun]] = {}
    for name in names:
        for run in where(runs, **{panel.line: name}):
            free = run["series"] in DATA_FREE
            suffix = f", ε = {run['epsilon']}" if several and not free else ""
            lines.setdefault((name, suffix), []).append(run)
    return lines


def colour(place: int) -> str:
    """A colour that a series keeps in all figures: ten strong ones, then ten pale ones."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return str(to_hex(colormaps["tab20"]((2 * place if place < 10 else 2 * place - 19) % 20)))


def _points(runs: Sequence[FinishedRun], panel: Panel) -> list[tuple[float, float, float, float]]:
    by_x: dict[float, list[float]] = {}
    for run in runs:
        value = run.number(panel.y)
        if value == value:
            by_x.setdefault(run.number(panel.x), []).append(value)
    if panel.y == "seconds":
        return [(x, *(min(values),) * 3) for x, values in sorted(by_x.items())]
    return [
        (x, min(values), sum(values) / len(values), max(values))
        for x, values in sorted(by_x.items())
    ]


def save_figure(panels: Sequence[Panel], runs: Sequence[FinishedRun], stem: Path) -> Path:
    """Write `stem`.svg."""
    return save_axes(lambda ax, number: draw_panel(ax, panels[number], runs), len(panels), stem)


def save_axes(paint: Paint, count: int, stem: Path) -> Path:
    """Several diagrams with one legend as `stem`.svg, whose text is text.

    Args:
        paint: draws a diagram on given axes, by its number.
        count: how many there are.
        stem: the file without its ending.
    """
    require_matplotlib()
    import matplotlib

    path = stem.with_name(f"{stem.name}.svg")
    # A fixed salt and no date: the same runs give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "dualquery", "svg.fonttype": "none"}):
        figure_of(paint, count).savefig(path, metadata={"Date": None})
    return path


def figure_of(paint: Paint, count: int) -> Any:
    """Several diagrams with one legend.

    Args:
        paint: draws a diagram on given axes, by its number.
        count: how many there are.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across = 2 if count in (2, 4, 6) else min(count, 3)
    down = -(-count // across)
    width = max(4.6 * across, 9.2)  # the legend needs this much
    figure = Figure(figsize=(width, 3.6 * down + 1.1), layout="constrained")
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    for number, ax in enumerate(axes):
        if number < count:
            paint(ax, number)
        else:
            ax.set_axis_off()
    entries: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="outside lower center",
        ncols=3,
        fontsize=8,
        frameon=False,
    )
    return figure
