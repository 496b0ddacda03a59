"""How far a model's answers may be off, by size of answer and number of literals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

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

    `scale[k − 1, j]` is that of queries with k literals whose answer lies between
    LEVELS[j] and LEVELS[j + 1] of 0 or 1. `lost[k − 1]` is the part of a dependence of k
    attributes that fits typically lose; see `model.joined`. `unasked[p, k − 1]` says by how much
    larger the errors of conjunctions (p = 0) or parities (1) with k literals are than those of
    their class; see `model.unasked`.
    """

    scale: Floats
    lost: Floats = field(default_factory=lambda: np.zeros(MOST_LITERALS))
    unasked: Floats = field(default_factory=lambda: np.ones((KINDS, MOST_COUNTED)))

    @classmethod
    def of(cls, workload: Workload, answers: Floats, truth: Floats) -> ErrorTable:
        """Tabulate the errors of `answers`; classes are formed by the answers, as in use."""
        return cls.of_squares(workload, answers, (answers - truth) ** 2)

    @classmethod
    def of_squares(cls, workload: Workload, answers: Floats, squares: Floats) -> ErrorTable:
        """Tabulate squared errors by class: the root of their mean."""
        literals, level = _classes(workload, answers)
        scale = np.full((MOST_LITERALS, len(LEVELS) - 1), np.nan)
        for k in range(MOST_LITERALS):
            for j in range(len(LEVELS) - 1):
                found = squares[(literals == k) & (level == j)]
                if len(found) >= FEWEST:
                    scale[k, j] = np.sqrt(max(0.0, float(np.mean(found))))
        return cls(_filled(scale))

    @classmethod
    def of_rehearsals(
        cls, workload: Workload, answers: Sequence[Floats], squares: Sequence[Floats]
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
        """
        from scipy.special import ndtri, stdtrit

        different = np.zeros((MOST_LITERALS, len(LEVELS) - 1))
        means = np.zeros_like(different)
        tallies = np.zeros_like(different)
        for found, missed in zip(answers, squares, strict=True):
            literals, level = _classes(workload, found)
            where = literals * (len(LEVELS) - 1) + level
            size = different.size
            means += np.bincount(where, missed, size).reshape(means.shape)
            tallies += np.bincount(where, minlength=size).reshape(means.shape)
            # Answers that agree to seven digits are the same one.
            told = np.rint(1e7 * np.minimum(found, 1.0 - found)).astype(np.int64)
            once = np.unique(np.column_stack([where, told]), axis=0)[:, 0]
            different += np.bincount(once, minlength=size).reshape(means.shape)
        means /= np.maximum(tallies, 1.0)
        scale = np.full_like(means, np.nan)
        for k in range(MOST_LITERALS):
            for j in range(len(LEVELS) - 1):
                part = _window(different[k], j)
                errors = float(different[k, part].sum())
                if errors:
                    square = float(different[k, part] @ means[k, part]) / errors
                    wider = float(stdtrit(errors, INSIDE) / ndtri(INSIDE))
                    scale[k, j] = wider * np.sqrt(max(0.0, square))
        return cls(_filled(scale))

    @classmethod
    def larger(cls, tables: Sequence[ErrorTable]) -> ErrorTable:
        """Per class the largest of several."""
        return cls(np.max([one.scale for one in tables], axis=0))

    def of_answers(self, workload: Workload, answers: Floats) -> Floats:
        """A standard error for each answer, interpolated between the classes."""
        return self.at(np.diff(workload.start), answers, workload.is_parity)

    def at(
        self,
        literals: npt.NDArray[np.integer],
        answers: Floats,
        is_parity: npt.NDArray[np.bool_] | bool = False,
    ) -> Floats:
        """The same for answers to queries with so many literals each."""
        row = np.minimum(literals, MOST_LITERALS) - 1
        distance = np.minimum(answers, 1.0 - answers)
        middle = np.log(np.sqrt(np.maximum(LEVELS[:-1], 3e-5) * LEVELS[1:]))
        place = np.log(np.maximum(distance, 1e-6))
        found = np.empty(len(answers))
        for k in range(MOST_LITERALS):
            chosen = row == k
            found[chosen] = np.exp(np.interp(place[chosen], middle, np.log(self.scale[k])))
        kind = np.broadcast_to(is_parity, found.shape).astype(np.int64)
        factor: Floats = self.unasked[kind, np.minimum(literals, MOST_COUNTED) - 1]
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
    """Empty classes take the figure of the nearest level, then of the nearest row."""
    filled = scale.copy()
    for row in filled:
        known = np.flatnonzero(~np.isnan(row))
        if len(known):
            distance = np.abs(known[None, :] - np.arange(len(row))[:, None])
            row[:] = row[known[np.argmin(distance, axis=1)]]
    known = np.flatnonzero(~np.isnan(filled[:, 0]))
    if not len(known):
        return np.full_like(filled, np.nan)
    for k in range(len(filled)):
        filled[k] = filled[known[np.argmin(np.abs(known - k))]]
    return np.maximum(filled, 1e-9)
