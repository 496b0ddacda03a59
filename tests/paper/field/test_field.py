"""The comparison of methods: its runs, what follows from them, and its page."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.baselines.registry import METHODS
from dualquery.domain.schema import Schema
from dualquery.paper.experiments.experiment import Options
from dualquery.paper.experiments.store import FinishedRun, Store, as_text
from dualquery.paper.field import figures, methods, page, runs, tables, verdicts
from dualquery.paper.field.alone import Limits
from dualquery.paper.field.beforehand import (
    CLEARLY,
    ended_before,
    over_the_limit,
    predicted,
    untried,
)
from dualquery.paper.field.methods import OUR_ROWS, OURS, Promise, answered
from dualquery.paper.field.one_run import performed
from dualquery.paper.field.reasons import reason
from dualquery.paper.field.runs import LAYOUT, Run, field_runs, make, runs_of
from dualquery.paper.field.settings import Counts, Setting, asked_of, chosen_sets, shares_of
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.matching import mean_answers

SMALL = Setting("biased", 400, 5, "marginals", 60)
PROMISE = Promise(1.0, 1e-6)


@pytest.fixture(scope="module")
def counts() -> Counts:
    return Counts.of(SMALL)


def quiet(stage: str, done: int, total: int) -> None: ...


def row(method: str, columns: int = 15, dataset: str = "biased", **cells: object) -> FinishedRun:
    setting = Setting(dataset, 400, columns, "marginals", 60)
    promise = Promise(float(str(cells.pop("epsilon", 1.0))), 1e-6)
    made: dict[str, object] = {**Run(setting, method, promise, 0).key, **cells}
    return FinishedRun({name: as_text(made.get(name, "")) for name in LAYOUT.columns})


def errors(average: float, most: float) -> dict[str, object]:
    effort = {"processor_seconds": 2.0, "peak_bytes": 1 << 30, "kept_delta": 1e-6}
    return {"average_error": average, "max_error": most, **effort}


def test_every_baseline_that_promises_something_is_compared() -> None:
    named = methods.names()
    assert set(METHODS) - set(named) == {"zeros", "uniform", *methods.NOT_YET}
    assert named[0] == OURS
    assert not set(named) & set(methods.PEERS)


@pytest.mark.parametrize("method", ["paper", "independent", "gaussian", "mwem-improved"])
def test_a_method_answers_with_its_promise(method: str, counts: Counts) -> None:
    found = answered(method, SMALL, counts, PROMISE, 0, None)
    assert found.answers.shape == counts.answers.counts.shape
    truth = counts.answers.counts / counts.answers.rows
    assert np.abs(found.answers - truth).mean() < 0.3
    assert found.delta == (0.0 if method == "mwem-improved" else 1e-6)
    proved = method in ("independent", "gaussian")
    assert found.neighbours == ("add-remove" if proved else "replace-one")
    again = answered(method, SMALL, counts, PROMISE, 0, None)
    assert np.array_equal(found.answers, again.answers)


def test_a_run_reads_counts_from_its_file(counts: Counts, tmp_path: Path) -> None:
    path = tmp_path / "small.counts"
    request = {"setting": SMALL.cells(), "counts": str(path), "data": ""}
    assert performed(dict(request))["queries"] == 60
    assert np.array_equal(Counts.load(path).answers.counts, counts.answers.counts)
    request |= {"method": "gaussian", "epsilon": 1.0, "delta": 1e-6, "neighbours": "add-remove"}
    told = performed({**request, "seed": 0})
    assert 0.0 < float(str(told["average_error"])) <= float(str(told["max_error"])) <= 1.0
    assert set(told) <= set(LAYOUT.measured)
    assert None not in told.values()
    wide = Setting("biased", 400, 64, "marginals", 60)
    Counts.of(wide).save(path)
    refused = performed({**request, "setting": wide.cells(), "method": "mwem", "seed": 0})
    assert str(refused["end"]).startswith("refused: a distribution over all possible records")
    assert "," not in str(refused["end"])


def test_runs_are_kept_and_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def performer(run: Run, path: Path) -> dict[str, object]:
        made.append(run.title)
        dead = run.method == "fem" and run.setting.columns > 15
        return {"end": "died: over 6 GiB"} if dead else {**errors(0.01, 0.1), "end": ""}

    monkeypatch.setattr(runs, "counted", lambda setting, options, folder: folder / "counts")
    planned = list(field_runs(Options(dataset="biased"), ["fem", "gaussian"]))
    store = Store(tmp_path / "field.csv", LAYOUT)
    make(planned[:5], store, performer, Options(), tmp_path, quiet)
    make(planned, Store(store.path, LAYOUT), performer, Options(), tmp_path, quiet)
    ends = {(run["columns"], run["method"], run["epsilon"]): run["end"] for run in store.runs}
    assert len(made) == len(set(made))
    stored = Store(store.path, LAYOUT).runs
    assert len(stored) == len(planned)
    ends = {(run["columns"], run["method"], run["epsilon"]): run["end"] for run in stored}
    assert ends["32", "fem", "1"] == "died: over 6 GiB"
    assert ends["512000", "fem", "1"] == "not run: died at 32 columns"
    assert ends["100", "fem", "10"] == "not run: died at 32 columns"
    assert ends["512000", "gaussian", "1"] == ""


def test_a_refusal_is_asked_again_at_another_budget() -> None:
    refused = [row("paper", 100, end="refused: epsilon is too small", epsilon=0.1)]
    wider = Run(Setting("biased", 400, 256, "marginals", 60), "paper", Promise(0.1, 1e-6), 0).key
    assert ended_before(wider, refused) == "not run: refused at 100 columns"
    richer = Run(Setting("biased", 400, 100, "marginals", 60), "paper", PROMISE, 0).key
    assert ended_before(richer, refused) == ""
    died = [row("paper", 100, end="died: over 6 GiB", epsilon=0.1)]
    assert ended_before(richer, died) == "not run: died at ε = 0.1"
    assert ended_before(richer, [row("fem", 15, end="died: over 6 GiB")]) == ""


def grown(*seconds: float, widths: tuple[int, ...] = (10, 20, 40)) -> list[FinishedRun]:
    """Runs of a peer that took so long at these widths."""
    pairs = zip(widths, seconds, strict=False)
    return [row("peer mst", width, processor_seconds=value) for width, value in pairs]


def asked_for(columns: int, method: str = "peer mst") -> dict[str, object]:
    return Run(Setting("biased", 400, columns, "marginals", 60), method, PROMISE, 0).key


def test_time_is_predicted_from_the_two_widest_runs() -> None:
    assert predicted(asked_for(80), grown(7.0, 10.0, 40.0)) == pytest.approx(160.0)
    assert predicted(asked_for(40), grown(5.0, 10.0, 40.0)) == pytest.approx(20.0)  # narrower ones
    assert predicted(asked_for(80), grown(9.0, 8.0)) == pytest.approx(8.0)  # time that falls
    again = [*grown(10.0, 20.0), row("peer mst", 20, processor_seconds=10.0)]
    assert predicted(asked_for(80), again) == pytest.approx(10.0)  # the fastest of equals
    other = [*grown(10.0, 20.0), row("peer mst", 20, epsilon=3.0, processor_seconds=10.0)]
    assert predicted(asked_for(80), other) == pytest.approx(80.0)  # another ε does not count
    assert predicted(asked_for(80), grown(10.0)) is None
    assert predicted(asked_for(80, "peer aim"), grown(10.0, 20.0)) is None
    ended = [*grown(10.0), row("peer mst", 20, end="died: over 6 GiB")]
    assert predicted(asked_for(80), ended) is None


def test_a_run_is_left_out_only_if_its_prediction_is_well_over_the_limit() -> None:
    limits = Limits(seconds=100)
    times = grown(50.0, 60.0)  # a fifth more each time that the columns double
    assert 100.0 < 60.0 * 1.2**3 < 100.0 * CLEARLY < 60.0 * 1.2**5
    assert over_the_limit(asked_for(160), times, limits) == ""
    words = "not run: predicted 149 processor seconds; over the limit of 100"
    assert over_the_limit(asked_for(640), times, limits) == words
    assert over_the_limit(asked_for(80), grown(50.0), limits) == ""
    assert untried(asked_for(99_000), times) == over_the_limit(asked_for(99_000), times)
    died = [*times, row("peer mst", 30, end="died: over 6 GiB")]
    assert untried(asked_for(99_000), died) == "not run: died at 30 columns"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("field", {"dataset": "netflix"}, "dataset of experiment 'field' = 'netflix'"),
        ("published", {"dataset": "kdd99"}, "expected one of adult"),
        ("field", {"series": ("magic",)}, "has no series 'magic'"),
        ("published", {"series": ("paper",)}, "has no series 'paper'"),
    ],
)
def test_bad_options_are_one_line(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        runs_of(name, Options(**options))  # type: ignore[arg-type]


def test_published_settings_have_their_own_promises() -> None:
    planned = runs_of("published", Options(series=(OURS,)))
    kinds = {run.setting.kind: run.promise for run in planned if run.promise.epsilon == 1.0}
    assert str(kinds["some-5"].neighbours) == "replace-one"
    assert kinds["some-3"].delta == pytest.approx(1.0 / 30_162**2)
    assert kinds["all-3"].delta == 1e-9
    triples = [run.promise.epsilon for run in planned if run.setting.kind == "all-3"]
    assert triples == [0.1, 1.0, 10.0]
    assert [run.promise.epsilon for run in planned if run.setting.kind == "some-3"] == [
        0.1, 0.15, 0.2, 0.25, 0.5, 1.0,
    ]  # fmt: skip


def test_whole_marginals_and_their_distance(schema: Schema) -> None:
    workload, starts = asked_of(schema, Setting("adult", 40, len(schema), "some-3"))
    assert starts is not None
    sets = chosen_sets(schema, "some-3", 40)
    assert len(starts) == len(sets) + 1
    sizes = schema.sizes[sets].prod(axis=1)
    assert sizes.max() <= 40
    assert sizes.sum() == len(workload)
    assert len(chosen_sets(schema, "all-3", 40)) == 20
    truth = Counts.of(SMALL)
    cut = Counts(truth.workload, truth.answers, np.array([0, 20, 60]), 0.0)
    shares = truth.answers.counts / truth.answers.rows
    assert cut.l1(shares + 0.01) == pytest.approx((20 * 0.01 + 40 * 0.01) / 2)
    assert truth.l1(shares) is None


def test_synthetic_rows_are_counted_like_a_table(schema: Schema) -> None:
    generator = np.random.default_rng(0)
    codes = np.column_stack([generator.integers(0, n, 70) for n in schema.sizes]).astype(np.int32)
    asked = random_marginals(schema, 3, 50)
    assert np.allclose(shares_of(codes, asked), mean_answers(asked, codes))


FOUND = [
    row(OURS, **errors(0.001, 0.02)),
    row(OUR_ROWS, **errors(0.002, 0.03)),
    row("fem", **errors(0.004, 0.01)),
    row("mwem", **{**errors(0.003, 0.05), "kept_delta": 0.0}),
    row("peer mst", **errors(0.0015, 0.06)),
    row(OURS, 32, **errors(0.001, 0.02)),
    row("fem", 32, **errors(0.001, 0.05)),
    row("mwem", 32, end="refused: too large"),
    row("peer mst", 32, end="died: over 6 GiB"),
    row(OURS, epsilon=3.0, **errors(0.0004, 0.009)),
    row("fem", epsilon=3.0, **errors(0.003, 0.01)),
    row(OURS, 15, "adult", **errors(0.0004, 0.009)),
    row("fem", 15, "adult", **errors(0.003, 0.01)),
]


def test_a_race_is_won_against_the_best_and_not_by_a_tie() -> None:
    found = {(race.place.columns, race.place.dataset, race.place.epsilon, race.error): race
             for race in verdicts.races(FOUND)}  # fmt: skip
    first = found[15, "biased", 1.0, "average_error"]
    assert first.ahead
    assert first.best == "peer mst"
    most = found[15, "biased", 1.0, "max_error"]
    assert not most.ahead
    assert (most.best, most.theirs) == ("fem", 0.01)
    assert not found[32, "biased", 1.0, "average_error"].ahead  # a tie
    rows = verdicts.peers_races(FOUND)
    assert [race.ahead for race in rows] == [False, True]


@pytest.mark.parametrize(("ours", "theirs"), [(0.0104, 0.01), (0.01, 0.0104)])
def test_errors_within_chance_are_even(ours: float, theirs: float) -> None:
    race = verdicts.Race(verdicts.Place("biased", 15, 1.0), "max_error", ours, "fem", theirs, 1)
    assert race.even
    assert not race.ahead
    assert not replace(race, theirs=1.06 * max(ours, theirs)).even


@pytest.mark.parametrize(
    ("best", "average", "words"),
    [
        ("matrix mechanism", 0.0009, "signed sums of counts"),
        ("gaussian", 0.005, "its average error is 5.0 times ours"),
        ("independent", 0.0011, "nearly independent"),
        ("independent", 0.002, "On average this package is 2.0 times nearer"),
        ("mwem on the model", 0.004, "On average this package is 4.0 times nearer"),
        ("fem", 0.003, "In average error this package is 3.0 times nearer"),
        ("fem", 0.0009, ""),
    ],
)
def test_reasons_follow_from_the_runs(best: str, average: float, words: str) -> None:
    found = [row(OURS, **errors(0.001, 0.02)), row(best, **errors(average, 0.01))]
    race = next(race for race in verdicts.races(found) if race.error == "max_error")
    text = reason(race, found)
    assert words in text
    assert bool(words) == bool(text)


def test_an_error_that_grows_with_the_budget_is_not_blamed_on_the_budget() -> None:
    found = [
        row(OURS, epsilon=3.0, **errors(0.001, 0.02)),
        row(OURS, epsilon=10.0, **errors(0.0009, 0.04)),
        row("independent", epsilon=10.0, **errors(0.0008, 0.03)),
    ]
    average, most = verdicts.races(found)
    assert "errs less at ε = 3 (0.02). So not the budget" in reason(most, found)
    assert "budget" not in reason(average, found)


def test_a_page_without_the_package_or_without_answers_is_made() -> None:
    peers = [row("peer mst", **errors(0.001, 0.02)), row("peer aim", end="died: over 6 GiB")]
    assert "**15 columns** were run, with answers, by: MST" in page.page_text(peers, [], "field")
    assert "0 columns" in page.page_text(peers[1:], [], "field")


def test_a_reason_that_was_cut_ends_at_a_whole_part() -> None:
    cut = "refused: it needs memory; over the limit; " + "x" * 200
    text = tables.ends_table([row("mwem", end=cut)], methods.titles())
    assert "over the limit |" in text


def test_where_a_method_ends() -> None:
    found = verdicts.ends(FOUND, list(methods.titles()))
    assert [(end.method, end.served, end.columns) for end in found] == [
        ("mwem", 15, 32),
        ("peer mst", 15, 32),
    ]


def test_an_end_that_is_predicted_is_an_end_and_what_follows_from_one_is_not() -> None:
    found = [
        row("peer aim", 15, end="died: over 6 GiB"),
        row("peer aim", 32, end="not run: died at 15 columns"),
        row("peer mst", 32, **errors(0.001, 0.02)),
        row("peer mst", 100, end="not run: predicted 4963 processor seconds; over the limit"),
        row("paper", 15, epsilon=0.1, end="refused: epsilon is too small"),
        row("paper", 100, end="refused: it needs 1;234;567 coefficients"),
        row("dqrs", 15, epsilon=0.1, end="refused: epsilon is too small"),
    ]
    text = tables.ends_table(found, methods.titles())
    assert "| AIM (dpmm 0.1.9) | biased | none | 15 | died: over 6 GiB |" in text
    assert "| MST (dpmm 0.1.9) | biased | 32 | 100 | not run: predicted 5,000 processor s" in text
    assert "its theorem | biased | none | 100 | refused: it needs 1,234,567 coefficients |" in text
    assert "| DQRS | biased | none | 15 (ε = 0.1) | refused: epsilon is too small |" in text
    assert text.count("\n") == 5


CELLS = re.compile(r"(?<=\|)[^|\n]*(?=\|)")


def empty_cells(text: str) -> list[str]:
    """The lines of a page in which a cell of a table says nothing."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [line for line in lines if not all(cell.strip() for cell in CELLS.findall(line))]


def test_no_cell_is_empty_also_where_a_run_is_missing() -> None:
    def published(kind: str, method: str, **cells: object) -> FinishedRun:
        return FinishedRun({**row(method, 15, "adult", **cells).cells, "kind": kind})

    asked = [
        published("some-3", OURS, **errors(0.1, 0.2)),
        published("some-3", "fem", end="died: over 6 GiB"),
        published("some-5", OURS, epsilon=0.1, **errors(0.1, 0.2)),
        published("all-3", OURS, epsilon=0.1, l1=0.2, **errors(0.1, 0.2)),
    ]
    text = page.page_text(FOUND, asked, "field")
    assert empty_cells(text) == []
    assert "| MST (dpmm 0.1.9) | not run yet |" in text  # on adult: no run of it at all
    assert "| 0.1 | .15 | .2 | not run yet |" in text
    assert "| 1 | .076 | .2 | died: over 6 GiB |" in text
    assert empty_cells("| a |  |\n| b | c |") == ["| a |  |"]


STORED = Path(__file__).parents[3] / "docs" / "results"


def test_every_cell_of_the_committed_page_says_something() -> None:
    text = (STORED / "field.md").read_text(encoding="utf-8")
    assert "| method |" in text
    assert empty_cells(text) == []


@pytest.mark.parametrize("file", ["field", "published", "peers"])
def test_every_run_of_the_comparison_is_committed(file: str) -> None:
    whole = Options()
    planned = (
        list(field_runs(whole, tuple(methods.PEERS))) if file == "peers" else runs_of(file, whole)
    )
    store = Store(STORED / f"{file}.csv", LAYOUT)
    assert [run.key for run in planned if run.key not in store] == []


def test_committed_predictions_follow_from_the_committed_runs() -> None:
    for file in ("field", "peers"):
        stored = Store(STORED / f"{file}.csv", LAYOUT).runs
        found = [run for run in stored if run["end"].startswith("not run: predicted")]
        assert found
        for run in found:
            assert over_the_limit(run.cells, stored) == run["end"]


def test_the_page_says_also_where_the_package_loses() -> None:
    text = page.page_text(FOUND, [], "field")
    assert "3 of 4 settings (a table at an ε, with 1 to 3 other methods)" in text
    assert "average error**: this package is ahead of every other method in 3 of 4" in text
    assert "even with the best of them in 1, behind in 0." in text
    assert "maximum error**: this package is ahead of every other method in 3 of 4" in text
    assert "even with the best of them in 0, behind in 1." in text
    assert "| biased, 15 columns, ε = 1 | .02 .001 | .01 FEM | .0015 MST (dpmm 0.1.9) |" in text
    assert "| biased, 15 columns, ε = 1 | maximum error | .02 | FEM | .01 | In average" in text
    assert "| biased, 32 columns, ε = 1 | average error, even | .001 | FEM | .001 | In max" in text
    assert "own rows are ahead in 1 of 2 comparisons" in text
    assert "| MST (dpmm 0.1.9) | biased | 15 | 32 | died: over 6 GiB |" in text
    assert "**32 columns** were run, with answers, by: this package; FEM." in text
    assert "| **this package** | **.02 .001** | **.02 .001** |" in text
    assert "| MWEM as published (δ = 0) | .05 .003 | refused: too large |" in text
    assert "died" in tables.widths(FOUND, "biased", methods.titles(), tables.effort)


def test_figures_show_what_is_stored(tmp_path: Path) -> None:
    (tmp_path / "field.csv").write_text(
        "\n".join(",".join(cells) for cells in
                  [LAYOUT.columns, *([run[c] for c in LAYOUT.columns] for run in FOUND)]) + "\n"
    )  # fmt: skip
    assert set(figures.views(FOUND)) == {"width", "time", "epsilon"}
    assert page.write_page(tmp_path) == tmp_path / "field.md"
    drawn = (tmp_path / "field-width.svg").read_text()
    assert "<text" in drawn
    assert "this package" in drawn
    assert page.write_page(tmp_path / "nowhere") is None


def test_published_values_stand_beside_ours() -> None:
    found = [
        FinishedRun({**row(OURS, 15, "adult", **errors(0.001, 0.02)).cells, "kind": "some-3"}),
        FinishedRun({**row(OURS, 15, "adult", l1=0.25, **errors(0.1, 0.2)).cells, "kind": "all-3"}),
    ]
    text = page.page_text([], found, "field")
    assert "| 1 | .076 | .02 |" in text
    assert "| ε | this package |\n| ---: | ---: |\n| 1 | .25 |" in text


def test_the_page_says_which_cells_are_means() -> None:
    assert "All other cells are one run" not in page.page_text(FOUND, [], "field")
    again = FinishedRun({**row(OURS, 15, "adult", **errors(0.1, 0.2)).cells, "run": "2"})
    text = page.page_text([*FOUND, again], [], "field")
    assert "- Means of up to 3 runs: this package on adult. All other cells are one run." in text


def test_short_numbers() -> None:
    assert [tables.short(value) for value in (0.0123, 0.5, 1.0, 0.000031, float("nan"))] == [
        ".012", ".5", "1.", "3.1e-05", "",
    ]  # fmt: skip
