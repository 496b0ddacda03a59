"""Constraints in the schema file: every record and every row obeys them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import dualquery as dq
from dualquery.base.errors import SchemaError
from dualquery.domain.schema import Schema

RULES = [{"if": "smoker=1", "then": "age>=25"}, {"forbid": "sex=Male & grade=low"}]


@pytest.fixture(scope="module")
def ruled(schema: Schema) -> Schema:
    return Schema.from_dict({**schema.to_dict(), "constraints": RULES})


def test_rules_survive_the_file(tmp_path, ruled: Schema) -> None:
    ruled.save(tmp_path / "schema.toml")
    again = Schema.load(tmp_path / "schema.toml")
    assert again == ruled
    assert list(again.rules) == RULES
    assert again.resolve(reversed(again.names)).rules == ruled.rules


def obeys(codes: np.ndarray) -> bool:
    young_smoker = (codes[:, 2] == 1) & (codes[:, 1] == 0)
    low_man = (codes[:, 0] == 1) & (codes[:, 5] == 0)
    return not (young_smoker | low_man).any()


@pytest.mark.parametrize("player", ["record", "model"])
def test_records_and_rows_obey(ruled: Schema, rows: pa.Table, player: str) -> None:
    job = dq.DualQuery(epsilon=5.0, delta=1e-3, queries=500, seed=1, player=player, errors=False)
    made = job.fit(rows, schema=ruled)
    if player == "record":
        assert obeys(made.records)
    assert obeys(made.sample_codes(3000, np.random.default_rng(0)))
    some = made.sample_codes(500, np.random.default_rng(0), "smoker=1")
    assert obeys(some)
    assert (some[:, 2] == 1).all()


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            [{"forbid": "smoker=1"}, {"forbid": "smoker=0"}],
            "no record can obey.*smoker=1",
        ),
        ([{"forbid": "nope=1"}], "no attribute 'nope'"),
        ([{"if": "smoker=1"}], "then"),
        ("smoker", "constraints"),
    ],
)
def test_bad_rules_are_refused(schema: Schema, rules, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict({**schema.to_dict(), "constraints": rules})
