"""Errors of the default plan against private answers, beside the paper's player.

    python -m benchmarks accuracy                 all parts, RUNS seeded runs each
    python -m benchmarks accuracy.adult-1         one of them

The plan's rule chooses every parameter; nothing is tuned here. δ = 10⁻³ unless the part says
otherwise. `l1` is the mean L1 distance over 200 random 3-way marginals; `cover_k` the share of
random k-way answers within the stated 95 % intervals.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.tables import data_folder, missing, public_table, true_answers
from dualquery.baselines.independent import Independent
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.paper.datasets import BiasedTable, RatingsTable
from dualquery.paper.datasets.catalogue import DATA_SETS
from dualquery.paper.datasets.encoded import EncodedTable
from dualquery.paper.datasets.mixed import DETERMINED, mixed_table
from dualquery.privacy.neighbours import Neighbours
from dualquery.rows.counting import count_rows
from dualquery.rows.encoding import OutOfDomain
from dualquery.workloads.generators import all_marginals, random_marginals
from dualquery.workloads.marginals import Groups, Marginals
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


def biased(width: int) -> Rows:
    table = BiasedTable(100_000, width)
    workload = random_marginals(table.schema, 3, 100_000)
    return measured(f"biased d={width}", table, table.schema, workload, {"epsilon": 1.0})


def census() -> Rows:
    """A census survey of 35 columns, ε = 1, δ = 10⁻⁶."""
    folder = data_folder()
    if not (folder / "acs35.csv.gz").is_file():
        return missing("acs35")
    table = EncodedTable(
        folder / "acs35.csv.gz", Schema.load(folder / "acs35-domain.json"), OutOfDomain.CLAMP
    )
    workload = random_marginals(table.schema, 3, 100_000)
    return measured("acs35", table, table.schema, workload, {"epsilon": 1.0, "delta": 1e-6})


def mixed(marginals: bool = False) -> Rows:
    """Two columns of 2,000 codes among 34, and how much of a full correlation is kept."""
    table = mixed_table()
    schema = table.schema
    workload = random_marginals(schema, 3, 500_000)
    settings: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
    if marginals:
        # Asked are all cells; random ones are judged.
        workload = random_marginals(schema, 1, 5_000) + random_marginals(schema, 2, 100_000)
        settings["marginals"] = (1, 2)
    name = "mixed, --marginals 1,2" if marginals else "mixed"
    alone = Independent.fit(
        table, schema, epsilon=1.0, delta=1e-6, neighbours=Neighbours.REPLACE_ONE,
        generator=np.random.default_rng(0),
    )  # fmt: skip
    away = float(np.abs(alone.answers(workload) - true_answers(table, workload)).mean())
    rows = measured(name, table, schema, workload, settings)
    return [{**row, "average_of_independent": away} for row in rows]


def kept_correlation(release: Any) -> float:
    """Of the pair of columns that determine one another, in sampled rows."""
    codes = release.sample_codes(30_000, np.random.default_rng(0))
    one, other = (release.schema.position(name) for name in DETERMINED)
    return float(-np.corrcoef(codes[:, one], codes[:, other])[0, 1])


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
    narrow = {k: _narrow(workload, k) for k in (1, 2)} | {3: workload}
    truths = {k: truth if k == 3 else true_answers(table, part) for k, part in narrow.items()}
    cubes = _cubes(workload) if len(schema) <= 200 else None
    cells = None if cubes is None else true_answers(table, cubes.queries(schema))
    found: dict[str, list[float]] = {}
    for seed in range(runs):
        job = DualQuery(
            **{"epsilon": 1.0, "delta": 1e-3, "out_of_domain": "clamp"} | settings | {"seed": seed}
        )
        begun = time.perf_counter()
        asked = None if "marginals" in settings else workload
        made = job.fit(table, schema=schema, workload=asked)
        figures = {"seconds": time.perf_counter() - begun}
        errors = np.abs(made.answers(workload) - truth)
        figures |= {"max_error": float(errors.max()), "average_error": float(errors.mean())}
        if made.errors is not None and made.model is not None:
            for k, part in narrow.items():
                distance = np.abs(made.answers(part, unknown="default") - truths[k])
                inside = distance <= 1.96 * made.standard_errors(part)
                figures[f"cover_{k}"] = float(inside.mean())
        if cubes is not None and made.model is not None:
            away = np.abs(made.model.answers(cubes.queries(schema)) - cells)
            figures["l1"] = float(away.sum()) / len(cubes)
        if set(DETERMINED) <= set(schema.names) and made.model is not None:
            figures["correlation"] = kept_correlation(made)
        for key, value in figures.items():
            found.setdefault(key, []).append(value)
    return [
        {
            "name": name,
            "epsilon": settings.get("epsilon", 1.0),
            "neighbours": settings.get("neighbours", "replace-one"),
            "runs": runs,
            "worst_run": max(found["max_error"]),
            **{key: float(np.mean(values)) for key, values in found.items()},
        }
    ]


def _narrow(workload: Workload, k: int) -> Workload:
    """Random k-way queries; where attributes are not asked about, the first terms of asked ones."""
    schema = workload.schema
    named = np.unique(workload.literals.attribute[workload.terms >> 1])
    if len(named) == len(schema):
        return random_marginals(schema, k, 2000, seed=9)
    chosen = np.random.default_rng(9).choice(len(workload), 2000, replace=False)
    terms = workload.terms[workload.start[np.sort(chosen)][:, None] + np.arange(k)]
    part = Workload.conjunctions(schema, workload.literals, terms)
    return part.take(np.arange(len(part)))


def _cubes(workload: Workload) -> Marginals | None:
    """200 random 3-way marginals with at most 100,000 cells each; None without so many columns."""
    schema = workload.schema
    if len(schema) < 3:
        return None
    random = np.random.default_rng(1234)
    chosen: set[tuple[int, ...]] = set()
    while len(chosen) < min(200, math.comb(len(schema), 3)):
        triple = tuple(sorted(random.choice(len(schema), 3, replace=False).tolist()))
        if np.prod(schema.sizes[list(triple)].astype(float)) <= 100_000:
            chosen.add(triple)
    return Marginals(Groups.single(schema), np.array(sorted(chosen), dtype=np.int32))


def wrong_sizes() -> Rows:
    """Adult under add-remove neighbours with references that are off by a third."""
    return [
        {**row, "reference": rows}
        for rows in (40_000, 22_000)
        for row in named("adult", epsilon=1.0, neighbours="add-remove", rows=rows)
    ]


PARTS: dict[str, Callable[[], Rows]] = {
    "adult-0.25": partial(named, "adult", epsilon=0.25),
    "adult-1": partial(named, "adult", epsilon=1.0),
    "adult-3": partial(named, "adult", epsilon=3.0),
    "adult-10": partial(named, "adult", epsilon=10.0),
    "adult-wrong-size": wrong_sizes,
    "adult-add-remove": partial(
        named, "adult", epsilon=1.0, neighbours="add-remove", rows=DATA_SETS["adult"].rows
    ),
    "kdd99": partial(named, "kdd99", epsilon=1.0),
    "acs35": census,
    "mixed": mixed,
    "mixed-narrow": partial(mixed, marginals=True),
    "biased-200": partial(biased, 200),
    "biased": partial(biased, 1000),
    "biased-64000": partial(biased, 64_000),
    "biased-512000": partial(biased, 512_000),
    "ratings": ratings,
}


def run() -> Rows:
    return [row for part in PARTS.values() for row in part()]
