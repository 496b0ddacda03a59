"""What the gate and the ledger cost: this version against the last commit before them.

Reading a release may take 5 % more than before, and a release with a ledger a tenth of a second.
Both versions run in turns, in processes of their own, and of all runs the quickest counts: in
processor seconds, because other work on the machine does not count. What the disk takes is in
seconds of the clock. The older version is unpacked with git, which needs the whole history.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

BEFORE = "6b4b48b"
"""The last commit before the gate: version 0.2 as it was attacked."""

TURNS, READINGS, RELEASES = 3, 15, 5

_ROOT = Path(__file__).parents[1]
_KEPT = ("format-2-record", "format-2-model", "format-2-tables", "format-1-record")

_READING = """
import json, sys, time
import dualquery as dq
from dualquery.release.reading import read_asked
found = {}
for folder in sys.argv[2:]:
    for name, read in (("load", dq.load), ("answer", read_asked)):
        best = float("inf")
        for _ in range(int(sys.argv[1])):
            begun = time.process_time()
            read(folder)
            best = min(best, time.process_time() - begun)
        found[f"{name} {folder.rsplit('/', 1)[-1]}"] = best
print(json.dumps(found))
"""

_RELEASING = """
import json, sys, tempfile, time
from pathlib import Path
import numpy as np
import pyarrow as pa
import dualquery as dq
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
random = np.random.default_rng(0)
sizes = (2, 3, 5, 8, 2, 4)
table = pa.table({f"a{i}": random.integers(0, s, 2000) for i, s in enumerate(sizes)})
schema = Schema(tuple(Attribute.categorical(f"a{i}", list(range(s))) for i, s in enumerate(sizes)))
job = dq.DualQuery(1.0, 1e-6, queries=300, player="record", rounds=20, samples=30, refit=False)
best = {"seconds": float("inf"), "processor": float("inf")}
with tempfile.TemporaryDirectory() as folder:
    dq.Ledger.create(Path(folder, "ledger"), epsilon=1000.0, delta=1e-5)
    for number in range(int(sys.argv[1]) + 1):
        begun, processor = time.perf_counter(), time.process_time()
        job.release(table, Path(folder, str(number)), schema=schema, ledger=Path(folder, "ledger"))
        if number:  # the first one compiles
            best["seconds"] = min(best["seconds"], time.perf_counter() - begun)
            best["processor"] = min(best["processor"], time.process_time() - processor)
print(json.dumps(best))
"""


def in_turns(code: str, trees: dict[str, Path], *arguments: str) -> dict[str, dict[str, float]]:
    """Per version and figure, the least of all turns."""
    least: dict[str, dict[str, float]] = {name: {} for name in trees}
    for _ in range(TURNS):
        for name, tree in trees.items():
            done = subprocess.run(
                [sys.executable, "-c", code, *arguments],
                env={**os.environ, "PYTHONPATH": str(tree / "src"), "NUMBA_NUM_THREADS": "1"},
                cwd=tree,
                capture_output=True,
                text=True,
                check=True,
            )
            for key, value in json.loads(done.stdout).items():
                least[name][key] = min(value, least[name].get(key, value))
    return least


def run() -> list[dict[str, Any]]:
    """Both versions: readings in milliseconds, a release with a ledger in seconds, and ratios."""
    with tempfile.TemporaryDirectory() as scratch:
        old = Path(scratch, "old")
        packed = subprocess.run(
            ["git", "archive", BEFORE, "src"], cwd=_ROOT, capture_output=True, check=True
        ).stdout
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(old, filter="data")
        trees = {"before": old, "now": _ROOT}
        folders = []
        for name in _KEPT:
            with ZipFile(_ROOT / "tests" / "release" / "data" / f"{name}.zip") as kept:
                kept.extractall(Path(scratch, name))
            folders.append(str(next(Path(scratch, name).rglob("release.json")).parent))
        found = in_turns(_READING, trees, str(READINGS), *folders)
        rows: list[dict[str, Any]] = [
            {
                "what": f"{key}, ms",
                "before": 1e3 * before,
                "now": 1e3 * found["now"][key],
                "ratio": found["now"][key] / before,
            }
            for key, before in found["before"].items()
        ]
        found = in_turns(_RELEASING, trees, str(RELEASES))
        for key, before in found["before"].items():
            now = found["now"][key]
            told = f"release of 20 rounds with a ledger, {key}, s"
            rows.append({"what": told, "before": before, "now": now, "ratio": now / before})
    return rows
