"""Experiments: resumed run by run, drawn, summed up; and all six in quick form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dualquery.base.errors import ParameterError
from dualquery.baselines.product import Uniform, Zeros
from dualquery.domain.schema import Schema
from dualquery.evaluation.figures import Distance
from dualquery.paper.experiments import NAMES, page
from dualquery.paper.experiments.attributes import MOST, WIDTHS, samples_for
from dualquery.paper.experiments.bench import Bench, NamedTable, biased, named_table, narrow
from dualquery.paper.experiments.experiment import (
    Claim,
    Experiment,
    Options,
    Panel,
    Task,
    load,
    perform,
    tasks_for,
)
from dualquery.paper.experiments.series import Game, Spend, allowed_rounds, run
from dualquery.paper.experiments.store import COLUMNS, FinishedRun, Store, as_text, mean, where
from dualquery.paper.experiments.summary import claims_table, gains_table
from dualquery.paper.field import page as field_page
from dualquery.rows.counting import count_packed
from tests.conftest import DATA


def quiet(stage: str, done: int, total: int) -> None: ...


@pytest.fixture(scope="module")
def bench(rows: pa.Table, schema: Schema) -> Bench:
    return Bench.of(NamedTable("survey", rows, schema), 200)


def toy(bench: Bench, made: list[str]) -> Experiment:
    """An experiment of three series on a small table, which notes every bench it asks for."""

    def counted() -> Bench:
        made.append("bench")
        return bench

    def tasks(options: Options):
        for epsilon in options.epsilons_or((1.0, 2.0), (1.0,)):
            spends = {
                "": Spend(epsilon, 1e-3, "gaussian"),
                "paper": Spend(epsilon, 1e-3, "advanced"),
            }
            yield from tasks_for(
                ("paper", "valid", "zeros", "independent"),
                spends,
                {"": Game(2.0, 20)},
                options.runs_or(2),
                bench.size,
                counted,
            )

    def claims(rows: Sequence[FinishedRun]) -> list[Claim]:
        value = mean(where(rows, series="zeros"), "max_error")
        return [Claim("zeros", "1", f"{value:.2f}", None, "a toy")]

    panels = lambda rows: [Panel("max", "epsilon", "max_error", {})]  # noqa: E731
    return Experiment("toy", "A toy", "About nothing.", tasks, panels, claims)


def test_runs_are_kept_and_not_made_twice(bench: Bench, tmp_path: Path) -> None:
    made: list[str] = []
    experiment = toy(bench, made)
    rows = perform(experiment, Options(), tmp_path, quiet)
    assert len(rows) == len(made) == 2 * (2 + 2 + 1 + 2)
    before = (tmp_path / "toy.csv").read_bytes()
    again = perform(experiment, Options(), tmp_path, quiet)
    assert len(made) == len(rows)
    assert (tmp_path / "toy.csv").read_bytes() == before
    assert [row.cells for row in again] == [row.cells for row in rows]
    perform(experiment, Options(runs=3), tmp_path, quiet)
    assert len(made) == len(rows) + 2 * 3  # every series that reads data has one more run


def test_a_torn_line_is_made_again(bench: Bench, tmp_path: Path) -> None:
    made: list[str] = []
    experiment = toy(bench, made)
    rows = perform(experiment, Options(quick=True), tmp_path, quiet)
    path = tmp_path / "toy-quick.csv"
    whole = path.read_text()
    path.write_text(whole[:-20])
    assert len(Store(path).runs) == len(rows) - 1
    made.clear()
    after = perform(experiment, Options(quick=True), tmp_path, quiet)
    assert len(made) == 1
    errors = [[row[name] for name in ("series", "max_error")] for row in after]
    assert sorted(errors) == sorted([row["series"], row["max_error"]] for row in rows)


HEADER = ",".join(COLUMNS) + "\n"


@pytest.mark.parametrize("left", ["", HEADER[:20], HEADER[:-1], HEADER, HEADER + "adult,30162,2"])
def test_a_file_torn_anywhere_is_gone_on_with(bench: Bench, tmp_path: Path, left: str) -> None:
    path = tmp_path / "toy-quick.csv"
    path.write_text(left)
    rows = perform(toy(bench, []), Options(quick=True), tmp_path, quiet)
    assert path.read_text().startswith(HEADER)
    assert [row.cells for row in Store(path).runs] == [row.cells for row in rows]
    assert len(rows) == 4


def test_a_row_that_is_there_twice_counts_once(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "toy-quick.csv"
    rows = perform(toy(bench, []), Options(quick=True), tmp_path, quiet)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines, lines[-1]]))
    assert len(Store(path).runs) == len(rows)


def test_a_file_is_for_one_process_at_a_time(bench: Bench, tmp_path: Path) -> None:
    experiment = toy(bench, [])
    with (
        Store(tmp_path / "toy.csv").writing(),
        pytest.raises(ParameterError, match="another process is writing"),
    ):
        perform(experiment, Options(), tmp_path, quiet)
    assert perform(experiment, Options(), tmp_path, quiet)


def test_other_files_are_not_overwritten(tmp_path: Path) -> None:
    for text in ("a,b\n1,2\n", "a,b"):
        (tmp_path / "toy.csv").write_text(text)
        with pytest.raises(ParameterError, match="move it away"):
            Store(tmp_path / "toy.csv")
        assert (tmp_path / "toy.csv").read_text() == text


def test_seeded_series_repeat_and_differ_by_seed(bench: Bench) -> None:
    spend, game = Spend(1.0, 1e-3, "gaussian"), Game(2.0, 20)
    for name in ("paper", "valid", "independent", "laplace", "gaussian", "mwem"):
        first, same, other = (
            run(name, bench, spend, game, seed, quiet).answers for seed in (1, 1, 2)
        )
        np.testing.assert_array_equal(first, same)
        assert not np.array_equal(first, other), name


@pytest.mark.parametrize("name", ["refit", "model", "package"])
def test_the_package_s_own_players(name: str, bench: Bench) -> None:
    outcome = run(name, bench, Spend(1.0, 1e-3, "gaussian"), Game(2.0, 20), 0, quiet)
    assert outcome.answers.shape == (200,)
    zeros = Distance.of(Zeros().answers(bench.workload), bench.truth)
    assert outcome.cells(bench.truth)["average_error"] < zeros.average_error


def test_the_series_model_is_a_game_of_draws(bench: Bench) -> None:
    """It measures no tables; with them it would be the series `package`."""
    spend, game = Spend(1.0, 1e-3, "gaussian"), Game(2.0, 20)
    model, package = (run(name, bench, spend, game, 0, quiet) for name in ("model", "package"))
    assert isinstance(model.rounds, int)
    assert model.rounds >= 8
    assert not np.allclose(model.answers, package.answers)


def test_rounds_are_those_of_the_accountant() -> None:
    game = Game(2.0, 1000)
    assert allowed_rounds(Spend(1.0, 1e-3, "advanced"), 30_162, game) == 16
    assert allowed_rounds(Spend(1.0, 1e-3, "gaussian"), 30_162, game) == 47
    assert allowed_rounds(Spend(1.0, 1e-3, "advanced"), 494_021, game) == 99
    assert allowed_rounds(Spend(1.0, 1e-3, "advanced"), 1, Game(2.0, 1000, 7)) == 7


def test_samples_grow_from_200_to_50000() -> None:
    assert samples_for(WIDTHS[0]) == 200
    assert samples_for(WIDTHS[-1]) == MOST
    assert sorted(map(samples_for, WIDTHS)) == [samples_for(width) for width in WIDTHS]


def test_figures_and_pages(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = toy(bench, [])
    rows = perform(experiment, Options(), tmp_path, quiet)
    svg = page.write_figures(experiment, rows, tmp_path, experiment.name)
    first = svg.read_bytes()
    assert b"<text" in first
    page.write_figures(experiment, rows, tmp_path, experiment.name)
    assert svg.read_bytes() == first
    summary = page.write_summary(experiment, rows, tmp_path, False, experiment.name).read_text()
    assert "not comparable: a toy |" in summary
    page.record_machine(tmp_path, "toy")
    monkeypatch.setattr(page, "NAMES", ("toy",))
    monkeypatch.setattr(page, "load", lambda name: experiment)
    first_page, tables = (path.read_text() for path in page.write_page(tmp_path))
    assert "### A toy" in first_page
    assert "## A toy" in tables
    assert "- cores: " in tables
    assert "| survey |" not in first_page
    assert "| survey |" in tables
    assert str(tmp_path) not in first_page + tables


def test_a_bar_in_a_claim_is_no_new_column() -> None:
    table = claims_table([Claim("grows as √|Q|", "yes", "×7", True)])
    assert table.splitlines()[-1] == r"| grows as √\|Q\| | yes | ×7 | agrees |"


def test_the_package_of_today_is_run_if_asked_for() -> None:
    assert not [task for task in load("attributes").tasks(Options()) if task.series == "package"]
    chosen = list(load("attributes").tasks(Options(series=("package",))))
    assert [task.size.bits for task in chosen] == list(WIDTHS)
    assert {task.series for task in chosen} == {"package"}
    assert not list(load("accuracy").tasks(Options(series=("package",), epsilon=(2.0,))))


def test_gains_are_ratios_of_means_within_an_experiment() -> None:
    def row(series: str, most: float, average: float, epsilon: str = "1") -> FinishedRun:
        cells = dict.fromkeys(COLUMNS, "") | {"dataset": "toy", "bits": "9", "queries": "1000"}
        errors = {"max_error": str(most), "average_error": str(average)}
        return FinishedRun(cells | {"series": series, "epsilon": epsilon} | errors)

    rows = [row("paper", 0.3, 0.02), row("paper", 0.5, 0.04), row("model", 0.04, 0.001)]
    table = gains_table({"one": [*rows, row("model", 0.9, 0.9, "2")], "two": [rows[0]]})
    assert table.splitlines()[2:] == [
        "| toy | 9 | 1,000 | 0.4 / 0.03 |  |  |  | 0.04 / 0.001 |  | 10.0 / 30.0 | 1 |"
    ]
    today = gains_table(
        {"one": [*rows, row("package", 0.02, 0.0005), row("package", 0.02, 0.0005)]}
    )
    assert today.splitlines()[2].endswith("| 0.04 / 0.001 | 0.02 / 0.0005 | 20.0 / 60.0 | 2 |")


def test_the_committed_page_is_that_of_the_committed_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = Path(__file__).parents[3] / "docs" / "results"
    for path in (*stored.glob("*.csv"), stored / page.MACHINE):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(page, "write_figures", lambda *_: None)
    monkeypatch.setattr(field_page, "write_figures", lambda *_: [])
    made = [*page.write_page(tmp_path), field_page.write_page(tmp_path)]
    for path in made:
        assert path is not None
        kept = (stored / path.name).read_text(encoding="utf-8")
        assert path.read_text(encoding="utf-8") == kept
    assert [path.name for path in made if path] == ["README.md", "tables.md", "field.md"]


def test_every_run_of_every_experiment_is_committed() -> None:
    stored = Path(__file__).parents[3] / "docs" / "results"
    for name in NAMES:
        store = Store(stored / f"{name}.csv")
        assert all(task.key in store for task in load(name).tasks(Options())), name


def test_an_empty_folder_has_no_page(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="no experiment is stored"):
        page.write_page(tmp_path)


def test_every_experiment_has_tasks_without_reading_data() -> None:
    for name in NAMES:
        for quick in (True, False):
            tasks: list[Task] = list(load(name).tasks(Options(quick=quick)))
            assert tasks
            for task in tasks:
                assert set(task.key) <= set(COLUMNS)
    with pytest.raises(ParameterError, match="expected one of accuracy"):
        load("figure-1")


def rows_of(
    experiment: str, max_error: float, average_error: float, seconds: float = 1.0
) -> list[FinishedRun]:
    """The runs of a whole experiment. All have the same errors, except those of zeros."""
    made = []
    for task in load(experiment).tasks(Options(runs=1)):
        free = task.series in ("zeros", "uniform")
        cells = {
            **task.key,
            "rounds": "" if free else task.game.rounds or 16,
            "samples": task.game.samples,
            "max_error": 1.0 if free else max_error,
            "average_error": 0.2 if free else average_error,
            "seconds": seconds * float(str(task.key["queries"])),
        }
        made.append(FinishedRun({name: as_text(cells.get(name, "")) for name in COLUMNS}))
    return made


def verdicts(experiment: str, rows: list[FinishedRun]) -> dict[str, str]:
    return {claim.statement: claim.verdict for claim in load(experiment).claims(rows)}


@pytest.mark.parametrize(
    ("experiment", "statement", "good", "bad"),
    [
        ("accuracy", "adult: better than the zeros data set in max error", 0.3, 1.0),
        ("queries", "average error of the algorithm on KDD99", 0.005, 0.02),
        ("attributes", "average error of the algorithm on biased data", 0.08, 0.03),
        ("attributes", "better than zeros and uniform on biased data", 0.1, 0.3),
    ],
)
def test_claims_can_differ(experiment: str, statement: str, good: float, bad: float) -> None:
    assert verdicts(experiment, rows_of(experiment, good, good))[statement] == "agrees"
    assert verdicts(experiment, rows_of(experiment, bad, bad))[statement] == "differs"


@pytest.mark.parametrize("name", NAMES)
def test_claims_and_panels_stand_on_what_is_there_so_far(name: str) -> None:
    rows = rows_of(name, 0.1, 0.01)
    for stop in range(len(rows) + 1):
        claims = load(name).claims(rows[:stop])
        assert all(isinstance(claim, Claim) for claim in claims)
        load(name).panels(rows[:stop])


def test_ties_are_no_improvement() -> None:
    told = verdicts("queries", rows_of("queries", 0.1, 0.005))
    assert told["improved error compared to simpler perturbation, at 2,000,000 queries"] == (
        "differs"
    )
    assert told["time grows almost linearly with the number of queries"] == "agrees"
    assert told["the Laplace mechanism's error grows as √|Q|"] == "differs"
    ahead = verdicts("mwem", rows_of("mwem", 0.1, 0.01))
    assert ahead["MWEM (as used) is ahead at 17 attributes: max error"] == "differs"


def test_other_workloads_in_the_file_change_no_claim() -> None:
    for name in ("accuracy", "attributes", "mwem", "accountants"):
        rows = rows_of(name, 0.1, 0.08)
        further = [FinishedRun({**row.cells, "queries": "10", "max_error": "0.7"}) for row in rows]
        assert load(name).claims(rows + further) == load(name).claims(rows)
        for panel in load(name).panels(rows + further):
            assert all(row["queries"] != "10" for row in where(rows + further, **panel.select))


def test_fixed_rounds_are_stored_with_what_they_cost() -> None:
    stored = {
        task.series: (task.spend.epsilon, task.game.rounds)
        for task in load("queries").tasks(Options(runs=1))
    }
    assert stored["paper"] == (1.86, 170)
    assert stored["valid"] == stored["refit"] == (0.27, 170)
    assert stored["paper-gaussian"] == (1.0, None)
    asked = {
        task.series: (task.spend.epsilon, task.game.rounds)
        for task in load("queries").tasks(Options(runs=1, epsilon=(3.0,)))
    }
    assert set(asked.values()) == {(3.0, None)}


def test_baselines_on_biased_data() -> None:
    made = Bench.of(biased(20_000, 1_000), 20_000)
    zeros = Distance.of(Zeros().answers(made.workload), made.truth)
    uniform = Distance.of(Uniform().answers(made.workload), made.truth)
    assert abs(zeros.average_error - 7 / 32) <= 0.01
    assert abs(uniform.average_error - 0.110) <= 0.005
    assert zeros.max_error > 0.98
    assert uniform.max_error > 0.75  # tends to 7/8 as the queries become many


def test_a_narrow_view_counts_the_same_bits(rows: pa.Table, schema: Schema) -> None:
    from dualquery.paper.datasets.encoded import EncodedTable
    from dualquery.rows.opening import open_table
    from dualquery.rows.packed import PackedRows

    wide = NamedTable("survey", EncodedTable(rows, schema), schema)
    bits = (("sex", "Male"), ("grade", "low"), ("grade", "high"), ("work class", "Private"))
    for kind in ("marginals", "parities"):
        made = narrow(wide, bits, 60, kind)
        assert made.is_binary
        assert len(made.workload) == 60
        assert made.workload.is_parity.all() == (kind == "parities")
        table = open_table(made.data.table)
        packed = PackedRows.pack(table, made.workload.schema, made.workload.literals)
        np.testing.assert_array_equal(
            count_packed(packed, made.workload).counts, made.answers.counts
        )
        for query in made.workload:
            owners = {made.workload.schema.names[x.attribute].split("=")[0] for x in query.literals}
            assert len(owners) == 3


def test_unknown_data_sets_are_refused() -> None:
    with pytest.raises(ParameterError, match="expected one of adult, kdd99, ratings, netflix"):
        named_table("iris")


# With the paper's data


@pytest.mark.parametrize(("name", "average"), [("adult", 0.094), ("kdd99", 0.115)])
def test_zeros_on_the_paper_s_data(name: str, average: float) -> None:
    if not (DATA / f"{name}.csv.gz").is_file():
        pytest.skip(f"needs {name}.csv.gz (set DUALQUERY_DATA to its folder)")
    made = Bench.of(named_table(name, DATA), 200_000)
    errors = Distance.of(Zeros().answers(made.workload), made.truth)
    assert abs(errors.average_error - average) <= 0.003
    assert errors.max_error > 0.999


@pytest.mark.slow
def test_the_paper_s_algorithm_on_adult(adult_file: Path) -> None:
    made = Bench.of(named_table("adult", adult_file), 500_000)
    runs = {
        accountant: [
            Distance.of(
                run(
                    "game", made, Spend(1.0, 1e-3, accountant), Game(2.0, 1000), seed, quiet
                ).answers,
                made.truth,
            )
            for seed in range(3)
        ]
        for accountant in ("advanced", "gaussian")
    }
    tops = {name: np.mean([e.max_error for e in found]) for name, found in runs.items()}
    means = {name: np.mean([e.average_error for e in found]) for name, found in runs.items()}
    assert abs(tops["advanced"] - 0.29) <= 0.04
    assert abs(means["advanced"] - 0.028) <= 0.003
    assert tops["gaussian"] <= 0.135
    assert means["gaussian"] <= 0.0135


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_quick(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = {"queries": ["kdd99"], "attributes": []}.get(name, ["adult"])
    for dataset in needed:
        if not (DATA / f"{dataset}.csv.gz").is_file():
            pytest.skip(f"needs {dataset}.csv.gz (set DUALQUERY_DATA to its folder)")
    monkeypatch.setenv("DUALQUERY_DATA", str(DATA))
    experiment = load(name)
    rows = perform(experiment, Options(quick=True), tmp_path, quiet)
    assert all(0.0 <= row.number("average_error") <= row.number("max_error") <= 1.0 for row in rows)
    assert page.write_figures(experiment, rows, tmp_path, experiment.name).stat().st_size > 1000
    assert (
        "| claim |"
        in page.write_summary(experiment, rows, tmp_path, True, experiment.name).read_text()
    )
