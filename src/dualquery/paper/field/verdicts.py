"""What follows from the stored runs: who is ahead where, and where each method ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dualquery.paper.experiments.store import FinishedRun, mean, where
from dualquery.paper.field.beforehand import DIED, NOT_RUN, REFUSED
from dualquery.paper.field.methods import OUR_ROWS, OURS, PEERS

AVERAGE, MAXIMUM = "average_error", "max_error"
ERRORS = {AVERAGE: "average error", MAXIMUM: "maximum error"}

EVEN = 1.05
"""Errors whose ratio is at most this count as even: most cells are one run, and another
seed differs."""


@dataclass(frozen=True)
class Place:
    """A table at an ε."""

    dataset: str
    columns: int
    epsilon: float

    @property
    def text(self) -> str:
        return f"{self.dataset}, {self.columns:,} columns, ε = {self.epsilon:g}"

    def of(self, runs: Sequence[FinishedRun]) -> list[FinishedRun]:
        """The runs at this place that gave answers."""
        found = where(runs, dataset=self.dataset, columns=self.columns, epsilon=self.epsilon)
        return [run for run in found if not run["end"]]


def places(runs: Iterable[FinishedRun]) -> list[Place]:
    """All places, in order."""
    found = {Place(run["dataset"], int(run["columns"]), run.number("epsilon")) for run in runs}
    return sorted(found, key=lambda place: (place.dataset, place.columns, place.epsilon))


@dataclass(frozen=True)
class Race:
    """The package against the best of the others in one error at one place.

    Attributes:
        place: where.
        error: which error, as a column.
        ours: the package's.
        best: the method that is best among the others.
        theirs: its error.
        others: how many other methods have answers there.
        pure: whether that method kept a pure ε, a stronger promise.
    """

    place: Place
    error: str
    ours: float
    best: str
    theirs: float
    others: int
    pure: bool = False

    @property
    def even(self) -> bool:
        """Whether neither is ahead of the other by more than chance."""
        return max(self.ours, self.theirs) <= EVEN * min(self.ours, self.theirs)

    @property
    def ahead(self) -> bool:
        """Whether the package is."""
        return self.ours < self.theirs and not self.even


def races(
    runs: Sequence[FinishedRun], against: Iterable[str] | None = None, of: str = OURS
) -> list[Race]:
    """One race per place and error, wherever both sides have answers.

    Args:
        runs: the stored runs.
        against: the methods to compare with; None for all.
        of: the method that stands for the package.
    """
    made = []
    for place in places(runs):
        here = place.of(runs)
        ours = where(here, method=of)
        others = {run["method"] for run in here} - {OURS, OUR_ROWS}
        others = others if against is None else others & set(against)
        if not ours or not others:
            continue
        for error in ERRORS:
            means = {name: mean(where(here, method=name), error) for name in others}
            best = min(sorted(means), key=lambda name: means[name])
            pure = all(run.number("kept_delta") == 0.0 for run in where(here, method=best))
            made.append(Race(place, error, mean(ours, error), best, means[best], len(means), pure))
    return made


def peers_races(runs: Sequence[FinishedRun]) -> list[Race]:
    """The package's synthetic rows against those of other packages."""
    return races(runs, PEERS, OUR_ROWS)


@dataclass(frozen=True)
class End:
    """Where a method ends on one kind of table.

    Attributes:
        method: its name.
        dataset: the kind of table.
        served: the most columns that it answered; 0 for none.
        columns: the fewest columns at which it ended.
        reason: how.
        epsilon: at which ε; 1 if it ended at 1 too.
    """

    method: str
    dataset: str
    served: int
    columns: int
    reason: str
    epsilon: float = 1.0


def ends(runs: Sequence[FinishedRun], order: Sequence[str]) -> list[End]:
    """The first end of each method on each kind of table; at another ε than 1 if only there.

    An end that is predicted counts. What was left out because of an earlier end does not.

    Args:
        runs: the stored runs.
        order: the methods, in the order of the list.
    """
    made = []
    for method in order:
        for dataset in sorted({run["dataset"] for run in where(runs, method=method)}):
            here = where(runs, method=method, dataset=dataset)
            ended = [run for run in here if run["end"] and not _follows(run["end"])]
            if not ended:
                continue
            first = min(ended, key=lambda run: (run["epsilon"] != "1", int(run["columns"])))
            served = max((int(run["columns"]) for run in here if not run["end"]), default=0)
            epsilon = first.number("epsilon")
            columns = int(first["columns"])
            made.append(End(method, dataset, served, columns, first["end"], epsilon))
    return made


def _follows(end: str) -> bool:
    """Whether a run was left out because its method had ended before."""
    return end.startswith((f"{NOT_RUN}: {DIED}", f"{NOT_RUN}: {REFUSED}"))
