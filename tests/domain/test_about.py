"""Title, publisher and the rest: in schema files, in Python, and in what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from dualquery.base.errors import ParameterError, SchemaError
from dualquery.domain.about import About, link
from dualquery.domain.schema import Schema

FILE = """[about]
title = "A survey"
publisher = "The office"
date = 2026-11-16
license = "CC BY 4.0"

[attributes.sex]
values = ["Female", "Male"]
"""


def test_a_schema_file_says_it_and_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(FILE)
    schema = Schema.load(tmp_path / "schema.toml")
    assert schema.about == About("A survey", "", "The office", "2026-11-16", licence="CC BY 4.0")
    schema.save(tmp_path / "again.toml")
    assert Schema.load(tmp_path / "again.toml").about == schema.about
    assert "about" not in schema.to_dict()  # what a resumed run is compared by
    assert schema == Schema.from_dict(schema.to_dict())  # it says nothing about the columns
    assert schema.resolve(["sex"]).about == schema.about


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('titel = "x"', "about: unknown key 'titel'; did you mean 'title'"),
        ("title = 3", "about: title = 3; expected text"),
        ('date = "soon"', "about: date = 'soon'; expected a day such as 2026-11-16"),
        ('url = "office"', "about: url = 'office'; expected an address that begins with https"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "schema.toml").write_text(f"[about]\n{content}\n[attributes.a]\nbinary = true\n")
    with pytest.raises(SchemaError, match=told):
        Schema.load(tmp_path / "schema.toml")


def test_options_go_before_the_file() -> None:
    file = About(title="from the file", publisher="the office")
    both = file.under(About.of({"title": "from the caller"}))
    assert both == About(title="from the caller", publisher="the office")
    with pytest.raises(ParameterError, match="about is a list; expected a table of texts"):
        About.of(["title"])


def test_a_citation_is_made_of_what_is_known() -> None:
    whole = About(title="T", publisher="P", date="2026-11-16", url="https://a.example/t")
    assert whole.cited("ε = 1") == "P (2026). T. Synthetic data, ε = 1. https://a.example/t"
    assert About(title="T", date="2026-11-16").cited("ε = 1") == "T (2026). Synthetic data, ε = 1."
    assert About(citation="As we say.").cited("ε = 1") == "As we say."


def test_only_addresses_are_links() -> None:
    assert link("a@b.example") == "mailto:a@b.example"
    assert link("https://a.example/x?y=1") == "https://a.example/x?y=1"
    for words in ("javascript:alert(1)", "CC BY 4.0", "a@b.example?cc=x", 'https://"x', "a b@c"):
        assert link(words) is None
