"""The m queries of one release, as arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import QueryError
from dualquery.base.ragged import Offsets, offsets, taken
from dualquery.domain.attributes import Attribute
from dualquery.domain.query import Literal, Query
from dualquery.domain.schema import Schema

IntArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Literals:
    """Positive literals: in literal i, `attribute[i]` has one of `codes[start[i]:start[i + 1]]`."""

    attribute: IntArray
    start: Offsets
    codes: IntArray

    def __len__(self) -> int:
        return len(self.attribute)

    def codes_of(self, literal: int) -> IntArray:
        return self.codes[self.start[literal] : self.start[literal + 1]]

    def take(self, chosen: npt.NDArray[np.integer]) -> Literals:
        """The literals at `chosen`, in that order."""
        start, places = taken(self.start, chosen)
        return Literals(self.attribute[chosen], start, self.codes[places])

    def membership(self, literal: int, size: int) -> BoolArray:
        """Per code of the attribute, whether the literal holds."""
        table = np.zeros(size, dtype=bool)
        table[self.codes_of(literal)] = True
        return table

    @cached_property
    def owner(self) -> Offsets:
        """For each entry of `codes`, the literal that it belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    @classmethod
    def single(cls, attribute: npt.NDArray[np.integer], code: npt.NDArray[np.integer]) -> Literals:
        """Literals of one code each: literal i is `attribute[i]` having `code[i]`."""
        return cls(
            attribute.astype(np.int32),
            np.arange(len(attribute) + 1, dtype=np.int64),
            code.astype(np.int32),
        )

    @classmethod
    def of(cls, sets: Iterable[tuple[int, Sequence[int]]]) -> Literals:
        """Build from (attribute, codes) pairs."""
        pairs = list(sets)
        return cls(
            np.array([attribute for attribute, _ in pairs], dtype=np.int32),
            offsets([len(codes) for _, codes in pairs]),
            np.array([code for _, codes in pairs for code in codes], dtype=np.int32),
        )


@dataclass(frozen=True, eq=False)
class Workload:
    """The m queries of one release, and, without being stored, their negations.

    Query q has the terms `terms[start[q]:start[q + 1]]`. A term is twice the index of its literal,
    plus one if the literal is negated. A query is a parity if `is_parity[q]`, else a conjunction.
    Negations of whole queries are never stored, because a draw carries a sign.
    """

    schema: Schema
    literals: Literals
    start: Offsets
    terms: IntArray
    is_parity: BoolArray

    def __len__(self) -> int:
        return len(self.start) - 1

    def __iter__(self) -> Iterator[Query]:
        return (self.query(position) for position in range(len(self)))

    @cached_property
    def joining(self) -> Offsets:
        """The conjunctions with a literal that joins codes: several satisfy it, and several do not.

        A literal that all codes except one satisfy joins nothing. Rehearsals judge such answers as
        they judge those of single codes.
        """
        sizes = self.schema.sizes[self.literals.attribute].astype(np.int64)
        listed = np.diff(self.literals.start)
        allowed = np.column_stack([listed, sizes - listed])
        several = (allowed > 1) & (allowed < sizes[:, None] - 1)
        if not several.any() or not len(self):
            return np.empty(0, dtype=np.int64)
        of_term = several[self.terms >> 1, self.terms & 1]
        found = np.logical_or.reduceat(of_term, self.start[:-1]) & ~self.is_parity
        return np.flatnonzero(found).astype(np.int64)

    @cached_property
    def arity(self) -> int | None:
        """The number of terms per query if it is the same for all queries, else None."""
        lengths = np.diff(self.start)
        if len(lengths) and np.all(lengths == lengths[0]):
            return int(lengths[0])
        return None

    @cached_property
    def has_parities(self) -> bool:
        """Whether any query is a parity."""
        return bool(self.is_parity.any())

    @cached_property
    def used(self) -> IntArray:
        """The attributes that the queries name, in rising order."""
        named = np.zeros(len(self.literals), dtype=bool)
        named[self.terms >> 1] = True
        found: IntArray = np.unique(self.literals.attribute[named])
        return found

    def sorted_terms(self) -> IntArray:
        """A matrix with a row per query: its terms in rising order, filled with −1 on the left."""
        lengths = np.diff(self.start)
        widest = int(lengths.max(initial=0))
        if self.arity is not None and widest:  # nothing to fill
            matrix = self.terms.reshape(len(self), widest).copy()
            matrix.sort(axis=1)
            return matrix
        matrix = np.full((len(self), widest), -1, dtype=np.int32)
        row = np.repeat(np.arange(len(self)), lengths)
        place = np.arange(len(self.terms)) - np.repeat(self.start[:-1], lengths)
        matrix[row, place + np.repeat(widest - lengths, lengths)] = self.terms
        matrix.sort(axis=1)
        return matrix

    @cached_property
    def different(self) -> tuple[Offsets, Offsets]:
        """The queries without repeats. Two queries are the same if their terms are, in any order.

        Returns:
            The first position of each different query, and per query the number of the different
            query that it is.
        """
        matrix = np.column_stack([self.is_parity, self.sorted_terms()])
        order = np.lexsort(matrix.T[::-1])
        arranged = matrix[order]
        new = np.ones(len(self), dtype=bool)
        new[1:] = (arranged[1:] != arranged[:-1]).any(axis=1)
        which = np.empty(len(self), dtype=np.int64)
        which[order] = np.cumsum(new) - 1
        return order[new], which

    def query(self, position: int) -> Query:
        """One query, as an object."""
        terms = self.terms[self.start[position] : self.start[position + 1]]
        literals = tuple(
            Literal(
                int(self.literals.attribute[term >> 1]),
                tuple(int(code) for code in self.literals.codes_of(term >> 1)),
                bool(term & 1),
            )
            for term in terms
        )
        return Query("parity" if self.is_parity[position] else "conjunction", literals)

    def take(self, chosen: npt.NDArray[np.integer]) -> Workload:
        """The queries at `chosen`, in that order, with only the literals they use."""
        start, places = taken(self.start, chosen)
        terms = self.terms[places]
        used, position = np.unique(terms >> 1, return_inverse=True)
        return Workload(
            self.schema,
            self.literals.take(used),
            start,
            (2 * position + (terms & 1)).astype(np.int32),
            self.is_parity[chosen],
        )

    def __add__(self, other: Workload) -> Workload:
        """The queries of both, one after the other; shared literals stay shared."""
        if other.schema != self.schema:
            raise QueryError("workloads over different schemas cannot be joined")
        place = {key: i for i, key in enumerate(_keys(self.literals))}
        mapping = np.empty(len(other.literals), dtype=np.int64)
        fresh: list[int] = []
        for i, key in enumerate(_keys(other.literals)):
            if key not in place:
                place[key] = len(self.literals) + len(fresh)
                fresh.append(i)
            mapping[i] = place[key]
        added = other.literals.take(np.array(fresh, dtype=np.int64))
        literals = Literals(
            np.concatenate([self.literals.attribute, added.attribute]),
            np.concatenate([self.literals.start, self.literals.start[-1] + added.start[1:]]),
            np.concatenate([self.literals.codes, added.codes]),
        )
        terms = (2 * mapping[other.terms >> 1] + (other.terms & 1)).astype(np.int32)
        return Workload(
            self.schema,
            literals,
            np.concatenate([self.start, self.start[-1] + other.start[1:]]),
            np.concatenate([self.terms, terms]),
            np.concatenate([self.is_parity, other.is_parity]),
        )

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the queries, which tells workloads apart."""
        digest = hashlib.sha256()
        for array in (
            self.literals.attribute,
            self.literals.start,
            self.literals.codes,
            self.start,
            self.terms,
            self.is_parity,
        ):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @classmethod
    def conjunctions(
        cls, schema: Schema, literals: Literals, terms: npt.NDArray[np.integer]
    ) -> Workload:
        """Conjunctions of equal length: row q of the matrix `terms` holds the terms of query q."""
        count, k = terms.shape
        return cls(
            schema,
            literals,
            np.arange(count + 1, dtype=np.int64) * k,
            terms.reshape(-1).astype(np.int32, copy=False),
            np.zeros(count, dtype=bool),
        )

    @classmethod
    def of(cls, queries: Iterable[Query], schema: Schema) -> Workload:
        """Build from query objects."""
        place: dict[tuple[int, tuple[int, ...]], int] = {}
        start, terms, is_parity = [0], [], []
        for query in queries:
            for literal in query.literals:
                key = (literal.attribute, tuple(sorted(set(literal.codes))))
                terms.append(2 * place.setdefault(key, len(place)) + literal.negated)
            start.append(len(terms))
            is_parity.append(query.kind == "parity")
        if len(start) == 1:
            raise QueryError("a workload needs at least one query")
        for attribute, codes in place:
            _check_codes(schema.attributes[attribute], codes)
        return cls(
            schema,
            Literals.of(place),
            np.array(start, dtype=np.int64),
            np.array(terms, dtype=np.int32),
            np.array(is_parity, dtype=bool),
        )


def _check_codes(attribute: Attribute, codes: Sequence[int]) -> None:
    """Refuse a code outside the domain.

    Tables of codes lie end to end, so such a code would be read as one of the next attribute.
    """
    if not codes:
        raise QueryError(f"a literal on {attribute.name!r} has no code")
    for code in (codes[0], codes[-1]):
        if not 0 <= code < attribute.size:
            raise QueryError(
                f"code {code} of {attribute.name!r}; expected 0 to {attribute.size - 1}"
            )


def _keys(literals: Literals) -> Iterator[tuple[int, bytes]]:
    for i in range(len(literals)):
        yield int(literals.attribute[i]), literals.codes_of(i).tobytes()
