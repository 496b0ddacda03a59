"""The public page: what it says, what it weighs, and that text stays text."""

from __future__ import annotations

import dataclasses
import hashlib
import html
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from dualquery.domain.attributes import Attribute
from dualquery.domain.meaning import Meaning
from dualquery.domain.schema import Schema
from dualquery.game.plan import Player
from dualquery.game.tables_plan import FINER_COMPONENTS, MEMBERS
from dualquery.game.transcript import Transcript
from dualquery.model.forest.edges import Edges
from dualquery.model.forest.trees import Trees
from dualquery.model.mixture import Mixture
from dualquery.model.standard_errors import LEVELS, MOST_LITERALS, ErrorTable
from dualquery.privacy.ledger import Mark
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.rounding import decimals_up
from dualquery.privacy.sampler import Draws
from dualquery.privacy.statement import four_digits
from dualquery.release.components import joint, shares
from dualquery.release.page import payload as payloads
from dualquery.release.page.card import best_guess, card
from dualquery.release.page.charts import Axes, Bar, bars, ticks
from dualquery.release.page.course import course
from dualquery.release.page.files import SCRIPTS
from dualquery.release.page.numbers import half_interval, percent
from dualquery.release.page.payload import payload, script_json
from dualquery.release.page.render import render_page
from dualquery.release.page.words import privacy_section
from dualquery.release.release import Release
from dualquery.workloads.marginals import Groups
from tests.release.page.releases import (
    HOSTILE,
    hostile_schema,
    large_schema,
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
    assert "Do not publish it" in text
    assert "May I publish it? No." in " ".join(text.split())
    assert "at most" not in card(made_release(schema, private=False))
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


def test_a_page_with_500_codes_and_35_columns_is_light() -> None:
    """With as many components as a plan can ask for, and every column joined in every fit."""
    components = FINER_COMPONENTS * MEMBERS
    release = with_mixture(made_release(large_schema()), components)
    trees = Trees.of_edges(35, [(i // 4, i) for i in range(1, 35)])
    groups = Groups.single(release.schema)
    ties = np.random.default_rng(1).normal(size=(MEMBERS, int(trees.tie_start(groups.sizes)[-1])))
    fit = np.repeat(np.arange(MEMBERS), FINER_COMPONENTS)
    edges = Edges(trees, groups, ties, fit)
    assert release.model is not None
    joined = Mixture(release.schema, release.model.weights, release.model.own, edges)
    assert components == 256
    assert len(render_page(release.with_model(joined, None)).encode()) < 2_000_000


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


def test_a_reader_gets_five_answers_before_anything_else(schema: Schema) -> None:
    """What is this and whose, how sure is a number, may I publish it, how private, how to cite."""
    plain = made_release(schema)
    release = with_mixture(plain, 3, rehearsed=True).with_about(ABOUT)
    text = " ".join(" ".join(read(render_page(release)).text).split())
    first, *answers = re.split(
        r"What is this\? |How sure is a number\? |May I publish it\? |How private is it\? "
        r"|How do I cite it\? ",
        text.partition(" Ask Columns ")[0],
    )
    assert "Survey <b>2025</b>" in first
    what, sure, publish, private, cite = answers
    assert "a private table of 10,000 records and 6 columns" in what
    assert "Published by Office & Co" in what
    assert re.search(
        r"true one in about 95 of 100 cases\. A share of 10 % is known to ± [\d.]+", sure
    )
    assert publish.startswith("Yes, under https://licences.example/by")
    assert re.search(r"right in 50 of 100 cases .* in at most \d\d\.\d of 100", private)
    assert "copied as a sentence with its source" in cite
    text = " ".join(" ".join(read(render_page(plain)).text).split())
    assert "named no licence: ask before you reuse it" in text
    assert "does not say how far its numbers may be off" in text


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
    folded = text.index("every accountant's view")
    for few in ("how it counts", "learning rate of the query player", "(e^ε)"):
        assert folded < text.index(few)


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
    part = page[page.index('id="columns"') : page.index('id="download"')]
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


def told(release: Release) -> dict:
    return payload(release, release.components)["first"]


def linked_columns(errors: ErrorTable | None) -> Release:
    """Three yes/no columns: the first knows nothing of the others, which hang together."""
    chosen = Schema((Attribute.binary("a"), Attribute.binary("b"), Attribute.binary("c")))
    weights = np.array([0.3, 0.7])
    tables = np.array([[0.5, 0.5], [0.5, 0.5], [0.9, 0.1], [0.1, 0.9], [0.8, 0.1], [0.2, 0.9]])
    return made_release(chosen).with_model(Mixture(chosen, weights, tables), errors)


def test_the_first_question_tells_something() -> None:
    """Of columns that hang together, one is the condition and the other is shown."""
    first = told(linked_columns(None))
    (condition,) = first["where"]
    assert {condition["attribute"], first["of"]} == {1, 2}
    assert condition["codes"] == first["codes"] == [1]


def test_noise_is_no_first_question() -> None:
    """A difference that its interval may explain is not told."""
    scale = np.full((1, MOST_LITERALS, len(LEVELS) - 1), 0.2)
    first = told(linked_columns(ErrorTable(scale)))
    assert first["where"] == []
    sure = told(linked_columns(ErrorTable(scale / 1000.0)))
    assert sure["where"]


def test_a_wide_table_has_a_first_question_too() -> None:
    """Two of 300 columns hang together: they are found, whatever the others are."""
    chosen = wide_schema(300)
    shares = np.full((300, 2), 0.4)
    shares[17], shares[23] = (0.9, 0.1), (0.8, 0.05)
    tables = np.stack([1.0 - shares, shares], axis=1).reshape(600, 2)
    release = made_release(chosen, 300, queries=200)
    drawn = release.times_drawn
    model = Mixture(chosen, np.array([0.4, 0.6]), tables)
    order = np.argsort(-drawn, kind="stable")[:2]
    moved = np.concatenate([[2 * a, 2 * a + 1] for a in (17, 23)])
    swapped = tables.copy()
    swapped[moved] = 0.5
    for place, a in zip(order.tolist(), (17, 23), strict=True):
        swapped[[2 * place, 2 * place + 1]] = tables[[2 * a, 2 * a + 1]]
    release = release.with_model(Mixture(chosen, model.weights, swapped), None)
    first = told(release)
    assert {first["of"], first["where"][0]["attribute"]} == set(order.tolist())


def test_the_card_says_how_much_a_guess_gains(schema: Schema) -> None:
    """At most Φ(μ/2), and what ε and δ alone allow."""
    privacy = made_release(schema).privacy
    gauss = NormalDist().cdf(privacy.mu / 2.0)
    plain = (math.exp(privacy.epsilon) + privacy.delta) / (math.exp(privacy.epsilon) + 1.0)
    assert best_guess(privacy) == pytest.approx(min(gauss, plain), abs=1e-9)
    pure = made_release(schema, accountant="pure").privacy
    grown = math.exp(pure.epsilon)
    assert best_guess(pure) <= grown / (grown + 1.0) + 1e-12
    text = " ".join(read(card(made_release(schema))).text)
    guess = decimals_up(100.0 * best_guess(privacy), 1)
    assert f"at most {guess} of 100" in text
    assert "The number of records" not in text
    assert "the number of records, 10,000" in text
    for formula in ("ε", "δ", "μ", "e^"):
        assert formula not in text


def test_the_card_says_what_was_used_and_who_is_meant(schema: Schema) -> None:
    release = made_release(schema).with_about({"records": "patients", "date": "2026-11-18"})
    text = " ".join(read(card(release, "ab" * 32)).text)
    for words in ("about patients", "18 November 2026", "ab" * 32, "not charged to a ledger"):
        assert words in text
    counted = dataclasses.replace(release, ledger=Mark("a" * 16, 7, "b" * 64))
    assert "7 entries came before it" in card(counted)
    hidden = made_release(schema, neighbours=Neighbours.ADD_REMOVE)
    assert "whether one record is in the table" in card(hidden)
    assert "10,000" not in card(hidden)


def test_charts_that_have_nothing_to_show_are_left_out(schema: Schema) -> None:
    """No line at zero, no part of a column, no word of draws where none were made."""
    release = made_release(schema)
    quiet = [
        dataclasses.replace(one, temperature=0.0, draws=Draws(np.empty(0, int), np.empty(0, bool)))
        for one in release.transcript
    ]
    assert "No query was drawn" in course(Transcript(tuple(quiet[:1])))
    assert "How sharply" not in course(Transcript(tuple(quiet)))
    words = privacy_section(release.privacy, tables=3, drawn=False)
    assert "touched only to count the cells of 3 marginals" in words
    assert ticks(0.0, 2.0, whole=True) == [0.0, 1.0, 2.0]


def test_a_bar_keeps_its_room_beside_a_long_label() -> None:
    long = bars("x", [Bar("a rather long label of one value", 0.5), Bar("b", 0.1)])
    assert long.startswith('<table class="bars long">')
    assert long.count('<th scope="rowgroup" colspan="3">') == 2
    assert 'class="bars">' in bars("x", [Bar("short", 0.5)])


def test_words_for_readers_are_used(schema: Schema) -> None:
    """Labels, units and descriptions of the schema; yes and no for yes/no columns."""
    meaning = Meaning("Sex of the person", "As registered", labels=(("Female", "women"),))
    first = schema.attributes[0].meaning_of(meaning)
    chosen = Schema((first, *schema.attributes[1:]))
    release = with_mixture(made_release(chosen), 4, rehearsed=True)
    page = render_page(release)
    columns = page[page.index('id="columns"') : page.index('id="download"')]
    for words in ("<caption>Sex of the person</caption>", "As registered", ">women</th>"):
        assert words in columns
    assert f"<code>{first.name}</code>" in columns
    assert "0/1" not in columns
    assert f"table of 10,000 records and {len(schema)} columns" in page
    entry = payload(release, release.components)["attributes"][0]
    assert (entry["label"], entry["words"]) == ("Sex of the person", {0: "women"})


def test_the_page_links_to_the_files_beside_it(schema: Schema, tmp_path: Path) -> None:
    release = made_release(schema)
    release.save(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    links = re.findall(r'<a href="([^"#:]+)" download', page)
    assert set(links) == {file.name for file in (tmp_path / "out").iterdir()} - {"report.html"}
    digest = hashlib.sha256((tmp_path / "out" / "transcript.npz").read_bytes()).hexdigest()
    assert digest in page
    assert (
        digest[:16]
        in json.loads(re.search(r'id="release-data">(.*?)</script>', page, re.S)[1])["source"]
    )
