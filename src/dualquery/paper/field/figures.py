"""The figures of the comparison: error and time against width, error against ε."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualquery.paper.experiments.plots import colour, save_axes
from dualquery.paper.experiments.store import FinishedRun, distinct, mean, where
from dualquery.paper.field.methods import OUR_ROWS, OURS, PEERS, titles
from dualquery.paper.field.verdicts import AVERAGE, ERRORS

WORDS = {**ERRORS, "columns": "columns", "epsilon": "ε", "processor_seconds": "processor seconds"}


@dataclass(frozen=True)
class View:
    """One diagram.

    Attributes:
        title: what it shows.
        x: the column along the horizontal axis.
        y: the column along the vertical axis.
        select: the cells of the runs that are shown.
    """

    title: str
    x: str
    y: str
    select: dict[str, object]

    def of(self, runs: Sequence[FinishedRun]) -> list[FinishedRun]:
        """The runs that it shows."""
        return [run for run in where(runs, **self.select) if not run["end"]]


def views(runs: Sequence[FinishedRun]) -> dict[str, list[View]]:
    """The diagrams of each figure, by the figure's name."""
    made: dict[str, list[View]] = {"width": [], "time": [], "epsilon": []}
    at_one = where(runs, epsilon=1.0)
    for dataset in sorted({run["dataset"] for run in runs}):
        if len(distinct(where(at_one, dataset=dataset), "columns")) > 1:
            select = {"dataset": dataset, "epsilon": 1.0}
            made["width"].extend(
                View(f"{dataset}: {words}", "columns", error, select)
                for error, words in ERRORS.items()
            )
            made["time"].append(View(dataset, "columns", "processor_seconds", select))
        for columns in distinct(where(runs, dataset=dataset), "columns"):
            here = {"dataset": dataset, "columns": columns}
            if len({run["epsilon"] for run in where(runs, **here)}) > 1:
                made["epsilon"].extend(
                    View(f"{dataset}, {columns:,} columns: {words}", "epsilon", error, here)
                    for error, words in ERRORS.items()
                )
    return {name: found for name, found in made.items() if found}


def draw(ax: Any, view: View, runs: Sequence[FinishedRun]) -> None:
    """One diagram on given axes: the mean of the runs of each method.

    Args:
        ax: where to draw.
        view: what.
        runs: all runs; those of the view are chosen.
    """
    found = view.of(runs)
    names = titles()
    for place, (method, title) in enumerate(names.items()):
        if method == OUR_ROWS and view.y != AVERAGE:
            continue
        here = where(found, method=method)
        points = sorted({run.number(view.x) for run in here})
        if not points:
            continue
        values = [mean([r for r in here if r.number(view.x) == x], view.y) for x in points]
        ax.plot(points, values, label=title, **_style(method, place))
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(WORDS[view.x])
    ax.set_ylabel(WORDS[view.y])
    ax.set_title(view.title, fontsize=10)
    ax.grid(visible=True, which="major", linewidth=0.4, alpha=0.5)


def _style(method: str, place: int) -> dict[str, Any]:
    """The package stands out; peers have squares, baselines are thin."""
    if method in (OURS, OUR_ROWS):
        dashes = "-" if method == OURS else ":"
        return {"color": "black", "linewidth": 2.4, "linestyle": dashes, "marker": "o", "zorder": 5}
    if method in PEERS:
        return {"color": colour(place), "linewidth": 1.8, "marker": "s", "markersize": 5}
    style = {"linewidth": 1.1, "linestyle": "--", "marker": ".", "markersize": 5}
    return {"color": colour(place), **style}


def write_figures(runs: Sequence[FinishedRun], out: Path, stem: str) -> list[Path]:
    """All figures as SVG files.

    Args:
        runs: the stored runs.
        out: the folder.
        stem: how their names begin.
    """
    made = []
    for name, found in views(runs).items():

        def paint(ax: Any, number: int, found: list[View] = found) -> None:
            draw(ax, found[number], runs)

        made.append(save_axes(paint, len(found), out / f"{stem}-{name}"))
    return made
