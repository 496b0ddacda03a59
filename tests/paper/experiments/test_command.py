"""The command: files written, resumed, bad names refused in one line."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from pathlib import Path

import pytest

from dualquery.cli import main
from dualquery.paper.experiments import attributes
from dualquery.paper.experiments.store import COLUMNS


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
    made = {f"attributes-quick.{ending}" for ending in ("csv", "svg", "md")}
    assert names == made | {"machine.json"}
    assert "| biased | 1,000 | 200 |" in capsys.readouterr().out
    assert call(monkeypatch, *small, "--series", "gaussian", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["rows"]) == 6
    # Small sizes decide nothing, and say so.
    assert {claim["agrees"] for claim in told["claims"]} == {None}
    assert {claim["remark"] for claim in told["claims"]} == {"at this size"}
    rows = (tmp_path / "attributes-quick.csv").read_text().splitlines()
    assert len(rows) == 1 + 3 * 2
    assert call(monkeypatch, "report", "--quick", "--out", tmp_path) == 0
    text = (tmp_path / "quick.md").read_text()
    assert "## What the paper states" in text
    assert "attributes-quick:" in (tmp_path / "quick-tables.md").read_text()


def test_an_experiment_with_a_solver_counts_proofs_timeouts_and_gaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(attributes, "QUICK_WIDTHS", (50,))
    monkeypatch.setattr(attributes, "QUICK_ROWS", 2_000)
    small = ("attributes", "--quick", "--queries", 200, "--out", tmp_path, "--quiet")
    for oracle, limit in (("highs", ("--time-limit", 20)), ("highs-paper", ("--time-limit", 0))):
        assert call(monkeypatch, *small, "--series", "paper", "--oracle", oracle, *limit) == 0
    capsys.readouterr()
    proved, stopped = (
        csv.DictReader((tmp_path / f"attributes-quick-{oracle}.csv").read_text().splitlines())
        for oracle in ("highs", "highs-paper")
    )
    for run in proved:
        assert (run["proved"], run["timeouts"], run["mean_gap"]) == (run["rounds"], "0", "0")
    for run in stopped:
        assert int(run["proved"]) + int(run["timeouts"]) == int(run["rounds"])
        assert int(run["timeouts"]) > 0
        assert float(run["largest_gap"]) > 0
    # The files that the package's own search writes stay as they were, and the page has both.
    assert call(monkeypatch, *small, "--series", "zeros") == 0
    assert "proved" not in (tmp_path / "attributes-quick.csv").read_text()
    assert call(monkeypatch, "report", "--quick", "--out", tmp_path) == 0
    page = (tmp_path / "quick.md").read_text()
    assert "## With a solver" in page
    assert "| biased | paper | 1 | highs-paper | 0 s | 1 |" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("figure-9",), "experiment = 'figure-9'; expected one of accuracy"),
        (("accuracy", "--dataset", "iris"), "dataset of experiment 'accuracy' = 'iris'"),
        (("accuracy", "--runs", "0"), "runs = 0; expected 1 or more"),
        (("accuracy", "--series", "zeros", "--series", "magic", "--quick"), "no series 'magic'"),
        (("accuracy", "--dataset", "ratings", "--series", "valid"), "nothing to do"),
        (
            ("accuracy", "--epsilon", "-1", "--series", "zeros"),
            "epsilon = -1; expected a number above 0",
        ),
        (("accuracy", "--epsilon", "nan"), "epsilon = nan; expected a finite number"),
        (("attributes", "--dataset", "adult"), "makes its own tables: leave out dataset"),
        (("attributes", "--data", "adult.csv.gz"), "makes its own tables: leave out data"),
        (("mwem", "--dataset", "kdd99"), "experiment 'mwem' = 'kdd99'; expected one of adult"),
        (("accuracy", "--dataset", "ratings", "--data", "x.csv"), "'ratings' is generated"),
        (("accuracy", "--quick", "--data", "torn.csv.gz"), "cannot read 'torn.csv.gz'"),
        (("attributes", "--quick", "--out", "torn.csv.gz"), "'torn.csv.gz' cannot be a folder"),
        (("attributes", "--quick", "--out", "torn.csv.gz/sub"), "cannot be a folder"),
        (("mwem", "--quick", "--out", "stored"), "'stored/mwem-quick.csv', line 3: not the row"),
        (("parities", "--quick", "--out", "stored"), "cannot read 'stored/parities-quick.csv'"),
        (("accountants", "--quick", "--out", "stored"), "cannot read 'stored/accountants-quick.c"),
        (
            ("queries", "--quick", "--out", "damaged"),
            "'damaged/machine.json' does not hold machines",
        ),
        (("accuracy", "--time-limit", "3"), "time_limit is that of an oracle"),
        (("accuracy", "--oracle", "annealing", "--time-limit", "3"), "has no time_limit; it has"),
        (("accuracy", "--oracle", "magic"), "oracle = 'magic'; expected one of annealing"),
        (
            ("accuracy", "--quick", "--oracle", "highs", "--series", "zeros"),
            "series 'zeros' asks no oracle; with oracle, experiment 'accuracy' has paper, ",
        ),
        (("field", "--oracle", "highs"), "leave out oracle"),
        (
            ("accuracy", "--dataset", "adult", "--quick"),
            "--data FILE, or --download (from http",
        ),
        (("accuracy", "--dataset", "netflix", "--quick"), "give their folder with --data FOLDER"),
        (("report", "--epsilon", "3"), "takes --out and --quick only"),
        (("accuracy", "--quick", "--data", "nowhere.csv"), "no such file: 'nowhere.csv'"),
        (("accuracy", "--data", "adult.csv.gz"), "is one file and there are 3 data sets"),
        (("report", "--out", "nowhere"), "no experiment is stored in 'nowhere'"),
        (("field", "--dataset", "netflix"), "dataset of experiment 'field' = 'netflix'"),
        (("published", "--series", "magic"), "no series 'magic'; expected one of default"),
        (
            ("field", "--dataset", "biased", "--out", "stored"),
            "'stored/field.csv' holds other columns",
        ),
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
    monkeypatch.delenv("DUALQUERY_DATA", raising=False)
    monkeypatch.setenv("DUALQUERY_CACHE", str(tmp_path / "empty"))
    Path("torn.csv.gz").write_bytes(gzip.compress(b"age,sex\n" * 9)[:-9])
    Path("stored/parities-quick.csv").mkdir(parents=True)
    rows = [COLUMNS, ["1"] * len(COLUMNS), ["1"] * (len(COLUMNS) - 2)]
    text = "".join(",".join(cells) + "\n" for cells in rows)
    Path("stored/mwem-quick.csv").write_text(text)
    Path("stored/accountants-quick.csv").write_bytes(b"\xff\xfe\n")
    Path("stored/field.csv").write_text("a,b\n")
    Path("damaged").mkdir()
    Path("damaged/machine.json").write_text("{")
    assert call(monkeypatch, *arguments, *(() if "report" in arguments else ("--quiet",))) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
