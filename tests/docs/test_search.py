"""The built documents, opened from a disk: nothing is fetched, and the search answers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.conftest import browser  # noqa: F401 - a fixture

ROOT = Path(__file__).resolve().parents[2]
NETWORK = re.compile(r'<(?:script|link|img)[^>]*(?:src|href)="https?://')


@pytest.mark.slow
def test_the_search_works_from_a_disk(browser, tmp_path: Path) -> None:  # noqa: F811 - the fixture
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > 30
    assert [page.name for page in pages if NETWORK.search(page.read_text("utf-8"))] == []

    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get((tmp_path / "guide" / "quick-start.html").as_uri())
    browser.execute_script("document.querySelector('[data-md-toggle=search]').click()")
    browser.find_element(By.NAME, "query").send_keys("ledger")
    found = WebDriverWait(browser, 10).until(
        lambda driver: driver.find_elements(By.CSS_SELECTOR, ".md-search-result__item")
    )
    assert any("ledger" in item.text.lower() for item in found)
