"""The command line, from a table to a sample."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import resource
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

import dualquery as dq
from dualquery.model.standard_errors import ErrorTable
from dualquery.rows.opening import open_table
from tests.cli.conftest import in_a_process
from tests.release.page.releases import made_release, with_mixture


def test_release_answer_sample_evaluate(run, files, release) -> None:
    done = release()
    assert done.code == 0
    assert str(files / "out") in done.out
    assert "ε = " in done.out
    assert "replace-one" in done.out
    assert "measuring" in done.err

    done = run("answer", files / "out", "smoker=1", "sex=Male & age>=50", "--json")
    answers = json.loads(done.out)["answers"]
    assert [a["query"] for a in answers] == ["smoker=1", "sex=Male & age>=50"]
    assert all(0 <= a["answer"] <= 1 for a in answers)
    assert run("answer", files / "out", "smoker").out.endswith("smoker=1\n")

    done = run("sample", files / "out", "--rows", 50, "--out", files / "rows.parquet")
    assert done.code == 0
    assert pq.read_table(files / "rows.parquet").num_rows == 50
    run("sample", files / "out", "--rows", 50, "--out", files / "rows.csv")
    assert open_table(files / "rows.csv").header == dq.load(files / "out").schema.names

    done = run("evaluate", files / "out", files / "table.csv", "--json")
    figures = json.loads(done.out)
    assert set(figures) >= {"queries", "max_error", "average_error", "source", "baselines"}
    assert figures["queries"] == 300
    assert set(figures["baselines"]) == {"zeros", "uniform", "independent"}
    assert "NOT PRIVATE" in done.err
    shown = run("evaluate", files / "out", files / "table.csv").out
    assert "NOT PRIVATE" in shown
    assert "Percentages of true figures that lie in their 95 % intervals" in " ".join(shown.split())


def test_refit_and_rows_on_a_condition(run, files, release) -> None:
    assert release("--player", "record", "--no-refit", "--quiet").code == 0
    assert json.loads(run("answer", files / "out", "smoker", "--json").out)["source"] == "records"
    assert run("refit", files / "out", "--out", files / "better", "--steps", 20).code == 0
    figures = json.loads(run("answer", files / "better", "smoker", "--json").out)
    assert figures["source"] == "model"
    assert figures["answers"][0]["standard_error"] > 0
    # Two digits of the error, and as many decimals of the answer.
    shown = run("answer", files / "better", "smoker").out
    assert re.fullmatch(r"0\.(\d+) ± 0\.0*[1-9]\d  smoker=1\n", shown), shown
    assert len({len(part) for part in re.findall(r"0\.(\d+)", shown)}) == 1
    assert run("refit", files / "out", "--no-errors", "--quiet").code == 0
    assert dq.load(files / "out").source == "model"
    assert dq.load(files / "out").privacy == dq.load(files / "better").privacy
    done = run(
        "sample", files / "better", "--rows", 20, "--out", files / "w.parquet",
        "--where", "smoker=1",
    )  # fmt: skip
    assert done.code == 0
    assert pq.read_table(files / "w.parquet").column("smoker").to_pylist() == [1] * 20


def test_asking_a_release(run, files, release) -> None:
    assert release("--quiet", "--no-refit", "--player", "record", "--rounds", 30).code == 0
    out = files / "out"
    made = dq.load(out)

    done = run("answer", out, "smoker | !(sex=Male)", "--given", "age>=50", "--json")
    told = json.loads(done.out)
    assert (done.code, told["given"]) == (0, "age>=50")
    true = made.answer("smoker | sex=Female", given="age>=50")
    assert told["answers"][0]["answer"] == pytest.approx(float(true))
    assert told["answers"][0]["low"] is None

    done = run("table", out, "sex", "work class", "--where", "smoker", "--json")
    rows = json.loads(done.out)["rows"]
    assert rows == made.table("sex", "work class", where="smoker").to_pylist()
    lines = run("table", out, "sex", "work class").out.splitlines()
    assert lines[0].split() == ["sex", "work", "class", "share", "low", "high"]
    assert lines[4].split()[:2] == ["Female", "missing"]
    assert lines[4].endswith("unknown")
    lines = run("table", out, "grade", "--format", "csv").out.splitlines()
    assert lines[0] == "grade,share,low,high"
    assert [line.split(",")[0] for line in lines[1:]] == ["low", "mid", "high"]

    done = run("summary", out, "age", "--by", "sex", "--format", "json")
    rows = json.loads(done.out)["rows"]
    assert [row["figure"] for row in rows] == 2 * ["mean", "q25", "median", "q75"]
    assert rows[4]["value"] == pytest.approx(float(made.mean("age", where="sex=Male")))
    assert "errors are unknown" in run("summary", out, "age").err


def test_a_release_says_who_publishes_it(run, files, release) -> None:
    said = ("--title", "A survey", "--publisher", "The office", "--date", "today")
    assert release("--quiet", "--no-errors", *said, "--license", "CC BY 4.0").code == 0
    made = dq.load(files / "out")
    assert made.about.title == "A survey"
    assert len(made.about.date) == len("2026-11-16")
    page = (files / "out" / "report.html").read_text("utf-8")
    assert "<h1>A survey</h1>" in page
    assert "CC BY 4.0" in page
    wrong = release("--quiet", "--overwrite", "--date", "soon")
    assert wrong.code == 2
    assert "date = 'soon'; expected a day such as" in wrong.err


def test_asking_loads_only_what_an_answer_needs(run, files, release) -> None:
    """What makes the command quick; ε is computed again by whoever reads the whole release."""
    assert release("--quiet", "--no-errors").code == 0
    code = (
        "import sys; from dualquery.cli import main\n"
        f"sys.argv = ['dualquery', 'answer', {str(files / 'out')!r}, 'smoker | age>=50']\n"
        "try: main()\n"
        "except SystemExit as stop: assert not stop.code\n"
        "heavy = {'numba', 'scipy', 'pandas', 'polars', 'matplotlib', 'narwhals', 'pyarrow'}\n"
        "heavy |= {'pydantic', 'rich', 'numpy.ma'}\n"
        "heavy |= {f'dualquery.{name}' for name in ('release.published', 'release.frames', "
        "'game.plan', 'privacy.accountants', 'model.arranging', 'cli.release', 'oracles')}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (files / "out" / "model.npz").write_bytes(b"changed")
    assert "is missing or was changed" in run("answer", files / "out", "smoker").err


def test_one_bad_query_does_not_stop_the_others(run, files, release) -> None:
    assert release("--quiet", "--no-refit", "--player", "record", "--rounds", 3).code == 0
    done = run("answer", files / "out", "smoker", "sex=Femal", "age>=50")
    assert done.code == 1
    assert [line.split("  ")[-1] for line in done.out.splitlines()] == ["smoker=1", "age>=50"]
    assert "error: query 'sex=Femal': 'Femal' is not a value of 'sex' (Female, Male)" in done.err
    told = json.loads(run("answer", files / "out", "smoker", "sex=Femal", "--json").out)
    assert [one["query"] for one in told["wrong"]] == ["sex=Femal"]
    done = run("answer", files / "out", "sex=Femal")  # nothing is left to answer
    assert (done.code, done.out) == (2, "")
    done = run("answer", files / "out", "smoker", "--given", "sex=Femal")
    assert (done.code, done.out) == (2, "")


def test_bad_questions_are_refused_in_one_line(run, files, release) -> None:
    assert release("--quiet", "--no-refit", "--player", "record", "--rounds", 3).code == 0
    for asked, message in (
        (("table", "sexx"), "did you mean 'sex'?"),
        (("table", "sex", "sex"), "column 'sex' is named twice"),
        (("table", "sex", "--where", "smoker |"), "the query ends where an attribute was expected"),
        (("table", "sex", "--format", "xls"), "'xls' is not one of"),
        (("summary", "sex"), "'sex' holds text; a mean needs a column of numbers"),
        (("summary", "age", "--by", "agee"), "did you mean 'age'?"),
        (("summary", "age", "--where", "smoker & !smoker"), "no record can satisfy the condition"),
        (
            ("summary", "age", "--where", "!(smoker | !smoker)", "--by", "sex", "--json"),
            "no record can satisfy the condition",
        ),
    ):
        done = run(asked[0], files / "out", *asked[1:])
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert message in done.err


def test_every_command_speaks_json_and_american(run, files, release) -> None:
    options = ("--quiet", "--no-refit", "--player", "record", "--rounds", 3, "--seed", 1)
    done = release(*options, "--neighbors", "add-remove", "--rows", 1000)
    assert done.code == 0, done.err
    assert str(dq.load(files / "out").privacy.neighbours) == "add-remove"
    told = json.loads(
        run("sample", files / "out", "--rows", 5, "--out", files / "s.csv", "--json").out
    )
    assert (told["rows"], told["source"], told["stamp"]) == (5, "records", "seeded: NOT PRIVATE")
    told = json.loads(run("schema", files / "table.csv", "-o", files / "d.toml", "--json").out)
    assert told["attributes"] == 6
    application = importlib.import_module("dualquery.cli").application()
    for command in application.registered_commands:
        names = inspect.signature(command.callback).parameters
        # The app serves pages until it is closed; it has no figures to print.
        served = command.callback.__name__ == "app"
        assert served or "as_json" in names, f"{command.callback.__name__} has no --json"
        if "neighbours" in names:
            assert "--neighbors" in run(command.callback.__name__, "--help").out
    assert "--install-completion" in run("--help").out


def test_evaluate_says_what_a_reviewer_asks(run, files, release) -> None:
    assert release("--quiet", "--no-errors", "--rounds", 4).code == 0
    done = run("evaluate", files / "out", files / "table.csv", "--sdmetrics", files / "sd")
    assert done.code == 0
    for words in (
        "independent: spends the same ε and δ",
        "single columns: total variation",
        "pairs of columns",
        "K-marginal score of NIST's SDNist, computed by us",
        "TV of the tenth that depends most",
    ):
        assert words in " ".join(done.out.split())
    assert sorted(file.name for file in (files / "sd").iterdir()) == [
        "NOT_PRIVATE.txt", "metadata.json", "real.csv", "synthetic.csv",
    ]  # fmt: skip
    told = json.loads(run("evaluate", files / "out", files / "table.csv", "--json").out)
    assert told["coverage"] is None
    assert set(told["columns"]) == set(dq.load(files / "out").schema.names)
    assert 0 < told["k_marginal"] <= 1000
    assert told["relations"]["coverage"] is None
    assert 0.0 <= told["relations"]["rows"]["strongest"] <= 1.0
    inside = run("evaluate", files / "out", files / "table.csv", "--sdmetrics", files / "out" / "x")
    assert (inside.code, inside.err.count("\n")) == (2, 1)
    assert "inside the release" in inside.err
    assert not (files / "out" / "x").exists()
    wrong = run("evaluate", files / "out", files / "table.csv", "--target", "smokr")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert "did you mean 'smoker'?" in wrong.err


def test_evaluate_another_workload(run, files, release) -> None:
    release("--quiet")
    (files / "mine.txt").write_text("smoker\nsex=Male\n")
    done = run(
        "evaluate", files / "out", files / "table.csv", "--workload", files / "mine.txt", "--json"
    )
    assert json.loads(done.out)["queries"] == 2


def test_release_json_and_quiet(release) -> None:
    done = release("--quiet", "--json", "--seed", 1)
    figures = json.loads(done.out)
    assert done.err.startswith("warning: δ = 0.001 is not below 1/1000")
    assert done.err.count("\n") == 1
    assert figures["privacy"]["stamp"] == "seeded: NOT PRIVATE"
    assert figures["parameters"]["queries"] == 300


def test_weak_promises_are_said_once_before_the_first_draw(run, files, release) -> None:
    done = release("--epsilon", 1000, "--delta", 0.3, "--rounds", 2, "--samples", 5)
    lines = done.err.splitlines()
    told = [line for line in lines if line.startswith("warning: ")]
    assert [line.split(":")[1] for line in told] == [
        " ε = 1000 is above 10",
        " δ = 0.3 is not below 1/1000",
    ]
    assert lines.index(told[-1]) < next(i for i, line in enumerate(lines) if "playing" in line)
    assert "warning" not in done.out
    text = (files / "out" / "report.html").read_text()
    assert "Warning: δ = 0.3 is not below 1/1000" in text
    quiet = release("--overwrite", "--quiet", "--delta", 1e-4)
    assert quiet.err == ""
    plan = ("plan", "--schema", files / "schema.toml", "--rows", 1000, "--epsilon", 1)
    assert "δ = 0.001 is not below 1/1000" in run(*plan, "--delta", 1e-3).err
    assert run(*plan, "--delta", 1e-4).err == ""


def test_a_seeded_release_says_so(release) -> None:
    assert "NOT PRIVATE" in release("--seed", 1).out


def test_samples_of_a_seeded_release_are_stamped(run, files, release) -> None:
    release("--seed", 1, "--quiet")
    done = run("sample", files / "out", "--rows", 5, "--out", files / "rows.parquet")
    assert done.err == "seeded: NOT PRIVATE\n"
    stamp = pq.read_schema(files / "rows.parquet").metadata[b"dualquery.stamp"]
    assert stamp == b"seeded: NOT PRIVATE"
    done = run("sample", files / "out", "--rows", 5, "--out", files / "rows.csv.gz")
    assert done.err == "seeded: NOT PRIVATE (a csv file cannot carry this stamp)\n"
    done = run("answer", files / "out", "smoker", "--json")
    assert json.loads(done.out)["stamp"] == "seeded: NOT PRIVATE"


def test_a_stamped_sparse_sample_is_still_a_matrix(run, tmp_path) -> None:
    from scipy import sparse

    matrix = sparse.csr_matrix(np.random.default_rng(0).integers(0, 2, (200, 6)))
    sparse.save_npz(tmp_path / "table.npz", matrix)
    (tmp_path / "schema.toml").write_text('[binary_columns]\nprefix = "x"\ncount = 6\n')
    done = run(
        "release", tmp_path / "table.npz", "--schema", tmp_path / "schema.toml", "--epsilon", 1,
        "--delta", 1e-3, "--out", tmp_path / "out", "--queries", 50, "--seed", 1,
    )  # fmt: skip
    assert done.code == 0, done.err
    run("sample", tmp_path / "out", "--rows", 7, "--out", tmp_path / "rows.npz")
    assert sparse.load_npz(tmp_path / "rows.npz").shape == (7, 6)
    with np.load(tmp_path / "rows.npz") as stored:
        assert str(stored["stamp"]) == "seeded: NOT PRIVATE"
    assert open_table(tmp_path / "rows.npz").width == 6


def test_what_nobody_asked_about_is_unknown(run, files, release) -> None:
    (files / "mine.txt").write_text("smoker & sex=Male\nsmoker=0\n")
    done = release("--workload", files / "mine.txt", "--delta", 1e-4)
    lines = done.err.splitlines()
    told = "warning: no query of the workload names 4 of 6 attributes: 'age', 'work class', "
    assert lines[0].startswith(told)
    assert release("--overwrite", "--delta", 1e-4, "--quiet").err == ""
    release("--workload", files / "mine.txt", "--overwrite", "--quiet")
    refused = run("answer", files / "out", "age>=50")
    assert refused.code == 2
    assert refused.out == ""
    assert refused.err.count("\n") == 1
    assert "no query of this release names 'age'" in refused.err
    assert "--unknown default" in refused.err
    insisted = run("answer", files / "out", "age>=50", "--unknown", "default")
    assert insisted.out.startswith("0.000000  ")
    assert "unknown: no query of the release names 'age'" in insisted.err
    figures = json.loads(
        run("answer", files / "out", "age", "--unknown", "x", "--json").out or "{}"
    )
    assert figures == {}
    asked = ("answer", files / "out", "age>=50", "--unknown", "default", "--json")
    figures = json.loads(run(*asked).out)
    assert figures["unknown"] == ["age"]
    assert figures["answers"][0]["standard_error"] is None
    done = run("sample", files / "out", "--rows", 3, "--out", files / "rows.parquet")
    assert done.err.startswith("unknown: 4 columns hold what was declared as default")
    kept = pq.read_schema(files / "rows.parquet").metadata[b"dualquery.unknown"]
    assert json.loads(kept) == ["age", "work class", "rate", "grade"]


def test_a_workload_file(files, release) -> None:
    (files / "mine.txt").write_text("smoker & sex=Male\nage>=50\nparity(smoker, sex=Male)\n")
    assert release("--workload", files / "mine.txt").code == 0
    assert len(dq.load(files / "out").workload) == 3


@pytest.mark.parametrize("accountant", ["pure", "advanced", "per-round", "zcdp", "gaussian"])
def test_accountants(files, release, accountant: str) -> None:
    assert release("--accountant", accountant).code == 0
    privacy = dq.load(files / "out").privacy
    assert privacy.accountant == accountant
    assert privacy.epsilon <= 1.0


def test_add_remove(files, release) -> None:
    assert release("--neighbours", "add-remove", "--rows", 1100).code == 0
    assert dq.load(files / "out").privacy.rows == 1100


def test_a_ledger_counts_releases_and_refuses(run, files, release) -> None:
    book = files / "book.sqlite"
    assert run("ledger", book, "--create", "--epsilon", 1.2, "--delta", 1e-3).code == 0
    assert release("--ledger", book).code == 0
    spent = json.loads(run("ledger", book, "--json").out)
    assert len(spent["releases"]) == 1
    assert spent["releases"][0]["state"] == "spent"
    refused = release("--ledger", book, "--overwrite")
    assert refused.code == 2
    assert "total" in refused.err
    assert not (files / "out.partial").exists()
    assert (files / "out" / "release.json").exists()
    older = files / "older.sqlite"
    assert run("ledger", book, files / "out", "--verify").code == 0
    assert run("ledger", older, "--create", "--epsilon", 1.2, "--delta", 1e-3).code == 0
    wrong = run("ledger", older, files / "out", "--verify", "--json")
    assert wrong.code == 1
    assert "charged to another ledger" in json.loads(wrong.out)["releases"][0]["said"]


def test_a_release_of_whole_marginals_with_a_focus(run, files, release) -> None:
    asked = ("--marginals", "1,2", "--focus", "smoker", "--epsilon", 30)
    assert release(*asked, "--no-errors").code == 0
    made = dq.load(files / "out")
    assert set(np.diff(made.workload.start).tolist()) == {1, 2}
    pairs = [s for s in made.parameters.tables.steps if s.kind == "pair tables"]
    assert [(step.tables, step.level) for step in pairs] == [(5, 2), (10, 0)]
    plan = run("plan", "--schema", files / "schema.toml", "--rows", 1000, "--delta", 1e-3, *asked)
    for step in pairs:
        assert f"{step.tables} pair tables, {step.share:.1%} of the budget" in plan.out


def test_plan(run, files) -> None:
    common = ("plan", "--schema", files / "schema.toml", "--rows", 5000, "--epsilon", 1)
    done = run(*common, "--delta", 1e-6, "--json")
    figures = json.loads(done.out)
    assert set(figures) == {
        "rounds", "samples", "eta", "player", "seconds", "memory_bytes", "visible",
        "visible_relation", "epsilon",
    }  # fmt: skip
    assert set(figures["epsilon"]) == {"pure", "advanced", "per-round", "zcdp", "gaussian"}
    assert figures["epsilon"]["gaussian"] <= 1.0
    shown = run(*common, "--delta", 1e-6).out
    assert "rounds" in shown
    assert "pure does not cover it" in shown


def test_a_plan_says_what_will_be_visible(run, files) -> None:
    """What is measured, with its noise: 95 of 100 cells lie within it of their own count."""

    def visible(rows: int, *more: object) -> float | None:
        asked = ("plan", "--schema", files / "schema.toml", "--epsilon", 1, "--delta", 1e-6)
        done = run(*asked, "--rows", rows, "--marginals", "1,2", *more, "--json")
        found: float | None = json.loads(done.out)["visible"]
        return found

    few, many = visible(5000), visible(10_000)
    assert few is not None
    assert many is not None
    assert few > 1.3 * many
    assert visible(5000, "--player", "record") is None
    made = dq.DualQuery(epsilon=1.0, delta=1e-6, marginals=(1, 2), seed=1)
    table = files / "table.csv"
    release = made.fit(table, schema=dq.Schema.load(files / "schema.toml"))
    rows = release.privacy.rows
    found = visible(rows)
    noise = min(one.variance**0.5 for one in release.transcript.measurements)
    assert found == pytest.approx(1.96 * noise / rows, rel=0.05)


def test_a_delta_of_0_with_the_pure_accountant_is_taken_by_every_command(
    run, files, release
) -> None:
    # `release` took it; `plan` and `evaluate` refused it.
    pure = ("--delta", 0, "--accountant", "pure")
    common = ("plan", "--schema", files / "schema.toml", "--rows", 5000, "--epsilon", 1)
    figures = json.loads(run(*common, *pure, "--json").out)["epsilon"]
    assert figures["pure"] <= 1.0
    assert figures["gaussian"] is None
    assert release(*pure, "--quiet").code == 0
    done = run("evaluate", files / "out", files / "table.csv", "--json")
    assert set(json.loads(done.out)["baselines"]) == {"zeros", "uniform"}


def test_sampling_into_a_folder_that_is_not_there(run, files, release) -> None:
    release("--quiet")
    for name in ("rows.csv", "rows.parquet"):
        told = run("sample", files / "out", "--rows", 3, "--out", files / "nowhere" / name)
        assert told.code == 2
        assert told.err == f"error: no folder to write to: {str(files / 'nowhere')!r}\n"


def test_plan_of_several_releases(run, files) -> None:
    common = ("plan", "--releases", 12, "--epsilon", 1, "--delta", 1e-6)
    each = json.loads(run(*common, "--json").out)["each"]
    assert 0.262 < each < 0.263  # a tenth of δ is left for slack, as ledgers do
    assert "--epsilon 0.2627 --delta 1e-06: 12 releases" in run(*common).out
    table = ("--schema", files / "schema.toml", "--rows", 5000)
    stated = json.loads(run(*common, *table, "--json").out)["epsilon"]["gaussian"]
    assert each * 0.9 < stated <= each  # draws come in whole numbers
    missing = run("plan", "--schema", files / "schema.toml", "--epsilon", 1, "--delta", 1e-6)
    assert missing.code == 2
    assert "--rows is missing" in missing.err


@pytest.mark.parametrize(("error", "hidden"), [(0.2, True), (1e-5, False)])
def test_a_relation_that_its_interval_does_not_show_is_below_the_noise(
    run, schema, tmp_path, error: float, hidden: bool
) -> None:
    base = with_mixture(made_release(schema, 30), 3, rehearsed=True)
    scale = np.full_like(base.errors.scale, error)
    release = base.with_model(base.model, ErrorTable(scale))
    release.save(tmp_path / "out")
    asked = ("answer", tmp_path / "out", "smoker", "--given", "age>=50")
    everyone, told = float(release.answer("smoker")), release.answer("smoker", given="age>=50")
    assert (told.low <= everyone <= told.high) == hidden
    assert ("relation below the noise: smoker=1 is" in run(*asked).err) == hidden
    (one,) = json.loads(run(*asked, "--json").out)["answers"]
    assert one["below_noise"] == hidden
    (plain,) = json.loads(run("answer", tmp_path / "out", "smoker", "--json").out)["answers"]
    assert "below_noise" not in plain


def test_plan_says_which_relations_will_be_visible(run, files) -> None:
    asked = ("plan", "--schema", files / "schema.toml", "--delta", 1e-6)
    few, many = (
        json.loads(run(*asked, "--rows", rows, "--epsilon", 1, "--json").out)["visible_relation"]
        for rows in (5_000, 50_000)
    )
    assert 0.0 < many < few
    said = run(*asked, "--rows", 50_000, "--epsilon", 1).out
    assert f"relation correlations from {many:.2g} on stand out of the noise, typically" in said


def test_plan_of_the_papers_algorithm(run, files) -> None:
    common = (
        "plan", "--schema", files / "schema.toml", "--rows", 50_000, "--epsilon", 1,
        "--delta", 1e-6, "--queries", 50, "--player", "record",
    )  # fmt: skip
    wanted = json.loads(run(*common, "--alpha", 0.5, "--beta", 0.1, "--json").out)
    assert wanted["eta"] == 0.125
    theorem = wanted["theorem"]
    assert not theorem["fits"]
    assert theorem["smallest_rows"]["gaussian"] > 50_000
    promised = json.loads(run(*common, "--beta", 0.1, "--json").out)
    assert promised["theorem"]["alpha"] == theorem["promised_alpha"]
    assert promised["theorem"]["fits"]
    said = run(*common, "--alpha", 0.5).out
    assert "alpha    0.5, except with probability 0.05; here it costs more than ε = 1" in said
    refused = run(*common[:-2], "--alpha", 0.5)
    assert refused.code == 2
    assert "they need player = record" in refused.err


def test_schema_drafts_and_warns(run, files) -> None:
    done = run("schema", files / "table.csv", "-o", files / "draft.toml")
    assert done.code == 0
    assert "read the private table" in done.err
    text = (files / "draft.toml").read_text()
    assert text.startswith("# NOT PRIVATE")
    assert "\n# DRAFT made by reading the private table" in text
    key = "draft = true  # remove this line when you have reviewed the schema"
    assert key in text.splitlines()
    draft = dq.Schema.load(files / "draft.toml")
    assert draft["smoker"].is_binary
    assert draft["age"].is_numeric
    assert draft["work class"].missing
    release = (
        "release", files / "table.csv", "--schema", files / "draft.toml", "--epsilon", 1,
        "--delta", 1e-3, "--out", files / "out", "--queries", 100,
    )  # fmt: skip
    refused = run(*release)
    assert refused.code == 2
    assert refused.err.count("\n") == 1
    assert "draft.toml' says draft = true" in refused.err
    assert not (files / "out").exists()
    assert not (files / "out.partial").exists()
    plan = ("plan", "--schema", files / "draft.toml", "--rows", 1000, "--epsilon", 1)
    assert run(*plan, "--delta", 1e-6).code == 0
    (files / "draft.toml").write_text(text.replace(key, ""))
    assert run(*release).code == 0


def test_import_and_help_are_quick() -> None:
    script = (
        "import sys, dualquery; "
        "heavy = {'numba', 'scipy', 'pyarrow', 'pandas', 'narwhals'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
    best = min(_seconds(["--help"]) for _ in range(3))
    assert best < 1.0, f"dualquery --help took {best:.2f} s"


def _seconds(arguments: list[str]) -> float:
    """Time on the processor, so that a busy machine does not fail the test."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert in_a_process(*arguments).returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_version_and_help_of_every_command(run) -> None:
    assert run("--version").out.strip() == f"dualquery {dq.__version__}"
    for command in (
        "demo", "schema", "plan", "release", "answer", "sample", "evaluate", "privacy", "ledger",
    ):  # fmt: skip
        told = run(command, "--help")
        assert told.code == 0
        assert "<bool>" not in told.out  # a flag takes no value
        assert ("[about]" in told.out) == (command == "release")
