"""The command: files written, resumed, bad names refused in one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dualquery.cli import main


def call(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["dualquery", "experiment", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


def test_an_experiment_writes_its_files_and_a_report_gathers_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ("attributes", "--quick", "--queries", 200, "--out", tmp_path, "--quiet")
    assert call(monkeypatch, *small, "--series", "zeros", "--series", "uniform") == 0
    names = {path.name for path in tmp_path.iterdir()}
    made = {f"attributes-quick.{ending}" for ending in ("csv", "png", "svg", "md")}
    assert names == made | {"machine.json"}
    assert "| biased | 1,000 | 200 |" in capsys.readouterr().out
    assert call(monkeypatch, *small, "--series", "gaussian", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["rows"]) == 6
    assert told["claims"][0]["agrees"] is not None
    rows = (tmp_path / "attributes-quick.csv").read_text().splitlines()
    assert len(rows) == 1 + 3 * 2
    assert call(monkeypatch, "report", "--quick", "--out", tmp_path) == 0
    text = (tmp_path / "quick.md").read_text()
    assert "## What the paper states" in text
    assert "attributes-quick:" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("figure-9",), "unknown experiment 'figure-9'"),
        (("accuracy", "--dataset", "iris"), "unknown data set 'iris'"),
        (("accuracy", "--runs", "0"), "expected runs=0 >= 1"),
        (("accuracy", "--series", "magic", "--quick"), "nothing to do"),
        (("accuracy", "--quick", "--data", "nowhere.csv"), "no such file: 'nowhere.csv'"),
        (("accuracy", "--data", "adult.csv.gz"), "is one file and there are 3 data sets"),
        (("report", "--out", "nowhere"), "no experiment is stored in 'nowhere'"),
    ],
)
def test_bad_usage_is_one_line(
    arguments: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, *arguments, *(() if "report" in arguments else ("--quiet",))) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
