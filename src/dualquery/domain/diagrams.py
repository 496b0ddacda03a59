"""A formula as a decision diagram: attribute by attribute, until it holds or does not hold.

At each level the codes of one attribute are cut into classes that the formula cannot tell apart.
Each class leads to what is left of the formula once the class is known. Equal remainders are one
node, so a parity of twenty attributes has forty nodes rather than a million disjoint conjunctions.
The ways from the top to "holds" are disjoint: their shares add up to the share of the formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Union

from dualquery.base.errors import QueryError
from dualquery.domain.formulas import AllOf, AnyOf, Formula, Not, literals_of
from dualquery.domain.ordered import Attributes
from dualquery.domain.query import Literal, Query

MOST_NODES = 5_000
"""A formula whose diagram has more nodes is refused."""

MOST_PARTS = 5_000
"""The most disjoint conjunctions that `parts` lists."""

NO, YES = -2, -1
"""The targets that end a way through a diagram."""

Codes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _In:
    """The attribute has one of these codes."""

    attribute: int
    codes: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Even:
    """An even number of these holds; or, if `odd`, an odd number."""

    literals: frozenset[_In]
    odd: bool


@dataclass(frozen=True, slots=True)
class _All:
    parts: frozenset[_Rest]


@dataclass(frozen=True, slots=True)
class _Any:
    parts: frozenset[_Rest]


_Rest = Union[bool, _In, _Even, _All, _Any]  # noqa: UP007 - the members refer back to it


@dataclass(frozen=True, slots=True)
class Remainder:
    """What is left of a formula once some attributes are known."""

    rest: _Rest
    order: tuple[int, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, formula: Formula, schema: Attributes) -> Remainder:
        """A whole formula, with every `!` carried to its literals."""
        order = dict.fromkeys(one.attribute for one in literals_of(formula))
        return cls(_simple(formula, schema, False), tuple(order))

    @property
    def attributes(self) -> tuple[int, ...]:
        """The attributes that it still names, in the order in which they were written.

        People write together what belongs together, and then there is less to remember on the way
        from one to the next.
        """
        named = {one.attribute for one in _literals(self.rest)}
        return tuple(attribute for attribute in self.order if attribute in named)

    def split(self, attribute: int, size: int) -> list[tuple[Codes, Remainder]]:
        """Classes of the attribute's codes, each with what it leaves of the formula."""
        sets = [one.codes for one in _literals(self.rest) if one.attribute == attribute]
        if not sets:
            return [(tuple(range(size)), self)]
        classes: dict[tuple[bool, ...], list[int]] = {}
        for code in range(size):
            classes.setdefault(tuple(code in codes for codes in sets), []).append(code)
        merged: dict[_Rest, list[int]] = {}
        constants: dict[bool, list[int]] = {}
        for codes in classes.values():
            left = _known(self.rest, attribute, codes[0])
            if isinstance(left, bool):
                constants.setdefault(left, []).extend(codes)
            else:
                merged.setdefault(left, []).extend(codes)
        found = [*constants.items(), *merged.items()]
        return [(tuple(sorted(codes)), Remainder(left, self.order)) for left, codes in found]


@dataclass(frozen=True, slots=True)
class Branch:
    """A class of codes, and what it leads to: a node of the next level, or `YES` or `NO`."""

    codes: Codes
    target: int


@dataclass(frozen=True)
class Diagram:
    """A formula, decided attribute by attribute.

    Attributes:
        attributes: the attribute of each level.
        levels: the nodes of each level, each a list of branches. Branches of one node cut all
            codes of the attribute into classes.
        root: 0, the only node of the first level; or `YES` or `NO` if there is no level.
    """

    attributes: tuple[int, ...]
    levels: tuple[tuple[tuple[Branch, ...], ...], ...]
    root: int

    @classmethod
    def of(cls, formula: Formula | Remainder, schema: Attributes) -> Diagram:
        """The diagram of a formula; its attributes are decided in the order they are written."""
        whole = formula if isinstance(formula, Remainder) else Remainder.of(formula, schema)
        if isinstance(whole.rest, bool):
            return cls((), (), YES if whole.rest else NO)
        waiting, levels, total = [whole], [], 0
        for attribute in whole.attributes:
            size = schema.attributes[attribute].size
            known: dict[Remainder, int] = {}
            nodes = []
            for one in waiting:
                branches = []
                for codes, left in one.split(attribute, size):
                    if isinstance(left.rest, bool):
                        target = YES if left.rest else NO
                    else:
                        target = known.setdefault(left, len(known))
                    branches.append(Branch(codes, target))
                nodes.append(tuple(branches))
                if total + len(known) > MOST_NODES:
                    raise QueryError(
                        f"the query needs more than {MOST_NODES:,} steps to decide; ask it in parts"
                    )
            total += len(known)
            levels.append(tuple(nodes))
            waiting = list(known)
        return cls(whole.attributes, tuple(levels), 0)

    @cached_property
    def decisive(self) -> tuple[int, ...]:
        """The attributes that the answer depends on; `x=1 | x!=1 & y=1` names y as well as x."""
        return tuple(
            attribute
            for attribute, nodes in zip(self.attributes, self.levels, strict=True)
            if any(len(branches) > 1 for branches in nodes)
        )

    @cached_property
    def always(self) -> bool:
        """Whether every record satisfies the formula."""
        return NO not in self._ends

    @cached_property
    def never(self) -> bool:
        """Whether no record can satisfy the formula."""
        return YES not in self._ends

    @cached_property
    def _ends(self) -> frozenset[int]:
        # Every node was made by a branch that leads to it, so every end can be reached.
        targets = {one.target for level in self.levels for node in level for one in node}
        return frozenset({self.root, *targets} & {YES, NO})

    def parts(self, most: int = MOST_PARTS) -> list[tuple[Literal, ...]]:
        """The literals of disjoint conjunctions; one of them holds where the formula holds.

        A formula that always holds has one part without literals.
        """
        found: list[tuple[Literal, ...]] = []
        for literals in self._ways():
            if len(found) == most:
                raise QueryError(f"the query has more than {most:,} disjoint parts; ask for less")
            found.append(literals)
        return found

    def _ways(self) -> Iterator[tuple[Literal, ...]]:
        """The ways from the root to `YES`; walked without recursion, as levels can be many."""
        waiting: list[tuple[int, int, tuple[Literal, ...]]] = [(self.root, 0, ())]
        while waiting:
            node, level, literals = waiting.pop()
            if node == YES:
                yield literals
            if node < 0:
                continue
            branches = self.levels[level][node]
            for branch in reversed(branches):
                # A class of all codes says nothing about the attribute.
                more = (Literal(self.attributes[level], branch.codes),) if len(branches) > 1 else ()
                waiting.append((branch.target, level + 1, literals + more))


def _simple(formula: Formula, schema: Attributes, negated: bool) -> _Rest:
    match formula:
        case Query("parity"):
            literals = frozenset(_in(one, schema) for one in formula.literals)
            return _Even(literals, odd=negated)
        case Query():
            sets = [_in(one, schema) for one in formula.literals]
            if negated:
                return _join([_trimmed(_complement(one, schema), schema) for one in sets], _Any)
            return _join([_trimmed(one, schema) for one in sets], _All)
        case Not(part):
            return _simple(part, schema, not negated)
        case AllOf(parts) | AnyOf(parts):
            both = isinstance(formula, AllOf) != negated
            return _join([_simple(p, schema, negated) for p in parts], _All if both else _Any)


def _in(literal: Literal, schema: Attributes) -> _In:
    return _In(literal.attribute, literal.allowed(schema.attributes[literal.attribute].size))


def _complement(one: _In, schema: Attributes) -> _In:
    every = range(schema.attributes[one.attribute].size)
    return _In(one.attribute, frozenset(every) - one.codes)


def _trimmed(one: _In, schema: Attributes) -> _Rest:
    if not one.codes:
        return False
    return True if len(one.codes) == schema.attributes[one.attribute].size else one


def _join(parts: Iterable[_Rest], kind: type[_All] | type[_Any]) -> _Rest:
    """Several parts as one, flat and without constants."""
    ends = kind is _Any  # what one part alone decides
    kept: set[_Rest] = set()
    for part in parts:
        if isinstance(part, bool):
            if part == ends:
                return ends
        elif isinstance(part, kind):
            kept |= part.parts
        else:
            kept.add(part)
    if not kept:
        return not ends
    return next(iter(kept)) if len(kept) == 1 else kind(frozenset(kept))


def _literals(rest: _Rest) -> list[_In]:
    match rest:
        case _In():
            return [rest]
        case _Even():
            return list(rest.literals)
        case _All() | _Any():
            return [one for part in rest.parts for one in _literals(part)]
    return []


def _known(rest: _Rest, attribute: int, code: int) -> _Rest:
    """What is left once the attribute is known to have the code."""
    match rest:
        case _In():
            return code in rest.codes if rest.attribute == attribute else rest
        case _Even():
            own = [one for one in rest.literals if one.attribute == attribute]
            if not own:
                return rest
            odd = rest.odd != (code in own[0].codes)
            left = rest.literals - frozenset(own)
            return _Even(left, odd) if left else not odd
        case _All() | _Any():
            return _join((_known(part, attribute, code) for part in rest.parts), type(rest))
    return rest


def classes(
    formula: Formula, columns: Sequence[int], schema: Attributes
) -> list[tuple[tuple[Codes, ...], Remainder]]:
    """The classes of codes of some columns, taken together, that a formula tells apart.

    Args:
        formula: what is asked.
        columns: different attributes.
        schema: the attributes.

    Returns:
        Per class the codes of each column, and what is left of the formula.
    """
    found: list[tuple[tuple[Codes, ...], Remainder]] = [((), Remainder.of(formula, schema))]
    for column in columns:
        size = schema.attributes[column].size
        found = [
            ((*before, codes), after)
            for before, rest in found
            for codes, after in rest.split(column, size)
        ]
    return found
