"""`make release-check`: everything that must hold before a version is uploaded.

The source archive and the wheel are built and checked, each is installed into an empty
environment, and there the demo and the six lines of README run. The tests run against the
installed wheel, so a file that the wheel lacks fails them.
"""

from __future__ import annotations

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
            if archive.suffix == ".whl" and "--without-tests" not in sys.argv:
                say(f"{archive.name}: the tests")
                group = f"{ROOT / 'pyproject.toml'}:dev"
                run(python, "-m", "pip", "install", "--quiet", "--group", group)
                run(python, "-m", "pytest", "-n", "auto", cwd=ROOT)
    say("everything holds: this version can be uploaded")
    return 0


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
    where = subprocess.check_output(
        [python, "-c", "import dualquery; print(dualquery.__file__)"], cwd=folder, text=True
    )
    if not Path(where.strip()).is_relative_to(folder):
        raise SystemExit(f"{where.strip()} is not the installed package")
    return python


def readme_lines() -> str:
    """The first Python example of README, which must run as it stands."""
    found = FENCED_PYTHON.search((ROOT / "README.md").read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit("README.md has no Python example")
    return found.group(1)


def run(*command: str, cwd: Path | None = None) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, cwd=cwd, env=environment, check=True)


def say(what: str) -> None:
    print(f"release-check: {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
