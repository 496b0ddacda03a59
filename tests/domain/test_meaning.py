"""Labels, descriptions and units of columns: in schema files and back, and in a release."""

from __future__ import annotations

from pathlib import Path

import pytest

from dualquery.base.errors import SchemaError
from dualquery.domain.declaration import Declaration
from dualquery.domain.meaning import Meaning
from dualquery.domain.schema import Schema

FILE = """[attributes.mstat]
values = [1, 2]
missing = ["-9"]
label = "Marital status"
description = "On the day of the interview"
labels = { 1 = "married", 2 = "single", -9 = "refused" }

[attributes.smoker]
binary = true
labels = { 0 = "no", 1 = "yes" }

[attributes.day]
edges = [2025-01-01, 2026-01-01]
type = "date"
label = "2025-01-01"
unit = "days"

[attributes.talks]
values = ["en", "fr"]
separator = ";"
label = "Languages"
labels = { en = "English" }
"""


def test_a_schema_file_says_it_and_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(FILE)
    schema = Schema.load(tmp_path / "schema.toml")
    marital, smoker, day, english, french = schema.attributes
    assert marital.meaning.description == "On the day of the interview"
    assert [marital.words_for(code) for code in range(marital.size)] == ["married", "single", ""]
    assert dict(marital.meaning.labels)["-9"] == "refused"
    assert [smoker.words_for(code) for code in (0, 1)] == ["no", "yes"]
    assert (day.heading, day.meaning.unit) == ("2025-01-01", "days")
    assert [english.heading, french.heading] == ["Languages: English", "Languages: fr"]
    schema.save(tmp_path / "again.toml")
    assert Schema.load(tmp_path / "again.toml") == schema
    assert Schema.from_dict(schema.to_dict()) == schema


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("label = 3", "attribute 'a': label = 3; expected text"),
        ('labels = "x"', "attribute 'a': labels = 'x'; expected a table of texts"),
        (
            'labels = { hgh = "x" }',
            "'hgh', which is none of its values; did you mean 'high'",
        ),
    ],
)
def test_what_is_refused(line: str, told: str) -> None:
    import tomllib

    text = f'[attributes.a]\nvalues = ["high", "low"]\n{line}\n'
    with pytest.raises(SchemaError, match=told):
        Schema.from_dict(tomllib.loads(text))


def test_words_survive_a_schema_with_a_price() -> None:
    said = {"label": "Age", "unit": "years"}
    declared = Declaration.from_dict(
        {"attributes": {"age": {"bounds": [0, 9], **said}, "town": {"open": True, **said}}}
    )
    bounded, opened = declared.columns
    assert bounded.ends.meaning == Meaning("Age", "", "years")  # type: ignore[union-attr]
    assert bounded.whole_values(20).meaning.unit == "years"  # type: ignore[union-attr]
    assert opened.with_values(["x"]).meaning.label == "Age"  # type: ignore[union-attr]
