"""Why the package is not ahead somewhere, in a sentence or two that the stored runs support."""

from __future__ import annotations

from collections.abc import Sequence

from dualquery.paper.experiments.store import FinishedRun, mean, where
from dualquery.paper.field.methods import OURS
from dualquery.paper.field.verdicts import AVERAGE, ERRORS, MAXIMUM, Race

EVERY_QUERY = ("gaussian", "laplace", "projection")
"""Methods that put noise on the count of every query that is asked."""

WORST_FIRST = ("mwem", "mwem-improved", "mwem on the model", "boosting")
"""Methods that measure what is answered worst so far."""

CLEARLY = 1.2
"""A ratio of average errors from which on more was learned than one-way marginals."""


def reason(race: Race, runs: Sequence[FinishedRun]) -> str:
    """Why the best other method is not behind; empty if no rule knows.

    Args:
        race: one that the package does not win.
        runs: the stored runs.
    """
    if words := _not_the_budget(race, runs):
        return words
    here = race.place.of(runs)
    nearer = _times_nearer(here, race.best, AVERAGE)
    if race.best == "matrix mechanism":
        return (
            "It measures signed sums of counts, each with the noise that is best for this "
            "workload. This package measures tables of counts, which cost more where everything "
            "that is asked can be measured ([arithmetic](../decisions/wide.md))."
        )
    if race.best in EVERY_QUERY:
        return (
            "It measures every query that is asked, so no dependence between columns escapes it. "
            f"It pays with noise: its average error is {nearer:.1f} times ours."
        )
    if race.best == "independent" and nearer < CLEARLY:
        return (
            "The columns are nearly independent, so one-way marginals say almost all. What is left "
            "is noise and chance."
        )
    if race.best == "independent":
        return (
            "Both miss a query on columns that depend on each other and that were not measured "
            f"together. On average this package is {nearer:.1f} times nearer."
        )
    if race.best in WORST_FIRST and race.error == MAXIMUM and nearer > 1.0:
        return (
            "It chooses queries that are answered badly and measures them, which lowers the "
            f"largest error first. On average this package is {nearer:.1f} times nearer."
        )
    other = AVERAGE if race.error == MAXIMUM else MAXIMUM
    ratio = _times_nearer(here, race.best, other)
    return f"In {ERRORS[other]} this package is {ratio:.1f} times nearer." if ratio > 1.0 else ""


def _not_the_budget(race: Race, runs: Sequence[FinishedRun]) -> str:
    """What a smaller ε says: with less noise a good plan and fit would not err more."""
    place = race.place
    ours = where(runs, dataset=place.dataset, columns=place.columns, method=OURS)
    by_epsilon = {
        epsilon: mean([run for run in ours if run.number("epsilon") == epsilon], race.error)
        for epsilon in {run.number("epsilon") for run in ours if not run["end"]}
    }
    better = [e for e, error in by_epsilon.items() if e < place.epsilon and error < race.ours]
    if not better:
        return ""
    best = min(better, key=lambda epsilon: by_epsilon[epsilon])
    return (
        f"This package itself errs less at ε = {best:g} ({by_epsilon[best]:.2g}). So not the "
        "budget limits it here, but its plan or its fit."
    )


def _times_nearer(here: Sequence[FinishedRun], method: str, error: str) -> float:
    """How many times the package's error another method's error is."""
    return mean(where(here, method=method), error) / mean(where(here, method=OURS), error)
