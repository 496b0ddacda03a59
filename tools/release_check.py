"""`make release-check`: everything that must hold before a version is uploaded.

The source archive and the wheel are built and checked, each is installed into an empty
environment, and there the demo and the six lines of README run. The tests run against the
installed wheel, so a file that the wheel lacks fails them.

    python -m tools.release_check                                  everything
    python -m tools.release_check --tests tests/cli tests/release  these tests only
    python -m tools.release_check --without-tests
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FENCED_PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)


def main() -> int:
    asked = options()
    with tempfile.TemporaryDirectory(prefix="dualquery-release-") as made:
        folder = Path(made)
        archives = build(folder / "dist")
        for archive in archives:
            place = folder / archive.suffix.lstrip(".")  # what both write has the same names
            python = environment(place, archive)
            say(f"{archive.name}: the demo")
            run(python, "-m", "dualquery", "demo", "--out", str(place / "demo"))
            say(f"{archive.name}: the lines of README")
            run(python, "-c", readme_lines(), cwd=place)
            if archive.suffix == ".whl" and not asked.without_tests:
                say(f"{archive.name}: the tests")
                group = f"{ROOT / 'pyproject.toml'}:dev"
                run(python, "-m", "pip", "install", "--quiet", "--group", group)
                check_installed(python, place, ROOT)
                run(python, "-m", "pytest", "-n", asked.workers, *asked.tests, cwd=ROOT)
    whole = not (asked.without_tests or asked.tests)
    say("everything holds: this version can be uploaded" if whole else "what was asked for holds")
    return 0


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--without-tests", action="store_true", help="the demo and README only")
    parser.add_argument("--tests", nargs="+", default=[], help="run these instead of all")
    parser.add_argument("--workers", default="auto", help="processes that run tests")
    return parser.parse_args()


def build(folder: Path) -> list[Path]:
    """The source archive and the wheel, as they would be uploaded."""
    say("building")
    run(sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT))
    archives = sorted(folder.iterdir())
    run(sys.executable, "-m", "twine", "check", "--strict", *map(str, archives))
    return archives


def environment(folder: Path, archive: Path) -> str:
    """An empty environment with the archive installed, by the path of its Python."""
    say(f"{archive.name}: installing into an empty environment")
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    run(python, "-m", "pip", "install", "--quiet", "--upgrade", "pip>=25.1")
    run(python, "-m", "pip", "install", "--quiet", str(archive))
    check_installed(python, folder, folder)
    return python


def check_installed(python: str, folder: Path, cwd: Path) -> None:
    """Whoever imports the package from this directory gets the one in the environment."""
    where = subprocess.check_output(
        [python, "-c", "import dualquery; print(dualquery.__file__)"],
        cwd=cwd,
        env=clean_environment(),
        text=True,
    ).strip()
    if not Path(where).is_relative_to(folder):
        raise SystemExit(f"{where} is not the installed package")


def readme_lines() -> str:
    """The first Python example of README, which must run as it stands."""
    found = FENCED_PYTHON.search((ROOT / "README.md").read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit("README.md has no Python example")
    return found.group(1)


def run(*command: str, cwd: Path | None = None) -> None:
    subprocess.run(command, cwd=cwd, env=clean_environment(), check=True)


def clean_environment() -> dict[str, str]:
    """Without a path that would put a checkout before the installed package."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def say(what: str) -> None:
    print(f"release-check: {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
