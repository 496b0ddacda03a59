"""What stops a run is told in one line, with the way to go on."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dualquery as dq
from dualquery.base.errors import EngineError
from dualquery.game.record_player import RecordPlayer

LONG = (
    "--epsilon", 3, "--delta", 1e-3, "--queries", 3000, "--rounds", 150, "--samples", 20,
    "--player", "record", "--no-refit", "--quiet",
)  # fmt: skip


def command(files: Path, *more: object) -> list[str]:
    return [
        *("release", str(files / "table.csv"), "--schema", str(files / "schema.toml")),
        *("--out", str(files / "out"), *map(str, LONG), *map(str, more)),
    ]


def listening() -> None:
    """Tests that run in the background of a shell would hand on an ignored SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_signal_is_told_and_the_run_goes_on(run, files: Path, name: str) -> None:
    """Nobody can tell of SIGKILL, but the same command with --resume finishes that run too."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dualquery", *command(files)],
        stderr=subprocess.PIPE, text=True, preexec_fn=listening,
    )  # fmt: skip
    journal = files / "out.partial" / "rounds.bin"
    deadline = time.monotonic() + 120
    while not journal.exists() or journal.stat().st_size < 5_000:
        assert process.poll() is None, "the run ended before it could be stopped"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    number = getattr(signal, name)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    if name == "SIGKILL":
        assert process.returncode == -number
    else:
        assert process.returncode == 128 + number
        check_line(said, files)
        assert ("interrupted" if name == "SIGINT" else "stopped by SIGTERM") in said
    assert not (files / "out").exists()
    again = run(*command(files, "--resume"))
    assert again.code == 0, again.err
    assert len(dq.load(files / "out").transcript) == 150
    assert not journal.exists()


def check_line(said: str, files: Path) -> None:
    lines = [line for line in said.splitlines() if not line.startswith("warning: ")]
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert "nothing is lost" in said
    assert "--resume" in said
    assert str(files / "out.partial") in said
    assert "Traceback" not in said


def test_a_full_disk(run, files: Path) -> None:
    """A limit on the size of files is the nearest thing to a full disk that a test may make."""

    def small() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000))

    # What counts the lines that tests run would write to the full disk, too.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE_")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [sys.executable, "-m", "dualquery", *command(files)],
        capture_output=True, text=True, check=False, preexec_fn=small, env=environment,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    check_line(done.stderr, files)
    assert "no room left on the disk" in done.stderr
    again = run(*command(files, "--resume"))
    assert again.code == 0, again.err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "no room left on the disk"),
        (MemoryError("Unable to allocate 9 TiB"), "not enough memory (Unable to allocate 9 TiB)"),
        (EngineError("all Dask workers were lost"), "all Dask workers were lost"),
        (RuntimeError("what nobody foresaw"), "what nobody foresaw"),
    ],
)
def test_what_else_may_stop_a_run(
    release, files: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def fail(player, state, temperature, draws):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(RecordPlayer, "respond", fail)
        outcome = release("--player", "record", "--no-refit", "--quiet")
    assert outcome.code == 1
    assert said in outcome.err
    check_line(outcome.err, files)
    assert release("--player", "record", "--no-refit", "--quiet", "--resume").code == 0


def test_before_anything_is_drawn(release, monkeypatch: pytest.MonkeyPatch) -> None:
    from dualquery.engines.local import LocalEngine

    def fail(*arguments):
        raise MemoryError

    monkeypatch.setattr(LocalEngine, "count", fail)
    outcome = release("--quiet")
    assert outcome.code == 1
    assert "not enough memory; nothing was drawn yet; start again" in outcome.err


def test_a_refusal_is_no_failure(release, files: Path) -> None:
    outcome = release("--resume")
    assert outcome.code == 2
    assert "nothing is lost" not in outcome.err
