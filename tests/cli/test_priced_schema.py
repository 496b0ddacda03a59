"""`dualquery schema` with a price: from a skeleton to a schema, and every mistake on the way."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dualquery as dq


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "patient": random.integers(0, 900, 2000),
            "age": random.integers(18, 95, 2000),
            "icd": random.choice(["I10", "E11", "J45"], 2000),
            "smoker": random.integers(0, 2, 2000),
            "note": [f"text {i}" for i in range(2000)],
        }
    )
    frame.to_csv(tmp_path / "visits.csv", index=False)
    return tmp_path


def test_a_skeleton_is_filled_in_and_paid_for(run, visits: Path) -> None:
    table, declared, book = visits / "visits.csv", visits / "d.toml", visits / "book"
    made = run("schema", table, "--skeleton", "-o", declared, "--exclude", "patient")
    assert (made.code, "columns in" in made.out) == (0, True)
    assert "read the private table" in made.err
    text = declared.read_text()
    assert "text 1" not in text  # no cell is quoted, not even as a reason
    assert text.startswith("# NOT PRIVATE")
    assert any("note" in line for line in text.splitlines() if line.startswith("#"))
    assert run("ledger", book, "--create", "--epsilon", 2, "--delta", 1e-5, "--unit", "patient")
    pay = (
        "schema", table, "--declare", declared, "--epsilon", 2, "--delta", 1e-6,
        "--unit", "patient", "--most-records", 3, "--ledger", book, "-o", visits / "s.toml",
    )  # fmt: skip
    assert "draft = true" in run(*pay).err
    declared.write_text(text.replace("draft = true", "# reviewed"))
    assert "attribute 'age': bounds = ['?', '?']" in run(*pay).err
    declared.write_text(declared.read_text().replace('["?", "?"]', "[0, 120]"))
    done = run(*pay)
    assert done.code == 0, done.err
    assert "Price: ε = " in done.out
    schema = dq.Schema.load(visits / "s.toml")
    assert not schema.draft
    assert schema["icd"].values == ("E11", "I10", "J45")
    shown = run("ledger", book).out
    assert "s.toml" in shown.replace("\n", "")
    assert json.loads(run("ledger", book, "--json").out)["releases"][0]["slack"] > 0
    assert run(*pay).err.startswith("error: ")  # the file exists
    assert "total" in run(*pay, "--overwrite").err  # the budget does not allow it twice


def test_mistakes_are_told_in_one_line(run, visits: Path) -> None:
    declared = visits / "d.toml"
    declared.write_text("[attributes.age]\nbounds = [0, 120]\n[attributes.icd]\nopen = true\n")
    price = ("--epsilon", 1, "--delta", 1e-6)
    for more, told in (
        (("--epsilon", 1), "needs --delta D"),
        (price, "needs --declare FILE"),
        (("--declare", declared), "--declare is for a schema with a price"),
        ((*price, "--declare", declared, "--columns", "age"), "go without a price"),
        ((*price, "--declare", declared, "--bins", 100), "at most 64"),
        ((*price, "--declare", visits / "no.toml"), "cannot read schema file"),
        ((*price, "--declare", declared, "--unit", "patient"), "needs most_records"),
        ((*price, "--declare", declared, "--weigh", "person"), "name their column with unit"),
        (("--skeleton", "--bins", 8), "a skeleton has no bins"),
    ):
        done = run("schema", visits / "visits.csv", "-o", visits / "s.toml", *more)
        assert (done.code, done.err.count("\n")) == (2, 1), done.err
        assert told in done.err
    assert not (visits / "s.toml").exists()
    lost = run("schema", visits / "visits.csv", "-o", visits / "no" / "s.toml", *price)
    assert (lost.code, "no folder to write to" in lost.err) == (2, True)
