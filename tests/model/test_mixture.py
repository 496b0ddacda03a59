from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.base.errors import QueryError
from dualquery.domain.attributes import Attribute
from dualquery.domain.language import parse
from dualquery.domain.schema import Schema
from dualquery.model.mixture import Mixture
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.matching import mean_answers
from dualquery.workloads.workload import Workload
from tests.model.twins import answers_twin, random_tables
from tests.strategies import queries, schemas


def some_mixture(schema: Schema, components: int = 3, seed: int = 0) -> Mixture:
    generator = np.random.default_rng(seed)
    weights = generator.dirichlet(np.ones(components))
    return Mixture(schema, weights, random_tables(schema, components, generator))


@given(st.data())
def test_answers_follow_the_definition(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    asked = data.draw(st.lists(queries(schema), min_size=1, max_size=9))
    model = some_mixture(schema, data.draw(st.integers(1, 5)), data.draw(st.integers(0, 999)))
    for times in (1, 17):
        workload = Workload.of(times * asked, schema)
        expected = answers_twin(workload, model.weights, model.tables)
        np.testing.assert_allclose(model.answers(workload), expected, atol=1e-12)


def test_a_thousand_queries_with_shared_prefixes(schema: Schema) -> None:
    workload = random_marginals(schema, 3, 1000)
    model = some_mixture(schema, 7)
    expected = answers_twin(workload, model.weights, model.tables)
    np.testing.assert_allclose(model.answers(workload), expected, atol=1e-12)


def test_samples_are_valid_and_follow_the_model(schema: Schema) -> None:
    model = some_mixture(schema)
    rows = model.sample(40_000, np.random.default_rng(1))
    assert rows.shape == (40_000, len(schema))
    assert (rows >= 0).all()
    assert (rows < schema.sizes).all()
    workload = random_marginals(schema, 2, 60)
    seen = np.array(
        [
            np.logical_and.reduce(
                [
                    np.isin(rows[:, li.attribute], list(li.allowed(schema.sizes[li.attribute])))
                    for li in query.literals
                ]
            ).mean()
            for query in workload
        ]
    )
    np.testing.assert_allclose(seen, model.answers(workload), atol=0.015)


def test_conditioning_is_dividing(schema: Schema) -> None:
    model = some_mixture(schema)
    condition = "smoker=1 & age>=35"
    given_it = model.given(parse(condition, schema))

    def ask(model: Mixture, text: str) -> float:
        return float(model.answers(Workload.of([parse(text, schema)], schema))[0])

    for text in ("sex=Male", "rate is missing", 'sex=Female & "work class"!=Private'):
        joint = ask(model, f"{condition} & {text}") / ask(model, condition)
        assert ask(given_it, text) == pytest.approx(joint, abs=1e-12)
    assert ask(given_it, condition) == pytest.approx(1.0)
    rows = given_it.sample(500, np.random.default_rng(0))
    assert (rows[:, 2] == 1).all()
    assert (rows[:, 1] >= 2).all()
    assert mean_answers(Workload.of([parse(condition, schema)], schema), rows[:50])[0] == 1.0


def test_what_cannot_be_a_condition(schema: Schema) -> None:
    model = some_mixture(schema)
    with pytest.raises(QueryError, match="parity"):
        model.given(parse("parity(smoker, sex=Male)", schema))
    never = model.tables.copy()
    never[schema.code_start[2] : schema.code_start[3]] = [[1.0], [0.0]]
    with pytest.raises(QueryError, match="probability 0"):
        Mixture(schema, model.weights, never).given(parse("smoker=1", schema))


def test_wide_rows_are_drawn_as_the_tables_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many 0/1 columns at a time, beside a column of three codes."""
    monkeypatch.setattr("dualquery.model.mixture.COLUMNS", 3)
    schema = Schema(
        (
            *(Attribute.binary(f"x{i}") for i in range(4)),
            Attribute.categorical("c", list("abc")),
            Attribute.binary("last"),
        )
    )
    shares = np.array([[0.9, 0.1], [0.5, 0.5], [0.0, 1.0], [0.2, 0.8], [0.3, 0.7]])
    rows = [*shares[:4].reshape(-1), 0.2, 0.3, 0.5, *shares[4]]
    flipped = [*shares[:4, ::-1].reshape(-1), 0.5, 0.5, 0.0, *shares[4]]
    model = Mixture(schema, np.array([0.25, 0.75]), np.array([rows, flipped]).T)
    codes = model.sample(40_000, np.random.default_rng(1))
    for position, attribute in enumerate(schema.attributes):
        found = np.bincount(codes[:, position], minlength=attribute.size) / len(codes)
        begin = schema.code_start[position]
        expected = (model.tables @ model.weights)[begin : begin + attribute.size]
        np.testing.assert_allclose(found, expected, atol=0.015)
