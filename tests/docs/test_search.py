"""The built documents, opened from a disk: the search answers, and all fits on a phone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.conftest import browser  # noqa: F401 - a fixture

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built documents."""
    folder = tmp_path_factory.mktemp("documents")
    command = [sys.executable, "-m", "tools.documents", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder / "docs"


@pytest.mark.slow
def test_no_page_is_wider_than_a_phone(browser, site: Path) -> None:  # noqa: F811 - the fixture
    """Long formulas, tables and lines of code scroll by themselves."""
    phone = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    widths = {}
    try:
        for page in sorted(site.rglob("*.html")):
            browser.get(page.as_uri())
            widths[page.name] = browser.execute_script(
                "return document.documentElement.scrollWidth"
            )
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert {name: width for name, width in widths.items() if width > 390} == {}
    assert len(widths) > 80


@pytest.mark.slow
def test_the_search_works_from_a_disk(browser, site: Path) -> None:  # noqa: F811 - the fixture
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get((site / "guide" / "quick-start.html").as_uri())
    # The search is a dialog in a shadow of the page: only scripts look into it.
    browser.execute_script("document.querySelector('.md-search__button').click()")
    WebDriverWait(browser, 10).until(lambda driver: results(driver) is not None)
    browser.switch_to.active_element.send_keys("ledger")
    found = WebDriverWait(browser, 10).until(results)
    assert any("ledger" in text.lower() for text in found)
    assert "guide/monthly" in " ".join(found_links(browser))


LIST = """
const shadows = [...document.querySelectorAll("div")].filter((one) => one.shadowRoot);
const list = shadows.map((one) => one.shadowRoot.querySelector("[role=listbox]")).find(Boolean);
"""


def results(driver) -> list[str] | None:
    return driver.execute_script(LIST + "return list && [...list.children].map((x) => x.innerText)")


def found_links(driver) -> list[str]:
    return driver.execute_script(LIST + "return [...list.querySelectorAll('a')].map((x) => x.href)")
