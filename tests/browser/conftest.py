"""A real Chromium, headless, for the tests of pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.screenshots import FLAGS


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """Chromium with its driver, from the system's packages."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver_path = shutil.which("chromedriver")
    if chromium is None or driver_path is None:
        pytest.skip("no Chromium with its driver here: `make browser` installs them (Debian)")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    more = (
        "--window-size=1200,1000",
        # While a page scrolls smoothly, a click would miss its target.
        "--force-prefers-reduced-motion",
    )
    for flag in (*FLAGS, *more, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_path))
    yield driver
    driver.quit()


@pytest.fixture
def open_page(browser, tmp_path: Path):
    """Open a page from disk; afterwards the console must be empty and nothing was fetched."""

    def call(text: str) -> object:
        path = tmp_path / "report.html"
        path.write_text(text, encoding="utf-8")
        browser.get_log("browser")
        browser.get_log("performance")
        browser.get(path.as_uri())
        return browser

    yield call
    assert browser.get_log("browser") == []
