"""Error and time against the number of queries, on KDD99."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from dualquery.paper.experiments.bench import Bench, Latest, NamedTable
from dualquery.paper.experiments.experiment import (
    DELTA,
    Claim,
    Experiment,
    Options,
    Panel,
    Task,
    tasks_by_epsilon,
    tasks_for,
)
from dualquery.paper.experiments.series import BASELINES, Game, Spend
from dualquery.paper.experiments.sizes import DATA_SETS, bench_size
from dualquery.paper.experiments.store import FinishedRun, distinct, fastest, mean, where
from dualquery.privacy.accountants import epsilon_by_accountant
from dualquery.privacy.events import Events, record_player_temperatures

COUNTS = (40_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000)
QUICK = (1_000, 4_000)
ETA, SAMPLES = 1.2, 1750
ROUNDS, QUICK_ROUNDS = 170, 20
FIXED = {"paper": "advanced", "valid": "gaussian", "refit": "gaussian"}
"""Series with the paper's fixed rounds, and the accountant that says what they cost."""
SERIES = ("paper", "paper-gaussian", "valid", "refit", "model", *BASELINES)


def tasks(options: Options) -> Iterator[Task]:
    latest: Latest[Bench] = Latest()
    tables: Latest[NamedTable] = Latest()
    name = options.dataset or "kdd99"
    counts = (options.queries,) if options.queries else (QUICK if options.quick else COUNTS)
    for queries in counts:

        def bench(queries: int = queries) -> Bench:
            # The table is the same for all; only the workload and its counts are made again.
            data = partial(tables, name, partial(options.table, name))
            return latest(queries, lambda: Bench.of(data(), queries))

        size = bench_size(name, queries, options.quick)
        most, runs, wanted = Game(ETA, SAMPLES), options.runs_or(3), options.series
        if options.epsilon:  # then as many rounds as it allows, in place of the paper's number
            yield from tasks_by_epsilon(options.epsilon, SERIES, most, runs, size, bench, wanted)
            continue
        fixed = Game(ETA, SAMPLES, QUICK_ROUNDS if options.quick else ROUNDS)
        spends = {
            series: Spend(cost(fixed, size.table_rows, accountant), DELTA, accountant)
            for series, accountant in FIXED.items()
        }
        spends[""] = Spend(1.0, DELTA, "gaussian")
        games = {"": most} | dict.fromkeys(FIXED, fixed)
        yield from tasks_for(SERIES, spends, games, runs, size, bench, wanted)


def cost(game: Game, rows: int, accountant: str) -> float:
    """What a game with fixed rounds costs, rounded up to three decimals."""
    events = Events.of(record_player_temperatures(game.eta, game.rounds or 0), game.samples, rows)
    return math.ceil(1000.0 * epsilon_by_accountant(events, DELTA)[accountant]) / 1000.0


def panels(runs: Sequence[FinishedRun]) -> list[Panel]:
    return [
        Panel(f"{name}: {words}", "queries", column, {"dataset": name}, log_x=True)
        for name in dict.fromkeys(run["dataset"] for run in runs)
        for column, words in (
            ("average_error", "average error"),
            ("max_error", "max error"),
            ("seconds", "seconds without counting"),
        )
    ]


def claims(runs: Sequence[FinishedRun]) -> list[Claim]:
    runs = where(runs, dataset="kdd99")
    zeros = where(runs, series="zeros")
    paper = [
        run
        for rounds in (ROUNDS, QUICK_ROUNDS)
        for run in where(runs, series="paper", rounds=rounds)
    ]
    made: list[Claim] = []
    if zeros:
        ours = mean(zeros, "average_error")
        made.append(
            Claim(
                "average error of the zeros data set on KDD99",
                "0.11",
                f"{ours:.4f}",
                abs(ours - 0.115) <= 0.005,
                "0.115 to three digits",
            )
        )
    if paper:
        counts = distinct(paper, "queries")
        worst = max(mean(where(paper, queries=q), "average_error") for q in counts)
        statement = "average error of the algorithm on KDD99"
        made.append(Claim(statement, "below 0.01", f"{worst:.4f}", worst < 0.01))
        made.append(_privacy())
        made.extend(_perturbation(runs, counts[0], counts[-1]))
        if len(counts) > 1:
            made.extend(_growth(paper, counts[0], counts[-1]))
    return made


def _privacy() -> Claim:
    events = Events.of(record_player_temperatures(ETA, ROUNDS), SAMPLES, 494_021)
    epsilon = epsilon_by_accountant(events, DELTA)
    return Claim(
        "(η, T, s) = (1.2, 170, 1750) is (1, 0.001)-private",
        "ε = 1 by its theorem",
        f"ε = {epsilon['advanced']:.3f}",
        epsilon["advanced"] <= 1.005,
        f"the theorem gives {epsilon['advanced']:.2f}; the authors' program composes round by "
        f"round ({epsilon['per-round']:.2f}); the Gaussian accountant proves "
        f"{epsilon['gaussian']:.2f}",
        measured=False,
    )


def _growth(paper: Sequence[FinishedRun], least: int, most: int) -> list[Claim]:
    """How error and time change from the fewest queries to the most."""
    few, many = (where(paper, queries=count) for count in (least, most))
    errors, tops = (
        [mean(runs, column) for runs in (few, many)] for column in ("average_error", "max_error")
    )
    seconds = [fastest(runs) for runs in (few, many)]
    grown, expected = seconds[1] / seconds[0], most / least
    slope = (seconds[1] - seconds[0]) / (most - least) * 1e6
    start = seconds[0] - slope * least / 1e6
    return [
        Claim(
            f"error stays stable from {least:,} to {most:,} queries",
            "mostly stable",
            f"average {errors[0]:.4f} → {errors[1]:.4f}, max {tops[0]:.3f} → {tops[1]:.3f}",
            errors[1] < 1.25 * errors[0] and tops[1] < 2.0 * tops[0],
            "the maximum is over more queries",
        ),
        Claim(
            "time grows almost linearly with the number of queries",
            "a figure",
            f"{seconds[0]:.1f} s → {seconds[1]:.1f} s, ×{grown:.1f} for ×{expected:.0f}",
            0.5 * expected <= grown <= 1.1 * expected,
            f"a constant plus a line: {start:.1f} s for the search, and {slope:.1f} s per million "
            "queries"
            if grown < 0.5 * expected
            else "",
        ),
    ]


def _perturbation(runs: Sequence[FinishedRun], least: int, most: int) -> list[Claim]:
    """Against noise on every query, at the same ε and δ."""
    names = ("paper-gaussian", "laplace", "gaussian")
    few, many = (
        {name: where(runs, queries=count, series=name, epsilon=1.0) for name in names}
        for count in (least, most)
    )
    if not all((*few.values(), *many.values())):
        return []
    average = {name: mean(runs, "average_error") for name, runs in many.items()}
    top = {name: mean(runs, "max_error") for name, runs in many.items()}
    better = all(
        error["paper-gaussian"] < error[name]
        for error in (average, top)
        for name in ("laplace", "gaussian")
    )
    grown = average["laplace"] / mean(few["laplace"], "average_error")
    expected = math.sqrt(most / least)
    made = [
        Claim(
            f"improved error compared to simpler perturbation, at {most:,} queries",
            "improved",
            f"average {average['paper-gaussian']:.4f} against {average['laplace']:.4f} (Laplace) "
            f"and {average['gaussian']:.4f} (Gaussian); max {top['paper-gaussian']:.3f} against "
            f"{top['laplace']:.3f} and {top['gaussian']:.3f}; all at ε = 1, δ = 0.001 by today's "
            "accountants",
            better,
            ""
            if better
            else "with 494,021 rows, noise calibrated by today's accountants is small even for so "
            "many queries; it yields no records and answers nothing outside the workload",
        )
    ]
    if least < most:
        made.append(
            Claim(
                "the Laplace mechanism's error grows as √|Q|",
                f"×{expected:.1f} from {least:,} to {most:,} queries",
                f"×{grown:.1f}",
                abs(grown / expected - 1.0) <= 0.15,
                "clipped to [0, 1], and a query that is asked twice is measured once",
            )
        )
    return made


EXPERIMENT = Experiment(
    "queries",
    "Error and time against the number of queries",
    "KDD99, with the paper's fixed (η, T, s) = (1.2, 170, 1750), also for valid records and their "
    "refit: ε is what the accountant says of them. All else spends ε = 1; the paper's algorithm "
    "under the Gaussian accountant with as many rounds as that allows.",
    tasks,
    panels,
    claims,
    SERIES,
    DATA_SETS,
)
