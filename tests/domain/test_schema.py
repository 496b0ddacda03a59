from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import dualquery as dq
from dualquery.base.errors import SchemaError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.rows.drafting import draft_schema
from tests.strategies import schemas


def test_sizes_and_codes(schema: Schema) -> None:
    assert schema.sizes.tolist() == [2, 5, 2, 4, 3, 3]
    assert schema.bit_counts.tolist() == [2, 5, 1, 4, 3, 3]
    assert schema.defaults.tolist() == [0, 0, 0, 0, 0, 1]
    age = schema["age"]
    assert [age.code_of(v) for v in (0, 24, 25, 119, 120, 121, -1)] == [0, 0, 1, 4, 4, None, None]
    assert schema["work class"].missing_code == 3


def test_numpy_values_and_booleans_survive_the_file(tmp_path) -> None:
    schema = Schema(
        (
            Attribute.numeric("n", np.linspace(0.0, 1.0, 3)),
            Attribute.categorical("c", np.array([3, 5, 9])),
            Attribute.categorical("b", [False, True]),
        )
    )
    schema.save(tmp_path / "s.toml")
    again = Schema.load(tmp_path / "s.toml")
    for one, other in zip(schema.attributes, again.attributes, strict=True):
        assert repr(one) == repr(other)


@given(schemas())
def test_plain_data_and_back(schema: Schema) -> None:
    assert Schema.from_dict(schema.to_dict()) == schema


@given(schemas())
def test_toml_and_back(tmp_path_factory: pytest.TempPathFactory, schema: Schema) -> None:
    path = tmp_path_factory.mktemp("schema") / "schema.toml"
    schema.save(path, header=("a comment",))
    assert Schema.load(path) == schema


def test_the_documented_file(tmp_path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(
        """
[attributes.sex]
values = ["Female", "Male"]
[attributes.age]
edges = [0, 25, 35, 50, 65, 120]     # bins [0,25) … [65,120]
[attributes.smoker]
binary = true
[attributes.workclass]
values = ["Private", "State-gov"]
missing = true
[binary_columns]
prefix = "movie_"
count = 17770
"""
    )
    schema = Schema.load(path)
    assert schema.names[:5] == ("sex", "age", "smoker", "workclass", "movie_0")
    assert schema.names[-1] == "movie_17769"
    assert len(schema) == 4 + 17_770
    assert schema["movie_1"].is_binary
    schema.save(path)
    assert Schema.load(path) == schema


def test_columns_stand_in_the_order_of_the_schema() -> None:
    """The order of a table's columns may depend on its rows: that of a pivot often does."""
    schema = Schema(tuple(Attribute.binary(name) for name in "abc"))
    assert schema.resolve(["c", "id", "a", "b"]) == schema


def test_a_pattern_is_resolved_against_the_header() -> None:
    schema = Schema((Attribute.binary("b"), Attribute.binary("a")), ("movie_*",))
    resolved = schema.resolve(["movie_2", "a", "id", "b", "movie_1"])
    assert resolved.names == ("b", "a", "movie_2", "movie_1")
    assert resolved["movie_1"].is_binary
    with pytest.raises(SchemaError, match=r"movie_\*.*names"):
        schema.require_resolved()


def test_wide_columns_without_a_table(tmp_path) -> None:
    path = tmp_path / "wide.toml"
    path.write_text('[binary_columns]\nprefix = "m"\ncount = 3\nnames = ["x"]\n')
    assert Schema.load(path).names == ("x", "m0", "m1", "m2")


def test_mbi_domain(tmp_path) -> None:
    path = tmp_path / "domain.json"
    path.write_text(json.dumps({"sex": 2, "age": 85}))
    schema = Schema.load(path)
    assert schema.sizes.tolist() == [2, 85]
    assert schema["sex"].is_binary
    assert schema["age"].ordered


def test_trailing_binaries_are_listed_by_name() -> None:
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(1, 101)))
    assert schema.to_dict() == {"binary_columns": {"names": list(schema.names)}}
    assert Schema.from_dict(schema.to_dict()) == schema


@pytest.mark.parametrize("before", [(), ("x", "y"), ("x00",), ("x3",)])
def test_numbered_binaries_are_a_prefix_and_a_count(before: tuple[str, ...]) -> None:
    rest = [name for name in (f"x{i}" for i in range(100)) if name not in before]
    schema = Schema(tuple(Attribute.binary(name) for name in (*before, *rest)))
    listed = schema.to_dict()["binary_columns"]
    assert ("prefix" in listed) == ("x3" not in before)
    assert Schema.from_dict(schema.to_dict()) == schema
    wide = Schema((Attribute.numeric("n", [0, 1]), *schema.attributes))
    assert Schema.from_dict(wide.to_dict()) == wide


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "no attribute"),
        ({"attribute": {}}, r"\[attribute\]"),
        ({"attributes": {"a": {"edges": [0, 1, 1]}}}, "'a'.*zero width"),
        ({"attributes": {"a": {"edges": [0, 2, 1]}}}, "'a'.*rising order"),
        ({"attributes": {"a": {"edges": [0]}}}, "'a'.*two or more"),
        ({"attributes": {"a": {"edges": [0, float("nan")]}}}, "'a'.*finite"),
        ({"attributes": {"a": {"edges": [0, 10**400]}}}, "'a'.*finite"),
        ({"attributes": {"a": {"values": ["x", float("inf")]}}}, "'a': a value is not finite"),
        ({"attributes": {"a": {"values": [1, 10**5000]}}}, "'a': a value is not finite"),
        ({"attributes": 3}, "a table .attributes.NAME."),
        (
            {"attributes": {"a": {"binary": True}}, "constraints": [{"determines": {"a": 3}}]},
            "'a' determines 3",
        ),
        ({"binary_columns": {"pattern": 3}}, "pattern = 3"),
        ({"attributes": {"a": {"edges": ["0", "1"]}}}, "'a'.*not a number"),
        ({"attributes": {"a": {"values": []}}}, "'a'.*one of values"),
        ({"attributes": {"a": {"values": ["x", "x"]}}}, "'x' is listed twice"),
        ({"attributes": {"a": {"values": "xy"}}}, "'a'.*expected a list"),
        ({"attributes": {"a": {"values": ["x"], "binary": True}}}, "'a'.*values and binary"),
        ({"attributes": {"a": {"value": ["x"]}}}, "'a'.*unknown key 'value'"),
        ({"attributes": {"a": {"values": ["x"], "default": "y"}}}, "default 'y'"),
        ({"attributes": {"a": {"binary": True, "missing": 1}}}, "missing = 1"),
        ({"attributes": {"a": 1}}, "'a'.*expected a table"),
        ({"binary_columns": {"prefix": "x"}}, "count = None"),
        ({"binary_columns": {"patern": "x"}}, "unknown key 'patern'"),
        ({"attributes": {"a": {"binary": True}}, "binary_columns": {"names": ["a"]}}, "'a'.*twice"),
    ],
)
def test_a_bad_schema_is_refused_by_name(content, message) -> None:
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict(content)


def test_a_schema_that_does_not_fit_the_table(schema: Schema) -> None:
    with pytest.raises(SchemaError, match="no column 'age'"):
        schema.resolve(["sex", "smoker"])
    with pytest.raises(SchemaError, match=r"did you mean 'smoker'\?"):
        schema.position("smokr")
    with pytest.raises(SchemaError, match=r"pattern 'x_\*'"):
        Schema(schema.attributes, ("x_*",)).resolve(schema.names)


@pytest.mark.parametrize("domain", [[], {"a": 0}, {"a": "2"}, {"a": True}])
def test_a_bad_domain(tmp_path, domain) -> None:
    path = tmp_path / "domain.json"
    path.write_text(json.dumps(domain))
    with pytest.raises(SchemaError):
        Schema.load(path)


def test_unreadable_files(tmp_path) -> None:
    with pytest.raises(SchemaError, match="nowhere"):
        Schema.load(tmp_path / "nowhere.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("[attributes")
    with pytest.raises(SchemaError, match=r"broken\.toml"):
        Schema.load(broken)


# Drafts.


def test_a_draft_stays_one_until_it_is_reviewed(tmp_path, schema: Schema) -> None:
    draft = replace(schema, draft=True)
    draft.save(tmp_path / "draft.toml")
    again = Schema.load(tmp_path / "draft.toml")
    assert again == draft
    assert again.resolve(schema.names).draft
    with pytest.raises(SchemaError, match=r"the schema says draft = true.*call reviewed\(\)"):
        again.require_reviewed()
    with pytest.raises(SchemaError, match=r"schema file 'x\.toml' says.*remove that line"):
        again.require_reviewed("x.toml")
    assert again.reviewed() == schema
    assert schema.require_reviewed() is schema
    (tmp_path / "odd.toml").write_text('draft = "yes"\n[attributes.a]\nbinary = true\n')
    with pytest.raises(SchemaError, match="draft = 'yes'; expected true or false"):
        Schema.load(tmp_path / "odd.toml")


def test_no_release_takes_a_draft(rows: pa.Table) -> None:
    draft = draft_schema(rows)
    assert draft.draft
    with pytest.raises(SchemaError, match="draft = true"):
        dq.DualQuery(epsilon=1.0, delta=1e-4, queries=10).fit(rows, schema=draft)
