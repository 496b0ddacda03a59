"""The public page: what it says, what it weighs, and that text stays text."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.game.plan import Player
from dualquery.model.mixture import Mixture
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.statement import four_digits
from dualquery.release.components import joint, shares
from dualquery.release.page import payload as payloads
from dualquery.release.page.charts import Axes, Bar, bars, ticks
from dualquery.release.page.files import SCRIPTS
from dualquery.release.page.numbers import half_interval, percent
from dualquery.release.page.payload import payload, script_json
from dualquery.release.page.render import render_page
from tests.release.page.releases import (
    HOSTILE,
    hostile_schema,
    made_release,
    wide_schema,
    with_mixture,
)


class Elements(HTMLParser):
    """Counts elements and checks that they close in order."""

    VOID = ("meta", "input", "img", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.text.append(data)


def read(page: str) -> Elements:
    parser = Elements()
    parser.feed(page)
    parser.close()
    assert not parser.open
    return parser


def test_it_says_what_is_promised(schema: Schema) -> None:
    release = made_release(schema)
    page = render_page(release)
    text = " ".join(read(page).text)
    for name in release.privacy.by_accountant:
        assert name in text
    assert "replace-one" in text
    assert "The number of records, 10,000, is public" in text
    assert "Drawn queries satisfied" in text
    assert "proved gap" in text
    for attribute in schema.attributes:
        assert attribute.name in text
    assert "NOT PRIVATE" not in text
    assert "but for a chance" not in text
    assert "is not δ but at most" in text
    assert "The promise for g records together" in text
    for value in release.privacy.groups.values():
        assert four_digits(value) in text


@pytest.mark.parametrize(
    ("accountant", "says"),
    [
        ("pure", "No outcome is ever more than e^ε times as likely"),
        ("advanced", "is at most δ = 1e-06."),
        ("per-round", "is at most δ = 1e-06."),
        ("zcdp", "is not δ but at most"),
        ("gaussian", "for the Gaussian measurement that the run is compared with"),
    ],
)
def test_each_accountant_says_what_its_delta_means(
    schema: Schema, accountant: str, says: str
) -> None:
    release = made_release(schema, accountant=accountant)
    text = " ".join(read(render_page(release)).text)
    assert says in text
    assert f"by the {accountant} accountant" in text


def test_add_remove_says_its_unit_and_hides_the_size(schema: Schema) -> None:
    release = made_release(schema, neighbours=Neighbours.ADD_REMOVE)
    text = " ".join(read(render_page(release)).text)
    assert "whether a record is in the table at all" in text
    assert "With or without one record" in text
    assert payload(release, release.components)["rows"] is None


def test_a_seeded_run_is_stamped_and_promises_nothing(schema: Schema) -> None:
    page = render_page(made_release(schema, private=False))
    text = " ".join(read(page).text)
    assert text.count("NOT PRIVATE") >= 2
    assert "none: seeded" in text
    assert "Put as a test" not in text


@pytest.mark.parametrize("model", [False, True], ids=["records", "mixture"])
def test_names_and_values_stay_text(model: bool) -> None:
    release = made_release(hostile_schema())
    page = render_page(with_mixture(release, 3) if model else release)
    parser = read(page)
    assert [tag for tag, _ in parser.seen].count("script") == 1 + len(SCRIPTS)
    assert not any(tag == "img" for tag, _ in parser.seen)
    assert html.escape(HOSTILE[0]) in page
    embedded = re.search(r'id="release-data">(.*?)</script>', page, re.S)
    assert embedded is not None
    names = [a if isinstance(a, str) else a["name"] for a in json.loads(embedded[1])["attributes"]]
    assert names == list(release.schema.names)


def test_nothing_is_loaded_from_anywhere(schema: Schema) -> None:
    parser = read(render_page(made_release(schema)))
    for tag, attributes in parser.seen:
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#"), (tag, attributes)
    policy = next(a for t, a in parser.seen if a.get("http-equiv"))["content"]
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy
    assert policy.count("unsafe-inline") == 1


def test_the_same_release_makes_the_same_page(schema: Schema) -> None:
    assert render_page(made_release(schema)) == render_page(made_release(schema))


def test_a_model_player_tells_its_likelihood(schema: Schema) -> None:
    release = with_mixture(made_release(schema, player=Player.MODEL), 4)
    text = " ".join(read(render_page(release)).text)
    assert "Fit of the model" in text
    assert "Drawn queries satisfied" not in text
    assert "How sharply queries were drawn" in text


def test_pages_are_light() -> None:
    """235 bits and 128 components below 1.5 MB; 17,770 columns below 5 MB, whatever answers."""
    census = with_mixture(made_release(wide_schema(235), 60), 128)
    assert len(render_page(census).encode()) < 1_500_000
    ratings = made_release(wide_schema(17_770), 400)
    assert len(render_page(ratings).encode()) < 5_000_000
    assert len(render_page(with_mixture(ratings, 8)).encode()) < 5_000_000
    wider = made_release(wide_schema(40_000), 20)
    assert len(render_page(with_mixture(wider, 24)).encode()) < 5_000_000


def test_a_page_that_would_be_heavy_covers_what_was_drawn_most(monkeypatch) -> None:
    release = made_release(wide_schema(500), 80, queries=50)
    monkeypatch.setattr(payloads, "MOST_BYTES", 3000)
    made = payload(release, release.components)
    assert 80 < len(made["attributes"]) < 150
    assert made["total"] == 500
    drawn = np.concatenate([one.draws.queries for one in release.transcript])
    used = release.workload.take(np.unique(drawn)).literals.attribute
    assert set(made["attributes"]) <= {release.schema.names[a] for a in used}


def test_shares_and_pairs_are_distributions(schema: Schema) -> None:
    for release in (made_release(schema), with_mixture(made_release(schema), 4)):
        components = release.components
        for a in range(len(schema)):
            assert shares(components, a).sum() == pytest.approx(1.0)
        table = joint(components, 0, 1)
        np.testing.assert_allclose(table.sum(axis=1), shares(components, 0))
        np.testing.assert_allclose(table.sum(axis=0), shares(components, 1))


def test_script_json_cannot_end_its_element() -> None:
    text = script_json({"a": "</script><!--&\u2028"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": "</script><!--&\u2028"}


def test_chart_parts() -> None:
    assert ticks(0.0, 1.0) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert ticks(1.0, 69.0) == [20.0, 40.0, 60.0]
    assert "&lt;b&gt;" in bars("<b>", [Bar("<i>", 0.5)])
    flat = Axes((1.0, 1.0), (0.0, 0.0))
    flat.line([1.0], [0.0], "first")
    assert "nan" not in flat.svg("flat", "x", "y")


def test_digits_follow_the_interval() -> None:
    assert percent(0.0) == "0 %"
    assert percent(0.219830301935) == "22.0 %"
    assert percent(0.219830301935, 0.2173, 0.2223) == "22.0 %"
    assert percent(0.219830301935, 0.2196, 0.22) == "21.98 %"
    assert percent(0.219830301935, 0.15, 0.29) == "22 %"
    assert percent(1e-9) == "< 0.0001 %"
    assert percent(1e-5, 0.0, 0.004) == "< 0.1 %"
    assert half_interval(0.2, 0.19, 0.21) == "± 1"
    assert half_interval(0.03, 0.0, 0.08) == "0–8"
    assert half_interval(0.2, None, None) == ""


ABOUT = {
    "title": "Survey <b>2025</b>",
    "publisher": "Office & Co",
    "date": "2026-11-16",
    "contact": "data@office.example",
    "licence": "https://licences.example/by",
    "description": "What adults <i>said</i>.",
}


def test_it_says_who_publishes_it(schema: Schema) -> None:
    release = made_release(schema).with_about(ABOUT)
    page = render_page(release)
    parser = read(page)
    text = " ".join(parser.text)
    assert page.count("<title>Survey &lt;b&gt;2025&lt;/b&gt;</title>") == 1
    for words in ("Office & Co", "16 November 2026", "What adults <i>said</i>."):
        assert words in text
    assert release.citation in text
    assert release.citation.startswith("Office & Co (2026). Survey <b>2025</b>. Synthetic data, ")
    links = {a.get("href") for t, a in parser.seen if t == "a" and not a["href"].startswith("#")}
    assert links == {"mailto:data@office.example", "https://licences.example/by"}


def test_an_address_that_is_mischief_is_only_text(schema: Schema) -> None:
    about = {"contact": "javascript:alert(1)", "licence": "https://a'b"}
    parser = read(render_page(made_release(schema).with_about(about)))
    assert all(a["href"].startswith("#") for t, a in parser.seen if t == "a")


def test_what_few_need_is_folded_away(schema: Schema) -> None:
    parser = read(render_page(made_release(schema)))
    place = next(i for i, (tag, _) in enumerate(parser.seen) if tag == "details")
    before = [a.get("id") for _, a in parser.seen[:place]]
    assert "specialists" in before
    assert "privacy" in before
    text = " ".join(parser.text)
    assert text.index("Every accountant's view") < text.index("how it counts")
    assert text.index("Every accountant's view") < text.index("learning rate of the query player")


def test_ordered_columns_are_whole_and_in_order() -> None:
    edges = list(range(90))
    chosen = Schema(
        (
            Attribute.numeric("age", edges),
            Attribute.numeric("decade", edges[::10]),
            Attribute.categorical("code", [f"c{i}" for i in range(40)]),
            Attribute.categorical("level", [f"l{i}" for i in range(20)], ordered=True),
        )
    )
    page = render_page(with_mixture(made_release(chosen), 4, rehearsed=True))
    part = page[page.index('id="distributions"') : page.index('id="columns"')]
    age = part[part.index("<summary>All values") :]
    age = age[: age.index("</details>")]
    assert age.count('<th scope="row">') == 89
    level = part[part.index("<caption>level") :]
    level = level[: level.index("</table>")]
    names = re.findall(r'<th scope="row">(l\d+)</th>', level)
    assert names == [f"l{i}" for i in range(20)]
    code = part[part.index("<caption>code") :]
    code = code[: code.index("</table>")]
    assert code.count('<th scope="row">') == 14
    assert "27 others" in code
    assert level.count("<u style=") == 20  # each with its interval


def test_the_most_frequent_items_of_a_wide_table_come_first() -> None:
    release = with_mixture(made_release(wide_schema(300), 40, queries=3000), 5, rehearsed=True)
    assert not release.unknown
    page = render_page(release)
    part = page[page.index("most frequent of 300 columns") :]
    names = re.findall(r'<th scope="row">(movie_\d+)</th>', part[: part.index("</table>")])
    ones = [shares(release.components, a)[1] for a in range(300)]
    wanted = [release.schema.names[a] for a in np.argsort(-np.array(ones), kind="stable")[:20]]
    assert names == wanted


def test_the_first_question_tells_something() -> None:
    """Of columns that hang together, one is the condition and the other is shown."""
    chosen = Schema((Attribute.binary("a"), Attribute.binary("b"), Attribute.binary("c")))
    release = made_release(chosen)
    weights = np.array([0.3, 0.7])
    tables = np.array([[0.5, 0.5], [0.5, 0.5], [0.9, 0.1], [0.1, 0.9], [0.8, 0.1], [0.2, 0.9]])
    release = release.with_model(Mixture(chosen, weights, tables), None)
    first = payload(release, release.components)["first"]
    ((attribute, codes),) = first["conditions"]
    assert {attribute, first["show"]} == {1, 2}
    assert codes == [1]
