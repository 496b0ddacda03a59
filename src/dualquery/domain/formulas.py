"""Questions to a release: queries joined by `&`, `|`, `!` and parentheses.

    (smoker | diabetic) & !(sex=Male & age>=50)

A workload takes conjunctions and parities only, because a best response must stay a small program.
A model can be asked anything: a formula is cut into disjoint conjunctions, whose shares add up.
`diagrams` does the cutting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from dualquery.base.errors import QueryError
from dualquery.domain.language import Parser
from dualquery.domain.ordered import Attributes
from dualquery.domain.query import Literal, Query

DEEPEST = 50
"""The most parentheses and signs `!` around one another."""


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Formula


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part holds."""

    parts: tuple[Formula, ...]


Formula = Union[Query, Not, AllOf, AnyOf]  # noqa: UP007 - the members refer back to it


def parse_formula(text: str, schema: Attributes) -> Formula:
    """Read one question; a plain conjunction or parity is read as `language.parse` reads it.

    Args:
        text: the question.
        schema: the attributes that it names.
    """
    return _FormulaParser(text, schema).formula()


def format_formula(formula: Formula, schema: Attributes) -> str:
    """Write a formula so that `parse_formula` reads it back."""
    from dualquery.domain.printing import format_query

    match formula:
        case Query():
            return format_query(formula, schema)
        case Not(part):
            return f"!({format_formula(part, schema)})"
        case AllOf(parts):
            held = [_held(part, schema) for part in parts]
            if all(_is_literal(part) for part in parts) and _repeats(formula):
                # Without parentheses it would be read as one conjunction, and those that no
                # record can satisfy are refused.
                held[0] = f"({held[0]})"
            return " & ".join(held)
        case AnyOf(parts):
            return " | ".join(_held(part, schema) for part in parts)


def _held(part: Formula, schema: Attributes) -> str:
    text = format_formula(part, schema)
    plain = isinstance(part, Not) or (isinstance(part, Query) and part.kind == "parity")
    return text if plain or _is_literal(part) else f"({text})"


def _is_literal(formula: Formula) -> bool:
    return isinstance(formula, Query) and len(formula.literals) == 1


def _repeats(formula: Formula) -> bool:
    """Whether two of its literals are on one attribute."""
    named = [literal.attribute for literal in literals_of(formula)]
    return len(set(named)) < len(named)


class _FormulaParser(Parser):
    """Recursive descent; `&` binds closer than `|`, and `!` closer than both."""

    depth = 0

    def formula(self) -> Formula:
        if not any(token.kind == "symbol" and token.text in "|!(" for token in self.tokens):
            return self.query()
        found = self.any_of()
        if self.next < len(self.tokens):
            raise self.unexpected("'&', '|' or the end of the query")
        return found

    def any_of(self) -> Formula:
        parts = [self.all_of()]
        while self.is_symbol("|"):
            self.next += 1
            parts.append(self.all_of())
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def all_of(self) -> Formula:
        parts = [self.part()]
        while self.is_symbol("&"):
            self.next += 1
            parts.append(self.part())
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def part(self) -> Formula:
        if self.begins_parity():
            return self.parity()
        if not self.is_symbol("!") and not self.is_symbol("("):
            return Query("conjunction", (self.literal(),))
        if self.depth == DEEPEST:
            raise QueryError(f"the query nests more than {DEEPEST} parentheses or signs '!'")
        self.depth += 1
        negated = self.is_symbol("!")
        self.next += 1
        if negated:
            found: Formula = Not(self.part())
        else:
            found = self.any_of()
            self.expect(")", "'&', '|' or ')'")
        self.depth -= 1
        return found


def literals_of(formula: Formula) -> list[Literal]:
    """Every literal that stands in a formula, from left to right."""
    found: list[Literal] = []
    waiting: list[Formula] = [formula]
    while waiting:
        one = waiting.pop()
        match one:
            case Query():
                found.extend(one.literals)
            case Not(part):
                waiting.append(part)
            case AllOf(parts) | AnyOf(parts):
                waiting.extend(reversed(parts))
    return found
