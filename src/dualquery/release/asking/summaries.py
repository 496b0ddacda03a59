"""Means and quartiles, for all records or by the values of a column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualquery.base.stored import Json
from dualquery.domain.formulas import AllOf, Formula
from dualquery.domain.query import Literal, Query
from dualquery.domain.schema import Schema
from dualquery.release.asking.figure import Figure
from dualquery.release.asking.labels import code_labels
from dualquery.release.asking.questions import Questions

if TYPE_CHECKING:
    from dualquery.release.asking.partly import Partly

QUARTILES = {"q25": 0.25, "median": 0.5, "q75": 0.75}


def groups_of(
    schema: Schema, place: int, where: Formula | None
) -> list[tuple[Json, Formula | None]]:
    """For each value of a column its label, and the condition on the records of the group."""
    attribute = schema.attributes[place]
    found: list[tuple[Json, Formula | None]] = []
    for code, label in enumerate(code_labels(attribute).to_pylist()):
        own = Query("conjunction", (Literal(place, (code,)),))
        found.append(({attribute.name: label}, own if where is None else AllOf((own, where))))
    return found


def described(questions: Questions | Partly, place: int, where: Formula | None) -> list[Json]:
    """The mean and the quartiles of a column, one row each; empty where there are no numbers."""
    figures: dict[str, Figure | None] = dict.fromkeys(["mean", *QUARTILES])
    if where is None or questions.has_numbers(place, where):
        figures["mean"] = questions.mean(place, where)
        found = questions.quantiles(place, list(QUARTILES.values()), where)
        figures |= dict(zip(QUARTILES, found, strict=True))
    return [
        {
            "figure": name,
            "value": None if figure is None else float(figure),
            "low": None if figure is None else figure.low,
            "high": None if figure is None else figure.high,
        }
        for name, figure in figures.items()
    ]
