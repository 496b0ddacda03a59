"""Would a pilot choose a better plan than the rule does? A probe, on tables that decided no rule.

    python -m benchmarks tuning                   all parts
    python -m benchmarks tuning.insurance-1       one table at one ε

A pilot measures the one-way tables and, for 0.2 of the budget, all pairs. Candidate plans are then
rehearsed: the model that is fitted to the pilot takes the place of the private table, every
candidate is run on it with fresh noise, and its average error is known exactly. That is
post-processing. The candidate with the least rehearsed error would be run. Whether that pays is
seen by running all of them on the table itself: `chosen` is the error of the rehearsal's choice in
units of the rule's, `hindsight` that of the best candidate, which nobody can know in private.

A pilot costs nothing beside time: its tables are the first part of what every candidate measures.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.untouched import DELTA, Change, Floats, Judge, Rows, without_rounds
from benchmarks.untouched_tables import INSTALL
from dualquery.engines.local import LocalEngine
from dualquery.game.query_player import QueryPlayer
from dualquery.game.rehearsal import modelled
from dualquery.game.tables import Tabulator, play_tables
from dualquery.game.tables_plan import make_tables_plan
from dualquery.game.tables_player import TablesPlayer
from dualquery.game.tables_shape import Shape
from dualquery.game.tables_steps import Kind, TablesPlan
from dualquery.model import strengths
from dualquery.model.mixture import Mixture
from dualquery.privacy.calibration import Budget
from dualquery.privacy.sources import SeededSource
from dualquery.rows.encoding import OutOfDomain
from dualquery.workloads.actions import Actions
from dualquery.workloads.counts import Counted
from dualquery.workloads.marginals import Marginals
from dualquery.workloads.workload import Workload

RUNS = int(os.environ.get("DUALQUERY_RUNS", "1"))
PILOT_ONE_WAY, PILOT_PAIRS = 0.1, 0.2
"""Shares of the budget that a pilot spends."""


@dataclass(frozen=True)
class Candidate:
    """A plan, as a change of the rule's, and a factor of the shrinkage."""

    change: Change
    shrinkage: float = 1.0


def reshared(**shares: float) -> Change:
    """The same steps with other shares of the budget, by kind."""

    def change(plan: TablesPlan) -> TablesPlan:
        total = {k: sum(s.share for s in plan.steps if s.kind is k) for k in Kind}
        wanted = {k: shares.get(k.name.lower(), total[k]) for k in Kind if total[k]}
        steps = tuple(
            replace(step, share=step.share / total[step.kind] * wanted[step.kind])
            for step in plan.steps
        )
        whole = sum(step.share for step in steps)
        return replace(plan, steps=tuple(replace(s, share=s.share / whole) for s in steps))

    return change


def tables_alone(plan: TablesPlan) -> TablesPlan:
    """One-way tables and pairs, no rounds of draws."""
    return reshared(one_way=0.05, pairs=0.95)(without_rounds(plan))


def fewer_components(plan: TablesPlan) -> TablesPlan:
    return replace(plan, components=plan.components // 2)


CANDIDATES = {
    "rule": Candidate(lambda plan: plan),
    "tables alone": Candidate(tables_alone),
    "more for rounds": Candidate(reshared(pairs=0.35, draws=0.15, named=0.4)),
    "half the components": Candidate(fewer_components),
    "a quarter of the shrinkage": Candidate(lambda plan: plan, 0.25),
    "four times the shrinkage": Candidate(lambda plan: plan, 4.0),
}


def pilot(plan: TablesPlan) -> TablesPlan:
    """The first part of every candidate, as a plan that spends the same with no more than that."""
    budget = plan.budget
    spent = replace(budget, epsilon=_epsilon_of(budget, PILOT_ONE_WAY + PILOT_PAIRS))
    made = reshared(one_way=PILOT_ONE_WAY, pairs=PILOT_PAIRS)(without_rounds(plan))
    return replace(made, budget=spent)


def _epsilon_of(budget: Budget, share: float) -> float:
    """The ε that a share of μ² costs, by bisection."""
    whole = replace(budget)
    aim = TablesPlan(whole, (), 0.0, 0, 0, 0, 0, 0, 0).purse.deviation(share, 1)
    low, high = 1e-9, budget.epsilon
    for _ in range(60):
        middle = (low * high) ** 0.5
        plan = TablesPlan(replace(budget, epsilon=middle), (), 0.0, 0, 0, 0, 0, 0, 0)
        low, high = (middle, high) if plan.purse.deviation(1.0, 1) > aim else (low, middle)
    return low


def run_on(
    tabulate: Tabulator,
    drawer: QueryPlayer,
    workload: Workload,
    plan: TablesPlan,
    seed: int,
    shrinkage: float = 1.0,
) -> Mixture:
    """The model at the end of a run.

    Args:
        tabulate: counts cells of what stands for the private table.
        drawer: draws against its answers.
        workload: the asked queries.
        plan: the steps.
        seed: of noise and fits.
        shrinkage: a factor of the package's own.
    """
    stronger = strengths.PER_ATTRIBUTE * shrinkage
    with mock.patch.object(strengths, "PER_ATTRIBUTE", stronger):
        player = TablesPlayer(workload, plan)
        known, _ = play_tables(drawer, tabulate, player, SeededSource(seed))
        return player.model(known)


def errors_of(
    tabulate: Tabulator, drawer: QueryPlayer, truth: Floats, judge: Judge, plan: TablesPlan,
    seed: int,
) -> dict[str, float]:  # fmt: skip
    """The average error of every candidate against some truth."""
    found = {}
    for name, candidate in CANDIDATES.items():
        model = run_on(
            tabulate, drawer, judge.workload, candidate.change(plan), seed, candidate.shrinkage
        )
        found[name] = float(np.abs(model.answers(judge.workload) - truth).mean())
    return found


def probed(name: str, epsilon: float) -> Rows:
    """Per run: every candidate in truth and rehearsed, and what the choice would have gained."""
    try:
        judge = Judge(name)
    except FileNotFoundError:
        return [{"name": name, "skipped": f"needs files of two packages: {INSTALL}"}]
    plan = make_tables_plan(Budget(epsilon, DELTA, judge.rows), Shape.of(judge.workload))
    if plan is None:
        return [{"name": name, "epsilon": epsilon, "skipped": "no pairs at this budget"}]
    engine = LocalEngine()
    actions = Actions.plain(judge.workload)
    counts = np.rint(judge.truth * judge.rows).astype(np.int64)
    true_drawer = QueryPlayer(Counted(counts, judge.rows), log_prior=actions.log_prior)

    def count(marginals: Marginals) -> np.ndarray[Any, Any]:
        return engine.tabulate(judge.table, judge.schema, marginals, OutOfDomain.CLAMP)

    rows: Rows = []
    for seed in range(RUNS):
        model = run_on(count, true_drawer, judge.workload, pilot(plan), 1000 + seed)
        stand_in = model.answers(judge.workload)

        def rehearsed(marginals: Marginals, model: Mixture = model) -> np.ndarray[Any, Any]:
            shares = model.answers(marginals.queries(judge.schema))
            return np.rint(judge.rows * shares).astype(np.int64)

        drawer = modelled(model, actions, judge.rows)
        expected = errors_of(rehearsed, drawer, stand_in, judge, plan, 2000 + seed)
        true = errors_of(count, true_drawer, judge.truth, judge, plan, seed)
        choice = min(expected, key=lambda one: expected[one])
        best = min(true, key=lambda one: true[one])
        rows.append(
            {
                "name": name,
                "epsilon": epsilon,
                "seed": seed,
                "rule": true["rule"],
                "choice": choice,
                "chosen": true[choice] / true["rule"],
                "best": best,
                "hindsight": true[best] / true["rule"],
                **{f"{one}, in truth": true[one] / true["rule"] for one in CANDIDATES},
                **{f"{one}, rehearsed": expected[one] / expected["rule"] for one in CANDIDATES},
            }
        )
    return rows


SETTINGS = (
    ("insurance", 0.25), ("insurance", 1.0), ("insurance", 10.0), ("spending", 1.0),
    ("spending", 10.0), ("diamonds", 1.0), ("chain", 1.0), ("blood", 1.0), ("blood", 10.0),
    ("network", 0.25), ("network", 1.0), ("movies", 1.0),
)  # fmt: skip

PARTS: dict[str, Callable[[], Rows]] = {
    f"{name}-{epsilon:g}": partial(probed, name, epsilon) for name, epsilon in SETTINGS
}


def run() -> Rows:
    return [row for part in PARTS.values() for row in part()]
