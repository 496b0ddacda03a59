"""What the intervals cover, over two hundred releases of one small table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import dualquery as dq
from dualquery.domain.schema import Schema
from dualquery.release.asking.figure import Figure
from dualquery.release.release import Release

RELEASES = 200
ROWS = 3000

EDGES = {"age": [18, 25, 35, 45, 55, 65, 75, 90], "income": [0.0, 10.0, 20.0, 30.0, 50.0, 80.0]}

Ask = Callable[[Release], Figure]


def table() -> tuple[pd.DataFrame, Schema]:
    """Columns that hang together; numbers are spread evenly inside their bins."""
    random = np.random.default_rng(11)
    hidden = random.normal(size=ROWS)
    columns: dict[str, np.ndarray] = {}
    for name, slope in (("age", 1.0), ("income", 0.7)):
        edges = np.array(EDGES[name])
        place = hidden * slope + random.normal(size=ROWS)
        ranks = np.argsort(np.argsort(place)) / ROWS
        code = np.minimum((ranks * (len(edges) - 1)).astype(int), len(edges) - 2)
        inside = edges[code] + random.random(ROWS) * (edges[code + 1] - edges[code])
        columns[name] = np.floor(inside).astype(int) if name == "age" else inside
    columns["smoker"] = (hidden + random.normal(size=ROWS) > 0.8).astype(int)
    columns["sex"] = np.where(random.random(ROWS) < 0.5, "female", "male")
    columns["region"] = np.array(["north", "east", "south"])[
        np.clip(np.rint(hidden * 0.8 + 1.0 + 0.5 * random.normal(size=ROWS)), 0, 2).astype(int)
    ]
    schema = Schema(
        (
            dq.Attribute.numeric("age", EDGES["age"]),
            dq.Attribute.numeric("income", EDGES["income"]),
            dq.Attribute.binary("smoker"),
            dq.Attribute.categorical("sex", ["female", "male"]),
            dq.Attribute.categorical("region", ["north", "east", "south"]),
        )
    )
    return pd.DataFrame(columns), schema


def questions(frame: pd.DataFrame) -> dict[str, list[tuple[Ask, float]]]:
    """By kind, questions and what the private table says."""
    found: dict[str, list[tuple[Ask, float]]] = defaultdict(list)
    groups = {
        "smoker": frame.smoker == 1,
        "sex=male": frame.sex == "male",
        "age>=55": frame.age >= 55,
        "smoker | region=south": (frame.smoker == 1) | (frame.region == "south"),
        "region=north & sex=female": (frame.region == "north") & (frame.sex == "female"),
    }
    for where, inside in groups.items():
        part = frame[inside]
        for query, holds in groups.items():
            if query != where and not (holds[inside].all() or not holds[inside].any()):
                both = float(holds[inside].mean())
                found["conditional"].append(
                    (lambda r, q=query, w=where: r.answer(q, given=w), both)
                )
        for column in ("age", "income", "smoker"):
            mean = float(part[column].mean())
            if column not in where:
                found["mean"].append((lambda r, c=column, w=where: r.mean(c, where=w), mean))
        for share in (0.25, 0.5, 0.9):
            true = float(np.quantile(part["income"], share, method="inverted_cdf"))
            found["quantile"].append(
                (lambda r, s=share, w=where: r.quantile("income", s, where=w), true)
            )
        found["correlation"].append(
            (
                lambda r, w=where: r.correlation("age", "income", where=w),
                float(part["age"].corr(part["income"])),
            )
        )
    south = frame.region == "south"
    for query, holds in {
        "smoker": frame.smoker == 1,
        "age>=55": frame.age >= 55,
        "income<30": frame.income < 30,
        "age>=55 & region=south": (frame.age >= 55) & south,
        "age<35 & smoker=1": (frame.age < 35) & (frame.smoker == 1),
    }.items():
        found["share"].append((lambda r, q=query: r.answer(q), float(holds.mean())))
    for column in ("age", "income", "smoker"):
        found["mean"].append((lambda r, c=column: r.mean(c), float(frame[column].mean())))
    for share in (0.1, 0.5, 0.75):
        true = float(np.quantile(frame["income"], share, method="inverted_cdf"))
        found["quantile"].append((lambda r, s=share: r.quantile("income", s), true))
    return found


def coverage(releases: int) -> dict[str, float]:
    """By kind, the share of intervals that hold the private figure."""
    frame, schema = table()
    asked = questions(frame)
    held: dict[str, list[bool]] = defaultdict(list)
    workload = dq.all_marginals(schema, 2)
    for seed in range(releases):
        job = dq.DualQuery(epsilon=1.0, delta=1e-5, seed=seed)
        release = job.fit(frame, schema=schema, workload=workload)
        for kind, pairs in asked.items():
            for ask, true in pairs:
                figure = ask(release)
                assert figure.low is not None
                assert figure.high is not None
                held[kind].append(figure.low <= true <= figure.high)
    return {kind: float(np.mean(hits)) for kind, hits in held.items()}


@pytest.mark.slow
def test_intervals_cover_95_of_100_private_figures() -> None:
    found = coverage(RELEASES)
    for kind, share in found.items():
        # A mixture weakens correlations, and their intervals are wide: they may hold more.
        most = 1.0 if kind == "correlation" else 0.98
        assert 0.92 <= share <= most, f"{kind}: {share:.3f} of {found}"
