"""`make screenshots`: the pictures of README and documents, made from a fresh demo.

A demo is run, its page is opened in headless Chromium and photographed; a terminal session is
typed and its real output drawn as text. Everything comes out of this one command, so pictures
show what the package does today.
"""

from __future__ import annotations

import base64
import io
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from html import escape
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).parents[1] / "docs" / "images"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
SESSION = (
    "dualquery plan --schema demo-input/schema.toml --rows 20000 --epsilon 1 --delta 1e-6",
    "dualquery release demo-input/survey.csv --schema demo-input/schema.toml \\\n"
    "    --epsilon 1 --delta 1e-6 --queries 20000 --out out --quiet",
    'dualquery answer out "smoker=1 & age>=65" "sex=female & education=university"',
    "dualquery sample out --rows 3 --out rows.csv && cut -d, -f1-9 rows.csv",
    "dualquery evaluate out demo-input/survey.csv --report private.html",
)
QUESTION = "#q=share&of=obesity:1&by=age"
"""What the pictures ask: obesity by age."""

WIDEST = 118
"""Characters per line of the terminal in the picture."""

TERMINAL = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; background: #ffffff; }
pre { margin: 0; padding: 18px 22px; background: #1b2027; color: #dfe4ea; border-radius: 10px;
  font: 14px/1.3 "DejaVu Sans Mono", monospace; display: inline-block; }
b { color: #86b6ff; font-weight: 600; } i { color: #f0a35e; font-style: normal; }
</style><pre>%s</pre>"""


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        run("dualquery demo --out demo --overwrite --quiet", folder)
        terminal = folder / "terminal.html"
        terminal.write_text(TERMINAL % session(folder), encoding="utf-8")
        browser = chromium(folder / "profile")
        try:
            page = folder / "demo" / "report.html"
            shutil.copy(page, IMAGES.parent / "demo.html")  # the landing page shows it alive
            report = page.as_uri()
            shots = {
                "page": shot(browser, report, 1200, 1130, ask=True),
                "page-dark": shot(browser, report, 1200, 1130, dark=True, ask=True),
                "page-phone": shot(browser, report, 390, 1180),
                "charts": shot(browser, report, 1200, 1500, scroll="columns"),
                "private-page": shot(browser, (folder / "private.html").as_uri(), 1100, 1480),
                "app": app_shot(browser, folder / "demo-input"),
                "terminal": shot(browser, terminal.as_uri(), 1200, 700, element="pre"),
            }
        finally:
            browser.quit()
    for name, data in shots.items():
        path = IMAGES / f"{name}.png"
        path.write_bytes(smaller(data))
        print(f"{path.relative_to(Path.cwd())}  {path.stat().st_size / 1000:.0f} kB")


def run(command: str, folder: Path) -> tuple[str, str]:
    """One command line as a user would type it: what it says on stdout and stderr."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    settings = {**os.environ, "PATH": path, "COLUMNS": "100"}
    done = subprocess.run(
        command, cwd=folder, env=settings, shell=True, capture_output=True, text=True, check=True
    )
    return done.stdout, done.stderr


def session(folder: Path) -> str:
    """The typed commands and their output, as HTML."""
    parts = []
    for command in SESSION:
        out, err = run(command, folder)
        told = "".join(f"<i>{escape(line)}</i>\n" for line in wrapped(err))
        shown = escape("\n".join(wrapped(out)))
        parts.append(f"<b>$ {escape(command)}</b>\n{told}{shown}")
    return "\n\n".join(parts)


def wrapped(text: str) -> list[str]:
    """Lines as a terminal shows them, except that no word is cut: 1e-05 is one."""
    lines: list[str] = []
    for line in text.rstrip().splitlines():
        short = len(line) <= WIDEST
        lines += [line] if short else textwrap.wrap(line, WIDEST, break_on_hyphens=False)
    return lines


def chromium(profile: Path) -> Any:
    from selenium import webdriver

    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        raise SystemExit("no Chromium with its driver here: `make browser` installs them (Debian)")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


def shot(
    browser: Any,
    address: str,
    width: int,
    height: int,
    *,
    dark: bool = False,
    ask: bool = False,
    scroll: str = "",
    element: str = "",
) -> bytes:
    """A picture of the top of a page, of one section, or of one element."""
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    still = {"name": "prefers-reduced-motion", "value": "reduce"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, still]})
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )
    browser.get("about:blank")  # another question of the same page would not load it again
    browser.get(address + (QUESTION if ask else ""))
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    if scroll or element:
        target = browser.find_element("css selector", f"#{scroll}" if scroll else element)
        box = target.rect
        clip |= {"y": max(box["y"] - 12, 0)} if scroll else {k: box[k] for k in box}
    taken = browser.execute_cdp_cmd(
        "Page.captureScreenshot", {"format": "png", "clip": clip, "captureBeyondViewport": True}
    )
    return base64.b64decode(taken["data"])


def app_shot(browser: Any, folder: Path) -> bytes:
    """The page for curators, at the review of a draft, with one column open."""
    from selenium.webdriver.support.ui import WebDriverWait

    def wait(script: str) -> None:
        WebDriverWait(browser, 120).until(lambda _: browser.execute_script(f"return {script}"))

    line = [sys.executable, "-m", "dualquery", "app", str(folder)]
    app = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    try:
        assert app.stderr is not None
        browser.get(app.stderr.readline().split()[-1])
        wait("!document.getElementById('table').hidden")
        browser.find_element("id", "table-path").send_keys("survey.csv", "\ue007")  # Enter
        wait("!document.getElementById('review').hidden")
        column = "document.querySelector('details.column')"
        browser.execute_script(f"{column}.open = true; document.activeElement.blur()")
        wait(f"{column}.querySelector('.edges, .items') !== null")
        browser.execute_script("document.getElementById('folder').textContent = 'tables'")
        size = {"width": 1200, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        clip = {"x": 0, "y": 0, "width": 1200, "height": 900, "scale": 1}
        taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip})
    finally:
        app.terminate()
        app.communicate(timeout=60)
    return base64.b64decode(taken["data"])


def smaller(data: bytes) -> bytes:
    """The same picture in 64 colours: a third of the bytes, and no eye tells."""
    from PIL import Image

    out = io.BytesIO()
    Image.open(io.BytesIO(data)).convert("RGB").quantize(64).save(out, "PNG", optimize=True)
    return out.getvalue()


if __name__ == "__main__":
    main()
