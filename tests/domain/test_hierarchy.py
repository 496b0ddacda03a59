"""Declared groups of codes: how they are written, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from dualquery.base.errors import SchemaError
from dualquery.domain.attributes import Attribute
from dualquery.domain.hierarchy import Hierarchy
from dualquery.domain.schema import Schema

CODES = ["I10", "I11", "E11", "I12", "E12"]


def test_a_prefix_and_a_table_of_parents_survive_a_file(tmp_path: Path) -> None:
    by_prefix = Attribute.categorical("icd", CODES, group="prefix:1", missing=True)
    parents = {"heart attack": ["I10", "I12"], "other": ["I11", "E11", "E12"]}
    by_table = Attribute.categorical("why", CODES, group=parents, default="E11")
    schema = Schema((by_prefix, by_table))
    schema.save(tmp_path / "schema.toml")
    text = (tmp_path / "schema.toml").read_text()
    assert 'group = "prefix:1"' in text
    assert 'group = { "heart attack" = ["I10", "I12"], other = ["I11", "E11", "E12"] }' in text
    read = Schema.load(tmp_path / "schema.toml")
    assert read == schema
    assert Schema.from_dict(schema.to_dict()) == schema
    assert read["icd"].group == Hierarchy(("I", "I", "E", "I", "E"), "prefix:1")
    assert read["why"].group.names == ("heart attack", "other")
    assert read["why"].group.codes_of("other") == (1, 2, 4)
    assert read["why"].default == 2


def test_a_missing_cell_is_a_parent_of_its_own() -> None:
    found = Attribute.categorical("icd", CODES, group="prefix:1", missing=True)
    assert found.group.numbers(found.size).tolist() == [0, 0, 1, 0, 1, 2]


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ("prefix:0", "group = 'prefix:0'; expected \"prefix:N\""),
        ("chapter", "group = 'chapter'; expected \"prefix:N\""),
        (7, "group = 7; expected"),
        ({"I": "I10"}, "group 'I' = 'I10'; expected a list of values"),
        ({"I": ["I10", "I11"]}, "value 'E11' is in no group; expected each in one"),
        ({"I": CODES, "E": ["E11"]}, "'E11' is in two groups"),
        ({"I": CODES, "E": ["E99"]}, "group holds 'E99', which is not one of its values"),
    ],
)
def test_what_is_no_hierarchy_is_refused(declared: object, told: str) -> None:
    with pytest.raises(SchemaError, match="attribute 'icd': ") as refused:
        Attribute.from_dict("icd", {"values": CODES, "group": declared})
    assert told in str(refused.value)


def test_bins_and_flags_have_no_hierarchy() -> None:
    for entry in ({"edges": [0, 1, 2]}, {"binary": True}):
        with pytest.raises(SchemaError, match="group is for columns with values only"):
            Attribute.from_dict("x", {**entry, "group": "prefix:1"})
