"""Workloads and rows in plain Python: a twin that shares no code with the package.

It reads rows as they were before anything encoded them. A query is a kind and, for each term, a
column, a set of values and a polarity.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

import dualquery as dq
from dualquery.domain.attributes import Attribute
from dualquery.domain.query import Literal, Query
from dualquery.domain.schema import Schema
from dualquery.workloads.probes import with_probes
from dualquery.workloads.workload import Workload

Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class Term:
    """A column, the values that satisfy it, and whether it is negated."""

    column: str
    values: frozenset[Any]
    negated: bool = False


@dataclass(frozen=True)
class Plain:
    """A query in plain Python."""

    parity: bool
    terms: tuple[Term, ...]


class Twin:
    """The rows as they are given, and counts by definition."""

    def __init__(self, columns: Columns) -> None:
        self._cells = {
            name: np.unique(np.array(cells), return_inverse=True) for name, cells in columns.items()
        }
        self._hits: dict[tuple[str, frozenset[Any]], np.ndarray] = {}

    def holds(self, term: Term) -> np.ndarray:
        key = term.column, term.values
        if key not in self._hits:
            occurring, place = self._cells[term.column]
            self._hits[key] = np.array([v in term.values for v in occurring.tolist()])[place]
        return ~self._hits[key] if term.negated else self._hits[key]

    def satisfied(self, query: Plain) -> np.ndarray:
        """Per row, whether it satisfies a query."""
        flags = [self.holds(term) for term in query.terms]
        found = flags[0].copy()
        for flag in flags[1:]:
            found = found ^ flag if query.parity else found & flag
        return ~found if query.parity else found

    def count(self, asked: list[Plain]) -> np.ndarray:
        return np.array([int(self.satisfied(query).sum()) for query in asked], dtype=np.int64)


def values_of(attribute: Attribute) -> list[Any]:
    return [0, 1] if attribute.is_binary else list(attribute.values)


@dataclass(frozen=True)
class Part:
    """One part of a workload, and what it asks in plain Python."""

    workload: Workload
    plain: list[Plain]


def part_of(queries: list[Query], schema: Schema) -> Part:
    plain = []
    for query in queries:
        terms = []
        for literal in query.literals:
            attribute = schema.attributes[literal.attribute]
            values = values_of(attribute)
            chosen = frozenset(values[code] for code in literal.codes)
            terms.append(Term(attribute.name, chosen, literal.negated))
        plain.append(Plain(query.kind == "parity", tuple(terms)))
    return Part(Workload.of(queries, schema), plain)


def whole_tables(schema: Schema, k: int) -> Part:
    """All k-way marginals; the twin lists the cells by itself."""
    plain = [
        Plain(False, tuple(Term(a.name, frozenset([v])) for a, v in zip(chosen, cell, strict=True)))
        for chosen in combinations(schema.attributes, k)
        for cell in product(*(values_of(a) for a in chosen))
    ]
    return Part(dq.all_marginals(schema, k), plain)


def joined(parts: list[Part]) -> Part:
    workload = parts[0].workload
    for part in parts[1:]:
        workload = workload + part.workload
    return Part(workload, [query for part in parts for query in part.plain])


def probed(part: Part, seed: int) -> Part:
    """With the probes of the default player; what these ask is read off their arrays."""
    actions = with_probes(part.workload, seed)
    assert actions.asked == len(part.plain)
    return Part(actions.queries, [*part.plain, *read(actions.queries)[actions.asked :]])


def read(workload: Workload) -> list[Plain]:
    """What the arrays of a workload ask."""
    literals, plain = workload.literals, []
    for q in range(len(workload)):
        terms = []
        for term in workload.terms[workload.start[q] : workload.start[q + 1]].tolist():
            attribute = workload.schema.attributes[int(literals.attribute[term // 2])]
            begin, end = literals.start[term // 2 : term // 2 + 2].tolist()
            chosen = frozenset(values_of(attribute)[c] for c in literals.codes[begin:end].tolist())
            terms.append(Term(attribute.name, chosen, term % 2 == 1))
        plain.append(Plain(bool(workload.is_parity[q]), tuple(terms)))
    return plain


# What is asked


def random_query(random: np.random.Generator, schema: Schema, style: str, most: int) -> Query:
    """A query of single codes, of sets, of negations, or of everything, or a parity."""
    k = int(random.integers(1, min(most, len(schema)) + 1))
    literals = []
    for position in random.permutation(len(schema))[:k].tolist():
        size = int(schema.sizes[position])
        length = 1 if style == "singles" or size == 1 else int(random.integers(1, size + 1))
        codes = tuple(sorted(random.permutation(size)[:length].tolist()))
        negated = style != "singles" and bool(random.integers(0, 2))
        literals.append(Literal(position, codes, negated or style == "negations"))
    return Query("parity" if style == "parities" else "conjunction", tuple(literals))


STYLES = ("singles", "sets", "negations", "parities")


def some_queries(
    random: np.random.Generator, schema: Schema, style: str, length: int, most: int = 5
) -> Part:
    return part_of([random_query(random, schema, style, most) for _ in range(length)], schema)


def random_rows(
    random: np.random.Generator, schema: Schema, rows: int, rare: float | None = None
) -> Columns:
    """Raw cells; with `rare`, of a thousand rows about so many have the last value of a column."""
    columns: Columns = {}
    for attribute in schema.attributes:
        values = values_of(attribute)
        shares = random.dirichlet(np.full(len(values), 2.0))
        if rare is not None and len(values) > 1:
            shares[:-1] *= (1.0 - rare / 1000.0) / shares[:-1].sum()
            shares[-1] = rare / 1000.0
        chosen = random.choice(len(values), size=rows, p=shares / shares.sum())
        columns[attribute.name] = [values[c] for c in chosen.tolist()]
    return columns


def categorical(*sizes: int) -> Schema:
    """Columns of words; those of size 2 are 0/1 columns."""
    return Schema(
        tuple(
            Attribute.binary(f"c{i}")
            if size == 2
            else Attribute.categorical(f"c{i}", [f"v{chr(97 + v)}" for v in range(size)])
            for i, size in enumerate(sizes)
        )
    )
