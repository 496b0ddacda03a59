"""How many rounds each accountant allows for the same promise, and the error they lead to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from dualquery.paper.experiments.bench import Bench, Latest
from dualquery.paper.experiments.experiment import (
    DELTA,
    Claim,
    Experiment,
    Options,
    Panel,
    Task,
    tasks_for,
)
from dualquery.paper.experiments.series import Game, Spend
from dualquery.paper.experiments.sizes import DATA_SETS, bench_size
from dualquery.paper.experiments.store import FinishedRun, mean, of_workload, where, with_queries
from dualquery.privacy.accountants import ACCOUNTANTS

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
ETA, SAMPLES = 2.0, 1000
QUERIES, QUICK_QUERIES = 500_000, 20_000
ROUNDS = {"adult": 16, "kdd99": 99}
"""What the paper's theorem allows at ε = 1."""


def tasks(options: Options) -> Iterator[Task]:
    latest: Latest[Bench] = Latest()
    queries = options.queries_or(QUERIES, QUICK_QUERIES)
    for name in options.datasets_or(("adult",), ("adult",)):
        bench = partial(latest, name, partial(options.bench, name, queries))
        size = bench_size(name, queries, options.quick)
        for epsilon in options.epsilons_or(EPSILONS, (1.0,)):
            for accountant in ACCOUNTANTS:
                spend = Spend(epsilon, DELTA, accountant)
                yield from tasks_for(
                    ("game",),
                    {"": spend},
                    {"": Game(ETA, SAMPLES)},
                    options.runs_or(5),
                    size,
                    bench,
                    options.series,
                )


def panels(runs: Sequence[FinishedRun]) -> list[Panel]:
    made = []
    for name in dict.fromkeys(run["dataset"] for run in runs):
        here = where(runs, dataset=name)
        select = {"dataset": name, **of_workload(here, QUERIES, QUICK_QUERIES)}
        for column, words in (
            ("rounds", "rounds allowed"),
            ("max_error", "max error"),
            ("average_error", "average error"),
        ):
            made.append(Panel(f"{name}: {words}", "epsilon", column, select, line="accountant"))
    return made


def claims(runs: Sequence[FinishedRun]) -> list[Claim]:
    made: list[Claim] = []
    runs = where(with_queries(runs, QUERIES, QUICK_QUERIES), epsilon=1.0)
    for name, rounds in ROUNDS.items():
        for accountant in ("advanced", "gaussian"):
            found = where(runs, dataset=name, accountant=accountant)
            if not found:
                continue
            ours = round(mean(found, "rounds"))
            theirs = accountant == "advanced"
            made.append(
                Claim(
                    f"{name}, ε = 1, η = 2, s = 1000: rounds by the {accountant} accountant",
                    f"T = {rounds} by its formula" if theirs else "–",
                    f"T = {ours}; max {mean(found, 'max_error'):.3f}, "
                    f"average {mean(found, 'average_error'):.4f}",
                    ours == rounds if theirs else None,
                    "" if theirs else "the same promise from a tighter proof",
                )
            )
    return made


EXPERIMENT = Experiment(
    "accountants",
    "What each accountant allows",
    "The paper's algorithm on Adult with η = 2, s = 1000, δ = 0.001, and the most rounds that each "
    "accountant allows (pure: at δ = 0).",
    tasks,
    panels,
    claims,
    ("game",),
    DATA_SETS,
)
