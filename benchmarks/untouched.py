"""The default beside simpler ways, on tables that decided no rule.

    python -m benchmarks untouched                    all tables, at three ε
    python -m benchmarks untouched.diamonds-1         one of them

Asked and judged are 50,000 random 3-way queries, δ = 10⁻⁶, replace-one. Figures are means over RUNS
seeded runs. Beside the default stand its parts for themselves (draws alone; tables without rounds
of draws) and baselines. A verdict follows per table: which of them is ahead of the default, and by
how much. `l1` is the mean L1 distance over random 3-way marginals, `cover_k` the share of random
k-way answers within the stated 95 % intervals, `seconds` the seconds of the processor.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

from benchmarks.accuracy import _cubes
from benchmarks.tables import true_answers
from benchmarks.untouched_tables import INSTALL, TABLES
from dualquery.base.errors import ParameterError
from dualquery.baselines.independent import Independent
from dualquery.baselines.matrix import MatrixMechanism
from dualquery.baselines.mwem_model import ModelMwem
from dualquery.estimator import DualQuery, settings
from dualquery.game import tables_plan
from dualquery.game.tables_shape import Shape
from dualquery.game.tables_steps import Kind, TablesPlan
from dualquery.privacy.calibration import Budget
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sources import SeededSource
from dualquery.release.release import Release
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.rows.table import Table
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.marginals import Marginals
from dualquery.workloads.workload import Workload

Rows = list[dict[str, Any]]
Floats = npt.NDArray[np.float64]
Change = Callable[[TablesPlan], TablesPlan]

RUNS = int(os.environ.get("DUALQUERY_RUNS", "3"))
EPSILONS = (0.25, 1.0, 10.0)
DELTA, QUERIES = 1e-6, 50_000
BEHIND = 1.05
"""The default is behind another way if its average error is larger by this factor."""


class Judge:
    """One table with its workload and all true answers, which are counted once."""

    def __init__(self, name: str) -> None:
        frame, self.schema = TABLES[name].load()
        self.table: Table = open_table(frame)
        self.workload = random_marginals(self.schema, 3, QUERIES)
        self.truth = true_answers(self.table, self.workload)
        self.narrow = {k: random_marginals(self.schema, k, 2000, seed=9) for k in (1, 2, 3)}
        self.truths = {k: true_answers(self.table, part) for k, part in self.narrow.items()}
        cubes = _cubes(self.workload)
        assert cubes is not None  # all tables have three columns
        self.cubes: Marginals = cubes
        self.cells = self.cubes.queries(self.schema)
        self.shares = true_answers(self.table, self.cells)
        self.rows = frame.num_rows

    def errors(self, answers: Callable[[Workload], Floats]) -> dict[str, float]:
        """Of some answers, against the truth."""
        away = np.abs(answers(self.workload) - self.truth)
        found = {"max_error": float(away.max()), "average_error": float(away.mean())}
        cells = np.abs(answers(self.cells) - self.shares)
        return found | {"l1": float(cells.sum()) / len(self.cubes)}

    def coverage(self, release: Release) -> dict[str, float]:
        """Of the stated intervals."""
        found = {}
        for k, part in self.narrow.items():
            away = np.abs(release.answers(part, unknown="default") - self.truths[k])
            found[f"cover_{k}"] = float((away <= 1.96 * release.standard_errors(part)).mean())
        return found


def released(judge: Judge, epsilon: float, seed: int, **more: Any) -> Release:
    """A seeded release with the package's own settings, except for those that are named."""
    job = DualQuery(epsilon=epsilon, delta=DELTA, seed=seed, out_of_domain="clamp", **more)
    return job.fit(judge.table, schema=judge.schema, workload=judge.workload)


def answers_of(release: Release) -> Callable[[Workload], Floats]:
    assert release.model is not None
    return release.model.answers


@contextmanager
def changed_rule(change: Change, always: bool = False) -> Iterator[None]:
    """Runs inside measure what another rule says.

    Args:
        change: from the rule's plan to another one.
        always: whether tables are measured even where the rule says that they are too noisy.
    """
    rule = settings.make_tables_plan

    def other(budget: Budget, shape: Shape, *, started: bool = False) -> TablesPlan | None:
        with mock.patch.object(tables_plan, "FINE", math.inf if always else tables_plan.FINE):
            plan = rule(budget, shape, started=started)
        return None if plan is None else change(plan)

    with mock.patch.object(settings, "make_tables_plan", other):
        yield


def without_rounds(plan: TablesPlan) -> TablesPlan:
    """All tables at once, none that draws name."""
    listed = [step for step in plan.steps if step.kind not in (Kind.DRAWS, Kind.NAMED)]
    total = sum(step.share for step in listed)
    steps = tuple(replace(step, share=step.share / total) for step in listed)
    # One fit, which has the steps of both.
    return replace(plan, steps=steps, first_steps=plan.first_steps + plan.last_steps)


def default(judge: Judge, epsilon: float, seed: int) -> dict[str, float]:
    made = released(judge, epsilon, seed)
    return judge.errors(answers_of(made)) | judge.coverage(made)


def draws_alone(judge: Judge, epsilon: float, seed: int) -> dict[str, float]:
    made = released(judge, epsilon, seed, measure=False, errors=False)
    return judge.errors(answers_of(made))


def tables_alone(judge: Judge, epsilon: float, seed: int) -> dict[str, float]:
    with changed_rule(without_rounds, always=True):
        made = released(judge, epsilon, seed, errors=False)
    return judge.errors(answers_of(made))


def independent(judge: Judge, epsilon: float, seed: int) -> dict[str, float]:
    made = Independent.fit(
        judge.table, judge.schema, epsilon=epsilon, delta=DELTA,
        neighbours=Neighbours.REPLACE_ONE, generator=np.random.default_rng(seed),
        out_of_domain=OutOfDomain.CLAMP,
    )  # fmt: skip
    return judge.errors(made.answers)


def matrix(judge: Judge, epsilon: float, seed: int) -> dict[str, float]:
    made = MatrixMechanism.fit(
        judge.table,
        judge.workload,
        epsilon=epsilon,
        delta=DELTA,
        source=SeededSource(seed),
        out_of_domain=OutOfDomain.CLAMP,
    )
    away = np.abs(made.answers(judge.workload) - judge.truth)
    return {"max_error": float(away.max()), "average_error": float(away.mean())}


def mwem(judge: Judge, epsilon: float, seed: int) -> dict[str, float]:
    counts = np.rint(judge.truth * judge.rows).astype(np.int64)
    made = ModelMwem.fit(
        Counted(counts, judge.rows), judge.workload, epsilon=epsilon, delta=DELTA,
        source=SeededSource(seed),
    )  # fmt: skip
    return judge.errors(made.answers)


METHODS: dict[str, Callable[[Judge, float, int], dict[str, float]]] = {
    "default": default,
    "draws alone": draws_alone,
    "tables without rounds": tables_alone,
    "independent marginals": independent,
    "matrix mechanism": matrix,
    "MWEM on the model": mwem,
}


def compared(name: str, epsilon: float) -> Rows:
    """A row per method, and the verdict."""
    try:
        judge = Judge(name)
    except FileNotFoundError:
        return [{"name": name, "skipped": f"needs files of two packages: {INSTALL}"}]
    rows: Rows = []
    for method, run_once in METHODS.items():
        found: dict[str, list[float]] = {}
        try:
            for seed in range(RUNS):
                begun = time.process_time()
                figures = run_once(judge, epsilon, seed)
                figures["seconds"] = time.process_time() - begun
                for key, value in figures.items():
                    found.setdefault(key, []).append(value)
        except ParameterError as cannot:
            rows.append({"name": name, "method": method, "cannot": str(cannot)})
            continue
        means = {key: float(np.mean(values)) for key, values in found.items()}
        rows.append({"name": name, "epsilon": epsilon, "runs": RUNS, "method": method} | means)
    return [*rows, verdict(name, epsilon, rows)]


def verdict(name: str, epsilon: float, rows: Rows) -> dict[str, Any]:
    """Who is ahead of the default in average error, and by how much."""
    ours, *others = (row for row in rows if "average_error" in row)
    ahead = [
        f"{other['method']}: {ours['average_error'] / other['average_error'] - 1.0:.0%}"
        for other in others
        if ours["average_error"] > BEHIND * other["average_error"]
    ]
    nearest = min(others, key=lambda row: float(row["average_error"]))
    return {
        "name": name,
        "half": "open" if TABLES[name].open else "closed",
        "epsilon": epsilon,
        "verdict": f"behind {'; '.join(ahead)}" if ahead else "behind none",
        "nearest": nearest["method"],
        "of_nearest": ours["average_error"] / nearest["average_error"],
    }


PARTS: dict[str, Callable[[], Rows]] = {
    f"{name}-{epsilon:g}": partial(compared, name, epsilon)
    for name in TABLES
    for epsilon in EPSILONS
}


def run() -> Rows:
    return [row for part in PARTS.values() for row in part()]
