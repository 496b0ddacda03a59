"""Queries as text that `language.parse` reads back."""

from __future__ import annotations

import json
import re

from dualquery.domain.attributes import Attribute
from dualquery.domain.ordered import Attributes
from dualquery.domain.query import Literal, Query

PLAIN = r"[^\s\"&|,(){}\[\]=<>!]+"
"""The pattern of names and values that need no quotes."""

KEYWORDS = ("in", "is", "not")


def format_query(query: Query, schema: Attributes) -> str:
    """Write a query so that `parse` reads it back."""
    if query.kind == "parity":
        return f"parity({', '.join(_format(literal, schema, True) for literal in query.literals)})"
    return " & ".join(_format(literal, schema, False) for literal in query.literals)


def _format(literal: Literal, schema: Attributes, brief: bool) -> str:
    attribute = schema.attributes[literal.attribute]
    name, codes = _quote(attribute.name), sorted(literal.codes)
    if attribute.is_binary and codes == [1] and brief and not literal.negated:
        return name
    if codes == [attribute.missing_code]:
        return f"{name} is {'not ' if literal.negated else ''}missing"
    membership = f"{name} {'not in' if literal.negated else 'in'} "
    if attribute.is_numeric:
        runs = _runs([code for code in codes if code != attribute.missing_code])
        if len(runs) == 1 and attribute.missing_code not in codes:
            low, high = runs[0]
            if not literal.negated and high == attribute.proper_size - 1 and low > 0:
                return f"{name}>={attribute.spell(attribute.edges[low])}"
            if not literal.negated and low == 0 and high < attribute.proper_size - 1:
                return f"{name}<{attribute.spell(attribute.edges[high + 1])}"
            return membership + bins_text(attribute, low, high)
        items = [bins_text(attribute, low, high) for low, high in runs]
    else:
        proper = [code for code in codes if code != attribute.missing_code]
        if attribute.group is not None and len(proper) > 1:
            parents = dict.fromkeys(attribute.group.parents[code] for code in proper)
            members = [code for one in parents for code in attribute.group.codes_of(one)]
            if sorted(members) == codes:
                return f"{membership}group({', '.join(map(_quote, parents))})"
        if len(codes) == 1:
            relation = "!=" if literal.negated else "="
            return f"{name}{relation}{_cell(attribute, codes[0])}"
        items = [_cell(attribute, code) for code in proper]
    if attribute.missing_code in codes:
        items.append("missing")
    return membership + "{" + ", ".join(items) + "}"


def _runs(codes: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for code in codes:
        if runs and runs[-1][1] == code - 1:
            runs[-1] = (runs[-1][0], code)
        else:
            runs.append((code, code))
    return runs


def bins_text(attribute: Attribute, low: int, high: int) -> str:
    """The range that the bins `low` to `high` cover."""
    close = "]" if high == attribute.proper_size - 1 else ")"
    first, last = attribute.edges[low], attribute.edges[high + 1]
    return f"[{attribute.spell(first)},{attribute.spell(last)}{close}"


def _cell(attribute: Attribute, code: int) -> str:
    value = attribute.values[code]
    if attribute.missing and str(value) == "missing":
        return '"missing"'
    return _quote(str(value))


def _quote(text: str) -> str:
    """The text as it is if it reads back as one word, else in double quotes."""
    plain = re.fullmatch(PLAIN, text) is not None and text not in KEYWORDS
    return text if plain else json.dumps(text, ensure_ascii=False)
