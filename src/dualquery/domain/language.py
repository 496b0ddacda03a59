"""The query language; `printing` is its other direction.

    sex=Female & age>=50 & income!=">50K"
    age in [25,50)          race in {Black, Other}          workclass is missing
    icd in group(I)         admitted>=2022-07-01            smoker=yes
    parity(smoker, diabetic, sex=Male)

A name or value with spaces or symbols stands in double quotes. `formulas` adds `|`, `!` and
parentheses, for questions to a release.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from dualquery.base.errors import QueryError, SchemaError
from dualquery.base.similar import did_you_mean
from dualquery.domain.attributes import Attribute
from dualquery.domain.ordered import Attributes
from dualquery.domain.printing import PLAIN, bins_text
from dualquery.domain.query import Literal, Query, conjunction, parity
from dualquery.domain.types import number_of

_TOKEN = re.compile(
    rf"""\s*(?: (?P<quoted>"(?:[^"\\]|\\.)*")
             | (?P<symbol><=|>=|!=|==|[=<>&|!,(){{}}\[\]])
             | (?P<word>{PLAIN}) )""",
    re.VERBOSE,
)
_RELATIONS = ("=", "==", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    kind: str
    position: int


def parse(text: str, schema: Attributes) -> Query:
    """Read one query."""
    return Parser(text, schema).query()


def parse_lines(lines: Iterable[str], schema: Attributes) -> list[Query]:
    """Read one query per line; empty lines and lines that start with # are skipped."""
    queries = []
    for number, line in enumerate(lines, start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            try:
                queries.append(parse(stripped, schema))
            except QueryError as error:
                raise QueryError(f"line {number}: {error}") from None
    return queries


def _tokens(text: str) -> list[_Token]:
    found, position = [], 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            rest = text[position:].strip()
            raise QueryError(f"cannot read {rest[:12]!r} at position {position + 1} of the query")
        kind = match.lastgroup or ""
        token = match.group(kind)
        if kind == "quoted":
            try:
                token = json.loads(token)
            except json.JSONDecodeError:
                raise QueryError(f"bad escape in the quoted text {token}") from None
        found.append(_Token(token, kind, match.start(kind) + 1))
        position = match.end()
    return found


class OffEdgeError(QueryError):
    """A limit lies inside a bin. A release can say what it knows about that; a workload cannot.

    Args:
        told: the message.
        name: the attribute.
        number: the limit.
    """

    def __init__(self, told: str, name: str, number: float) -> None:
        super().__init__(told)
        self.name, self.number = name, number


class Parser:
    """Recursive descent over the tokens of one query."""

    def __init__(self, text: str, schema: Attributes) -> None:
        self.schema = schema
        self.tokens = _tokens(text)
        self.next = 0
        if not self.tokens:
            raise QueryError("the query is empty; expected an attribute or parity(…)")

    def query(self) -> Query:
        if any(token.kind == "symbol" and token.text in "|!" for token in self.tokens):
            raise QueryError(
                "a query of a workload is a conjunction or a parity; | ! and ( ) are for asking a "
                "release"
            )
        if self.begins_parity():
            found = self.parity()
        else:
            literals = [self.literal()]
            while self.is_symbol("&"):
                self.next += 1
                literals.append(self.literal())
            found = conjunction(literals, self.schema)
        if self.next < len(self.tokens):
            raise self.unexpected("'&' or the end of the query")
        return found

    def begins_parity(self) -> bool:
        return self.is_word("parity") and self.is_symbol("(", ahead=1)

    def parity(self) -> Query:
        self.next += 2
        literals = [self.literal()]
        while self.is_symbol(","):
            self.next += 1
            literals.append(self.literal())
        self.expect(")", "',' or ')'")
        return parity(literals)

    def literal(self) -> Literal:
        position, attribute = self.attribute()
        negated = False
        if self.is_word("is"):
            self.next += 1
            negated = self.skip_word("not")
            if not self.skip_word("missing"):
                raise self.unexpected("'missing'")
            return Literal(position, (_missing(attribute),), negated)
        if self.is_word("not"):
            self.next += 1
            negated = True
            if not self.is_word("in"):
                raise self.unexpected("'in'")
        if self.skip_word("in"):
            codes = self.members(attribute)
        elif self.next < len(self.tokens) and self.tokens[self.next].text in _RELATIONS:
            relation = self.take().text
            codes, negated = self.compared(attribute, relation)
        elif attribute.is_binary:
            codes = (1,)
        else:
            raise self.unexpected("one of = != < <= > >= in is")
        if not codes:
            raise QueryError(f"no value of {attribute.name!r} satisfies its literal")
        return Literal(position, codes, negated)

    def attribute(self) -> tuple[int, Attribute]:
        token = self.take("an attribute")
        if token.kind == "symbol":
            self.next -= 1
            raise self.unexpected("an attribute")
        try:
            position = self.schema.position(token.text)
        except SchemaError as error:
            raise QueryError(str(error)) from None
        return position, self.schema.attributes[position]

    def members(self, attribute: Attribute) -> tuple[int, ...]:
        """What follows `in`: a range, groups, or a set of values and ranges."""
        if self.is_symbol("[") or self.is_symbol("("):
            return self.interval(attribute)
        if self.is_word("group") and self.is_symbol("(", ahead=1):
            return self.groups(attribute)
        self.expect("{", "'[', '{' or 'group('" if attribute.group else "'[' or '{'")
        codes: set[int] = set()
        while True:
            if self.is_symbol("["):
                codes.update(self.interval(attribute))
            elif self.is_word("missing") and attribute.missing:
                self.next += 1
                codes.add(_missing(attribute))
            else:
                codes.update(self.equal_to(attribute))
            if not self.is_symbol(","):
                break
            self.next += 1
        self.expect("}", "',' or '}'")
        return tuple(sorted(codes))

    def groups(self, attribute: Attribute) -> tuple[int, ...]:
        """The values of some declared groups: `group(I, E)`."""
        if attribute.group is None:
            raise QueryError(
                f"{attribute.name!r} has no groups; a schema declares them with `group`"
            )
        self.next += 2
        codes: set[int] = set()
        while True:
            token = self.take("a group")
            if token.kind == "symbol":
                self.next -= 1
                raise self.unexpected("a group")
            found = attribute.group.codes_of(token.text)
            if not found:
                hint = did_you_mean(token.text, attribute.group.names)
                known = ", ".join(attribute.group.names[:6])
                more = ", …" if len(attribute.group.names) > 6 else ""
                raise QueryError(
                    f"{token.text!r} is not a group of {attribute.name!r} ({known}{more}){hint}"
                )
            codes.update(found)
            if not self.is_symbol(","):
                break
            self.next += 1
        self.expect(")", "',' or ')'")
        return tuple(sorted(codes))

    def interval(self, attribute: Attribute) -> tuple[int, ...]:
        self.expect("[", "'[' (ranges are closed on the left)")
        low = self.take("a number")
        self.expect(",", "','")
        high = self.take("a number")
        closed = self.is_symbol("]")
        if not closed and not self.is_symbol(")"):
            raise self.unexpected("')' or ']'")
        self.next += 1
        below = _at_least(attribute, high) if not closed else _above(attribute, high)
        return tuple(c for c in _at_least(attribute, low) if c not in set(below))

    def compared(self, attribute: Attribute, relation: str) -> tuple[tuple[int, ...], bool]:
        if relation in ("=", "==", "!="):
            return self.equal_to(attribute), relation == "!="
        token = self.take("a number")
        proper = range(attribute.proper_size)
        if relation == ">=":
            return _at_least(attribute, token), False
        if relation == ">":
            return _above(attribute, token), False
        beyond = set(_at_least(attribute, token) if relation == "<" else _above(attribute, token))
        return tuple(code for code in proper if code not in beyond), False

    def equal_to(self, attribute: Attribute) -> tuple[int, ...]:
        token = self.take("a value")
        if token.kind == "symbol":
            self.next -= 1
            raise self.unexpected("a value")
        if attribute.is_numeric:
            raise QueryError(
                f"{attribute.name!r} is cut into bins; ask for a range such as "
                f"{attribute.name} in {bins_text(attribute, 0, 0)}"
            )
        code = attribute.code_of_value(token.text)
        if code is not None:
            return (code,)
        raise QueryError(
            f"{token.text!r} is not a value of {attribute.name!r} ({attribute.describe()})"
        )

    # Tokens

    def take(self, expected: str = "more") -> _Token:
        if self.next >= len(self.tokens):
            raise self.unexpected(expected)
        self.next += 1
        return self.tokens[self.next - 1]

    def is_symbol(self, text: str, ahead: int = 0) -> bool:
        place = self.next + ahead
        return (
            place < len(self.tokens)
            and self.tokens[place].kind == "symbol"
            and self.tokens[place].text == text
        )

    def is_word(self, text: str) -> bool:
        return (
            self.next < len(self.tokens)
            and self.tokens[self.next].kind == "word"
            and self.tokens[self.next].text == text
        )

    def skip_word(self, text: str) -> bool:
        found = self.is_word(text)
        self.next += found
        return found

    def expect(self, symbol: str, expected: str) -> None:
        if not self.is_symbol(symbol):
            raise self.unexpected(expected)
        self.next += 1

    def unexpected(self, expected: str) -> QueryError:
        if self.next >= len(self.tokens):
            return QueryError(f"the query ends where {expected} was expected")
        token = self.tokens[self.next]
        return QueryError(
            f"unexpected {token.text!r} at position {token.position} of the query; "
            f"expected {expected}"
        )


def _missing(attribute: Attribute) -> int:
    if attribute.missing_code is None:
        raise QueryError(f"{attribute.name!r} has no missing bucket")
    return attribute.missing_code


def _number(attribute: Attribute, token: _Token) -> float:
    number = number_of(attribute.cell_type, token.text)
    if number is None:
        kind = attribute.type
        example = f" (such as {kind.example})" if kind.example else ""
        raise QueryError(
            f"{token.text!r} at position {token.position} is not {kind.noun}{example}, "
            f"which {attribute.name!r} needs"
        )
    return number


def _at_least(attribute: Attribute, token: _Token) -> tuple[int, ...]:
    """The codes of the values ≥ the token's."""
    if attribute.is_numeric:
        number = _number(attribute, token)
        if number not in attribute.edges:
            told = (
                f"{token.text} is not a bin edge of {attribute.name!r}; "
                f"its edges are {', '.join(map(attribute.spell, attribute.edges))}"
            )
            if attribute.edges[0] < number < attribute.edges[-1]:
                raise OffEdgeError(told, attribute.name, number)
            raise QueryError(told)
        return tuple(range(attribute.edges.index(number), attribute.proper_size))
    return tuple(c for c, place in _places(attribute) if place >= _place(attribute, token))


def _above(attribute: Attribute, token: _Token) -> tuple[int, ...]:
    """The codes of the values > the token's."""
    if attribute.is_numeric:
        number = _number(attribute, token)
        if number != attribute.edges[-1]:
            raise QueryError(
                f"the bins of {attribute.name!r} are open on the right; "
                "write >= or <, or a range [a,b)"
            )
        return ()
    return tuple(c for c, place in _places(attribute) if place > _place(attribute, token))


def _places(attribute: Attribute) -> list[tuple[int, float]]:
    """Every code with its place in the order: the number itself, or the declared position."""
    if not attribute.ordered and not attribute.is_binary:
        raise QueryError(f"{attribute.name!r} is not ordered; use = != or in {{…}}")
    if all(isinstance(value, int | float) for value in attribute.values):
        return [(code, float(value)) for code, value in enumerate(attribute.values)]
    return [(code, float(code)) for code in range(attribute.proper_size)]


def _place(attribute: Attribute, token: _Token) -> float:
    if all(isinstance(value, int | float) for value in attribute.values):
        return _number(attribute, token)
    code = attribute.code_of_value(token.text)
    if code is None:
        raise QueryError(f"{token.text!r} is not a value of {attribute.name!r}")
    return float(code)
