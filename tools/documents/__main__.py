"""`make docs`: the documents as a site that needs no network; anything that is wrong is an error.

`python -m tools.documents FOLDER` works in FOLDER instead of `build`: `pages` has what is built,
`docs` the site. Which builder makes HTML of the pages does not matter to the rest.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools.documents import checks, formulas, notebooks, reference

ROOT = Path(__file__).resolve().parents[2]
NETWORK_SCRIPT = re.compile(r'<script src="https?://[^"]*"[^>]*></script>')
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    site = build(folder)
    wrong = checks.problems(site, folder / "pages", ROOT / "mkdocs.yml")
    print(*wrong, f"{site}: {len(wrong)} problems", sep="\n")
    return 1 if wrong else 0


def build(folder: Path) -> Path:
    """The site in `folder/docs`."""
    assemble(folder / "pages")
    site = folder / "docs"
    shutil.rmtree(site, ignore_errors=True)
    settings = folder / "mkdocs.yml"
    settings.write_text(settings_there(), encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", settings]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(COLOUR.sub("", done.stdout + done.stderr).strip())
    for page in site.rglob("*.html"):
        stay_at_home(page, site)
    return site


def assemble(pages: Path) -> None:
    """Everything that the site is built from: the documents, and what is made of code."""
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages)
    for path, text in {**reference.made(ROOT), **notebooks.made(ROOT)}.items():
        file = pages / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for page in pages.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(formulas.typeset(text), encoding="utf-8")


def settings_there() -> str:
    """The settings as they read in the folder of a build: paths begin where the settings stand."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    return text.replace(": build/", ": ").replace("[src]", f"[{ROOT / 'src'}]")


def stay_at_home(page: Path, site: Path) -> None:
    """The theme would load its stand-in for workers from a network; ours is beside the pages."""
    text = page.read_text(encoding="utf-8")
    up = "/" if page.name == "404.html" else "../" * len(page.parent.relative_to(site).parts)
    ours = f'<script src="{up}assets/worker.js"></script>'
    page.write_text(NETWORK_SCRIPT.sub(ours, text), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
