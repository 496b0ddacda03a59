"""How far a model's answers may be off, by size of answer and number of literals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dualquery.model.pair_kinds import APART, PAIR_KINDS, PairKinds
from dualquery.workloads.workload import Workload

Floats = npt.NDArray[np.float64]

LEVELS = np.array([0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.2, 0.5])
"""Borders of the classes of answers; an answer counts by its distance from 0 or 1."""

MOST_LITERALS = 3
"""Queries with more literals count as having this many."""

KINDS, MOST_COUNTED = 2, 4
"""Of factors: conjunctions and parities, with one to three literals and with four or more."""

FEWEST = 30
"""Classes with fewer queries borrow the figure of the next class. In a rehearsal, classes with
fewer different answers are put together with their neighbours."""

INSIDE = 0.975
"""The quantile that an interval of 95 % reaches up to."""


@dataclass(frozen=True, eq=False)
class ErrorTable:
    """Root-mean-square errors seen in a rehearsal.

    `scale[p, k − 1, j]` is that of queries with k literals whose answer lies between LEVELS[j] and
    LEVELS[j + 1] of 0 or 1, p the kind of their pairs of attributes (`model.pair_kinds`); if pairs
    are not told apart there is one p. `missed[p]` is the standard error of the dependence of two
    attributes, in units of a correlation; see `game.held_out`. `unasked[p, k − 1]` says by how much
    larger the errors of conjunctions (p = 0) or parities (1) with k literals are than those of
    their class; see `model.unasked`.
    """

    scale: Floats
    missed: Floats = field(default_factory=lambda: np.zeros(PAIR_KINDS))
    unasked: Floats = field(default_factory=lambda: np.ones((KINDS, MOST_COUNTED)))

    @classmethod
    def of(cls, workload: Workload, answers: Floats, truth: Floats) -> ErrorTable:
        """Tabulate the errors of `answers`; classes are formed by the answers, as in use."""
        return cls.of_squares(workload, answers, (answers - truth) ** 2)

    @classmethod
    def of_squares(cls, workload: Workload, answers: Floats, squares: Floats) -> ErrorTable:
        """Tabulate squared errors by class: the root of their mean."""
        literals, level = _classes(workload, answers)
        scale = np.full((1, MOST_LITERALS, len(LEVELS) - 1), np.nan)
        for k in range(MOST_LITERALS):
            for j in range(len(LEVELS) - 1):
                found = squares[(literals == k) & (level == j)]
                if len(found) >= FEWEST:
                    scale[0, k, j] = np.sqrt(max(0.0, float(np.mean(found))))
        return cls(_filled(scale))

    @classmethod
    def of_rehearsals(
        cls,
        workload: Workload,
        answers: Sequence[Floats],
        squares: Sequence[Floats],
        kinds: PairKinds | None = None,
    ) -> ErrorTable:
        """Tabulate squared errors of several rehearsals of the same queries.

        Queries on one attribute repeat a few answers, and an answer and its complement have one
        error. So a class may hold a thousand queries and five errors. Such a class is put together
        with its neighbours until it has enough different ones. What is estimated from ν errors
        needs intervals as wide as Student's distribution with ν degrees of freedom says.

        Args:
            workload: the queries.
            answers: of each rehearsal.
            squares: the squared errors of each.
            kinds: of pairs of attributes, if they are told apart.
        """
        from scipy.special import ndtri, stdtrit

        several = kinds is not None and kinds.of_pair is not None
        different = np.zeros((PAIR_KINDS if several else 1, MOST_LITERALS, len(LEVELS) - 1))
        means = np.zeros_like(different)
        tallies = np.zeros_like(different)
        kind = kinds.of_queries(workload) if kinds is not None else 0
        for found, missed in zip(answers, squares, strict=True):
            literals, level = _classes(workload, found)
            where = (kind * MOST_LITERALS + literals) * (len(LEVELS) - 1) + level
            size = different.size
            means += np.bincount(where, missed, size).reshape(means.shape)
            tallies += np.bincount(where, minlength=size).reshape(means.shape)
            # Answers that agree to seven digits are the same one.
            told = np.rint(1e7 * np.minimum(found, 1.0 - found)).astype(np.int64)
            once = np.unique(np.column_stack([where, told]), axis=0)[:, 0]
            different += np.bincount(once, minlength=size).reshape(means.shape)
        means /= np.maximum(tallies, 1.0)
        scale = np.full_like(means, np.nan)
        for row in np.ndindex(*scale.shape[:2]):
            for j in range(len(LEVELS) - 1):
                part = _window(different[row], j)
                errors = float(different[row][part].sum())
                if errors:
                    square = float(different[row][part] @ means[row][part]) / errors
                    wider = float(stdtrit(errors, INSIDE) / ndtri(INSIDE))
                    scale[row][j] = wider * np.sqrt(max(0.0, square))
        return cls(_filled(scale))

    @classmethod
    def larger(cls, tables: Sequence[ErrorTable]) -> ErrorTable:
        """Per class the largest of several."""
        return cls(np.max([one.scale for one in tables], axis=0))

    def of_answers(
        self, workload: Workload, answers: Floats, kinds: PairKinds | None = None
    ) -> Floats:
        """A standard error for each answer, interpolated between the classes."""
        kind = kinds.of_queries(workload) if kinds is not None else APART
        return self.at(np.diff(workload.start), answers, workload.is_parity, kind)

    def at(
        self,
        literals: npt.NDArray[np.integer],
        answers: Floats,
        is_parity: npt.NDArray[np.bool_] | bool = False,
        kind: npt.NDArray[np.integer] | int = APART,
    ) -> Floats:
        """The same for answers to queries with so many literals each, and pairs of this kind."""
        row = np.minimum(literals, MOST_LITERALS) - 1
        distance = np.minimum(answers, 1.0 - answers)
        middle = np.log(np.sqrt(np.maximum(LEVELS[:-1], 3e-5) * LEVELS[1:]))
        place = np.log(np.maximum(distance, 1e-6))
        found = np.empty(len(answers))
        several = np.minimum(np.broadcast_to(kind, found.shape), len(self.scale) - 1)
        for p, k in np.ndindex(*self.scale.shape[:2]):
            chosen = (row == k) & (several == p)
            found[chosen] = np.exp(np.interp(place[chosen], middle, np.log(self.scale[p, k])))
        parity = np.broadcast_to(is_parity, found.shape).astype(np.int64)
        factor: Floats = self.unasked[parity, np.minimum(literals, MOST_COUNTED) - 1]
        return found * factor


def _classes(
    workload: Workload, answers: Floats
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    literals = np.minimum(np.diff(workload.start), MOST_LITERALS) - 1
    distance = np.minimum(answers, 1.0 - answers)
    level = np.searchsorted(LEVELS, distance, side="right") - 1
    return literals, np.clip(level, 0, len(LEVELS) - 2)


def _window(different: Floats, j: int) -> slice:
    """The classes around class j that have enough different answers together."""
    first, last = j, j + 1
    while different[first:last].sum() < FEWEST and last - first < len(different):
        first, last = max(0, first - 1), min(len(different), last + 1)
    return slice(first, last)


def _filled(scale: Floats) -> Floats:
    """Empty classes take the figure of the nearest level, then of the nearest row and kind."""
    rows = scale.reshape(-1, scale.shape[-1]).copy()
    for row in rows:
        known = np.flatnonzero(~np.isnan(row))
        if len(known):
            distance = np.abs(known[None, :] - np.arange(len(row))[:, None])
            row[:] = row[known[np.argmin(distance, axis=1)]]
    place = np.stack(np.divmod(np.arange(len(rows)), scale.shape[1]), axis=1)
    known = np.flatnonzero(~np.isnan(rows[:, 0]))
    if not len(known):
        return np.full_like(scale, np.nan)
    for number, (kind, literals) in enumerate(place):
        # The same number of literals counts for more than the same kind.
        away = np.abs(place[known] - (kind, literals)) @ (1, PAIR_KINDS)
        rows[number] = rows[known[np.argmin(away)]]
    return np.maximum(rows, 1e-9).reshape(scale.shape)
