"""The commands are thin: what they print, and that errors come out as the package's own."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest
import typer
from typer.testing import CliRunner

from dualquery.base.errors import DualQueryError
from dualquery.cli.ledger import ledger
from dualquery.cli.privacy import privacy
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.privacy.events import Events, record_player_temperatures
from dualquery.privacy.ledger import Ledger
from dualquery.privacy.neighbours import Neighbours
from tests.privacy.older_ledger import older_ledger

app = typer.Typer()
app.command()(privacy)
app.command()(ledger)
ADULT = [
    "privacy",
    "--rows",
    "30162",
    "--eta",
    "2",
    "--samples",
    "1000",
    "--rounds",
    "16",
    "--delta",
    "1e-6",
]


def run(*arguments: str) -> str:
    outcome = CliRunner().invoke(app, list(arguments))
    if isinstance(outcome.exception, DualQueryError):
        raise outcome.exception
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def test_privacy_as_json_has_the_five_keys() -> None:
    figures = json.loads(run(*ADULT, "--json"))
    assert list(figures) == ["pure", "advanced", "per-round", "zcdp", "gaussian"]
    assert figures["gaussian"] == pytest.approx(0.2871, abs=5e-5)
    assert json.loads(run(*ADULT, "--neighbours", "add-remove", "--json"))[
        "gaussian"
    ] == pytest.approx(0.1369, abs=5e-5)


def test_at_delta_0_the_pure_theorem_answers() -> None:
    line = ("privacy", "--rows", "30162", "--eta", "0.4", "--samples", "35", "--rounds", "47")
    told = json.loads(run(*line, "--delta", "0", "--json"))
    assert told.pop("pure") == pytest.approx(1.004, abs=5e-4)  # the paper's figure for ε = 1
    assert set(told.values()) == {None}
    shown = run(*line, "--delta", "0")
    assert "1.004" in shown
    assert "advanced" not in shown


def test_privacy_as_a_table_names_the_neighbours() -> None:
    shown = run(*ADULT)
    assert "replace-one neighbours" in shown
    assert "0.2872" in shown
    assert "replaced" in run(*ADULT, "--neighbours", "add-remove")


@pytest.mark.parametrize(
    ("option", "bad", "named"),
    [
        ("--rows", "0", "rows = 0"),
        ("--eta", "nan", "eta = nan"),
        ("--eta", "-1", "eta = -1"),
        ("--samples", "0", "samples = 0"),
        ("--rounds", "0", "rounds = 0"),
        ("--delta", "1", "delta = 1"),
        ("--delta", "inf", "delta = inf"),
        ("--neighbours", "swap", "'swap'"),
    ],
)
def test_privacy_names_a_bad_option(option: str, bad: str, named: str) -> None:
    with pytest.raises(DualQueryError, match=named):
        run(*ADULT, option, bad)


def test_a_ledger_from_declaration_to_spending(tmp_path: Path) -> None:
    file = str(tmp_path / "adult.db")
    created = ["--create", "--epsilon", "1", "--delta", "1e-6", "--slack", "0", "--label", "adult"]
    assert "spent ε = 0 of 1 at δ = 1e-06, replace-one" in run("ledger", file, *created)
    assert "no releases yet" in run("ledger", file)
    events = Events.of(record_player_temperatures(2.0, 16), 1000, 30162)
    Ledger(file).reserve("r1", events, neighbours=Neighbours.REPLACE_ONE, note="[first]")
    shown = run("ledger", file)
    assert "reserved" in shown
    assert "[first]" in shown
    assert json.loads(run("ledger", file, "--json"))["spent"] == pytest.approx(0.2871, abs=5e-5)


def test_ledger_options_belong_to_creation(tmp_path: Path) -> None:
    file = str(tmp_path / "adult.db")
    with pytest.raises(DualQueryError, match="--create needs"):
        run("ledger", file, "--create", "--epsilon", "1")
    with pytest.raises(DualQueryError, match="no ledger at"):
        run("ledger", file)
    run("ledger", file, "--create", "--epsilon", "1", "--delta", "1e-6")
    with pytest.raises(DualQueryError, match="--epsilon is declared once"):
        run("ledger", file, "--epsilon", "2")


def verified(*arguments: str) -> tuple[int, str]:
    outcome = CliRunner().invoke(app, ["ledger", *arguments])
    assert not isinstance(outcome.exception, DualQueryError)
    return outcome.exit_code, outcome.output


def test_a_ledger_is_verified(tmp_path: Path) -> None:
    file = str(tmp_path / "adult.db")
    run("ledger", file, "--create", "--epsilon", "1", "--delta", "1e-6", "--label", "adult")
    events = Events.of(record_player_temperatures(2.0, 16), 1000, 30162)
    Ledger(file).reserve("r1", events, neighbours=Neighbours.REPLACE_ONE)
    code, said = verified(file, "--verify")
    assert code == 0
    assert "adult: 2 links, none changed" in said
    for options, problem in (
        ((str(tmp_path),), "releases are looked at with --verify"),
        (("--create", "--verify"), "leave out --create"),
    ):
        with pytest.raises(DualQueryError, match=problem):
            run("ledger", file, *options)
    connection = sqlite3.connect(file)
    connection.execute("UPDATE chain SET content = CAST(REPLACE(content, 'r1', 'r2') AS BLOB)")
    connection.commit()
    connection.close()
    code, said = verified(file, "--verify")
    assert code == 1
    assert "was edited at link 1" in said
    code, said = verified(file, "--verify", "--json")
    assert code == 1
    assert json.loads(said)["right"] is False


def test_what_releases_and_unfinished_runs_have_seen_is_verified(
    tmp_path: Path, schema: Schema, rows: pa.Table
) -> None:
    job = DualQuery(2.0, 1e-3, rounds=2, samples=5, eta=3.0, queries=20, player="record",
                    refit=False)  # fmt: skip
    book, older, other = tmp_path / "l", tmp_path / "older", tmp_path / "other"
    for file in (book, other):
        Ledger.create(file, epsilon=9.0, delta=1e-3)
    job.fit(rows, schema=schema).save(tmp_path / "without")
    job.release(rows, tmp_path / "first", schema=schema, ledger=book)
    shutil.copy(book, older)
    job.release(rows, tmp_path / "second", schema=schema, ledger=book)

    def stop(stage: str, done: int, total: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        job.release(rows, tmp_path / "third", schema=schema, ledger=book, progress=stop)
    seen = [str(tmp_path / name) for name in ("first", "second", "third.partial")]
    assert verified(str(book), *seen, "--verify")[0] == 0
    for file, wrong, said in (
        (older, seen[1:], "put the newest copy back"),
        (other, seen, "was charged to another ledger"),
        (book, [str(tmp_path / "without")], "carries no mark of a ledger"),
        (book, [str(tmp_path)], "is not a release directory"),
    ):
        code, told = verified(str(file), *{*seen, *wrong}, "--verify", "--json")
        assert code == 1
        found = json.loads(told)
        assert found["right"] is False
        assert {one["release"] for one in found["releases"] if not one["right"]} == set(wrong)
        assert all(said in one["said"] for one in found["releases"] if not one["right"])


def test_an_older_ledger_is_shown_with_a_note(tmp_path: Path) -> None:
    older_ledger(tmp_path / "l", [("a", 0.01, 5.0, 0.0)])
    assert "note: this ledger was made by version 0.2" in " ".join(
        run("ledger", str(tmp_path / "l")).split()
    )
    code, said = verified(str(tmp_path / "l"), "--verify")
    assert code == 0
    assert "without a chain" in said
