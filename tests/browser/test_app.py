"""`dualquery app` in a browser: from a file to a published folder, and what other pages can do."""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dualquery as dq


def survey(path: Path, rows: int = 1500) -> None:
    """A table with documented codes, a missing code, and numbers that nobody documented."""
    pyreadstat = pytest.importorskip("pyreadstat")
    random = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "id": np.arange(rows),
            "sex": random.integers(1, 3, rows).astype(float),
            "age": random.integers(18, 90, rows).astype(float),
            "region": random.choice([1.0, 2.0, 3.0, 9.0], rows),
        }
    )
    pyreadstat.write_sav(
        frame, path, column_labels={"sex": "Sex of the person"}, missing_ranges={"region": [9]},
        variable_value_labels={
            "sex": {1: "male", 2: "female"},
            "region": {1: "north", 2: "south", 3: "east", 9: "no answer"},
        },
        variable_measure={"region": "nominal", "age": "scale"},
    )  # fmt: skip


@pytest.fixture
def app(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str, Path]]:
    """A running app, its link, and its folder, which holds a survey."""
    folder = tmp_path / "tables"
    folder.mkdir()
    survey(folder / "survey.sav")
    process = subprocess.Popen(
        [sys.executable, "-m", "dualquery", "app", str(folder)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    link = process.stderr.readline().split()[-1]
    yield process, link, folder
    if process.poll() is None:
        process.terminate()
    process.communicate(timeout=60)


class Hand:
    """Clicks and keys, and patience."""

    def __init__(self, browser) -> None:
        self.browser = browser

    def __call__(self, name: str):
        return self.browser.find_element("id", name)

    def wait(self, holds: Callable[[], object], seconds: float = 240.0) -> None:
        from selenium.webdriver.support.ui import WebDriverWait

        def look(_: object) -> bool:
            failed = self.browser.find_elements("id", "failed")
            if failed and failed[0].text:
                raise AssertionError(failed[0].text)
            return bool(holds())

        WebDriverWait(self.browser, seconds, poll_frequency=0.1).until(look)

    def click(self, name: str, then: Callable[[], object]) -> None:
        self(name).click()
        self.wait(then)

    def type(self, name: str, text: str) -> None:
        self(name).clear()
        self(name).send_keys(text)

    def at(self, step: str) -> Callable[[], object]:
        return lambda: (
            self(step).is_displayed()
            and not self.browser.find_elements("css selector", "body[aria-busy]")
        )

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.browser).send_keys(*keys).perform()


def faults(browser) -> list[object]:
    pytest.importorskip("axe_core_python.base", reason="needs axe-core-python")
    script = (resources.files("axe_core_python") / "axe.min.js").read_text("utf-8")
    browser.execute_script(script)
    found = browser.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "axe.run(document, {resultTypes: ['violations'], iframes: false})"
        ".then(done, (e) => done(String(e)));"
    )
    return [
        (v["id"], v["impact"], [node["html"][:120] for node in v["nodes"][:3]])
        for v in found["violations"]
    ]


def test_from_a_file_to_a_published_folder(browser, app) -> None:
    """Draft, review, check, plan, release with cancel and resume, look, compare, close."""
    from selenium.webdriver.common.keys import Keys

    process, link, folder = app
    hand = Hand(browser)
    browser.get_log("browser")
    browser.get(link)
    hand.wait(hand.at("table"))
    assert browser.current_url == link.partition("#")[0]  # the key does not linger
    assert faults(browser) == []

    # By keys alone: the path, and Enter.
    hand("table-path").send_keys("survey.sav", Keys.ENTER)
    hand.wait(hand.at("review"))
    assert "draft = true" in (folder / "survey.schema.toml").read_text()
    marks = {
        box.find_element("css selector", "summary span").text: box.find_element(
            "css selector", "summary .mark"
        ).text
        for box in browser.find_elements("css selector", "details.column")
    }
    seen = "private: seen in the table"
    assert marks == {"sex": "public", "age": seen, "region": "public"}
    assert "id" in hand("left-out").text
    assert not hand("sign").is_enabled()
    box = browser.find_elements("css selector", "details.column")[1]
    box.find_element("css selector", "summary").send_keys(Keys.ENTER)
    hand.wait(lambda: box.find_elements("css selector", "input.text"))
    edges = box.find_elements("css selector", "input.text")
    assert len(edges) == len(box.find_elements("css selector", ".edges .mark.seen")) > 4
    edges[0].clear()
    edges[0].send_keys("0")
    assert len(box.find_elements("css selector", ".edges .mark.seen")) == len(edges) - 1
    for _ in edges[1:]:
        box.find_elements("css selector", ".edges button")[-1].click()
    for edge in ("30", "60", "80"):
        box.find_element("css selector", "button.add").click()
        hand.press(edge)
    unit = box.find_element("xpath", ".//label[.='Unit of its numbers']/following-sibling::input")
    unit.send_keys("years")
    box.find_element("css selector", ".public input").send_keys(Keys.SPACE)
    for button in hand("rules").find_elements("css selector", "button"):
        if "no record is" in button.text:
            button.click()
            break
    hand.press("sex=2 & region=3")
    assert faults(browser) == []
    hand.click("sign", hand.at("check"))
    schema = dq.Schema.load(folder / "survey.schema.toml").require_reviewed()
    assert schema.attributes[1].edges == (0, 30, 60, 80)
    assert schema.attributes[1].meaning.unit == "years"
    assert schema.rules == ({"forbid": "sex=2 & region=3"},)

    # The check stands beside the columns; some are older than the last edge.
    hand.click("check-now", lambda: "problem" in hand("check-result").text)
    assert not hand("to-plan").is_enabled()
    row = browser.find_elements("css selector", "#findings tbody tr")[1]
    assert row.text.startswith("age")
    assert "outside its declared domain" in row.text
    assert faults(browser) == []
    hand("treatment").send_keys("count as the nearest")
    hand.click("check-now", lambda: "1,500 rows fit" in hand("check-result").text)
    assert "is broken by" in hand("check-notes").text

    # Plan: the slider moves ε, and what would be visible with it.
    hand.click("to-plan", lambda: "measured to within" in hand("visible").text)
    first = hand("visible").text
    hand("epsilon-slider").send_keys(Keys.ARROW_LEFT * 6)
    hand.wait(lambda: "measured to within" in hand("visible").text != first)
    assert hand("epsilon").get_attribute("value") == "0.5"
    assert "1.6:1" in hand("odds").text
    hand.type("queries", "300")
    hand.type("total", "2")
    hand.click("ledger-create", lambda: "0.00 of 2" in hand("account").text)
    assert faults(browser) == []

    # Release: cancelled when something is paid for, and resumed.
    hand.click("to-release", hand.at("release"))
    assert "ε = 0.5, δ = 1e-7, for each row, charged to budget.ledger.json" in hand("promise").text
    hand.click("start", lambda: (folder / "survey-release.partial").exists())
    hand.click("cancel", lambda: hand("stage").text.startswith(("Stopped", "Done")))
    assert hand("stage").text.endswith("What was paid for is kept.")
    assert not (folder / "survey-release").exists()
    assert (folder / ".survey-release.run.json").stat().st_mode & 0o077 == 0
    assert faults(browser) == []
    hand("resume").click()
    hand.wait(lambda: hand("stage").text.startswith("Done"))
    assert not list(folder.glob(".survey-release*"))
    made = dq.load(folder / "survey-release")
    assert (made.privacy.epsilon, made.privacy.delta) == (pytest.approx(0.5, abs=1e-3), 1e-7)
    assert dq.Ledger(folder / "budget.ledger.json").account().spent == pytest.approx(0.5, abs=0.02)

    # Look at its page, which is apart from ours, and compare with the table in the red frame.
    hand.click("to-look", hand.at("look"))
    hand.click("show", lambda: browser.find_elements("css selector", "#page-frame iframe"))
    hand.click("evaluate", lambda: hand("private-frame").is_displayed())
    assert faults(browser) == []
    private = "#private-frame iframe"
    for frame, told in (("#page-frame iframe", "Ask"), (private, "NOT FOR PUBLICATION")):
        browser.switch_to.frame(browser.find_element("css selector", frame))
        hand.wait(lambda told=told: told in browser.find_element("css selector", "body").text)
        assert browser.execute_script("return window.origin") == "null"
        browser.switch_to.default_content()
    border = browser.find_element("id", "private-frame").value_of_css_property("border-top-color")
    assert border.startswith("rgba(179, 24, 31")
    assert (folder / "survey-release.private.html").stat().st_mode & 0o077 == 0
    hand.click("open", lambda: str(folder / "survey-release") in hand("published").text)

    # What lingers: nothing in addresses, nothing in the log of the browser, and then it is gone.
    assert browser.execute_script("return [document.cookie, localStorage.length]") == ["", 0]
    assert browser.current_url == link.partition("#")[0]
    assert browser.get_log("browser") == []
    hand("close").click()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "survey" not in said.replace(str(folder), "")


def test_a_page_that_is_closed_stops_the_release(browser, app) -> None:
    """The app ends, its release with it, and both can be taken up again."""
    process, link, folder = app
    (folder / "schema.toml").write_text(
        "[attributes.sex]\nvalues = [1, 2]\n[attributes.age]\nedges = [0, 40, 99]\n"
    )
    hand = Hand(browser)
    browser.get(link)
    hand.wait(hand.at("table"))
    hand.type("table-path", "survey.sav")
    hand.type("schema-path", "schema.toml")
    hand.click("begin", hand.at("review"))
    assert hand("review-state").text == "This schema is signed."
    hand.click("sign", hand.at("check"))
    hand.click("check-now", lambda: "fit" in hand("check-result").text)
    hand.click("to-plan", lambda: "measured" in hand("visible").text)
    hand.click("to-release", hand.at("release"))
    hand.type("out", "first")
    hand.click("start", lambda: (folder / "first.partial").exists() or (folder / "first").exists())
    hand("close").click()
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert (folder / "first.partial").exists() != (folder / "first").exists()


EVIL = """<!doctype html><title>evil</title><body><script>
const tried = [];
const log = (name) => (answer) => tried.push([name, String(answer && answer.type || answer)]);
const body = JSON.stringify({schema: "schema.toml", form: {columns: []}});
const headers = {"Content-Type": "application/json"};
const send = (name, path, told) => fetch("%(app)s" + path, told).then(log(name), log(name));
const script = () => new Promise((done) => {
  const made = document.createElement("script");
  made.onload = made.onerror = (event) => { tried.push(["script", event.type]); done(); };
  made.src = "%(app)s/app.js";
  document.body.append(made);
});
(async () => {
  await send("cors", "/do/folder", {method: "POST", headers, body});
  await send("plain", "/do/save", {method: "POST", mode: "no-cors", body});
  await send("close", "/do/close", {method: "POST", mode: "no-cors", body});
  await send("get", "/", {});
  await script();
  window.tried = tried;
})();
</script>
<form method="post" enctype="text/plain" action="%(app)s/do/close"><button>x</button></form>
<iframe src="%(app)s/"></iframe>"""


def test_another_page_gets_nowhere(browser, app) -> None:
    process, link, folder = app
    address = link.partition("#")[0].rstrip("/")

    class Evil(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write((EVIL % {"app": address}).encode())

        def log_message(self, *_: object) -> None:
            pass

    hand = Hand(browser)
    browser.get(link)
    hand.wait(hand.at("table"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil) as evil:
        threading.Thread(target=evil.serve_forever, daemon=True).start()
        # The same address on another port, and a name of it: one shares cookies, one nothing.
        for name in ("127.0.0.1", "localhost"):
            browser.get(f"http://{name}:{evil.server_address[1]}/")
            hand.wait(lambda: browser.execute_script("return window.tried"))
            tried = dict(browser.execute_script("return window.tried"))
            assert tried["cors"].startswith("TypeError")
            assert tried["get"].startswith("TypeError")
            assert tried["script"] == "error"
            assert {tried["plain"], tried["close"]} <= {"opaque", "TypeError: Failed to fetch"}
            browser.find_element("css selector", "form button").click()
            hand.wait(lambda: "another page asked" in browser.page_source)
        evil.shutdown()
    assert process.poll() is None
    assert sorted(one.name for one in folder.iterdir()) == ["survey.sav"]
    browser.get_log("browser")
    # Our window still has its token, because it is kept by origin: the page goes on.
    browser.get(address + "/")
    hand.wait(hand.at("table"))
    assert hand("folder").text == str(folder)


def test_without_the_link_there_is_nothing(browser, app) -> None:
    _, link, _ = app
    browser.execute_cdp_cmd(
        "Storage.clearDataForOrigin",
        {"origin": link.partition("#")[0].rstrip("/"), "storageTypes": "all"},
    )
    browser.get(link.partition("#")[0])
    hand = Hand(browser)
    with pytest.raises(AssertionError, match="open the page with the link"):
        hand.wait(lambda: False, 20)
    assert not hand("folder").text
    browser.get_log("browser")
