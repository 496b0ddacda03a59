"""`reached`: it is public that values reach the ends of a column's edges."""

from __future__ import annotations

import pytest

from dualquery.base.errors import SchemaError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.domain.sub_bins import SubBins


def test_it_is_kept_by_files_and_sub_bins(tmp_path) -> None:
    cost = Attribute.numeric("cost", [0, 100, 90_000], reached=True)
    plain = Attribute.numeric("plain", [0, 100, 90_000])
    schema = Schema((cost, plain))
    schema.save(tmp_path / "schema.toml")
    assert (tmp_path / "schema.toml").read_text().count("reached = true") == 1
    loaded = Schema.load(tmp_path / "schema.toml")
    assert loaded.attributes == schema.attributes
    assert "reached" not in plain.to_dict()
    assert [SubBins.of(one).reached for one in loaded.attributes] == [True, False]
    assert not any(one.reached for one in loaded.fine.attributes)  # sub-bins have no own


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"edges": [0, 9], "reached": 1}, "reached = 1; expected true or false"),
        ({"edges": [0, 9], "reached": "yes"}, "reached = 'yes'; expected true or false"),
        ({"values": ["a"], "reached": True}, "reached is for columns of numbers with edges only"),
        ({"binary": True, "reached": True}, "reached is for columns of numbers with edges only"),
        (
            {"edges": ["2020-01-01", "2021-01-01"], "type": "date", "reached": True},
            "reached is for columns of numbers, and this one holds dates; leave it out",
        ),
    ],
)
def test_refusals(entry: dict[str, object], text: str) -> None:
    with pytest.raises(SchemaError) as refused:
        Attribute.from_dict("x", entry)
    assert str(refused.value) == f"attribute 'x': {text}"


@pytest.mark.parametrize(
    ("edges", "long"),
    [
        ([0, 100, 90_000], (False, True)),
        ([-90_000, -100, 0], (True, False)),
        ([-90_000, -100, 0, 100, 90_000], (True, True)),
        ([0, 10, 20, 30], (False, False)),
        ([1, 90_000], (False, True)),
        ([-90_000, -1], (True, False)),
    ],
)
def test_where_long_tails_end(edges: list[int], long: tuple[bool, bool]) -> None:
    assert SubBins.of(Attribute.numeric("x", edges)).long == long
