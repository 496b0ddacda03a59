"""Errors of the default plan against private answers, beside the paper's player.

    python -m benchmarks accuracy                 all parts, RUNS seeded runs each
    python -m benchmarks accuracy.adult-1         one of them

The plan's rule chooses every parameter; nothing is tuned here. δ = 10⁻³.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.tables import missing, public_table, true_answers
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.paper.datasets import BiasedTable, RatingsTable
from dualquery.paper.datasets.catalogue import DATA_SETS
from dualquery.rows.counting import count_rows
from dualquery.workloads.generators import all_marginals, random_marginals
from dualquery.workloads.workload import Workload

Rows = list[dict[str, Any]]

RUNS = int(os.environ.get("DUALQUERY_RUNS", "5"))
PAPER = {"player": "record", "refit": False, "accountant": "advanced", "eta": 2.0}


def named(name: str, **settings: Any) -> Rows:
    """A public table in the paper's discretisation."""
    found = public_table(name)
    if found is None:
        return missing(name)
    table, schema = found
    return measured(name, table, schema, random_marginals(schema, 3, 500_000), settings)


def biased() -> Rows:
    table = BiasedTable(100_000, 1000)
    workload = random_marginals(table.schema, 3, 100_000)
    return measured("biased d=1000", table, table.schema, workload, {"epsilon": 1.0})


def ratings() -> Rows:
    """Positive 3-way queries over the thousand most popular items, beside the paper's player."""
    table = RatingsTable()
    schema = table.schema
    ones = all_marginals(schema, 1).take(2 * np.arange(len(schema)) + 1)
    popular = np.argsort(-count_rows(table, ones).counts)[:1000]
    terms = random_marginals(Schema(tuple(schema.attributes[:1000])), 3, 100_000)
    items = popular[terms.literals.attribute]
    literals = type(terms.literals)(
        items.astype(np.int32), terms.literals.start, terms.literals.codes
    )
    workload = Workload(schema, literals, terms.start, terms.terms & ~1, terms.is_parity)
    ours = measured("ratings", table, schema, workload, {"epsilon": 1.0})
    paper = measured(
        "ratings, the paper's player", table, schema, workload, {**PAPER, "samples": 5000}, runs=1
    )
    ours[0]["max_of_paper"] = ours[0]["max_error"] / paper[0]["max_error"]
    ours[0]["average_of_paper"] = ours[0]["average_error"] / paper[0]["average_error"]
    return ours + paper


def measured(
    name: str,
    table: Any,
    schema: Schema,
    workload: Workload,
    settings: dict[str, Any],
    runs: int = RUNS,
) -> Rows:
    """Means over seeded runs; the truth is counted once."""
    truth = true_answers(table, workload)
    largest, average, seconds = [], [], []
    for seed in range(runs):
        job = DualQuery(
            **{"epsilon": 1.0, "delta": 1e-3, "errors": False, "out_of_domain": "clamp"}
            | settings
            | {"seed": seed}
        )
        begun = time.perf_counter()
        made = job.fit(table, schema=schema, workload=workload)
        seconds.append(time.perf_counter() - begun)
        errors = np.abs(made.answers() - truth)
        largest.append(float(errors.max()))
        average.append(float(errors.mean()))
    return [
        {
            "name": name,
            "epsilon": settings.get("epsilon", 1.0),
            "neighbours": settings.get("neighbours", "replace-one"),
            "runs": runs,
            "max_error": float(np.mean(largest)),
            "worst_run": max(largest),
            "average_error": float(np.mean(average)),
            "seconds": float(np.mean(seconds)),
        }
    ]


PARTS: dict[str, Callable[[], Rows]] = {
    "adult-0.25": partial(named, "adult", epsilon=0.25),
    "adult-1": partial(named, "adult", epsilon=1.0),
    "adult-3": partial(named, "adult", epsilon=3.0),
    "adult-add-remove": partial(
        named, "adult", epsilon=1.0, neighbours="add-remove", rows=DATA_SETS["adult"].rows
    ),
    "kdd99": partial(named, "kdd99", epsilon=1.0),
    "biased": biased,
    "ratings": ratings,
}


def run() -> Rows:
    return [row for part in PARTS.values() for row in part()]
