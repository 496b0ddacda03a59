"""The page in a browser: it opens, answers like `dualquery answer`, and works by keyboard."""

from __future__ import annotations

import dataclasses
import json
import time
from importlib import resources

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from dualquery.domain.attributes import Attribute
from dualquery.domain.language import parse
from dualquery.domain.printing import format_query
from dualquery.domain.query import Literal, Query
from dualquery.domain.schema import Schema
from dualquery.release.components import RecordComponents
from dualquery.release.page.files import PURE, joined
from dualquery.release.page.numbers import decimals, percent
from dualquery.release.page.payload import describe, payload
from dualquery.release.page.render import render_page
from dualquery.workloads.actions import Actions
from dualquery.workloads.workload import Workload
from tests.release.page.releases import (
    HOSTILE,
    hostile_schema,
    made_release,
    mixture_answer,
    wide_schema,
    with_forest,
    with_mixture,
)
from tests.strategies import queries, schemas


def by_id(browser, name: str):
    return browser.find_element("id", name)


def shown_answer(browser) -> float:
    return float(by_id(browser, "answer").get_attribute("data-answer"))


def asked(query: Query) -> dict:
    literals = [
        {"attribute": lit.attribute, "codes": list(lit.codes), "negated": lit.negated}
        for lit in query.literals
    ]
    return {"kind": query.kind, "literals": literals}


def random_queries(schema: Schema, count: int) -> list[Query]:
    """Queries of both kinds with any set of codes, from a fixed seed."""
    random = np.random.default_rng(11)
    from dualquery.domain.query import Literal

    made = []
    for number in range(count):
        width = int(random.integers(1, min(4, len(schema)) + 1))
        literals = []
        for position in random.choice(len(schema), width, replace=False):
            size = int(schema.sizes[position])
            codes = np.flatnonzero(random.random(size) < 0.5)
            codes = codes if len(codes) else np.array([0])
            literals.append(
                Literal(int(position), tuple(map(int, codes)), bool(random.random() < 0.3))
            )
        made.append(Query("parity" if number % 3 == 0 else "conjunction", tuple(literals)))
    return made


def test_it_opens_without_a_word_on_the_console(open_page, schema: Schema) -> None:
    browser = open_page(render_page(made_release(schema)))
    assert browser.title == "A differentially private release"
    assert by_id(browser, "explorer-app").is_displayed()
    requests = [
        message["params"]["request"]["url"]
        for entry in browser.get_log("performance")
        if (message := json.loads(entry["message"])["message"])["method"]
        == "Network.requestWillBeSent"
    ]
    assert any(url.startswith("file:") for url in requests)
    assert not any(url.startswith("http") for url in requests), requests


@pytest.mark.parametrize("shape", ["small", "hostile", "wide"])
@pytest.mark.parametrize("model", ["records", "mixture", "forest"])
def test_the_model_in_the_page_answers_like_python(open_page, schema, shape, model) -> None:
    chosen = {"small": schema, "hostile": hostile_schema(), "wide": wide_schema(700)}[shape]
    release = made_release(chosen, 37)
    if model == "mixture":
        release = with_mixture(release, 9)
    elif model == "forest":
        release = with_forest(release)
    browser = open_page(render_page(release))
    wanted = random_queries(chosen, 60)
    found = browser.execute_script(
        """const payload = JSON.parse(document.getElementById("release-data").textContent);
        const model = new dualquery.Model(payload);
        return arguments[0].map((query, i) => [model.answer(query),
          dualquery.formatQuery(query, model.attributes),
          dualquery.crossTable(model, [i % model.attributes.length], query)]);""",
        [asked(query) for query in wanted],
    )
    for number, (query, (answer, text, shown)) in enumerate(zip(wanted, found, strict=True)):
        if shown is not None:  # the chart beside the answer is the cross table of one column
            name = chosen.names[number % len(chosen)]
            table = release.cross_table(name, where=query, unknown="default")
            np.testing.assert_allclose(shown["share"], table.share, atol=1e-9)
        assert answer == pytest.approx(release.answer(query, unknown="default"), abs=1e-12)
        if model == "mixture":
            assert answer == pytest.approx(mixture_answer(release, query), abs=1e-12)
        assert text == format_query(query, chosen)


def test_codes_of_any_width_reach_the_page(browser) -> None:
    """One byte, two, and four: a domain may have more codes than two bytes hold."""
    sizes = (3, 256, 257, 65_536, 65_537, 70_000)
    chosen = Schema(
        tuple(Attribute.categorical(f"c{i}", list(range(n))) for i, n in enumerate(sizes))
    )
    release = made_release(chosen, 5)
    records = release.records.copy()
    records[0], records[1] = chosen.sizes - 1, 0
    components = RecordComponents(chosen, records)
    browser.get("about:blank")
    found = browser.execute_script(
        joined(*PURE)
        + """
        const model = new dualquery.Model(arguments[0]);
        return arguments[1].map((query) => model.answer(query));""",
        payload(release, components),
        [
            {"kind": "conjunction", "literals": [{"attribute": a, "codes": [c], "negated": False}]}
            for a in range(len(sizes))
            for c in records[:, a].tolist()
        ],
    )
    expected = [
        (records[:, a] == c).mean() for a in range(len(sizes)) for c in records[:, a].tolist()
    ]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_page_without_all_attributes_says_so(open_page, monkeypatch) -> None:
    from dualquery.release.page import payload as payloads

    monkeypatch.setattr(payloads, "MOST_BYTES", 2000)
    release = made_release(wide_schema(300), 80)
    browser = open_page(render_page(release))
    assert "of 300 attributes" in by_id(browser, "add-hint").text


def test_the_query_language_is_the_same_on_both_sides(browser) -> None:
    """Schemas and queries of every shape, in one batch: hypothesis makes them."""
    cases: list[tuple[Schema, list[Query]]] = []

    @seed(20)
    @settings(max_examples=150, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        chosen = data.draw(schemas())
        cases.append((chosen, [data.draw(queries(chosen)) for _ in range(4)]))

    collect()
    browser.get("about:blank")
    found = browser.execute_script(
        joined(*PURE)
        + """
        return arguments[0].map(([entries, queries]) => {
          const attributes = entries.map(dualquery.attributeOf);
          return queries.map((query) => dualquery.formatQuery(query, attributes));
        });""",
        [[[describe(a) for a in s.attributes], [asked(q) for q in qs]] for s, qs in cases],
    )
    for (chosen, wanted), texts in zip(cases, found, strict=True):
        assert texts == [format_query(query, chosen) for query in wanted]
        for query, text in zip(wanted, texts, strict=True):
            assert parse(text, chosen).kind == query.kind


def test_a_whole_group_is_chosen_and_written_as_one(open_page) -> None:
    """Declared groups are offered by name; the query says group(…), as `answer` takes it."""
    codes = [*(f"I{i}" for i in range(10, 16)), *(f"E{i}" for i in range(10, 14)), "J10"]
    chosen = Schema(
        (
            Attribute.categorical("icd", codes, group="prefix:1", missing=True),
            Attribute.categorical("ward", ["a", "b", "c"]),
        )
    )
    release = made_release(chosen)
    browser = open_page(render_page(release))
    if by_id(browser, "query").get_attribute("value").startswith("ward"):
        by_id(browser, "add").send_keys("icd\n")
    pick = browser.find_element("css selector", "select[aria-label='icd: a whole group']")
    names = [option.text for option in pick.find_elements("tag name", "option")]
    assert names == ["group …", "group I", "group E", "group J"]
    pick.find_elements("tag name", "option")[2].click()
    text = by_id(browser, "query").get_attribute("value")
    assert "icd in group(E)" in text
    assert shown_answer(browser) == pytest.approx(release.answer(text), abs=1e-12)
    # A value more is no longer a group; both sides write the same.
    wanted = [
        Query("conjunction", (Literal(0, codes_of, negated),))
        for codes_of in ((6, 7, 8, 9), (0, 6, 7, 8, 9), (6, 7, 8, 9, 10), (10,), (6, 7, 8, 9, 11))
        for negated in (False, True)
    ]
    found = browser.execute_script(
        """const model = new dualquery.Model(JSON.parse(
          document.getElementById("release-data").textContent));
        return arguments[0].map((query) => dualquery.formatQuery(query, model.attributes));""",
        [asked(query) for query in wanted],
    )
    assert found == [format_query(query, chosen) for query in wanted]
    assert found[0] == "icd in group(E)"


def test_mischief_in_names_stays_text(open_page) -> None:
    browser = open_page(render_page(made_release(hostile_schema())))
    browser.execute_script("window.alert = () => { window.mischief = true; }")
    field = by_id(browser, "add")
    for _ in range(2):
        field.click()
        field.send_keys("script", "")
        field.send_keys("\ue015\ue007")  # arrow down, Enter
    legends = [e.text for e in browser.find_elements("css selector", ".condition legend")]
    assert HOSTILE[0] in legends
    assert browser.execute_script("return window.mischief") is None
    assert browser.find_elements("css selector", "img") == []


def press(browser, *keys: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(browser).send_keys(*keys).perform()


def test_it_works_with_the_keyboard_alone(open_page, schema: Schema) -> None:
    """From the top of the page: remove the example, ask a question of two conditions, copy it."""
    from selenium.webdriver.common.keys import Keys

    release = made_release(schema, 64)
    browser = open_page(render_page(release))
    focus = lambda: browser.switch_to.active_element  # noqa: E731

    def tab_to(wanted, most: int = 60) -> None:
        for _ in range(most):
            press(browser, Keys.TAB)
            if wanted(focus()):
                return
        raise AssertionError("never reached")

    press(browser, Keys.TAB)
    assert focus().text == "Skip to the content"
    press(browser, Keys.ENTER)
    tab_to(lambda e: e.get_attribute("class") == "remove")
    press(browser, Keys.ENTER)
    assert focus().get_attribute("id") == "add"
    assert shown_answer(browser) == 1.0

    press(browser, "smo", Keys.ARROW_DOWN, Keys.ENTER)
    assert focus().tag_name == "select"
    assert shown_answer(browser) == pytest.approx(release.answer("smoker=1"), abs=1e-9)

    browser.execute_script("document.getElementById('add').focus()")
    press(browser, "age", Keys.ARROW_DOWN)
    assert by_id(browser, "add").get_attribute("aria-activedescendant")
    press(browser, Keys.ENTER)
    tab_to(lambda e: e.get_attribute("type") == "checkbox")
    press(browser, Keys.SPACE)
    press(browser, Keys.TAB)
    press(browser, Keys.SPACE)
    assert shown_answer(browser) == pytest.approx(release.answer("smoker & age<35"), abs=1e-9)
    text = by_id(browser, "query").get_attribute("value")
    assert text == "smoker=1 & age<35"
    shown = by_id(browser, "answer").text
    assert float(shown.removesuffix(" %")) == pytest.approx(100 * release.answer(text), abs=0.05)
    assert len(shown) <= len("12.3 %")

    tab_to(lambda e: e.get_attribute("name") == "combine")
    press(browser, Keys.ARROW_DOWN)
    text = by_id(browser, "query").get_attribute("value")
    assert text == "parity(smoker, age<35)"
    assert shown_answer(browser) == pytest.approx(release.answer(text), abs=1e-9)
    tab_to(lambda e: e.get_attribute("id") == "copy")
    press(browser, Keys.ENTER)
    time.sleep(0.2)
    assert by_id(browser, "copied").text != ""


def test_what_no_query_names_is_unknown(open_page, schema: Schema) -> None:
    from selenium.webdriver.common.keys import Keys

    base = made_release(Schema(schema.attributes[:5]), 16)
    fewer = base.actions.queries
    workload = Workload(schema, fewer.literals, fewer.start, fewer.terms, fewer.is_parity)
    actions = Actions.plain(workload)
    narrow = dataclasses.replace(made_release(schema, 16), actions=actions)
    assert narrow.unknown == ("grade",)
    browser = open_page(render_page(narrow))
    browser.find_element("css selector", ".remove").click()
    press(browser, "smo", Keys.ARROW_DOWN, Keys.ENTER)
    known = by_id(browser, "answer").text
    assert known.endswith("%")
    by_id(browser, "further").click()
    press(browser, "grade", Keys.ARROW_DOWN, Keys.ENTER)
    assert "no query of this release names grade" in by_id(browser, "further-body").text
    browser.execute_script("document.getElementById('add').focus()")
    press(browser, "grade", Keys.ARROW_DOWN, Keys.ENTER)
    browser.find_elements("css selector", ".condition input[type=checkbox]")[-1].click()
    assert by_id(browser, "answer").text == "unknown"
    assert "no query of this release names grade" in by_id(browser, "answer-count").text
    assert by_id(browser, "answer-interval").text == ""
    browser.find_elements("css selector", ".remove")[-1].click()
    assert by_id(browser, "answer").text == known


def test_ranges_negation_and_the_chart(open_page, schema: Schema) -> None:
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select

    release = made_release(schema, 64)
    browser = open_page(render_page(release))
    browser.find_element("css selector", ".remove").click()
    press(browser, "age", Keys.ENTER)
    condition = browser.find_element("css selector", ".condition")
    side, low, high = (Select(e) for e in condition.find_elements("tag name", "select"))
    low.select_by_visible_text("25\u00a0to\u00a0<35")
    assert shown_answer(browser) == pytest.approx(release.answer("age>=25"), abs=1e-9)
    high.select_by_visible_text("50\u00a0to\u00a0<65")
    assert by_id(browser, "query").get_attribute("value") == "age in [25,65)"
    condition.find_elements("css selector", "input[type=checkbox]")[2].click()
    assert low.first_selected_option.text == "…"
    condition.find_elements("css selector", "input[type=checkbox]")[2].click()
    assert high.first_selected_option.text.startswith("50")
    assert shown_answer(browser) == pytest.approx(release.answer("age in [25,65)"), abs=1e-9)
    side.select_by_visible_text("is not")
    assert by_id(browser, "query").get_attribute("value") == "age not in [25,65)"
    assert shown_answer(browser) == pytest.approx(release.answer("age not in [25,65)"), abs=1e-9)

    chart = by_id(browser, "further")
    chart.click()
    press(browser, "grade", Keys.ARROW_DOWN, Keys.ENTER)
    rows = browser.find_elements("css selector", "#further-body tr")
    assert [row.find_element("tag name", "th").text for row in rows] == ["low", "mid", "high"]
    given_choice = release.answer("age not in [25,65) & grade=low") / release.answer(
        "age not in [25,65)"
    )
    assert rows[0].find_elements("class name", "number")[0].text == percent(given_choice)
    assert "no interval" in by_id(browser, "answer-interval").text


def test_attributes_that_were_never_drawn_are_marked(open_page) -> None:
    release = with_mixture(made_release(wide_schema(3000), 5, queries=500), 4, rehearsed=True)
    names = {release.schema.names[a] for a in np.flatnonzero(release.times_drawn)}
    browser = open_page(render_page(release))
    found = browser.execute_script(
        """const payload = JSON.parse(document.getElementById("release-data").textContent);
        const model = new dualquery.Model(payload);
        return model.attributes.filter((a, i) => model.drawn(i)).map((a) => a.name);"""
    )
    assert set(found) == names
    assert by_id(browser, "query").get_attribute("value").split("=")[0] in names
    assert "95 % interval" in by_id(browser, "answer-interval").text
    asked_for = {release.schema.names[a] for a in np.flatnonzero(release.actions.named)}
    by_id(browser, "add").click()
    press(browser, min(asked_for - names), "\ue015", "\ue007")
    conditions = browser.find_elements("css selector", ".condition")
    assert "not knowledge" in conditions[-1].text
    assert "No interval" in by_id(browser, "answer-interval").text


def test_the_interval_is_the_release_s_own(open_page, schema: Schema) -> None:
    release = with_mixture(made_release(schema), 6, rehearsed=True)
    browser = open_page(render_page(release))
    wanted = random_queries(schema, 60)
    found = browser.execute_script(
        """const payload = JSON.parse(document.getElementById("release-data").textContent);
        const model = new dualquery.Model(payload);
        return arguments[0].map((query) =>
          dualquery.errorOfShare(model, query, model.answer(query)));""",
        [asked(query) for query in wanted],
    )
    for query, error in zip(wanted, found, strict=True):
        expected = release.answer_with_error(query)[1]
        assert error == (None if expected is None else pytest.approx(expected, abs=1e-9))
    text = by_id(browser, "query").get_attribute("value")
    answer, error = release.answer_with_error(text)
    assert error is not None
    shown = by_id(browser, "answer-interval").text
    low, high = max(0.0, answer - 1.96 * error), min(1.0, answer + 1.96 * error)
    places = decimals(answer, low, high)
    assert shown == f"95 % interval: {100 * low:.{places}f} % to {100 * high:.{places}f} %"


def test_no_interval_is_shown_unless_the_release_states_one(open_page, schema: Schema) -> None:
    release = made_release(schema)
    assert payload(release, release.components)["uncertainty"] is None
    browser = open_page(render_page(release))
    assert "no interval" in by_id(browser, "answer-interval").text


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1200, 380])
def test_accessibility(open_page, schema: Schema, dark: bool, width: int) -> None:
    axe = pytest.importorskip("axe_core_python.base", reason="needs axe-core-python")
    script = (resources.files("axe_core_python") / "axe.min.js").read_text("utf-8")
    assert axe
    browser = open_page("<!doctype html><title>…</title>")
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    try:
        browser = open_page(render_page(made_release(schema)))
        by_id(browser, "add").click()
        browser.execute_script(script)
        result = browser.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {resultTypes: ['violations']}).then(done, (e) => done(String(e)));"
        )
        faults = [
            (v["id"], v["impact"], [node["html"][:120] for node in v["nodes"][:3]])
            for v in result["violations"]
        ]
        assert faults == []
        overflow = "return document.documentElement.scrollWidth - window.innerWidth"
        assert browser.execute_script(overflow) <= 0
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("model", [False, True], ids=["records", "mixture"])
def test_a_very_wide_page_opens_within_two_seconds(open_page, model: bool) -> None:
    from selenium.webdriver.common.keys import Keys

    release = made_release(wide_schema(17_770), 300)
    if model:
        release = with_mixture(release, 8)
    page = render_page(release)
    loaded = """const [entry] = performance.getEntriesByType("navigation");
        return entry.domContentLoadedEventEnd;"""
    times = []
    for _ in range(3):  # the best of three: other tests share the machine
        browser = open_page(page)
        times.append(browser.execute_script(loaded))
    assert min(times) < 2000, times
    assert len(browser.find_elements("css selector", "*")) < 2500
    by_id(browser, "add").click()
    assert len(browser.find_elements("css selector", "#add-list li")) == 50
    last = release.schema.names[np.flatnonzero(release.actions.named)[-1]]
    press(browser, last.removeprefix("movie_"), Keys.ARROW_DOWN, Keys.ENTER)
    assert f"{last}=1" in by_id(browser, "query").get_attribute("value")
    text = by_id(browser, "query").get_attribute("value")
    assert shown_answer(browser) == pytest.approx(release.answer(text), abs=1e-9)


def test_it_prints(open_page, schema: Schema) -> None:
    browser = open_page(render_page(made_release(schema)))
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert len(printed["data"]) > 10_000
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not by_id(browser, "copy").is_displayed()
        assert by_id(browser, "answer").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.parametrize("player", ["record", "model"])
def test_the_page_of_a_real_release_says_what_the_command_says(
    browser, tmp_path, schema: Schema, rows, monkeypatch, capsys, player: str
) -> None:
    """From a table to a directory; then the page in it against `dualquery answer`, to 1e-9."""
    from selenium.webdriver.common.keys import Keys

    from dualquery.cli import main
    from dualquery.estimator import DualQuery

    job = DualQuery(epsilon=3.0, delta=1e-3, queries=300, player=player, refit=player == "model")
    out = tmp_path / "out"
    job.release(rows, out, schema=schema)
    browser.get((out / "report.html").as_uri())
    browser.find_element("css selector", ".remove").click()
    for name in ("work", "age", "smoker"):
        press(browser, name, Keys.ARROW_DOWN, Keys.ENTER)
        boxes = browser.find_elements("css selector", ".condition:last-child input[type=checkbox]")
        for box in boxes[:2]:
            if not box.is_selected():
                box.click()
        boxes[0].click()
        by_id(browser, "add").click()
        text = by_id(browser, "query").get_attribute("value")
        monkeypatch.setattr("sys.argv", ["dualquery", "answer", str(out), text, "--json"])
        with pytest.raises(SystemExit):
            main()
        told = json.loads(capsys.readouterr().out)["answers"][0]
        assert told["query"] == text
        assert shown_answer(browser) == pytest.approx(told["answer"], abs=1e-9)
        error = json.loads(by_id(browser, "answer").get_attribute("data-error"))
        if told["standard_error"] is None:
            assert error is None
        else:
            assert error == pytest.approx(told["standard_error"], abs=1e-9)
    assert browser.get_log("browser") == []
