"""The power fails at every sync: what is on disk then is resumed, and nothing is drawn twice.

The ledger is SQLite's own business on disk, so it is not part of this simulation.
"""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.game import journal
from dualquery.game.journal import Journal
from dualquery.game.transcript import Released
from dualquery.release.release import Release, load

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc"),
]
DRAWS = DualQuery(
    epsilon=2.0, delta=1e-3, rounds=3, samples=10, eta=3.0, queries=40, player="record",
    refit=False,
)  # fmt: skip
TABLES = DualQuery(epsilon=2.0, delta=1e-3, queries=30, errors=False)
WIDE = Schema(tuple(Attribute.binary(f"c{i}") for i in range(60)))
RARE = DualQuery(epsilon=1.0, delta=1e-5, queries=500, errors=False)


class PowerLoss(BaseException):
    """Not an `Exception`: nothing on the way may catch it."""


class Disk:
    """Knows what is durable: contents that were synced, under names that were synced."""

    def __init__(self, live: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.live = live
        self.syncs, self.at, self.copy = 0, 0, live
        self.contents: dict[int, bytes] = {}
        self.names: dict[int, dict[str, tuple[int, bool]]] = {}
        self.real = os.fsync
        for path in (live, *live.rglob("*")):
            self.keep(path)
        monkeypatch.setattr(os, "fsync", self.fsync)

    def fsync(self, handle: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        if path == self.live or path.is_relative_to(self.live):
            self.syncs += 1
            if self.syncs == self.at:
                self.write(self.live.stat().st_ino, self.copy)
                raise PowerLoss
            self.keep(path)
        self.real(handle)

    def keep(self, path: Path) -> None:
        if path.is_dir():
            self.names[path.stat().st_ino] = {
                file.name: (file.stat().st_ino, file.is_dir()) for file in path.iterdir()
            }
        else:
            self.contents[path.stat().st_ino] = path.read_bytes()

    def write(self, inode: int, folder: Path) -> None:
        """Make the durable tree again, elsewhere."""
        folder.mkdir(mode=0o700)
        for name, (found, is_folder) in self.names.get(inode, {}).items():
            if is_folder:
                self.write(found, folder / name)
            else:
                (folder / name).write_bytes(self.contents.get(found, b""))


class Used:
    """Which draws and measurements a run used, round by round, over all its lives."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: dict[int, set[str]] = defaultdict(set)
        written, read = Journal.write_released, Journal.released

        def write_released(run: Journal, number: int, released: Released) -> None:
            written(run, number, released)
            self.note(number, released)

        def released(run: Journal, number: int) -> Released | None:
            found = read(run, number)
            if found is not None:
                self.note(number, found)
            return found

        monkeypatch.setattr(Journal, "write_released", write_released)
        monkeypatch.setattr(Journal, "released", released)

    def note(self, number: int, released: Released) -> None:
        digest = hashlib.sha256(released.draws.queries.tobytes())
        digest.update(released.draws.negated.tobytes())
        if released.measurement is not None:
            for name, array in sorted(released.measurement.to_arrays().items()):
                digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
        self.seen[number].add(digest.hexdigest())


def wide_rows() -> pa.Table:
    random = np.random.default_rng(5)
    cells = random.random((3000, len(WIDE))) < np.linspace(0.01, 0.2, len(WIDE))
    return pa.table({name: cells[:, i].astype(int) for i, name in enumerate(WIDE.names)})


@pytest.mark.parametrize("plan", ["draws", "tables", "rare", "overwrite"])
def test_power_fails_at_every_sync(
    tmp_path: Path, schema: Schema, rows: pa.Table, monkeypatch: pytest.MonkeyPatch, plan: str
) -> None:
    job = {"tables": TABLES, "rare": RARE}.get(plan, DRAWS)
    table, declared = (wide_rows(), WIDE) if plan == "rare" else (rows, schema)
    older = None
    if plan == "overwrite":
        older = replace(DRAWS, rounds=2).fit(rows, schema=schema)

    def release(folder: Path, *, resume: bool = False) -> Release:
        overwrite = plan == "overwrite"
        return job.release(
            table, folder / "out", schema=declared, resume=resume, overwrite=overwrite
        )

    at, ended, drawn = 0, False, 0
    while not ended:
        at += 1
        live, left = tmp_path / f"{at}-live", tmp_path / f"{at}-left"
        live.mkdir()
        if older is not None:
            older.save(live / "out")
        with monkeypatch.context() as patched:
            used = Used(patched)
            disk = Disk(live, patched)
            disk.at, disk.copy = at, left
            try:
                made = release(live)
                ended = True
            except PowerLoss:
                patched.setattr(os, "fsync", disk.real)
                was = dict(used.seen)
                begun = bool({file.name for file in left.iterdir()} - {"out"})
                if begun or not (left / "out").exists() or (older is not None and not was):
                    made = release(left, resume=begun)
                else:
                    made = load(left / "out")
                    assert len(made.transcript) == len(was) or older is not None
        drawn = max(drawn, len(used.seen))
        for number, digests in used.seen.items():
            assert len(digests) == 1, f"sync {at}: round {number + 1} was drawn twice"
        if not ended:
            assert len(made.transcript) == len(load(left / "out").transcript)
            assert {file.name for file in left.iterdir()} == {"out"}, f"sync {at}"
            assert not journal.exists(left / "out.partial")
    assert at > 15
    assert drawn == len(made.transcript)
    if plan == "rare":
        assert made.transcript.rare
    if plan in ("tables", "rare"):
        assert made.transcript.measurements or made.transcript.rare
