"""One query: a predicate on one record, written with attribute names and codes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal as OneOf

from dualquery.base.errors import QueryError
from dualquery.domain.ordered import Attributes

Kind = OneOf["conjunction", "parity"]


@dataclass(frozen=True, slots=True)
class Literal:
    """An attribute together with a set of its codes; `negated` takes the complement.

    Polarity is a flag rather than another set of codes, because x and not-x then share one
    packed column of bits.
    """

    attribute: int
    codes: tuple[int, ...]
    negated: bool = False

    def allowed(self, size: int) -> frozenset[int]:
        """The codes that satisfy the literal, out of `size`."""
        codes = frozenset(self.codes)
        return frozenset(range(size)) - codes if self.negated else codes


@dataclass(frozen=True, slots=True)
class Query:
    """A conjunction (all literals hold) or a parity (an even number of them holds)."""

    kind: Kind
    literals: tuple[Literal, ...]

    def __post_init__(self) -> None:
        if not self.literals:
            raise QueryError(f"a {self.kind} needs at least one literal")
        attributes = [literal.attribute for literal in self.literals]
        if len(set(attributes)) != len(attributes):
            raise QueryError(f"a {self.kind} names one attribute twice")


def conjunction(literals: Iterable[Literal], schema: Attributes) -> Query:
    """Build a conjunction, merging literals on the same attribute.

    `age>=25 & age<50` becomes one literal. `sex=Female & sex=Male` is refused, because a query
    that no record can satisfy is a mistake.
    """
    merged: dict[int, Literal] = {}
    for literal in literals:
        attribute = schema.attributes[literal.attribute]
        earlier = merged.get(literal.attribute)
        if earlier is not None:
            codes = earlier.allowed(attribute.size) & literal.allowed(attribute.size)
            if not codes:
                raise QueryError(f"the literals on {attribute.name!r} contradict one another")
            literal = Literal(literal.attribute, tuple(sorted(codes)))
        merged[literal.attribute] = literal
    return Query("conjunction", tuple(merged.values()))


def parity(literals: Iterable[Literal]) -> Query:
    """Build the predicate "an even number of these literals holds"."""
    return Query("parity", tuple(literals))
