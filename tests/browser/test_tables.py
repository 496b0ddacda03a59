"""Cross tables in the page: the same figures and intervals as in Python, and a file to keep."""

from __future__ import annotations

import csv
import io
import json
import time
from pathlib import Path

import numpy as np
import pytest

from dualquery.domain.schema import Schema
from dualquery.release.page.render import render_page
from dualquery.release.release import Release
from tests.browser.test_explorer import asked, by_id, press, random_queries
from tests.release.page.releases import hostile_schema, made_release, with_mixture

TABLES = """const model = new dualquery.Model(
    JSON.parse(document.getElementById("release-data").textContent));
  return arguments[0].map(([columns, query]) => dualquery.crossTable(model, columns, query));"""


def rehearsed(schema: Schema, rounds: int = 37) -> Release:
    return with_mixture(made_release(schema, rounds), 7, rehearsed=True)


@pytest.mark.parametrize("shape", ["small", "hostile"])
def test_tables_and_their_intervals_are_those_of_python(open_page, schema, shape: str) -> None:
    """Conjunctions and parities, on columns that the condition names and on others."""
    chosen = {"small": schema, "hostile": hostile_schema()}[shape]
    release = rehearsed(chosen)
    browser = open_page(render_page(release))
    random = np.random.default_rng(5)
    cases = [
        (sorted(random.choice(len(chosen), 1 + number % 2, replace=False).tolist()), query)
        for number, query in enumerate(random_queries(chosen, 80))
    ]
    found = browser.execute_script(TABLES, [[columns, asked(q)] for columns, q in cases])
    seen = 0
    for (columns, query), shown in zip(cases, found, strict=True):
        names = [chosen.names[a] for a in columns]
        if shown is None:
            continue
        table = release.cross_table(*names, where=query, unknown="default")
        for name in ("share", "low", "high"):
            wanted = getattr(table, name).reshape(-1)
            got = np.array([np.nan if one is None else one for one in shown[name]])
            np.testing.assert_allclose(got, wanted, atol=1e-9, err_msg=str((names, query)))
        seen += not np.isnan(table.low).all()
    assert seen > 40  # most had an interval


def test_a_cross_table_is_chosen_shown_and_kept(
    open_page, browser, schema: Schema, tmp_path: Path, monkeypatch, capsys
) -> None:
    """By keyboard; the file is the one that `dualquery table --format csv` writes."""
    from selenium.webdriver.common.keys import Keys

    from dualquery.cli import main

    release = rehearsed(schema, 60)
    release.save(tmp_path / "out")
    open_page((tmp_path / "out" / "report.html").read_text("utf-8"))
    browser.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    browser.find_element("css selector", ".remove").click()
    press(browser, "smo", Keys.ARROW_DOWN, Keys.ENTER)
    for field, name in (("further", "sex"), ("by", "age")):
        browser.execute_script(f"document.getElementById('{field}').focus()")
        press(browser, name, Keys.ARROW_DOWN, Keys.ENTER)
    heads = browser.find_elements("css selector", "#cross-head th")
    assert len(heads) == schema["age"].size
    body = browser.find_elements("css selector", "#further-body td")
    assert len(body) == schema["sex"].size * schema["age"].size
    assert "±" in body[0].text or "–" in body[0].text
    told = by_id(browser, "command").text
    assert told == "dualquery table DIR sex age --where smoker=1"
    by_id(browser, "download").click()
    kept = tmp_path / "sex-by-age.csv"
    for _ in range(100):
        if kept.exists() and kept.stat().st_size:
            break
        time.sleep(0.05)
    command = ["dualquery", *told.replace("DIR", str(tmp_path / "out")).split()[1:]]
    monkeypatch.setattr("sys.argv", [*command, "--format", "csv"])
    with pytest.raises(SystemExit):
        main()
    ours = list(csv.reader(io.StringIO(kept.read_text("utf-8"))))
    theirs = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert [row[:2] for row in ours] == [row[:2] for row in theirs]
    figures = [np.array([row[2:] for row in rows[1:]], dtype=float) for rows in (ours, theirs)]
    np.testing.assert_allclose(figures[0], figures[1], atol=1e-9)
    by_id(browser, "no-by").click()
    assert browser.find_elements("css selector", "#cross-head th") == []
    assert by_id(browser, "further-table").get_attribute("class") == "bars"


CUT = """return [...document.querySelectorAll("body *")].filter((e) => {
    if (e.closest("svg, .scroll, .scroll-y, .skip, script, style, [hidden], details:not([open])")) {
      return false;
    }
    const box = e.getBoundingClientRect();
    const clipped = e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 &&
      getComputedStyle(e).display !== "inline" && !e.matches("input, select, textarea");
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
            browser.execute_script("document.querySelector('details').open = true")
            assert browser.execute_script(CUT) == []
            wide = "return document.documentElement.scrollWidth - window.innerWidth"
            assert browser.execute_script(wide) <= 0
        finally:
            browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_what_is_folded_away_is_printed(open_page, browser, schema: Schema) -> None:
    open_page(render_page(rehearsed(schema)))
    shown = (
        "return document.querySelector('#specialists table').checkVisibility("
        "{contentVisibilityAuto: true})"
    )
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        height = "return document.querySelector('#specialists details').offsetHeight"
        assert browser.execute_script(height) > 300
        assert browser.execute_script(shown)
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert browser.execute_script(height) < 120


def test_numbers_are_written_as_in_python(open_page, browser, schema: Schema) -> None:
    from dualquery.release.page.numbers import half_interval, percent

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
