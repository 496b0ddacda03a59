"""Boolean formulas against the enumeration of all records."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.base.errors import QueryError
from dualquery.domain.attributes import Attribute
from dualquery.domain.diagrams import NO, YES, Diagram, classes
from dualquery.domain.formulas import AllOf, AnyOf, Formula, Not, format_formula, parse_formula
from dualquery.domain.language import parse
from dualquery.domain.query import Query
from dualquery.domain.schema import Schema
from tests.strategies import queries, schemas


def holds(formula: Formula, record: tuple[int, ...], schema: Schema) -> bool:
    """The definition."""
    match formula:
        case Query():
            hits = [
                record[one.attribute] in one.allowed(int(schema.sizes[one.attribute]))
                for one in formula.literals
            ]
            return sum(hits) % 2 == 0 if formula.kind == "parity" else all(hits)
        case Not(part):
            return not holds(part, record, schema)
        case AllOf(parts):
            return all(holds(part, record, schema) for part in parts)
        case AnyOf(parts):
            return any(holds(part, record, schema) for part in parts)


def formulas(schema: Schema) -> st.SearchStrategy[Formula]:
    def joined(inner: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
        parts = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.one_of(inner.map(Not), parts.map(AllOf), parts.map(AnyOf))

    return st.recursive(queries(schema), joined, max_leaves=6)


def records(schema: Schema) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(int(size)) for size in schema.sizes)))


def walked(diagram: Diagram, record: tuple[int, ...]) -> bool:
    node = diagram.root
    for attribute, nodes in zip(diagram.attributes, diagram.levels, strict=True):
        if node < 0:
            break
        node = next(b.target for b in nodes[node] if record[attribute] in b.codes)
    assert node in (YES, NO)
    return node == YES


@settings(max_examples=60)
@given(st.data())
def test_diagrams_and_parts_agree_with_every_record(data: st.DataObject) -> None:
    schema = data.draw(schemas(most=4))
    formula = data.draw(formulas(schema))
    diagram = Diagram.of(formula, schema)
    parts = diagram.parts()
    every = records(schema)
    truth = [holds(formula, record, schema) for record in every]
    assert [walked(diagram, record) for record in every] == truth
    for record, true in zip(every, truth, strict=True):  # one part where it holds, else none
        assert sum(all(record[o.attribute] in o.codes for o in part) for part in parts) == true
    assert diagram.always == all(truth)
    assert diagram.never == (not any(truth))


@settings(max_examples=40)
@given(st.data())
def test_what_is_left_of_a_formula_in_the_cells_of_columns(data: st.DataObject) -> None:
    schema = data.draw(schemas(most=4))
    formula = data.draw(formulas(schema))
    columns = data.draw(
        st.lists(st.integers(0, len(schema) - 1), min_size=1, max_size=2, unique=True)
    )
    found = [(c, Diagram.of(rest, schema)) for c, rest in classes(formula, columns, schema)]
    for record in records(schema):
        cell = [record[column] for column in columns]
        mine = [d for c, d in found if all(v in own for v, own in zip(cell, c, strict=True))]
        assert len(mine) == 1
        assert walked(mine[0], record) == holds(formula, record, schema)


@settings(max_examples=60)
@given(st.data())
def test_print_then_parse_means_the_same(data: st.DataObject) -> None:
    schema = data.draw(schemas(most=3))
    formula = data.draw(formulas(schema))
    again = parse_formula(format_formula(formula, schema), schema)
    for record in records(schema):
        assert holds(again, record, schema) == holds(formula, record, schema)


def test_parts_that_contradict_one_another_are_printed_and_read(schema: Schema) -> None:
    """`sex=Female & sex=Male` is refused as a mistake; a formula that came about so is not."""
    female, male = parse("sex=Female", schema), parse("sex=Male", schema)
    never = AllOf((female, male))
    text = format_formula(never, schema)
    assert text == "(sex=Female) & sex=Male"
    again = parse_formula(text, schema)
    assert not any(holds(again, record, schema) for record in records(schema))
    with pytest.raises(QueryError, match="contradict one another"):
        parse_formula("sex=Female & sex=Male", schema)
    # Parts on different columns need no parentheses.
    assert format_formula(AllOf((female, parse("smoker", schema))), schema) == (
        "sex=Female & smoker=1"
    )


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("sex=Male | smoker", ["sex=Male", "sex=Female & smoker=1"]),
        ("!(sex=Male & smoker)", ["sex=Female", "sex=Male & smoker=0"]),
        ("sex=Male | sex=Female & smoker", ["sex=Male", "sex=Female & smoker=1"]),
        ("(sex=Male | sex=Female) & smoker", ["smoker=1"]),
        ("!!smoker", ["smoker=1"]),
        ("!parity(smoker, sex=Male)", ["smoker=0 & sex=Male", "smoker=1 & sex=Female"]),
        ("sex!=Male&!smoker", ["sex=Female & smoker=0"]),
        ("age in [0,25) | age>=65", ["age in {[0,25), [65,120]}"]),
    ],
)
def test_disjoint_parts(schema: Schema, text: str, parts: list[str]) -> None:
    found = Diagram.of(parse_formula(text, schema), schema).parts()
    wanted = []
    for part in parts:
        literals = parse(part, schema).literals
        wanted.append({(o.attribute, o.allowed(int(schema.sizes[o.attribute]))) for o in literals})
    assert [{(o.attribute, frozenset(o.codes)) for o in part} for part in found] == wanted


def test_a_plain_query_is_read_as_before(schema: Schema) -> None:
    for text in ("smoker & sex=Male", "age in [25,50)", "smoker"):
        assert parse_formula(text, schema) == parse(text, schema)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sex=Male |", "the query ends where an attribute was expected"),
        ("(sex=Male", "the query ends where '&', '|' or ')' was expected"),
        ("sex=Male) & smoker", "unexpected ')' at position 9"),
        ("sex=Male | | smoker", "unexpected '|' at position 12"),
        ("! & smoker", "unexpected '&' at position 3"),
        ("(" * 60 + "smoker" + ")" * 60, "nests more than 50"),
    ],
)
def test_a_bad_formula_names_the_token(schema: Schema, text: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_formula(text, schema)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["sex=Male | smoker", "!smoker", "sex=Male & !smoker"])
def test_a_workload_says_that_formulas_are_for_asking(schema: Schema, text: str) -> None:
    with pytest.raises(QueryError, match="for asking a release"):
        parse(text, schema)


def test_many_attributes_need_no_recursion_and_few_nodes() -> None:
    wide = Schema(tuple(Attribute.binary(f"x{i}") for i in range(300)))
    diagram = Diagram.of(parse_formula(" | ".join(wide.names), wide), wide)
    assert sum(len(level) for level in diagram.levels) == 300
    literals = parse(f"parity({', '.join(wide.names[:40])})", wide)
    assert sum(len(level) for level in Diagram.of(literals, wide).levels) == 79


def test_a_tangle_is_refused() -> None:
    wide = Schema(tuple(Attribute.binary(f"x{i}") for i in range(60)))
    pairs = [f"x{i} & x{i + 30}" for i in range(30)]
    text = " | ".join(pairs)
    assert sum(len(level) for level in Diagram.of(parse_formula(text, wide), wide).levels) == 89
    # With one half written first, every subset of it must be remembered.
    text = f"({' | '.join(wide.names[:30])}) & ({text})"
    with pytest.raises(QueryError, match="more than 5,000 steps"):
        Diagram.of(parse_formula(text, wide), wide)
