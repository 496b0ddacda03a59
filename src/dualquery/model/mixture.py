"""The model: a mixture of product distributions over the schema's attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import QueryError
from dualquery.base.threads import over_ranges
from dualquery.domain.query import Query
from dualquery.domain.schema import Schema
from dualquery.model.compiled import CompiledWorkload
from dualquery.workloads.workload import Workload

Floating = npt.NDArray[np.floating]
"""Of single precision while a model is trained, else of double."""

Floats = npt.NDArray[np.float64]

COLUMNS = 2048
"""From so many 0/1 attributes on, rows of them are drawn many columns at a time."""

TRIES = 20
"""How often a row that breaks a constraint is drawn again before it is mended."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """With probability weights[k], every attribute is drawn from its own table of component k.

    `tables[schema.code_start[a] + c, k]` is the probability that attribute a has code c in
    component k. Every conjunction or parity of set-literals has a closed form, and any number of
    valid records can be drawn.
    """

    schema: Schema
    weights: Floats
    tables: Floats

    def answers(self, workload: Workload) -> Floats:
        """The probability of each query."""
        return self.answers_to(CompiledWorkload.of(workload))

    def answers_to(self, compiled: CompiledWorkload, *, single: bool = False) -> Floats:
        """The same for a workload that was arranged before, which takes longer than to answer it.

        Args:
            compiled: the queries.
            single: in single precision, which is twice as fast and off by about 10⁻⁷.
        """
        tables: Floating = self.tables[compiled.stack.codes]
        weights: Floating = self.weights
        if single:
            tables, weights = tables.astype(np.float32), weights.astype(np.float32)
        return compiled.in_query_order(arranged_answers(compiled, weights, tables))

    def sample(self, rows: int, generator: np.random.Generator) -> npt.NDArray[np.int32]:
        """Draw records, one row of codes each; every one is valid and obeys the constraints.

        What breaks a constraint is drawn again, so that rows follow the model given that all
        hold; what still breaks one after some tries is mended.
        """
        codes = self._draw(rows, generator)
        constraints = self.schema.constraints
        if constraints is None:
            return codes
        for _ in range(TRIES):
            broken = np.flatnonzero(~constraints.holds(codes))
            if not len(broken):
                return codes
            codes[broken] = self._draw(len(broken), generator)
        return constraints.repair(codes, generator)

    def _draw(self, rows: int, generator: np.random.Generator) -> npt.NDArray[np.int32]:
        return self.drawn(generator.choice(len(self.weights), size=rows, p=self.weights), generator)

    def drawn(
        self, component: npt.NDArray[np.integer], generator: np.random.Generator
    ) -> npt.NDArray[np.int32]:
        """Draw a record from each of these components, whatever the constraints say."""
        order = np.argsort(component, kind="stable")
        bounds = np.searchsorted(component[order], np.arange(len(self.weights) + 1))
        start = self.schema.code_start
        codes = np.empty((len(component), len(self.schema)), dtype=np.int32)
        two = self.schema.sizes == 2
        if two.sum() < COLUMNS:  # then a loop is fast enough
            two[:] = False
        binary, others = np.flatnonzero(two), np.flatnonzero(~two).tolist()
        for k in range(len(self.weights)):
            chosen = order[bounds[k] : bounds[k + 1]]
            if not len(chosen):
                continue
            for first in range(0, len(binary), COLUMNS):
                part = binary[first : first + COLUMNS]
                uniform = generator.random((len(chosen), len(part)), dtype=np.float32)
                codes[np.ix_(chosen, part)] = uniform < self.tables[start[part] + 1, k]
            for a in others:
                shares = np.cumsum(self.tables[start[a] : start[a + 1], k])
                uniform = generator.random(len(chosen)) * shares[-1]
                codes[chosen, a] = np.searchsorted(shares[:-1], uniform, side="right")
        return codes

    def given(self, query: Query) -> Mixture:
        """The model of the records that satisfy a conjunction."""
        return self.given_any([query])

    def given_any(self, parts: Sequence[Query]) -> Mixture:
        """The model of the records that satisfy one of some conjunctions.

        Args:
            parts: conjunctions that exclude one another. Each of them has components of its own.
        """
        restricted = [self._restricted(part) for part in parts]
        weights = np.concatenate([one for one, _ in restricted])
        tables = np.concatenate([other for _, other in restricted], axis=1)
        if weights.sum() <= 0.0:
            raise QueryError("the model holds the condition for impossible")
        possible = weights > 0.0
        kept = weights[possible]
        return Mixture(self.schema, kept / kept.sum(), tables[:, possible])

    def _restricted(self, query: Query) -> tuple[Floats, Floats]:
        """What remains of every component where a conjunction holds: its weight, its tables."""
        if query.kind != "conjunction":
            raise QueryError("rows can be conditioned on a conjunction, not on a parity")
        weights, tables = self.weights.copy(), self.tables.copy()
        for literal in query.literals:
            begin = int(self.schema.code_start[literal.attribute])
            size = int(self.schema.sizes[literal.attribute])
            allowed = literal.allowed(size)
            kept = np.array([code in allowed for code in range(size)])
            part = tables[begin : begin + size] * kept[:, None]
            share = part.sum(axis=0)
            weights *= share
            tables[begin : begin + size] = np.where(
                share > 0.0, part / np.where(share > 0.0, share, 1.0), kept[:, None] / kept.sum()
            )
        return weights, tables


def arranged_answers(compiled: CompiledWorkload, weights: Floating, tables: Floating) -> Floating:
    """The answers of a mixture in the order of a compiled workload, in the tables' precision."""
    from dualquery.model._kernels import fill_rows

    rows = np.empty((compiled.row_count, len(weights)), tables.dtype)
    fill_rows(tables, compiled.member_start, compiled.members, rows)
    return answers_from_rows(compiled, weights, rows)


def answers_from_rows(compiled: CompiledWorkload, weights: Floating, rows: Floating) -> Floating:
    """The same from the rows of the literals; the rows of parities are filled in here."""
    from dualquery.model._kernels import forward

    plain = 2 * compiled.literals
    rows[plain:] = 1.0 - 2.0 * rows[: len(rows) - plain]
    answers = np.empty(len(compiled.order), dtype=rows.dtype)

    def task(first: int, stop: int) -> None:
        forward(
            rows, weights, compiled.group_start, compiled.prefix_start, compiled.prefix,
            compiled.last, answers, first, stop,
        )  # fmt: skip

    over_ranges(task, len(compiled.group_start) - 1, grain=512)
    if compiled.has_parities:
        answers[compiled.is_parity] = 0.5 + 0.5 * answers[compiled.is_parity]
    return answers
