"""`make notebooks`: runs the notebooks of `examples` and stores what they print.

`python -m tools.notebooks hospital` runs this one alone. The tests run them all in the slow lane.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[1] / "examples"
SECONDS = 600


def main() -> int:
    chosen = sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    for name in chosen:
        path = FOLDER / f"{name}.ipynb"
        print(f"notebooks: {path.name}", flush=True)
        nbformat.write(executed(path), path)
    return 0


def executed(path: Path) -> nbformat.NotebookNode:
    """The notebook with what it prints when it runs from an empty folder."""
    notebook = nbformat.read(path, as_version=4)
    # The commands of a notebook are those of the environment that runs it.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with tempfile.TemporaryDirectory(prefix="dualquery-notebook-") as place:
        client = NotebookClient(
            notebook, timeout=SECONDS, resources={"metadata": {"path": place}}, record_timing=False
        )
        client.execute()
    return notebook


if __name__ == "__main__":
    sys.exit(main())
