"""Error against ε, on the paper's data sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dualquery.experiments.bench import Bench, Latest, source
from dualquery.experiments.experiment import (
    Claim,
    Experiment,
    Options,
    Panel,
    Task,
    tasks_by_epsilon,
)
from dualquery.experiments.series import BASELINES, Game
from dualquery.experiments.shapes import shape_of
from dualquery.experiments.store import Row, mean, where

EPSILONS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
SERIES = ("paper", "paper-gaussian", "valid", "refit", "model", *BASELINES)
SAMPLES = {"adult": 1000, "kdd99": 1000, "ratings": 5000, "netflix": 5000}
ETA = 2.0


def tasks(options: Options) -> Iterator[Task]:
    latest, tables = Latest(), Latest()
    queries = options.queries_or(500_000, 20_000)
    for name in options.datasets_or(("adult", "kdd99", "ratings"), ("adult",)):

        def bench(name: str = name) -> Bench:
            made: Bench = latest(
                name,
                lambda: Bench.of(
                    tables(
                        name,
                        lambda: source(
                            name, options.data, download=options.download, quick=options.quick
                        ),
                    ),
                    queries,
                ),
            )
            return made

        shape = {**shape_of(name, options.quick), "queries": queries, "kind": "marginals"}
        game = Game(ETA, SAMPLES.get(name, 1000))
        series = [s for s in SERIES if not (s == "valid" and name in ("ratings", "netflix"))]
        epsilons = options.epsilons_or(EPSILONS, (1.0,))
        yield from tasks_by_epsilon(
            epsilons, series, game, options.runs_or(5), shape, bench, options.series
        )


def panels(rows: Sequence[Row]) -> list[Panel]:
    made = []
    for name in dict.fromkeys(row["dataset"] for row in rows):
        for column, words in (("max_error", "max error"), ("average_error", "average error")):
            made.append(Panel(f"{name}: {words}", "epsilon", column, {"dataset": name}))
    return made


def claims(rows: Sequence[Row]) -> list[Claim]:
    made: list[Claim] = []
    limits = {"adult": (1.0, 0.094), "kdd99": (1.0, 0.115), "ratings": (0.51, None)}
    for name in dict.fromkeys(row["dataset"] for row in rows):
        here = where(rows, dataset=name)
        zeros = where(here, series="zeros")
        if zeros and name in limits:
            most, _ = limits[name]
            ours = mean(zeros, "max_error")
            same = name != "ratings"
            made.append(
                Claim(
                    f"max error of the zeros data set on {'Netflix' if not same else name}",
                    f"{most:g}",
                    f"{ours:.3f}",
                    abs(ours - most) < 0.01 if same else None,
                    "" if same else "our table only has the shape of the Netflix prize",
                )
            )
        paper = where(here, series="paper")
        errors = {e: mean(where(paper, epsilon=e), "max_error") for e in EPSILONS}
        ends = [errors[e] for e in (0.25, 1.0, 5.0)]
        if all(value == value for value in ends):
            early, late = ends[0] - ends[1], ends[1] - ends[2]
            made.append(
                Claim(
                    f"{name}: max error improves noticeably from ε = 0.25 to 1, less beyond",
                    "a figure",
                    f"{ends[0]:.3f} → {ends[1]:.3f} → {ends[2]:.3f} at ε = 0.25, 1, 5",
                    early > late > 0.0,
                )
            )
    at_one = {
        name: mean(where(rows, dataset=name, series="paper", epsilon=1.0), "max_error")
        for name in ("adult", "kdd99", "ratings")
    }
    for name in ("kdd99", "ratings"):
        if at_one[name] == at_one[name] and at_one["adult"] == at_one["adult"]:
            made.append(
                Claim(
                    f"the larger {name} gets significantly better max error than adult at ε = 1",
                    "a figure",
                    f"{at_one[name]:.3f} against {at_one['adult']:.3f}",
                    at_one[name] < at_one["adult"],
                )
            )
    return made


EXPERIMENT = Experiment(
    "accuracy",
    "Error against ε",
    "Random 3-way marginals with literals of both polarities, δ = 0.001. The paper's algorithm "
    "has η = 2 and s = 1000 (5000 on ratings), and as many rounds as its accountant allows.",
    tasks,
    panels,
    claims,
)
