"""What strangers write goes out harmless, and what is not private says so."""

from __future__ import annotations

import csv
import json
import os
import stat
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dualquery.base.errors import ParameterError
from dualquery.base.escapes import for_spreadsheet, for_terminal, printable
from dualquery.base.failures import SENTENCES
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.release.frames import write_table
from dualquery.rows.drafting import draft
from tests.cli.test_bad_input import refused

HOSTILE = "\x1b]0;owned\x07\x1b[2J"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [("--rounds", 0, "rounds = 0; expected 1 or more"), ("--samples", 0, "samples = 0"),
     ("--eta", 0, "eta = 0")],
)  # fmt: skip
def test_a_game_of_nothing(files, release, run, option: str, value: int, words: str) -> None:
    refused(release(option, value), files, words)
    planned = run(
        "plan", "--schema", files / "schema.toml", "--rows", 1000, "--epsilon", 1, "--delta", 1e-3,
        option, value,
    )  # fmt: skip
    assert planned.code == 2
    assert words in planned.err


@pytest.mark.parametrize("name", ["epsilon", "delta"])
@pytest.mark.parametrize("value", ["1", None, True, [1]])
def test_a_budget_that_is_no_number(rows: pa.Table, schema: Schema, name: str, value) -> None:
    job = DualQuery(**{"epsilon": 1.0, "delta": 1e-3, "queries": 50, name: value})
    with pytest.raises(ParameterError, match=rf"{name} (= .*; expected a number|is missing)"):
        job.fit(rows, schema=schema)


def test_nobody_is_advised_to_promise_nothing(files, release, rows) -> None:
    write_table(rows.slice(0, 1), files / "one.csv")
    done = release(table=files / "one.csv")
    refused(done, files, "the table is too small for any epsilon that protects anybody")
    assert "would be enough" not in done.err


def test_a_start_that_is_not_private(files, release, run, rows, schema) -> None:
    seeded = DualQuery(epsilon=500.0, delta=1e-3, queries=300, seed=1).fit(rows, schema=schema)
    seeded.save(files / "seeded")
    words = ("start: that release was made with a seed and is NOT PRIVATE",)
    refused(release("--start", files / "seeded"), files, *words)
    job = DualQuery(epsilon=5.0, delta=1e-3, queries=300, start=seeded)
    with pytest.raises(ParameterError, match=words[0]):
        job.fit(rows, schema=schema)
    done = release("--start", files / "seeded", "--seed", 2, "--epsilon", 5)
    assert done.code == 0, done.err


@pytest.mark.parametrize("name", ["report.html", "records.parquet"])
def test_questions_notice_a_missing_file(files, release, run, name: str) -> None:
    assert release("--rounds", 2, "--samples", 5).code == 0
    (files / "out" / name).unlink()
    for command in (("answer", "sex=Female"), ("table", "sex"), ("summary", "age")):
        done = run(command[0], files / "out", command[1])
        assert done.code == 2
        assert name in done.err
        assert "is missing" in done.err


@pytest.mark.parametrize("more", [(), ("--skeleton",)])
def test_a_draft_is_its_owners_and_says_what_it_is(files, run, more) -> None:
    before = os.umask(0)
    try:
        done = run("schema", files / "table.csv", "-o", files / "draft.toml", "--json", *more)
    finally:
        os.umask(before)
    assert done.code == 0, done.err
    assert mode(files / "draft.toml") == 0o600
    assert (files / "draft.toml").read_text().startswith("# NOT PRIVATE")
    assert json.loads(done.out)["not_private"].startswith("NOT PRIVATE")


def test_an_evaluation_says_what_it_is(files, release, run) -> None:
    assert release("--rounds", 2, "--samples", 5).code == 0
    done = run(
        "evaluate", files / "out", files / "table.csv", "--json", "--sdmetrics", files / "theirs"
    )
    assert done.code == 0, done.err
    assert json.loads(done.out)["not_private"].startswith("NOT PRIVATE")
    written = {file.name: mode(file) for file in (files / "theirs").iterdir()}
    assert set(written.values()) == {0o600}
    assert (files / "theirs" / "NOT_PRIVATE.txt").read_text().startswith("NOT PRIVATE")
    assert "real.csv" in written


@pytest.mark.parametrize(
    "name",
    ["note\n[attributes.planted]\nbinary = true", 'note"]\nx = 1 #', "note\r[attributes.planted]"],
)
def test_a_columns_name_declares_no_other_attribute(tmp_path: Path, name: str) -> None:
    """Neither in the comments (a column that is left out) nor in the declarations."""
    for cells in ([f"free text {i}" for i in range(300)], ["a", "b"] * 150):
        made = draft(pa.table({name: cells, "sex": ["m", "f"] * 150}))
        made.save(tmp_path / "draft.toml")
        stored = tomllib.loads((tmp_path / "draft.toml").read_text())
        assert set(stored["attributes"]) == set(made.schema.names) <= {name, "sex"}


def test_nothing_that_a_terminal_obeys_is_printed(files, run) -> None:
    attribute = Attribute.categorical(f"sex{HOSTILE}", ["m", f"f{HOSTILE}"])
    schema = Schema((attribute, Attribute.binary("b")))
    schema.save(files / "hostile.toml")
    assert HOSTILE[0] not in (files / "hostile.toml").read_text()
    cells = np.random.default_rng(1).choice(["m", f"f{HOSTILE}"], 500)
    rows = pa.table({attribute.name: cells, "b": [0, 1] * 250})
    DualQuery(epsilon=1.0, delta=1e-3).fit(rows, schema=schema).save(files / "out")
    write_table(rows, files / "hostile.csv")
    shown = [
        run("table", files / "out", attribute.name),
        run("table", files / "out", f"absent{HOSTILE}"),
        run("answer", files / "out", f'"sex{HOSTILE}"="f{HOSTILE}"'),
        run("schema", files / "hostile.csv", "-o", files / "draft.toml"),
        run("evaluate", files / "out", files / "hostile.csv"),
        run("check", files / "hostile.csv", "--schema", files / "hostile.toml"),
        run("compare", files / "out", files / "out"),
    ]
    for done in shown:
        assert "Traceback" not in done.err
        assert not set(done.out + done.err) & set("\x1b\x07\x9b"), done
    assert "\\x1b]0;owned" in shown[0].out


def test_formulas_are_no_formulas_in_a_csv(files, run) -> None:
    values = ["=cmd|' /C calc'!A0", "@SUM(A1)", "+1+cmd", "-2", "plain"]
    schema = Schema((Attribute.categorical("=name", values), Attribute.binary("b")))
    rows = pa.table({"=name": values * 200, "b": [0, 1] * 500})
    DualQuery(epsilon=1.0, delta=1e-3).fit(rows, schema=schema).save(files / "out")
    sample = ("sample", files / "out", "--rows", 400, "--seed", 1, "--out")
    assert run(*sample, files / "safe.csv").code == 0
    assert run(*sample, files / "raw.csv", "--raw").code == 0
    assert run(*sample, files / "rows.parquet").code == 0
    found = {}
    for name in ("safe", "raw"):
        with (files / f"{name}.csv").open(newline="") as stream:
            found[name] = [line[0] for line in csv.reader(stream)]
    assert set(found["raw"]) == {"=name", *values}
    assert set(found["safe"]) == {"'=name", *(f"'{v}" for v in values[:3]), "-2", "plain"}
    printed = run("table", files / "out", "=name", "--format", "csv").out
    assert "\"'=cmd" in printed or "'=cmd" in printed
    assert "\n=" not in printed
    assert not printed.startswith("=")
    raw = run("table", files / "out", "=name", "--format", "csv", "--raw").out
    assert raw.startswith("=name")


def test_what_is_escaped() -> None:
    assert for_terminal("a\n\tb\x1b[0m\x9b\u202e") == "a\n\tb\\x1b[0m\\x9b\\u202e"
    assert printable("a\nb\tc\r") == "a\\nb\\tc\\r"
    for text in ("-2", "+4.5", "-1e9", "a=b", "", "=", "-"):
        assert for_spreadsheet(text) == text
    for text in ("=1", "-2+3", "@a", "\tx", "\r=1", "+a"):
        assert for_spreadsheet(text) == f"'{text}"


@pytest.mark.parametrize("number", sorted(SENTENCES))
def test_what_the_machine_refuses_is_said_in_words(
    files, run, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    from dualquery.cli import sample

    def failing(*arguments: object, **named: object) -> None:
        raise OSError(number, os.strerror(number), "/somewhere/file")

    monkeypatch.setattr("dualquery.release.release.load", failing)
    done = run("sample", files, "--rows", 3, "--out", files / "rows.csv")
    assert sample is not None
    assert done.code == 1
    assert done.err == f"error: {SENTENCES[number]}: '/somewhere/file'\n"


def test_sample_refuses_a_planted_name_before_rows_are_drawn(files, release, run) -> None:
    assert release("--rounds", 2, "--samples", 5).code == 0
    os.mkfifo(files / "pipe.csv")
    command = ("sample", files / "out", "--rows", 3, "--out")
    done = run(*command, files / "pipe.csv", "--overwrite")
    assert done.code == 2
    assert "nobody reads this pipe" in done.err
    (files / "link.csv").symlink_to(files / "victim.csv")
    assert "exists" in run(*command, files / "link.csv").err
    assert run(*command, files / "link.csv", "--overwrite").code == 0
    assert not (files / "victim.csv").exists()
    assert not (files / "link.csv").is_symlink()


def test_a_table_that_weighs_nothing_is_released_and_not_compared(files, run, rows, schema) -> None:
    """Whether there is a release must not depend on one weight; a comparison is no release."""
    weights = pa.array([0.0] * rows.num_rows)
    write_table(rows.append_column("w", weights), files / "weightless.csv")
    done = run(
        "release", files / "weightless.csv", "--schema", files / "schema.toml", "--epsilon", 1,
        "--delta", 1e-3, "--out", files / "out", "--queries", 20, "--weight", "w",
        "--weight-bound", 1, "--rows", 1000, "--player", "record", "--rounds", 2, "--samples", 3,
        "--no-refit",
    )  # fmt: skip
    assert done.code == 0, done.err
    compared = run("evaluate", files / "out", files / "weightless.csv")
    assert compared.code == 2
    assert "no row of the table weighs anything" in compared.err
