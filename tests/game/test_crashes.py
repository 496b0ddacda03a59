"""A crash costs nothing: killed anywhere, a run resumes to the same release, for one charge."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dualquery.base.errors import ReleaseError
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery, run
from dualquery.game.journal import Journal, begun, charged
from dualquery.game.model_player import ModelPlayer
from dualquery.game.query_player import QueryPlayer
from dualquery.game.record_player import RecordPlayer
from dualquery.privacy.ledger import Ledger, LedgerError, Turns

JOB = DualQuery(
    epsilon=2.0, delta=1e-3, rounds=4, samples=20, eta=3.0, queries=100, player="record",
    refit=False,
)  # fmt: skip


class Killed(BaseException):
    """Not an `Exception`: nothing on the way may catch it."""


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    Ledger.create(path, epsilon=10.0, delta=1e-3)
    return path


@pytest.mark.parametrize("plan", ["seeded", "unseeded", "overwrite"])
def test_killed_at_every_step_that_touches_the_disk(tmp_path: Path, plan: str) -> None:
    """The script asserts: the same release byte for byte, one spent entry, nothing left over."""
    script = Path(__file__).with_name("killing.py")
    done = subprocess.run(
        [sys.executable, script, tmp_path, plan],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "DUALQUERY_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 60


class Respond:
    """Watches `respond` of a player: what it was given, and a kill inside it."""

    def __init__(self, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[int, bytes, bytes]] = []
        self.kill_at: int | None = None
        self.when_killed = lambda: None
        respond = kind.respond

        def watched(player, state, temperature, draws):
            number = len(state.records if kind is RecordPlayer else state.rounds)
            self.seen.append((number, draws.queries.tobytes(), draws.negated.tobytes()))
            if number == self.kill_at:
                self.when_killed()
                raise Killed
            return respond(player, state, temperature, draws)

        monkeypatch.setattr(kind, "respond", watched)


@pytest.mark.parametrize("player", ["record", "model"])
@pytest.mark.parametrize("number", range(4))
def test_killed_inside_respond(
    tmp_path: Path,
    schema: Schema,
    rows: pa.Table,
    ledger: Path,
    monkeypatch: pytest.MonkeyPatch,
    player: str,
    number: int,
) -> None:
    """The draws of that round were seen, so they are the ones that are answered and released."""
    watch = Respond(RecordPlayer if player == "record" else ModelPlayer, monkeypatch)
    watch.kill_at = number
    job = replace(JOB, player=player)
    with pytest.raises(Killed) as stop:
        job.release(rows, tmp_path / "out", schema=schema, ledger=ledger)
    assert "nothing is lost" in stop.value.__notes__[0]
    assert str(tmp_path / "out.partial") in stop.value.__notes__[0]
    watch.kill_at = None
    made = job.release(rows, tmp_path / "out", schema=schema, ledger=ledger, resume=True)
    released = [
        (one.draws.queries.tobytes(), one.draws.negated.tobytes()) for one in made.transcript
    ]
    assert len(watch.seen) == 5  # the round of the kill twice
    for seen, *draws in watch.seen:
        assert tuple(draws) == released[seen]
    assert [entry.state for entry in Ledger(ledger).account().entries] == ["spent"]


class Disk:
    """What would be left after a loss of power: what was synced, under names that were synced."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.contents: dict[int, bytes] = {}
        self.names: dict[str, dict[str, int]] = {}
        real = os.fsync

        def fsync(handle: int) -> None:
            real(handle)
            path = Path(os.readlink(f"/proc/self/fd/{handle}"))
            if path.is_dir():
                self.names[str(path)] = {f.name: f.stat().st_ino for f in path.iterdir()}
            else:
                self.contents[path.stat().st_ino] = path.read_bytes()

        monkeypatch.setattr(os, "fsync", fsync)

    def after_power_loss(self, folder: Path, copy: Path) -> None:
        assert folder.name in self.names[str(folder.parent)], "the directory itself is lost"
        copy.mkdir()
        for name, inode in self.names[str(folder)].items():
            (copy / name).write_bytes(self.contents.get(inode, b""))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
@pytest.mark.parametrize("number", [0, 2])
def test_draws_survive_a_loss_of_power_before_they_are_used(
    tmp_path: Path, schema: Schema, rows: pa.Table, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    disk = Disk(monkeypatch)
    watch = Respond(RecordPlayer, monkeypatch)
    watch.kill_at = number
    partial, left = tmp_path / "out.partial", tmp_path / "left"
    watch.when_killed = lambda: disk.after_power_loss(partial, left)
    with pytest.raises(Killed):
        JOB.release(rows, tmp_path / "out", schema=schema)
    assert (left / "used.bin").stat().st_size == number + 1
    journal = Journal.resume(left, begun(left))
    assert journal.rounds_drawn == number + 1
    for seen, queries, negated in watch.seen:
        assert journal.draws(seen).queries.tobytes() == queries
        assert journal.draws(seen).negated.tobytes() == negated
    journal.close()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_the_release_is_on_disk_before_the_journal_goes(
    tmp_path: Path, schema: Schema, rows: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    out = tmp_path / "out"
    checked = []

    def remove(journal: Journal) -> None:
        assert "out" in disk.names[str(tmp_path)]
        for file in out.iterdir():
            assert disk.contents[file.stat().st_ino] == file.read_bytes()
        checked.append(True)

    monkeypatch.setattr(Journal, "remove", remove)
    JOB.release(rows, out, schema=schema)
    assert checked == [True]


def test_the_ledger_knows_before_anything_is_drawn_or_used(
    tmp_path: Path,
    schema: Schema,
    rows: pa.Table,
    ledger: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn, begun = [], set()
    draw, respond = QueryPlayer.draw, RecordPlayer.respond

    def rounds() -> int:
        return Ledger(ledger).account().entries[0].rounds

    def watched_draw(player, *arguments):
        entry = Ledger(ledger).account().entries[0]
        assert entry.state == "reserved"
        assert entry.begins  # the ledger knows that this round begins, and under which key
        begun.add(entry.begins)
        drawn.append(entry.rounds)
        return draw(player, *arguments)

    def watched_respond(player, state, *arguments):
        assert rounds() == len(state.records) + 1
        return respond(player, state, *arguments)

    monkeypatch.setattr(QueryPlayer, "draw", watched_draw)
    monkeypatch.setattr(RecordPlayer, "respond", watched_respond)
    JOB.release(rows, tmp_path / "out", schema=schema, ledger=ledger)
    assert drawn == [0, 1, 2, 3]
    assert len(begun) == 4


def stopped(job: DualQuery, rows, schema, out: Path, after: int, **options) -> None:
    """Run a release up to its round `after` and kill it."""

    def observer(stage: str, done: int, total: int) -> None:
        if stage == "playing" and done == after:
            raise Killed

    with pytest.raises(Killed):
        job.release(rows, out, schema=schema, progress=observer, **options)


def test_a_copy_cannot_be_resumed_a_second_time(
    tmp_path: Path, schema: Schema, rows: pa.Table, ledger: Path
) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    stopped(JOB, rows, schema, out, 2, ledger=ledger)
    for name in ("other", "third", "fourth"):
        shutil.copytree(tmp_path / "out.partial", tmp_path / f"{name}.partial")
    stopped(JOB, rows, schema, out, 3, ledger=ledger, resume=True)
    with pytest.raises(LedgerError, match="cannot resume from 2 rounds: the ledger saw 3"):
        JOB.release(rows, other, schema=schema, ledger=ledger, resume=True)
    with pytest.raises(ReleaseError, match="another ledger"):  # nor by leaving the ledger out
        JOB.release(rows, other, schema=schema, resume=True)
    # A journal as long as it should be, but of other draws.
    third = tmp_path / "third.partial"
    identity, mark = charged(third)
    openings = Ledger(ledger).openings(identity, mark)
    journal = Journal.resume(third, begun(third), openings=openings[:2])
    turns = Turns(Ledger(ledger), identity)
    turns.drawn = lambda rounds, digest: mark
    journal.charge(turns, mark)
    journal.write_draws(2, journal.draws(0))
    journal.close()
    with pytest.raises(LedgerError, match=r"round 3 in .* is not the one the ledger saw"):
        JOB.release(rows, tmp_path / "third", schema=schema, ledger=ledger, resume=True)
    JOB.release(rows, out, schema=schema, ledger=ledger, resume=True)
    for name in ("other", "third", "fourth"):
        with pytest.raises(LedgerError, match=r"was published|not the one the ledger saw"):
            JOB.release(rows, tmp_path / name, schema=schema, ledger=ledger, resume=True)
        assert (tmp_path / f"{name}.partial" / "run.json").exists()  # refused, not deleted
    assert [entry.state for entry in Ledger(ledger).account().entries] == ["spent"]


def test_two_copies_at_once_cannot_both_go_on(
    tmp_path: Path, schema: Schema, rows: pa.Table, ledger: Path
) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    stopped(JOB, rows, schema, out, 2, ledger=ledger)
    shutil.copytree(tmp_path / "out.partial", tmp_path / "other.partial")

    def the_other_one_runs(stage: str, done: int, total: int) -> None:
        if stage == "playing" and done == 2:
            JOB.release(rows, other, schema=schema, ledger=ledger, resume=True)

    with pytest.raises(LedgerError, match="a copy of this run went on elsewhere"):
        JOB.release(
            rows, out, schema=schema, ledger=ledger, resume=True, progress=the_other_one_runs
        )
    assert other.exists()
    assert not out.exists()


def test_another_table_of_the_same_size_is_refused(
    tmp_path: Path, schema: Schema, rows: pa.Table
) -> None:
    out = tmp_path / "out"
    stopped(JOB, rows, schema, out, 2)
    turned = rows.set_column(0, "sex", pa.array(rows["sex"].to_pylist()[::-1]))
    with pytest.raises(ReleaseError, match="cannot resume with another table"):
        JOB.release(turned, out, schema=schema, resume=True)
    shuffled = rows.take(np.random.default_rng(0).permutation(len(rows)))
    JOB.release(
        shuffled, out, schema=schema, resume=True
    )  # the same table: the order of rows does not matter


def test_under_add_remove_nothing_about_the_table_is_kept(
    tmp_path: Path, schema: Schema, rows: pa.Table
) -> None:
    job = replace(JOB, neighbours="add-remove", rows=1000)
    out = tmp_path / "out"
    stopped(job, rows, schema, out, 2)
    assert b"counts" not in (tmp_path / "out.partial" / "run.json").read_bytes()
    said = []
    job.release(
        rows.slice(1), out, schema=schema, resume=True,
        progress=lambda stage, done, total: said.append(stage),
    )  # fmt: skip
    assert any("cannot be checked" in stage for stage in said)


def test_fit_with_a_directory_leaves_nothing_and_is_spent(
    tmp_path: Path, schema: Schema, rows: pa.Table, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "kept"
    watch = Respond(RecordPlayer, monkeypatch)
    watch.kill_at = 2
    with pytest.raises(Killed) as stop:
        JOB.fit(rows, schema=schema, directory=folder, ledger=ledger)
    assert str(folder) in stop.value.__notes__[0]
    watch.kill_at = None
    remove = Journal.remove

    def killed(journal: Journal) -> None:
        raise Killed

    monkeypatch.setattr(Journal, "remove", killed)  # spent, but not yet cleared away
    with pytest.raises(Killed):
        JOB.fit(rows, schema=schema, directory=folder, ledger=ledger, resume=True)
    monkeypatch.setattr(Journal, "remove", remove)
    made = JOB.fit(rows, schema=schema, directory=folder, ledger=ledger, resume=True)
    assert [number for number, _, _ in watch.seen] == [0, 1, 2, 2, 3]
    assert len(made.transcript) == 4
    assert not folder.exists()
    assert [entry.state for entry in Ledger(ledger).account().entries] == ["spent"]


def test_fit_keeps_what_else_is_in_its_directory(
    tmp_path: Path, schema: Schema, rows: pa.Table
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    JOB.fit(rows, schema=schema, directory=tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_a_finished_release_is_not_begun_again(
    tmp_path: Path, schema: Schema, rows: pa.Table, ledger: Path
) -> None:
    out = tmp_path / "out"
    JOB.release(rows, out, schema=schema, ledger=ledger)
    with pytest.raises(ReleaseError, match="no unfinished run"):
        JOB.release(rows, out, schema=schema, ledger=ledger, resume=True)
    assert len(Ledger(ledger).account().entries) == 1


def test_only_the_same_run_is_finished(
    tmp_path: Path, schema: Schema, rows: pa.Table, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after the release got its name: only a command for the same run finishes it."""
    out = tmp_path / "out"

    def killed(book: Ledger, release: str, seen: object = None) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(run.Ledger, "spend", killed)
        with pytest.raises(Killed):
            JOB.release(rows, out, schema=schema, ledger=ledger)
    assert out.exists()
    with pytest.raises(ReleaseError, match="another epsilon"):
        replace(JOB, epsilon=2.5).release(rows, out, schema=schema, ledger=ledger, resume=True)
    with pytest.raises(ReleaseError, match="another ledger"):
        JOB.release(rows, out, schema=schema, resume=True)
    JOB.release(rows, out, schema=schema, ledger=ledger, resume=True)
    assert [entry.state for entry in Ledger(ledger).account().entries] == ["spent"]
    assert not (tmp_path / "out.partial").exists()


def test_a_writer_at_work_is_left_alone(tmp_path: Path, schema: Schema, rows: pa.Table) -> None:
    """Scratch directories of killed writers go; those of living ones stay."""
    import fcntl

    made = JOB.fit(rows, schema=schema)
    dead, alive = tmp_path / ".out.scratch-dead", tmp_path / ".out.scratch-alive"
    mine = tmp_path / ".out.settings"
    for folder in (dead, alive, mine):
        folder.mkdir()
        (folder / "workload.npz").write_text("x")
    handle = os.open(alive, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    made.save(tmp_path / "out")
    os.close(handle)
    assert {file.name for file in tmp_path.iterdir()} == {"out", alive.name, mine.name}
