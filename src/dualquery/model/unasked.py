"""Errors of queries unlike those that were asked: parities, and conjunctions of many columns.

The errors of a release are those of conjunctions of one, two or three literals, by size of answer.
A parity of k literals is 2^(k−1) times as far off as the part of the largest conjunction that
smaller ones do not explain. And of a conjunction of four columns no measured table says how they
hang together. So both are rehearsed, and a factor says by how much their errors are larger.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import add

import numpy as np
import numpy.typing as npt

from dualquery.model.mixture import Mixture
from dualquery.model.pair_kinds import PairKinds
from dualquery.model.standard_errors import KINDS, MOST_COUNTED, ErrorTable
from dualquery.workloads.generators import distinct_rows
from dualquery.workloads.workload import Literals, Workload

Floats = npt.NDArray[np.float64]

EACH = 1_000
"""Random queries of each kind."""


class Unasked:
    """Random queries of the kinds that a workload does not ask for."""

    def __init__(self, asked: Workload, generator: np.random.Generator) -> None:
        """Draw them on the columns that are asked about.

        Args:
            asked: the queries of the release.
            generator: public randomness.
        """
        self.kinds = list(_kinds(asked))
        parts = [_random(asked, k, parity, generator) for parity, k in self.kinds]
        # Without any, some of the asked ones stand there and are not looked at.
        self.queries = reduce(add, parts) if parts else asked.take(np.arange(1))

    def chance(self, model: Mixture, people: float, measured: int) -> Floats:
        """By how much rows depart by chance from what measured tables can say, squared.

        With the shares p of its k literals, the part of a conjunction that no smaller one explains
        has the variance Π p(1 − p)/n; of a parity it is 4^(k−1) times that. It counts if k columns
        were not measured together.

        Args:
            model: the fitted model.
            people: n.
            measured: how many columns the measured tables have.
        """
        literals = self.queries.literals
        terms = 2 * np.arange(len(literals.attribute))[:, None]
        share = model.answers(Workload.conjunctions(self.queries.schema, literals, terms))
        scatter = np.maximum(share * (1.0 - share), 0.0)[self.queries.terms >> 1]
        found = np.multiply.reduceat(scatter, self.queries.start[:-1]) / people
        lengths = np.diff(self.queries.start)
        found *= np.where(self.queries.is_parity, 4.0 ** (lengths - 1), 1.0)
        return np.where(lengths > measured, found, 0.0)

    def factors(
        self,
        table: ErrorTable,
        answers: list[Floats],
        squares: list[Floats],
        kinds: PairKinds | None = None,
    ) -> Floats:
        """By how much errors of each kind are larger than the table says; at least 1.

        Args:
            table: the errors of the asked queries, without factors.
            answers: to these queries, in each rehearsal.
            squares: their squared errors in each.
            kinds: of pairs of attributes, if they are told apart.
        """
        found = np.ones((KINDS, MOST_COUNTED))
        stated = np.mean(
            [table.of_answers(self.queries, one, kinds) ** 2 for one in answers], axis=0
        )
        missed = np.mean(squares, axis=0)
        for number, (parity, k) in enumerate(self.kinds):
            own = slice(EACH * number, EACH * (number + 1))
            ratio = float(missed[own].mean() / stated[own].mean())
            found[int(parity), k - 1] = np.sqrt(max(1.0, ratio))
        return found


def _kinds(asked: Workload) -> Iterator[tuple[bool, int]]:
    """Pairs of whether it is a parity and the number of literals."""
    most, lengths = len(asked.used), np.diff(asked.start)
    if most >= MOST_COUNTED and lengths.max(initial=0) < MOST_COUNTED:
        yield False, MOST_COUNTED
    if not asked.has_parities:
        yield from ((True, k) for k in range(2, min(MOST_COUNTED, most) + 1))


def _random(asked: Workload, k: int, parity: bool, generator: np.random.Generator) -> Workload:
    """Random queries on k of the used columns, with a random code of each."""
    schema, used = asked.schema, asked.used
    columns = used[distinct_rows(generator, len(used), k, EACH)].astype(np.int64)
    codes = generator.integers(0, schema.sizes[columns])
    literals = Literals.single(columns.reshape(-1), codes.reshape(-1))
    plain = Workload.conjunctions(schema, literals, 2 * np.arange(EACH * k).reshape(EACH, k))
    return Workload(schema, literals, plain.start, plain.terms, np.full(EACH, parity))
