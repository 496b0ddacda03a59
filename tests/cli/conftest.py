from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from dualquery.cli import main
from dualquery.domain.schema import Schema
from dualquery.release.frames import write_table


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Run a command in this process, as `main` does."""

    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["dualquery", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return Outcome(int(stop.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture
def files(tmp_path: Path, schema: Schema, rows: pa.Table) -> Path:
    """A folder with a table and its schema."""
    schema.save(tmp_path / "schema.toml")
    write_table(rows, tmp_path / "table.csv")
    return tmp_path


@pytest.fixture
def release(run, files: Path):
    """Run `dualquery release` on the table, with more options at the end."""

    def call(*more: object, table: object = None, schema: object = None) -> Outcome:
        listed = {"--workload", "--marginals"} & set(map(str, more))
        asked = () if listed else ("--queries", 300)
        return run(
            "release", table or files / "table.csv", "--schema", schema or files / "schema.toml",
            "--epsilon", 1, "--delta", 1e-3, "--out", files / "out", *asked, *more,
        )  # fmt: skip

    return call


def in_a_process(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "dualquery", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
