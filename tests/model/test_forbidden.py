"""Constraints in the model: what is forbidden has the answer zero."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import dualquery as dq
from dualquery.domain.schema import Schema
from dualquery.model.forbidden import without_forbidden
from dualquery.model.mixture import Mixture


def declared(*rules: dict[str, str]) -> Schema:
    return Schema.from_dict(
        {
            "attributes": {
                "sex": {"values": ["F", "M"]},
                "pregnant": {"binary": True},
                "ward": {"values": ["a", "b", "c"]},
            },
            "constraints": list(rules),
        }
    )


FORBIDDEN = ({"forbid": "sex=M & pregnant"}, {"if": "ward=c", "then": "pregnant"})


def mixture(schema: Schema, seed: int = 0) -> Mixture:
    random = np.random.default_rng(seed)
    tables = random.random((int(schema.code_start[-1]), 4)) + 0.05
    start = schema.code_start
    for a in range(len(schema)):
        tables[start[a] : start[a + 1]] /= tables[start[a] : start[a + 1]].sum(axis=0)
    return Mixture(schema, np.full(4, 0.25), tables)


def test_the_model_is_the_one_given_that_all_constraints_hold() -> None:
    """Against the whole domain, record by record."""
    schema = declared(*FORBIDDEN)
    plain = mixture(schema)
    records = np.array(list(np.ndindex(2, 2, 3)), dtype=np.int32)
    cells = dq.all_marginals(schema, 3)
    shares = plain.answers(cells)
    allowed = schema.constraints.holds(records)
    expected = np.where(allowed, shares, 0.0) / shares[allowed].sum()
    np.testing.assert_allclose(without_forbidden(plain).answers(cells), expected, atol=1e-12)
    assert (without_forbidden(plain).answers(cells)[~allowed] == 0.0).all()


def test_without_constraints_or_with_too_many_the_model_stays() -> None:
    plain = mixture(declared())
    assert without_forbidden(plain) is plain
    codes = {"values": list(range(40))}
    rules = [{"forbid": f"x={i} & y={i} & z={i}"} for i in range(20)]
    schema = Schema.from_dict({"attributes": dict.fromkeys("xyz", codes), "constraints": rules})
    many = mixture(schema)
    assert without_forbidden(many) is many


@pytest.mark.parametrize("measure", [True, False])
def test_a_release_answers_zero_to_what_is_forbidden(measure: bool) -> None:
    random = np.random.default_rng(1)
    rows = 5000
    sex = random.integers(0, 2, rows)
    pregnant = (random.random(rows) < 0.3) & (sex == 0)
    ward = np.where(pregnant, random.integers(0, 3, rows), random.integers(0, 2, rows))
    private = pa.table(
        {
            "sex": np.array(["F", "M"])[sex],
            "pregnant": pregnant.astype(int),
            "ward": np.array(["a", "b", "c"])[ward],
        }
    )
    job = dq.DualQuery(
        epsilon=1.0, delta=1e-5, queries=50, k=2, seed=1, errors=False, measure=measure,
        rounds=None if measure else 8,
    )  # fmt: skip
    made = job.fit(private, schema=declared(*FORBIDDEN))
    assert (made.parameters.tables is not None) == measure
    assert made.answer("sex=M & pregnant") == 0.0
    assert made.answer("ward=c & pregnant=0") == 0.0
    assert made.answer("sex=F & pregnant") == pytest.approx(made.answer("pregnant"))
    assert abs(made.answer("pregnant") - pregnant.mean()) < 0.05
