"""Locks, writers and what the machine refuses: true sentences, and nobody's link is followed."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pyarrow as pa
import pytest

from dualquery.base import files
from dualquery.base.errors import ReleaseError
from dualquery.base.failures import SENTENCES
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.game import journal
from dualquery.game.journal import Journal
from dualquery.release.frames import write_table
from dualquery.release.resuming import telling

JOB = DualQuery(
    epsilon=2.0, delta=1e-3, rounds=2, samples=5, eta=3.0, queries=20, player="record", refit=False
)
FULL = (errno.ENOLCK, errno.EOPNOTSUPP, errno.EIO)


@pytest.mark.parametrize("number", FULL)
def test_a_file_system_without_locks_is_no_other_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refused(*arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refused)
    with pytest.raises(ReleaseError, match=r"cannot lock .*rounds\.bin") as said:
        Journal.create(tmp_path / "run", {})
    assert "another process" not in str(said.value)
    assert SENTENCES[number] in str(said.value)
    assert "choose a folder on a local disk" in str(said.value)


def test_a_lock_that_another_process_has(tmp_path: Path) -> None:
    held = Journal.create(tmp_path / "run", {})
    with pytest.raises(ReleaseError, match="another process is working on"):
        Journal.resume(tmp_path / "run", {})
    held.close()


def test_a_system_without_posix_locks_grants_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fcntl", None)
    with (tmp_path / "file").open("w") as stream, pytest.raises(OSError, match="no POSIX locks"):
        files.lock(stream)


@pytest.mark.parametrize("place", ["rename", "unlink"])
def test_a_journal_that_cannot_be_deleted_does_not_lose_the_release(
    tmp_path: Path, schema: Schema, rows: pa.Table, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    told: list[str] = []

    def failing(directory: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    rename = os.rename

    def broken(source: object, target: object) -> None:
        if str(target).endswith("done.json"):
            raise OSError(errno.EIO, "Input/output error")
        rename(source, target)

    if place == "rename":
        monkeypatch.setattr(os, "rename", broken)
    else:
        monkeypatch.setattr(journal, "_delete", failing)
    made = JOB.release(rows, tmp_path / "out", schema=schema, notice=told.append)
    assert len(made.transcript) == 2
    assert "made and paid for" in told[-1]
    assert SENTENCES[errno.EIO] in told[-1]
    monkeypatch.undo()
    JOB.release(rows, tmp_path / "out", schema=schema, resume=True)
    assert not (tmp_path / "out.partial").exists()


def test_a_stop_while_the_journal_goes_says_that_the_release_is_there(tmp_path: Path) -> None:
    begun = Journal.create(tmp_path / "out.partial", {})
    os.rename(tmp_path / "out.partial" / "run.json", tmp_path / "out.partial" / "done.json")
    begun.close()
    with pytest.raises(KeyboardInterrupt) as stop, telling(tmp_path / "out.partial"):
        raise KeyboardInterrupt
    assert "in its place and paid for" in stop.value.__notes__[0]
    assert "nothing was drawn" not in stop.value.__notes__[0]


def test_a_planted_link_is_not_followed(
    tmp_path: Path, rows: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither at the name itself nor at any name that the writer could use until it is whole."""
    victim = tmp_path / "victim.txt"
    victim.write_text("mine")
    shared = tmp_path / "shared"
    shared.mkdir()
    for name in ("rows.csv", f".{os.getpid()}.rows.csv", f".rows.csv.{os.getpid()}"):
        (shared / name).symlink_to(victim)
    planted = {file.name for file in shared.iterdir()}
    for write in (
        lambda path: write_table(rows, path),
        lambda path: files.write_whole(path, "text"),
        lambda path: files.write_private(path, "text"),
    ):
        (shared / "rows.csv").unlink(missing_ok=True)
        (shared / "rows.csv").symlink_to(victim)
        write(shared / "rows.csv")
        assert victim.read_text() == "mine"
        assert not (shared / "rows.csv").is_symlink()
        assert {file.name for file in shared.iterdir()} == planted


def test_the_waiting_name_cannot_be_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if somebody guessed it: what is there is neither written to nor deleted."""
    victim = tmp_path / "victim.txt"
    victim.write_text("mine")
    monkeypatch.setattr(files.secrets, "token_hex", lambda size: "guessed")
    (tmp_path / ".guessed.rows.csv").symlink_to(victim)
    with pytest.raises(FileExistsError):
        files.write_whole(tmp_path / "rows.csv", "text")
    assert victim.read_text() == "mine"
    assert (tmp_path / ".guessed.rows.csv").is_symlink()


def test_a_pipe_that_nobody_reads_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "rows.csv")
    with pytest.raises(ReleaseError, match="nobody reads this pipe"):
        files.check_target(tmp_path / "rows.csv")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(ReleaseError, match="a pipe of another user"):
        files.check_target(tmp_path / "rows.csv")


def planted_release(rows: pa.Table, schema: Schema, path: Path) -> None:
    JOB.fit(rows, schema=schema).save(path)


def test_what_was_planted_beside_the_output_stays_and_is_not_taken(
    tmp_path: Path, schema: Schema, rows: pa.Table
) -> None:
    if os.geteuid():
        pytest.skip("only root can make a folder of another user")
    planted_release(rows, schema, tmp_path / ".out.replaced-x")
    os.chown(tmp_path / ".out.replaced-x", 12345, 12345)
    os.mkfifo(tmp_path / ".out.scratch-pipe")
    (tmp_path / ".out.replaced-link").symlink_to(tmp_path)
    notes = tmp_path / ".out.scratch-notes"
    notes.mkdir()
    (notes / "thesis.txt").write_text("mine")
    before = {file.name for file in tmp_path.iterdir()}
    JOB.release(rows, tmp_path / "out", schema=schema)
    assert {file.name for file in tmp_path.iterdir()} == {*before, "out"}
    assert (notes / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize("how", ["link", "group", "everybody", "another", "file"])
@pytest.mark.parametrize("resume", [False, True])
def test_a_journal_that_others_could_have_made_is_refused_at_the_start(
    tmp_path: Path,
    schema: Schema,
    rows: pa.Table,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    resume: bool,
) -> None:
    partial = tmp_path / "out.partial"
    words = {"link": "a link or a file", "file": "a link or a file", "another": "another user"}
    if how == "file":
        partial.write_text("mine")
    else:
        Journal.create(tmp_path / "elsewhere", {}).close()
        if how == "link":
            partial.symlink_to(tmp_path / "elsewhere")
        else:
            (tmp_path / "elsewhere").rename(partial)
            partial.chmod({"group": 0o770, "everybody": 0o707}.get(how, 0o700))
    if how == "another":
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(ReleaseError, match=words.get(how, "others may write to")) as said:
        JOB.release(rows, tmp_path / "out", schema=schema, resume=resume)
    assert not getattr(said.value, "__notes__", [])
    assert os.path.lexists(partial)


@pytest.mark.parametrize("name", ["long.txt", "/dev/zero"])
def test_a_text_that_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "long.txt").write_text("x" * 1001)
    (tmp_path / "short.txt").write_text("x" * 1000)
    monkeypatch.setattr(files, "MOST_TEXT", 1000)
    assert len(files.read_text(tmp_path / "short.txt", "schema file", ReleaseError)) == 1000
    with pytest.raises(ReleaseError, match="has more than 1,000 characters"):
        files.read_text(tmp_path / name, "schema file", ReleaseError)
