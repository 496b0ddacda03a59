"""The δ of a release that is given none, the registry entry, and the largest cells of a table."""

from __future__ import annotations

import json

import pytest

from dualquery.privacy.statement import usual_delta
from dualquery.release.release import load


@pytest.mark.parametrize(
    ("size", "delta"), [(1, 0.1), (6, 1e-2), (100, 1e-4), (101, 1e-5), (1000, 1e-6), (20_000, 1e-9)]
)
def test_the_usual_delta(size: int, delta: float) -> None:
    assert usual_delta(size) == delta
    assert delta <= max(1 / size**2, 0.1)


def test_a_release_without_delta(run, files, rows) -> None:
    asked = ("release", files / "table.csv", "--schema", files / "schema.toml", "--epsilon", 20,
             "--marginals", 1, "--no-errors", "--quiet")  # fmt: skip
    made = run(*asked, "--out", files / "out", "--registry", files / "entry.json")
    assert made.code == 0, made.err
    delta = usual_delta(rows.num_rows)
    assert f"δ = {delta:g}, as 1/n² for the public n = {rows.num_rows:,}" in made.err
    stated = load(files / "out").privacy
    assert stated.delta == delta
    entry = json.loads((files / "entry.json").read_text())
    assert entry["privacy_parameters"]["epsilon"] == stated.epsilon
    assert entry["privacy_unit"]["size"] == rows.num_rows
    assert entry["mechanisms"][0]["tables"] >= 1
    assert entry["accounting"]["accountant"] == "gaussian"
    assert entry["accounting"]["charged_to_a_ledger"] is False
    private = run(*asked, "--out", files / "other", "--neighbours", "add-remove", "--rows", 900)
    assert "public n = 900" in private.err
    for more in (("--neighbours", "add-remove"), ("--unit", "x", "--most-records", 2)):
        done = run(*asked, "--out", files / "third", *more)
        assert (done.code, "--delta D is needed" in done.err) == (2, True)


def test_the_largest_cells(run, release, files) -> None:
    assert release("--no-errors", "--quiet").code == 0
    names = load(files / "out").schema.names[:2]
    whole = json.loads(run("table", files / "out", *names, "--json").out)
    told = json.loads(run("table", files / "out", *names, "--top", 2, "--json").out)
    shares = sorted((row["share"] for row in whole["rows"]), reverse=True)
    assert [row["share"] for row in told["rows"]] == shares[:2]
    assert told["cells"] == whole["cells"] == len(shares)
    found = json.loads(run("table", files / "out", *names, "--sort", "--json").out)
    assert [row["share"] for row in found["rows"]] == shares
    shown = run("table", files / "out", *names, "--top", 1)
    assert f"1 of {len(shares):,} cells" in shown.err
    assert "--top = 0; expected 1 or more" in run("table", files / "out", *names, "--top", 0).err


def test_a_limit_inside_a_bin(run, tmp_path) -> None:
    (tmp_path / "t.csv").write_text(
        "age,sick\n" + "".join(f"{20 + n % 60},{n % 2}\n" for n in range(600))
    )
    (tmp_path / "s.toml").write_text(
        "[attributes.age]\nedges = [20, 50, 80]\n[attributes.sick]\nbinary = true\n"
    )
    made = run(
        "release", tmp_path / "t.csv", "--schema", tmp_path / "s.toml", "--epsilon", 50,
        "--marginals", "1,2", "--out", tmp_path / "out", "--quiet",
    )  # fmt: skip
    assert made.code == 0, made.err
    told = json.loads(run("answer", tmp_path / "out", "age>=65", "sick", "--json").out)
    assert [one["query"] for one in told["answers"]] == ["age>=65", "sick=1"]
    assert told["answers"][0]["low"] <= 0.25 <= told["answers"][0]["high"]
    given = run("answer", tmp_path / "out", "sick", "--given", "age>=65", "--json")
    told = json.loads(given.out)
    assert (told["given"], told["answers"][0]["query"]) == ("age>=65", "sick=1")
    assert told["answers"][0]["low"] <= 0.5 <= told["answers"][0]["high"]
    plain = json.loads(
        run("answer", tmp_path / "out", "sick", "--given", "age in [50,80]", "--json").out
    )
    assert plain["given"] == "age>=50"
    table = json.loads(run("table", tmp_path / "out", "sick", "--where", "age>=65", "--json").out)
    assert [row["share"] for row in table["rows"]][1] == pytest.approx(told["answers"][0]["answer"])
    wrong = run("answer", tmp_path / "out", "age>=65 | sick")
    assert (wrong.code, "65 is not a bin edge of 'age'" in wrong.err) == (2, True)
