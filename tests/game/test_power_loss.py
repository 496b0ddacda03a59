"""The power fails at every sync: what is on disk then is resumed, and nothing is drawn twice.

With a ledger in the loop, the power also fails before and after each of its transactions. That a
transaction is on disk as a whole or not at all is SQLite's business, and not simulated.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
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
from dualquery.privacy.ledger import Ledger
from dualquery.privacy.ledger import file as ledger_file
from dualquery.release.release import Release, load

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
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
        transaction = ledger_file.transaction

        @contextmanager
        def watched(path: Path, *, write: bool = False):
            if write:
                self.step()
            with transaction(path, write=write) as connection:
                yield connection
            if write:
                self.step()

        monkeypatch.setattr(ledger_file, "transaction", watched)

    def fsync(self, handle: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        if path == self.live or path.is_relative_to(self.live):
            self.step()
            self.keep(path)
        self.real(handle)

    def step(self) -> None:
        self.syncs += 1
        if self.syncs == self.at:
            self.write(self.live.stat().st_ino, self.copy)
            ledger = book_of(self.live)
            if ledger.exists():
                shutil.copy(ledger, book_of(self.copy))
            raise PowerLoss

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


def book_of(folder: Path) -> Path:
    """The ledger of a run, beside its folder."""
    return folder.with_name(f"{folder.name}.ledger")


def wide_rows() -> pa.Table:
    random = np.random.default_rng(5)
    cells = random.random((3000, len(WIDE))) < np.linspace(0.01, 0.2, len(WIDE))
    return pa.table({name: cells[:, i].astype(int) for i, name in enumerate(WIDE.names)})


@pytest.mark.slow
@pytest.mark.parametrize(
    "plan", ["draws", "tables", "rare", "overwrite", "draws charged", "tables charged"]
)
def test_power_fails_at_every_sync(
    tmp_path: Path, schema: Schema, rows: pa.Table, monkeypatch: pytest.MonkeyPatch, plan: str
) -> None:
    sweep(tmp_path, schema, rows, monkeypatch, plan, count(1))


def test_power_fails_at_some_syncs_with_a_ledger(
    tmp_path: Path, schema: Schema, rows: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Around the second round: begun, sealed on disk, taken by the ledger, marked, answered."""
    sweep(tmp_path, schema, rows, monkeypatch, "draws charged", (*range(8, 20), 10_000))


def sweep(
    tmp_path: Path,
    schema: Schema,
    rows: pa.Table,
    monkeypatch: pytest.MonkeyPatch,
    plan: str,
    steps: Iterable[int],
) -> None:
    """Let the power fail at one step after the other, until a run gets to its end."""
    charged = plan.endswith("charged")
    plan = plan.split()[0]
    job = {"tables": TABLES, "rare": RARE}.get(plan, DRAWS)
    table, declared = (wide_rows(), WIDE) if plan == "rare" else (rows, schema)
    older = None
    if plan == "overwrite":
        older = replace(DRAWS, rounds=2).fit(rows, schema=schema)

    def release(folder: Path, *, resume: bool = False) -> Release:
        overwrite = plan == "overwrite"
        return job.release(
            table,
            folder / "out",
            schema=declared,
            resume=resume,
            overwrite=overwrite,
            ledger=book_of(folder) if charged else None,
        )

    ended, drawn = False, 0
    for at in steps:
        live, left = tmp_path / f"{at}-live", tmp_path / f"{at}-left"
        live.mkdir()
        if charged:
            Ledger.create(book_of(live), epsilon=4.0, delta=1e-3)
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
                disk.at = 0
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
            if charged:
                entries = Ledger(book_of(left)).account().entries
                states = ["spent"] if begun else [entry.state for entry in entries]
                assert [entry.state for entry in entries] == states, f"sync {at}"
                Ledger(book_of(left)).check(load(left / "out").ledger, "out")
        else:
            break
    assert at > 15
    assert drawn == len(made.transcript)
    if plan == "rare":
        assert made.transcript.rare
    if plan in ("tables", "rare"):
        assert made.transcript.measurements or made.transcript.rare
