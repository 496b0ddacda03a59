"""Whole games of the record player with different oracles: errors, time, and what was proved.

    python -m benchmarks games                    both tables, RUNS seeds each
    python -m benchmarks games.adult              one of them

`highs` proves its rounds. `with cuts` is `highs` without its search, `relaxation` without cuts too:
their shares of optimal rounds are what the relaxation certifies, tightened and plain.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.tables import missing, public_table, true_answers
from dualquery.estimator import DualQuery
from dualquery.oracles.registry import oracle
from dualquery.workloads.generators import random_marginals

Rows = list[dict[str, Any]]

RUNS = int(os.environ.get("DUALQUERY_RUNS", "5"))
ORACLES: dict[str, Callable[[], Any]] = {
    "annealing": partial(oracle, "annealing"),
    "highs": partial(oracle, "highs"),
    "relaxation": partial(oracle, "highs", cuts=False, search=False),
    "with cuts": partial(oracle, "highs", search=False),
}


class Timed:
    """An oracle that remembers how long its answers took."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.name, self.seconds = inner, inner.name, list[float]()

    def __call__(self, problem: Any, **options: Any) -> Any:
        response = self.inner(problem, **options)
        self.seconds.append(response.seconds)
        return response


def game(name: str, samples: int, rounds: int) -> Rows:
    """The paper's η = 2 on one table, with every oracle and the same seeds."""
    found = public_table(name)
    if found is None:
        return missing(name)
    table, schema = found
    workload = random_marginals(schema, 3, 500_000)
    truth = true_answers(table, workload)
    rows = []
    for label, make in ORACLES.items():
        largest, average, proved, seconds, asked = [], [], [], [], []
        for seed in range(RUNS):
            timed = Timed(make())
            job = DualQuery(
                epsilon=1.0, delta=1e-3, player="record", refit=False, oracle=timed, seed=seed,
                eta=2.0, samples=samples, rounds=rounds, out_of_domain="clamp",
            )  # fmt: skip
            begun = time.perf_counter()
            made = job.fit(table, schema=schema, workload=workload)
            seconds.append((time.perf_counter() - begun) / len(made.transcript))
            asked.append(float(np.mean(timed.seconds)))
            errors = np.abs(made.answers() - truth)
            largest.append(float(errors.max()))
            average.append(float(errors.mean()))
            status = [one.move.proved_optimal for one in made.transcript]
            proved.append(float(np.mean(status)))
        rows.append(
            {
                "name": f"{name}, {label}",
                "runs": RUNS,
                "max_error": float(np.mean(largest)),
                "max_spread": float(np.std(largest)),
                "average_error": float(np.mean(average)),
                "average_spread": float(np.std(average)),
                "proved_optimal": float(np.mean(proved)),
                "ms_per_round": 1e3 * float(np.mean(seconds)),
                "oracle_ms": 1e3 * float(np.mean(asked)),
            }
        )
    for row in rows:
        row["oracle_over_annealing"] = row["oracle_ms"] / rows[0]["oracle_ms"]
    return rows


PARTS: dict[str, Callable[[], Rows]] = {
    "adult": partial(game, "adult", 1000, 46),
    "kdd99": partial(game, "kdd99", 1000, 100),
}


def run() -> Rows:
    return [row for part in PARTS.values() for row in part()]
