from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.base.errors import QueryError
from dualquery.domain.attributes import Attribute
from dualquery.domain.language import parse, parse_lines
from dualquery.domain.printing import format_query
from dualquery.domain.query import Literal, Query
from dualquery.domain.schema import Schema
from tests.strategies import queries, schemas


@given(st.data())
def test_print_then_parse_gives_the_query_back(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    query = data.draw(queries(schema))
    assert parse(format_query(query, schema), schema) == query


@given(st.text(max_size=30))
def test_any_text_parses_or_is_refused_in_one_line(text: str) -> None:
    schema = Schema((Attribute.categorical("a", ["x", "y"]), Attribute.numeric("n", [0, 1, 2])))
    with contextlib.suppress(QueryError):
        assert parse(format_query(parse(text, schema), schema), schema) == parse(text, schema)


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        ("sex=Female", [(0, (0,), False)]),
        ("sex != Female", [(0, (0,), True)]),
        ("age>=50", [(1, (3, 4), False)]),
        ("age<35", [(1, (0, 1), False)]),
        ("age in [25,50)", [(1, (1, 2), False)]),
        ("age not in [65,120]", [(1, (4,), True)]),
        ("age>=25 & age<65", [(1, (1, 2, 3), False)]),
        ("smoker", [(2, (1,), False)]),
        ("smoker=0", [(2, (0,), False)]),
        ('"work class" in {Private, ">50K", missing}', [(3, (0, 2, 3), False)]),
        ('"work class" is not missing', [(3, (3,), True)]),
        ("grade>=mid", [(5, (1, 2), False)]),
        ("grade<mid", [(5, (0,), False)]),
        ("rate in {[0,0.25), missing}", [(4, (0, 2), False)]),
        ('sex=Male & "work class"!=">50K"', [(0, (1,), False), (3, (2,), True)]),
    ],
)
def test_what_a_text_means(schema: Schema, text: str, literals) -> None:
    expected = Query("conjunction", tuple(Literal(*literal) for literal in literals))
    assert parse(text, schema) == expected


def test_parity(schema: Schema) -> None:
    query = parse("parity(smoker, sex=Male, age>=50)", schema)
    assert query.kind == "parity"
    assert [literal.codes for literal in query.literals] == [(1,), (1,), (3, 4)]
    assert format_query(query, schema) == "parity(smoker, sex=Male, age>=50)"


def test_names_that_are_words_of_the_language() -> None:
    schema = Schema((Attribute.binary("in"), Attribute.binary("parity"), Attribute.binary("not")))
    for query in (
        Query("conjunction", (Literal(0, (1,)), Literal(1, (1,)), Literal(2, (0,), True))),
        Query("parity", (Literal(1, (1,)), Literal(0, (1,)))),
    ):
        assert parse(format_query(query, schema), schema) == query


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("smokr=1", r"no attribute 'smokr'; did you mean 'smoker'\?"),
        ("sex=Femal", "'Femal' is not a value of 'sex'"),
        ("sex", "ends where one of = != .* expected"),
        ("sex=", "ends where a value was expected"),
        ("sex=&", "unexpected '&' at position 5"),
        ("sex=Male &", "ends where an attribute was expected"),
        ("sex=Male smoker", "unexpected 'smoker' at position 10"),
        ("sex>=Male", "'sex' is not ordered"),
        ("age=30", r"'age' is cut into bins; .* age in \[0,25\)"),
        ("age>=30", "30 is not a bin edge of 'age'"),
        ("age>50", "open on the right"),
        ("age in [25,50]", "open on the right"),
        ("age in (25,50)", "closed on the left"),
        ("age in [25,50", r"ends where '\)' or '\]' was expected"),
        ("age>=old", "'old' at position 6 is not a number"),
        ("age<0", "no value of 'age' satisfies"),
        ("sex is missing", "'sex' has no missing bucket"),
        ("sex=Male & sex=Female", "'sex' contradict"),
        ("parity(smoker, smoker)", "names one attribute twice"),
        ("parity(smoker", r"ends where ',' or '\)' was expected"),
        ('sex="Male', "cannot read"),
        ("sex in {Male, }", "unexpected '}'"),
    ],
)
def test_a_bad_query_names_the_token(schema: Schema, text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        parse(text, schema)


def test_lines_with_comments(schema: Schema) -> None:
    found = parse_lines(["# a comment", "", "smoker", "  sex=Male & age<25  "], schema)
    assert len(found) == 2
    with pytest.raises(QueryError, match="line 2: "):
        parse_lines(["smoker", "nope=1"], schema)


CODES = Schema(
    (
        Attribute.categorical("icd", ["I10", "I11", "E11", "E 12", "J0"], group="prefix:1"),
        Attribute.categorical(
            "town", ["a", "b", "c"], missing=True, group={"up river": ["a", "c"], "sea": ["b"]}
        ),
        Attribute.binary("b"),
    )
)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("icd in group(I)", "icd in {I10, I11}"),
        ("icd not in group(I, J)", "icd not in {I10, I11, J0}"),
        ('town in group("up river")', "town in {a, c}"),
        ("icd in group(E) & town in group(sea)", 'icd in {E11, "E 12"} & town=b'),
    ],
)
def test_groups_of_codes(text: str, same: str) -> None:
    query = parse(text, CODES)
    assert query == parse(same, CODES)
    assert parse(format_query(query, CODES), CODES) == query
    assert "group(" in format_query(query, CODES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("b in group(I)", "'b' has no groups"),
        ("icd in group(K)", r"'K' is not a group of 'icd' \(I, E, J\)"),
        ('town in group("up rivr")', "did you mean 'up river'"),
        ("icd in group(", "ends where a group was expected"),
        ("icd in group()", "unexpected '\\)' .*expected a group"),
        ("icd in group(I", "'\\)' was expected"),
        ("icd in I", "expected '\\[', '{' or 'group\\('"),
    ],
)
def test_bad_groups(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        parse(text, CODES)
