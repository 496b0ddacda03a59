"""The model: a mixture of forests over the schema's attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import QueryError
from dualquery.base.threads import over_ranges
from dualquery.domain.query import Query
from dualquery.domain.schema import Schema
from dualquery.model.compiled import CompiledWorkload
from dualquery.model.forest.answers import is_joined, joined_answers, table_of_sets
from dualquery.model.forest.edges import Edges, Inferred
from dualquery.model.forest.trees import APART
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
    """With probability weights[k] a record is of component k, and its attributes follow that.

    `own[schema.code_start[a] + c, k]` is the share of code c among attribute a's own shares in
    component k. An attribute without a parent is drawn from them. What an edge does to those of a
    child is in `edges`; without edges, attributes are independent in every component. Every
    conjunction or parity of set-literals has a closed form, and any number of valid records can be
    drawn.
    """

    schema: Schema
    weights: Floats
    own: Floats
    edges: Edges | None = None

    @cached_property
    def tables(self) -> Floats:
        """The probability of every code in every component, whatever its parent's code is."""
        if self.edges is None:
            return self.own
        tables = self.own.copy()
        for child in self.edges.trees.children.tolist():
            part = slice(*self.schema.code_start[child : child + 2])
            groups = self.edges.groups.of_attribute(child)
            own = self.inferred.own(child)
            moved = self.inferred.margin(child) / np.where(own > 0.0, own, 1.0)
            tables[part] *= moved.T[groups]
        return tables

    @cached_property
    def inferred(self) -> Inferred:
        """The shares of joined attributes together; only for a mixture with edges."""
        assert self.edges is not None
        return Inferred(self.edges, self.schema.code_start, self.own)

    def answers(self, workload: Workload) -> Floats:
        """The probability of each query."""
        return self.answers_to(CompiledWorkload.of(workload))

    def table(self, attributes: Sequence[int]) -> Floats:
        """The share of every cell of some attributes, one axis each."""
        sizes = self.schema.sizes
        return table_of_sets(self, {a: np.eye(int(sizes[a])) for a in attributes})

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
        found = compiled.in_query_order(arranged_answers(compiled, weights, tables))
        if self.edges is not None:
            joined = np.flatnonzero(is_joined(self.inferred, compiled.workload))
            found[joined] = joined_answers(self, compiled.workload, joined)
        return found

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
        if self.edges is not None:
            two[self.edges.trees.children] = False
        children = [] if self.edges is None else self.edges.trees.children.tolist()
        binary = np.flatnonzero(two)
        others = np.setdiff1d(np.flatnonzero(~two), children).tolist()
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
            for a in children:
                codes[chosen, a] = self._drawn_given(a, k, codes[chosen], generator)
        return codes

    def _drawn_given(
        self, child: int, k: int, codes: npt.NDArray[np.int32], generator: np.random.Generator
    ) -> npt.NDArray[np.int32]:
        """Codes of a child for records of component k whose parents are drawn already."""
        shares = np.cumsum(self.given_parent(child, k), axis=1)
        parent = int(self.edges.trees.parent[child]) if self.edges is not None else 0
        groups = self.edges.groups.of_attribute(parent) if self.edges is not None else codes[:, 0]
        found = np.empty(len(codes), dtype=np.int32)
        above = groups[codes[:, parent]]
        for group in np.unique(above).tolist():
            here = above == group
            uniform = generator.random(int(here.sum())) * shares[group, -1]
            found[here] = np.searchsorted(shares[group, :-1], uniform, side="right")
        return found

    def given_parent(self, child: int, k: int) -> Floats:
        """Shares of a child's codes in component k, one row per group of its parent's codes."""
        assert self.edges is not None  # only a child has a parent
        own = self.own[slice(*self.schema.code_start[child : child + 2]), k]
        groups = self.edges.groups.of_attribute(child)
        whole = self.inferred.own(child)[k]
        inside = own / np.where(whole > 0.0, whole, 1.0)[groups]
        found: Floats = self.inferred.given(child)[k][:, groups] * inside
        return found

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
        own = np.concatenate([other for _, other in restricted], axis=1)
        if weights.sum() <= 0.0:
            raise QueryError("the model gives this condition probability 0")
        possible = weights > 0.0
        kept = weights[possible]
        edges = self.edges
        if edges is not None:
            every = np.tile(np.arange(len(self.weights)), len(parts))
            edges = edges.of_components(every[possible])
        return Mixture(self.schema, kept / kept.sum(), own[:, possible], edges)

    def _restricted(self, query: Query) -> tuple[Floats, Floats]:
        """What remains of every component where a conjunction holds: its weight, its own shares."""
        if query.kind != "conjunction":
            raise QueryError("rows can be conditioned on a conjunction, not on a parity")
        kept = {}
        for literal in query.literals:
            size = int(self.schema.sizes[literal.attribute])
            allowed = literal.allowed(size)
            kept[literal.attribute] = np.array([code in allowed for code in range(size)], float)
        return self.tilted(kept)

    def tilted(self, factors: Mapping[int, Floats]) -> tuple[Floats, Floats]:
        """The weights and own shares if the probability of every record is multiplied.

        Args:
            factors: per attribute one per code, 0 or more. Edges stay as they are. Weights add up
                to the expected product of all factors.
        """
        weights, own = self.weights.copy(), self.own.copy()
        parent = None if self.edges is None else self.edges.trees.parent
        depth = None if self.edges is None else self.edges.trees.depth
        messages: dict[int, Floats] = {}
        waiting = set(factors)
        while waiting:
            # Those farthest from their roots first: what they say is heard by their parents.
            a = max(waiting, key=lambda one: (0 if depth is None else int(depth[one]), -one))
            waiting.discard(a)
            part = slice(*self.schema.code_start[a : a + 2])
            factor = (
                np.ones((part.stop - part.start, 1))
                if a not in factors
                else (np.asarray(factors[a], dtype=np.float64)[:, None])
            )
            if a in messages:  # one row per component, one column per group of this attribute
                assert self.edges is not None
                factor = factor * messages[a].T[self.edges.groups.of_attribute(a)]
            tilted = own[part] * factor
            if parent is None or parent[a] == APART:
                share = tilted.sum(axis=0)
                weights *= share
            else:
                share = tilted.sum(axis=0)
                assert self.edges is not None
                own_groups = self.inferred.own(a)
                moved = self.edges.in_groups(tilted.T, a)
                ratio = moved / np.where(own_groups > 0.0, own_groups, 1.0)
                said = np.einsum("kab,kb->ka", self.inferred.given(a), ratio)
                above = int(parent[a])
                messages[above] = messages[above] * said if above in messages else said
                waiting.add(above)
            possible = share > 0.0
            fallback = factor > 0.0
            own[part] = np.where(
                possible,
                tilted / np.where(possible, share, 1.0),
                fallback / np.maximum(fallback.sum(axis=0), 1),
            )
        return weights, own


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
