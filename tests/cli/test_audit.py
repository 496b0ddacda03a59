"""`dualquery audit`: its lines, its figures and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dualquery.auditing import unrelated
from dualquery.privacy import measuring
from dualquery.privacy.noise import rounded_gaussian
from dualquery.release.frames import write_table
from tests.auditing.tables import SCHEMA, rows


@pytest.fixture(autouse=True)
def one_play(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unrelated, "PLAYS", {"records": unrelated.PLAYS["records"]})


def table(folder: Path) -> tuple[object, ...]:
    SCHEMA.save(folder / "four.toml")
    write_table(rows(2_000), folder / "four.csv")
    return folder / "four.csv", "--schema", folder / "four.toml"


def test_it_says_that_all_holds(run, files) -> None:
    done = run("audit", *table(files), "--quiet")
    assert done.code == 0, done.out + done.err
    assert done.out.startswith("NOT PRIVATE")
    lines = done.out.splitlines()[1:]
    assert [line[:3] for line in lines] == ["(a)", "(b)", "(c)", "(d)", "(e)"]
    assert [line.count("holds") for line in lines] == [1, 1, 1, 1, 0]
    assert "not run" in lines[-1]


def test_it_says_what_fails(run, files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        measuring,
        "rounded_gaussian",
        lambda sigma, size, source: rounded_gaussian(0.7 * sigma, size, source),
    )
    done = run("audit", *table(files), "--json")
    assert done.code == 1, done.err
    told = json.loads(done.out)
    assert told["not_private"].startswith("NOT PRIVATE")
    assert not told["ok"]
    assert [told[letter]["holds"] for letter in "abcde"] == [True, True, True, False, None]


def test_bad_usage(run, files) -> None:
    for more, message in (
        (("--releases", 5), "releases = 5; expected at least 100"),
        (("--epsilon", 0), "epsilon"),
        (("--unit", "who"), "needs most_records"),
        (("--out-of-domain", "guess"), "out_of_domain"),
    ):
        done = run("audit", *table(files), *more)
        assert done.code == 2, done.err
        assert message in done.err
        assert len(done.err.splitlines()) == 1
