"""Questions of every kind in the page: the figures and intervals of Python and of the commands."""

from __future__ import annotations

import csv
import io
import json
import shlex
import time
from pathlib import Path

import numpy as np
import pytest

from dualquery.base.errors import QueryError
from dualquery.cli import main
from dualquery.domain.query import Literal, Query
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.release.page.numbers import half_interval, percent
from dualquery.release.page.render import render_page
from dualquery.release.release import Release
from tests.browser.test_explorer import asked, by_id, press
from tests.release.page.releases import (
    hostile_schema,
    large_schema,
    made_release,
    with_forest,
    with_mixture,
)

ASK = """const model = new dualquery.Model(
    JSON.parse(document.getElementById("release-data").textContent));
  const questions = new dualquery.Questions(model);
  return arguments[0].map(([kind, columns, target, where]) => {
    const condition = new dualquery.Condition(model, where);
    if (kind === "share") return questions.share(target);
    if (kind === "given") return questions.given(target, condition);
    if (kind === "mean") return questions.mean(columns[0], condition);
    if (kind === "median") return questions.quantile(columns[0], 0.5, condition);
    return questions.table(columns, condition);
  });"""
KINDS = ("share", "given", "mean", "median", "table", "cross")


def rehearsed(schema: Schema, rounds: int = 37) -> Release:
    return with_mixture(made_release(schema, rounds), 7, rehearsed=True)


@pytest.fixture(scope="module")
def measured(
    schema: Schema, rows, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Release, Path]:
    """A real release, which measured where numbers lie inside bins."""
    out = tmp_path_factory.mktemp("measured") / "out"
    job = DualQuery(epsilon=3.0, delta=1e-3, queries=300)
    return job.release(rows, out, schema=schema), out


def cases_of(
    release: Release, count: int, seed: int
) -> list[tuple[str, list[int], Query, Query | None]]:
    """Questions of all kinds, with conditions of up to two columns."""
    random = np.random.default_rng(seed)
    schema = release.schema
    numbers = [
        a
        for a, one in enumerate(schema.attributes)
        if not one.is_binary and (one.is_numeric or all(isinstance(v, int) for v in one.values))
    ]

    def literals(width: int) -> Query | None:
        if not width:
            return None
        made = []
        for a in random.choice(len(schema), width, replace=False).tolist():
            codes = np.flatnonzero(random.random(int(schema.sizes[a])) < 0.6)
            made.append(Literal(a, tuple(map(int, codes)) or (0,), bool(random.random() < 0.2)))
        return Query("conjunction", tuple(made))

    found = []
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        columns = random.choice(len(schema), 2 if kind == "cross" else 1, replace=False).tolist()
        if kind in ("mean", "median"):
            columns = [int(random.choice(numbers))]
        found.append((kind, columns, literals(1), literals(int(random.integers(0, 3)))))
    return found


def python_says(
    release: Release, kind: str, columns: list[int], target: Query, where: Query | None
):
    names = [release.schema.names[a] for a in columns]
    if kind == "share":
        return release.answer(target)
    if kind == "given":
        return release.answer(target, given=where)
    if kind == "mean":
        return release.mean(names[0], where=where)
    if kind == "median":
        return release.quantile(names[0], where=where)
    return release.cross_table(*names, where=where)


def compare(browser, release: Release, cases) -> dict[str, int]:
    """The page against Python, to 1e-12; how many questions of each kind had an answer."""
    found = browser.execute_script(
        ASK, [[k, c, asked(t), asked(w) if w else []] for k, c, t, w in cases]
    )
    seen = dict.fromkeys(KINDS, 0)
    for case, shown in zip(cases, found, strict=True):
        try:
            wanted = python_says(release, *case)
        except QueryError:
            assert shown is None, case
            continue
        if case[0] in ("table", "cross"):
            for name in ("share", "low", "high"):
                got = np.array([np.nan if one is None else one for one in shown[name]])
                want = getattr(wanted, name).reshape(-1)
                np.testing.assert_allclose(got, want, rtol=0, atol=1e-12, err_msg=str(case))
        else:
            for name, number in (
                ("value", float(wanted)),
                ("low", wanted.low),
                ("high", wanted.high),
            ):
                expected = None if number is None else pytest.approx(number, rel=1e-12, abs=1e-12)
                assert shown[name] == expected, (case, name)
        seen[case[0]] += 1
    return seen


@pytest.mark.parametrize("shape", ["small", "hostile", "forest"])
def test_the_page_answers_like_python(open_page, schema: Schema, shape: str) -> None:
    chosen = hostile_schema() if shape == "hostile" else schema
    release = rehearsed(chosen)
    if shape == "forest":
        release = with_forest(made_release(schema, 37))
    browser = open_page(render_page(release))
    seen = compare(browser, release, cases_of(release, 60, 5))
    assert min(seen.values()) >= 5, seen


def test_fifty_questions_of_every_kind_agree_with_the_release(open_page, measured) -> None:
    """Of a real release: where numbers lie inside bins is known, and how surely."""
    release, out = measured
    assert any(release.within(name).surety is not None for name in ("age", "rate"))
    browser = open_page((out / "report.html").read_text("utf-8"))
    seen = compare(browser, release, cases_of(release, 50 * len(KINDS), 6))
    assert min(seen.values()) >= 40, seen


def command_says(monkeypatch, capsys, line: str, out: Path, *more: str) -> str:
    words = [str(out) if word == "DIR" else word for word in shlex.split(line)]
    monkeypatch.setattr("sys.argv", [*words, *more])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 0
    return str(capsys.readouterr().out)


ADDRESSES = (
    "#q=share&of=smoker:1",
    "#q=share&of=smoker:1&in=age:2-4",
    "#q=share&of=work+class:0,2-3&not=sex:0",
    "#q=mean&of=rate&in=smoker:1",
    "#q=median&of=age&in=sex:1&in=smoker:0",
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_the_command_that_is_shown_says_the_same(
    browser, measured, monkeypatch, capsys, address: str
) -> None:
    """An address opens its question, a reload keeps it, and its command gives its figure."""
    _, out = measured
    browser.get("about:blank")
    browser.get((out / "report.html").as_uri() + address)
    sentence = by_id(browser, "sentence").text
    browser.refresh()
    assert by_id(browser, "sentence").text == sentence
    assert browser.execute_script("return location.hash") == address.replace(",", "%2C").replace(
        ":", "%3A"
    )
    told = {
        name: json.loads(by_id(browser, "sentence").get_attribute(f"data-{name}"))
        for name in ("answer", "low", "high")
    }
    line = by_id(browser, "command").text
    found = json.loads(command_says(monkeypatch, capsys, line, out, "--json"))
    if "answers" in found:
        (wanted,) = found["answers"]
    else:
        figure = address[3:].split("&")[0]
        (wanted,) = [row for row in found["rows"] if row["figure"] == figure]
        wanted["answer"] = wanted.pop("value")
    for name, number in told.items():
        assert number == pytest.approx(wanted[name], rel=1e-12), name
    assert browser.get_log("browser") == []


def downloaded(browser, folder: Path, button: str, ending: str) -> Path:
    """The file that a button gives."""
    browser.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)}
    )
    for old in folder.glob(f"*.{ending}"):
        old.unlink()
    by_id(browser, button).click()
    for _ in range(200):
        new = list(folder.glob(f"*.{ending}"))
        if new and new[0].stat().st_size:
            return new[0]
        time.sleep(0.05)
    raise AssertionError("no file came")


def test_a_cross_table_is_chosen_shown_and_kept(
    browser, measured, tmp_path: Path, monkeypatch, capsys
) -> None:
    """The file of all cells is that of `dualquery table`; rows and columns add up to 100 %."""
    release, out = measured
    browser.get("about:blank")
    browser.get((out / "report.html").as_uri() + "#q=share&of=sex&in=smoker:1&by=age&as=all")
    assert len(browser.find_elements("css selector", "#shown-table thead th")) == 6
    line = by_id(browser, "command").text
    assert line == "dualquery table DIR sex age --where smoker=1"
    ours = downloaded(browser, tmp_path, "csv", "csv").read_text("utf-8")
    theirs = command_says(monkeypatch, capsys, line, out, "--format", "csv")
    ours, theirs = (list(csv.reader(io.StringIO(text))) for text in (ours, theirs))
    assert [row[:2] for row in ours] == [row[:2] for row in theirs]
    figures = [np.array([row[2:] for row in rows[1:]], dtype=float) for rows in (ours, theirs)]
    np.testing.assert_allclose(figures[0], figures[1], atol=1e-12)
    for choice, wanted, given in (("row", "age", "sex"), ("column", "sex", "age")):
        by_id(browser, "as").find_element("css selector", f"option[value={choice}]").click()
        kept = downloaded(browser, tmp_path, "csv", "csv").read_text("utf-8")
        rows = list(csv.reader(io.StringIO(kept)))
        assert rows[0] == ["sex", "age", f"share of the {choice}", "low", "high"]
        place = 0 if choice == "row" else 1
        first = [row for row in rows[1:] if row[place] == rows[1][place]]
        code = Query("conjunction", (Literal(release.schema.position(given), (0,)),))
        smoking = Literal(release.schema.position("smoker"), (1,))
        where = Query("conjunction", (smoking, *code.literals))
        table = release.cross_table(wanted, where=where)
        got = np.array([row[2:] for row in first], dtype=float)
        np.testing.assert_allclose(got[:, 0], table.share, atol=1e-12)
        np.testing.assert_allclose(got[:, 1], table.low, atol=1e-12)


def test_groups_are_compared_and_drawn(
    browser, measured, tmp_path: Path, monkeypatch, capsys
) -> None:
    """Means by group are those of `summary --by`; what overlaps is grey; the picture is a PNG."""
    _, out = measured
    browser.get("about:blank")
    browser.get((out / "report.html").as_uri() + "#q=mean&of=age&by=smoker")
    line = by_id(browser, "command").text
    assert line == "dualquery summary DIR age --by smoker"
    rows = json.loads(command_says(monkeypatch, capsys, line, out, "--format", "json"))["rows"]
    means = [row for row in rows if row["figure"] == "mean"]
    kept = downloaded(browser, tmp_path, "csv", "csv").read_text("utf-8")
    ours = list(csv.reader(io.StringIO(kept)))[1:]
    assert [row[0] for row in ours] == ["no", "yes"]
    for mine, theirs in zip(ours, means, strict=True):
        wanted = [theirs[name] for name in ("value", "low", "high")]
        np.testing.assert_allclose(np.array(mine[1:], dtype=float), wanted, rtol=1e-12)
    (no, yes) = means
    apart = no["high"] < yes["low"] or yes["high"] < no["low"]
    by_id(browser, "against").find_elements("tag name", "option")[1].click()
    grey = browser.find_elements("css selector", "#shown-table .alike")
    assert len(grey) == int(not apart)
    assert ("cannot be told apart" in by_id(browser, "sentence").text) == (not apart)
    picture = downloaded(browser, tmp_path, "png", "png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 5_000
    browser.refresh()
    assert by_id(browser, "against").get_attribute("value") == "0"
    by_id(browser, "copy-embed").click()
    time.sleep(0.2)
    code = by_id(browser, "copied").text
    assert "<iframe src=" in code
    assert "?embed#q=mean" in code
    browser.get((out / "report.html").as_uri() + "?embed#q=mean&of=age&by=smoker")
    assert by_id(browser, "shown-table").is_displayed()
    assert "Synthetic data" in browser.find_element("tag name", "footer").text  # the source
    for hidden in ("figure", "columns", "copy-link"):
        assert not by_id(browser, hidden).is_displayed()


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ([(10, 8, 12), (20, 18, 22), (30, 28, 32)], "goes from 10 for age a to 30 for age c."),
        # The last group is hardly known; the second one is certainly above the first.
        ([(10, 8, 12), (45, 30, 60), (53, 0, 100)], "is 10 for age a and 45 for age b."),
        ([(10, 0, 20), (15, 5, 25)], "goes from 10 for age a to 15 for age b. These two cannot be "
         "told apart: the relation is below the noise."),
        ([(10, 8, 12)], "is 10 for age a."),
    ],
)  # fmt: skip
def test_a_comparison_names_groups_that_can_be_told_apart(open_page, schema, groups, says) -> None:
    page = open_page(render_page(made_release(schema)))
    sentence = page.execute_script(
        """
        const view = Object.create(dualquery.View.prototype);
        const rows = arguments[0].map(([value, low, high], i) => (
          {label: "abc"[i], figure: {value, low, high}}));
        Object.defineProperty(view, "chart", {value: {rows}});
        Object.assign(view, {numeric: true, column: {label: "cost"}, attributes: [{label: "age"}],
                             state: {figure: "mean", by: 0, where: []}});
        return view.comparison((figure) => [String(figure.value)]).join("");
        """,
        groups,
    )
    assert sentence == "The mean of cost " + says


def test_an_address_that_is_nonsense_opens_the_page_s_own_question(open_page, schema) -> None:
    browser = open_page(render_page(rehearsed(schema)))
    own = by_id(browser, "sentence").text
    address = browser.current_url.split("#")[0]
    for bad in ("q=share&of=nothing:1", "q=mean&of=sex", "q=share&of=sex:7", "q=x", "q=share"):
        browser.get("about:blank")
        browser.get(f"{address}#{bad}")
        assert by_id(browser, "sentence").text == own


def test_large_code_columns_show_ten_find_all_and_scroll(open_page) -> None:
    release = rehearsed(large_schema())
    browser = open_page(render_page(release))
    address = browser.current_url.split("#")[0]

    def rows() -> list[str]:
        found = browser.find_elements("css selector", "#shown-table th[scope^=row]")
        return [row.text for row in found]

    browser.get(f"{address}#q=share&of=icd")
    browser.refresh()
    shares = release.cross_table("icd").share
    names = [release.schema.attributes[0].values[c] for c in np.argsort(-shares)[:10]]
    assert rows() == names
    by_id(browser, "find").click()
    press(browser, "c4")
    assert rows() == [f"C{number}" for number in range(40, 50)]
    press(browser, "\ue003", "\ue003")
    by_id(browser, "all").click()
    assert len(rows()) == 500
    by_id(browser, "groups").click()
    assert rows() == list("ABCDE")
    browser.get(f"{address}#q=share&of=icd&by=q0")
    browser.refresh()
    assert len(rows()) == 61  # the first ones, and the line that adds up
    for _ in range(10):
        browser.execute_script(
            "const box = document.querySelector('.scroll-y'); box.scrollTop = box.scrollHeight;"
        )
        time.sleep(0.1)
    assert len(rows()) == 501


CUT = """return [...document.querySelectorAll("body *")].filter((e) => {
    if (e.closest("svg, .scroll, .scroll-y, .skip, script, style, [hidden], details:not([open])")) {
      return false;
    }
    const box = e.getBoundingClientRect();
    const clipped = e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 &&
      getComputedStyle(e).display !== "inline" && !e.matches("input, select, textarea, pre");
    return box.right > window.innerWidth + 1 || box.left < -1 || clipped;
  }).map((e) => e.outerHTML.slice(0, 120));"""


@pytest.mark.parametrize("width", [320, 390])
def test_nothing_is_cut_on_a_phone(open_page, browser, schema: Schema, width: int) -> None:
    about = {"title": "A survey with a rather long name of the year 2025", "publisher": "x" * 60}
    for chosen in (schema, hostile_schema()):
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 800, "deviceScaleFactor": 2, "mobile": True},
        )
        try:
            open_page(render_page(rehearsed(chosen).with_about(about)))
            browser.execute_script(
                "for (const one of document.querySelectorAll('details')) one.open = true"
            )
            assert browser.execute_script(CUT) == []
            wide = "return document.documentElement.scrollWidth - window.innerWidth"
            assert browser.execute_script(wide) <= 0
        finally:
            browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_numbers_are_written_as_in_python(open_page, browser, schema: Schema) -> None:
    open_page(render_page(rehearsed(schema)))
    random = np.random.default_rng(3)
    cases = []
    for _ in range(300):
        share = float(random.random() ** 3)
        half = float(10 ** random.uniform(-6, -0.5))
        low, high = max(share - half, 0.0), min(share + half, 1.0)
        cases.append([share, *((None, None) if random.random() < 0.2 else (low, high))])
    found = browser.execute_script(
        "return arguments[0].map((one) => [dualquery.percent(...one), "
        "dualquery.halfInterval(...one)]);",
        cases,
    )
    ours = [[percent(*one), half_interval(*one)] for one in cases]
    assert found == ours, json.dumps([x for x in zip(found, ours, strict=True) if x[0] != x[1]][:3])
