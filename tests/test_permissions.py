"""Who can read what: the private side only its owner, a release whoever the umask allows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from dualquery.base import files as private_files
from dualquery.base.errors import ReleaseError
from dualquery.cli import main
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.game.journal import Journal
from dualquery.release import directory
from dualquery.release.frames import write_table

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")


@pytest.fixture(params=[0o000, 0o022, 0o027])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


class Stop(Exception):
    pass


def test_a_run_is_its_owners_alone(
    tmp_path: Path, schema: Schema, rows: pa.Table, umask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Journal and scratch folder are closed to others when they are made, not later."""
    job = DualQuery(epsilon=1.0, delta=1e-3, queries=50, rounds=3, samples=5, player="record")
    partial = tmp_path / "out.partial"

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "playing" and done == 2:
            raise Stop

    with monkeypatch.context() as watched:
        watched.setattr(os, "chmod", None)
        with pytest.raises(Stop):
            job.release(rows, tmp_path / "out", schema=schema, progress=stop)
    assert mode(partial) == 0o700
    kept = list(partial.iterdir())
    assert len(kept) >= 2
    assert {mode(file) for file in kept} == {0o600}

    seen: list[int] = []
    written = directory._write_files

    def watching(release, scratch: Path) -> None:
        seen.append(mode(scratch))
        written(release, scratch)
        seen.append(mode(scratch))

    monkeypatch.setattr(directory, "_write_files", watching)
    job.release(rows, tmp_path / "out", schema=schema, resume=True)
    assert seen == [0o700, 0o700]
    assert mode(tmp_path / "out") == 0o777 & ~umask
    assert {mode(file) for file in (tmp_path / "out").iterdir()} == {0o666 & ~umask}
    assert all(path.is_file() for path in (tmp_path / "out").iterdir())


def test_the_private_page_is_its_owners_alone(
    tmp_path: Path, schema: Schema, rows: pa.Table, umask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it takes the place of a page that anyone could read."""
    job = DualQuery(epsilon=1.0, delta=1e-3, queries=50, rounds=2, samples=5, refit=False)
    job.release(rows, tmp_path / "out", schema=schema)
    write_table(rows, tmp_path / "table.csv")
    page = tmp_path / "private.html"
    for _ in range(2):
        command = ["evaluate", tmp_path / "out", tmp_path / "table.csv", "--report", page]
        monkeypatch.setattr("sys.argv", ["dualquery", *map(str, command)])
        with monkeypatch.context() as watched:
            watched.setattr(os, "chmod", None)
            with pytest.raises(SystemExit) as stopped:
                main()
        assert not stopped.value.code
        assert mode(page) == 0o600
        page.chmod(0o644)
    assert "NOT FOR PUBLICATION" in page.read_text()
    assert not list(tmp_path.glob(".private*"))


def test_a_private_file_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(private_files.os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        private_files.write_private(tmp_path / "page.html", "text")
    assert not list(tmp_path.iterdir())


def test_a_private_file_through_a_link_or_into_a_pipe(tmp_path: Path) -> None:
    """Whoever planted a link would choose where private figures go: the link is replaced."""
    (tmp_path / "real.html").write_text("old")
    (tmp_path / "link.html").symlink_to(tmp_path / "real.html")
    private_files.write_private(tmp_path / "link.html", "new")
    assert not (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "real.html").read_text() == "old"
    assert (tmp_path / "link.html").read_text() == "new"
    assert mode(tmp_path / "link.html") == 0o600
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    private_files.write_private(tmp_path / "pipe", "told")
    assert os.read(reader, 9) == b"told"
    os.close(reader)


@pytest.mark.skipif(os.name != "posix", reason="needs modes of POSIX")
def test_a_journal_is_kept_where_nobody_else_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who can put back an older journal makes a resumed run draw rounds a second time."""
    empty = tmp_path / "empty"
    empty.mkdir()
    empty.chmod(0o777)
    Journal.create(empty, {}).close()
    assert mode(empty) == 0o700
    used = tmp_path / "used"
    used.mkdir()
    (used / "mine.txt").write_text("")
    used.chmod(0o777)
    with pytest.raises(ReleaseError, match="others may write to"):
        Journal.create(used, {})
    used.chmod(0o755)
    Journal.create(used, {}).close()
    assert mode(used) == 0o755, "a directory that holds other things stays as it is"
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(ReleaseError, match="belongs to another user"):
        Journal.create(tmp_path / "theirs", {})
