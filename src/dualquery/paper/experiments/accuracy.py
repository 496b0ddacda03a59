"""Error against ε, on the paper's data sets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from dualquery.paper.experiments.bench import Bench, Latest
from dualquery.paper.experiments.experiment import (
    DELTA,
    PACKAGE,
    Claim,
    Experiment,
    Options,
    Panel,
    Task,
    package_tasks,
    tasks_by_epsilon,
)
from dualquery.paper.experiments.series import BASELINES, Game
from dualquery.paper.experiments.sizes import DATA_SETS, bench_size
from dualquery.paper.experiments.store import FinishedRun, mean, of_workload, where, with_queries
from dualquery.privacy.accountants import epsilon_by_accountant
from dualquery.privacy.events import Events, record_player_temperatures

EPSILONS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
SERIES = ("paper", "paper-gaussian", "valid", "refit", "model", *BASELINES)
SAMPLES = {"adult": 1000, "kdd99": 1000, "ratings": 5000, "netflix": 5000}
ETA = 2.0
QUERIES, QUICK_QUERIES = 500_000, 20_000
ZEROS = {"adult": 1.0, "kdd99": 1.0, "ratings": 0.51}
"""The paper's max errors of the zeros data set; for `ratings`, its max error on Netflix."""


def tasks(options: Options) -> Iterator[Task]:
    latest: Latest[Bench] = Latest()
    queries = options.queries_or(QUERIES, QUICK_QUERIES)
    for name in options.datasets_or(("adult", "kdd99", "ratings"), ("adult",)):
        bench = partial(latest, name, partial(options.bench, name, queries))
        size = bench_size(name, queries, options.quick)
        game = Game(ETA, SAMPLES.get(name, 1000))
        series = [s for s in SERIES if not (s == "valid" and name in ("ratings", "netflix"))]
        epsilons = options.epsilons_or(EPSILONS, (1.0,))
        yield from tasks_by_epsilon(
            epsilons, series, game, options.runs_or(5), size, bench, options.series
        )
        yield from package_tasks(epsilons, game, options.runs, size, bench, options.series)


def panels(runs: Sequence[FinishedRun]) -> list[Panel]:
    made = []
    for name in _tables(runs):
        here = where(runs, dataset=name)
        select = {"dataset": name, **of_workload(here, QUERIES, QUICK_QUERIES)}
        for column, words in (("max_error", "max error"), ("average_error", "average error")):
            made.append(Panel(f"{name}: {words}", "epsilon", column, select))
    return made


def claims(runs: Sequence[FinishedRun]) -> list[Claim]:
    runs = [
        run
        for name in _tables(runs)
        for run in with_queries(where(runs, dataset=name), QUERIES, QUICK_QUERIES)
    ]
    made: list[Claim] = []
    for name in _tables(runs):
        here = where(runs, dataset=name)
        made.extend(_against_zeros(name, here))
        made.extend(_improvement(name, where(here, series="paper")))
    made.extend(_larger(runs))
    made.extend(_smaller_delta(where(runs, dataset="adult", series="paper", epsilon=1.0)))
    return made


def _tables(runs: Sequence[FinishedRun]) -> list[str]:
    return list(dict.fromkeys(run["dataset"] for run in runs))


def _against_zeros(name: str, runs: Sequence[FinishedRun]) -> list[Claim]:
    zeros, paper = where(runs, series="zeros"), where(runs, series="paper")
    if not zeros or name not in ZEROS:
        return []
    same = name != "ratings"
    top, average = mean(zeros, "max_error"), mean(zeros, "average_error")
    made = [
        Claim(
            f"max error of the zeros data set on {name if same else 'Netflix'}",
            f"{ZEROS[name]:g}",
            f"{top:.3f} (average {average:.4f})",
            abs(top - ZEROS[name]) < 0.01 if same else None,
            "" if same else "our table only has the shape of the Netflix prize",
        )
    ]
    if paper:
        epsilons = sorted({run.number("epsilon") for run in paper})
        tops = [mean(where(paper, epsilon=e), "max_error") for e in epsilons]
        averages = [mean(where(paper, epsilon=e), "average_error") for e in epsilons]
        behind = [e for e, value in zip(epsilons, averages, strict=True) if value >= average]
        made.append(
            Claim(
                f"{name}: better than the zeros data set in max error",
                "at all ε",
                f"{max(tops):.3f} to {min(tops):.3f} against {top:.3f}",
                max(tops) < top,
                f"in average error it is not, up to ε = {max(behind):g}: the table is sparser "
                "than so few records can be"
                if behind
                else "and in average error",
            )
        )
    return made


def _improvement(name: str, paper: Sequence[FinishedRun]) -> list[Claim]:
    ends = [mean(where(paper, epsilon=e), "max_error") for e in (0.25, 1.0, 5.0)]
    if any(math.isnan(value) for value in ends):
        return []
    return [
        Claim(
            f"{name}: max error improves noticeably from ε = 0.25 to 1, less beyond",
            "a figure",
            f"{ends[0]:.3f} → {ends[1]:.3f} → {ends[2]:.3f} at ε = 0.25, 1, 5",
            ends[0] - ends[1] > ends[1] - ends[2] > 0.0,
        )
    ]


def _larger(runs: Sequence[FinishedRun]) -> list[Claim]:
    at_one = where(runs, series="paper", epsilon=1.0)
    adult = mean(where(at_one, dataset="adult"), "max_error")
    made = []
    for name in ("kdd99", "ratings"):
        ours = mean(where(at_one, dataset=name), "max_error")
        if not math.isnan(ours) and not math.isnan(adult):
            made.append(
                Claim(
                    f"the larger {name} gets significantly better max error than adult at ε = 1",
                    "a figure",
                    f"{ours:.3f} against {adult:.3f}",
                    ours < adult,
                )
            )
    return made


def _smaller_delta(paper: Sequence[FinishedRun]) -> list[Claim]:
    """The paper's footnote on other δ, checked on the run that was made."""
    if not paper:
        return []
    events = Events.of(
        record_player_temperatures(ETA, int(paper[0]["rounds"])),
        int(paper[0]["samples"]),
        int(paper[0]["table_rows"]),
    )
    spent, smaller = (epsilon_by_accountant(events, d)["advanced"] for d in (DELTA, 1e-6))
    if spent == 0.0:  # a single round draws uniformly, and costs nothing
        return []
    return [
        Claim(
            "a run with (ε, 0.001) is (√2·ε, 10⁻⁶)-private too",
            "√2 = 1.41",
            f"×{smaller / spent:.2f} on adult at ε = 1",
            smaller <= 1.42 * spent,
        )
    ]


EXPERIMENT = Experiment(
    "accuracy",
    "Error against ε",
    "Random 3-way marginals with literals of both polarities, δ = 0.001. The paper's algorithm "
    "has η = 2 and s = 1000 (5000 on ratings), and as many rounds as its accountant allows.",
    tasks,
    panels,
    claims,
    (*SERIES, PACKAGE),
    DATA_SETS,
)
