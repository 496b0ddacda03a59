"""How each method answers a setting: this package, the paper's algorithm, and every baseline.

The baselines come from their registry, so a new one appears here by itself. Methods of other
packages run elsewhere (`tools/peers`), and are known here only by their stored runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dualquery.base.checks import one_of
from dualquery.base.errors import DualQueryError
from dualquery.baselines.baseline import Floats
from dualquery.baselines.registry import METHODS
from dualquery.baselines.registry import Task as Fitting
from dualquery.estimator import DualQuery
from dualquery.paper.experiments.attributes import samples_for
from dualquery.paper.experiments.bench import Bench
from dualquery.paper.experiments.series import DATA_FREE, Game, Spend, play_records
from dualquery.paper.field.settings import Counts, Setting, shares_of
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sources import SeededSource
from dualquery.rows.opening import open_table

OURS, OUR_ROWS = "default", "default rows"
ACCOUNTANTS = {"paper": "advanced", "paper-gaussian": "gaussian"}
"""The two proofs under which the paper's algorithm is run."""

OWN = {
    OURS: "this package",
    OUR_ROWS: "this package, its synthetic rows",
    "paper": "the paper's algorithm, its theorem",
    "paper-gaussian": "the paper's algorithm, Gaussian accountant",
}
PEERS = {
    "peer aim": "AIM (dpmm 0.1.9)",
    "peer mst": "MST (dpmm 0.1.9)",
    "peer privbayes": "PrivBayes (dpmm 0.1.9)",
    "peer mwem": "MWEM (smartnoise-synth 1.0.8)",
    "peer mwem-split": "MWEM, columns by threes (smartnoise-synth 1.0.8)",
}
"""Methods of other packages, which `python -m tools.peers field` runs."""

NOT_YET = ("mwem in factors",)
"""Baselines whose runs are not stored yet, and which the comparison therefore leaves out."""

WIDEST_ROWS = 1_000
"""Columns up to which as many synthetic rows as the table has are made and counted."""


def titles() -> dict[str, str]:
    """The name of every method for people, this package first."""
    left_out = (*DATA_FREE, *NOT_YET)
    found = {name: one.title for name, one in METHODS.items() if name not in left_out}
    return {**OWN, **found, **PEERS}


def names() -> tuple[str, ...]:
    """The methods that run here; those that read no data promise nothing and are left out."""
    return tuple(name for name in titles() if name not in PEERS)


@dataclass(frozen=True)
class Promise:
    """What every method is asked to keep.

    Attributes:
        epsilon: ε.
        delta: δ.
        neighbours: which tables it compares.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE


@dataclass(frozen=True, eq=False)
class Answered:
    """The answers of a method, and the promise that its proof keeps.

    Attributes:
        answers: to each query.
        delta: that it kept; 0 for a pure promise, which is a stronger one.
        neighbours: for which its proof is written.
    """

    answers: Floats
    delta: float
    neighbours: str


def answered(
    method: str, setting: Setting, counts: Counts, promise: Promise, seed: int, data: Path | None
) -> Answered:
    """One run.

    A baseline whose proof is written for replacement only is run with that proof at the same ε. Its
    counts move by at most one in either case, so it keeps the promise for added and removed
    records too; the number of rows is public then.

    Args:
        method: its name.
        setting: the table and the workload.
        counts: of the workload.
        promise: that is asked for.
        seed: of all randomness.
        data: the file of a public table, or its folder.
    """
    one_of("method", method, names())
    bench = counts.bench(setting, data)
    if method in (OURS, OUR_ROWS):
        return _ours(bench, promise, seed, rows=method == OUR_ROWS)
    if method in ACCOUNTANTS:
        return _paper(bench, setting, promise, seed, ACCOUNTANTS[method])
    found = METHODS[method]
    proved = found.neighbours
    neighbours = promise.neighbours if promise.neighbours in proved else proved[0]
    made = found.fit(
        Fitting(
            open_table(bench.data.table),
            counts.workload,
            counts.answers,
            promise.epsilon,
            promise.delta,
            SeededSource(seed),
            neighbours,
        )
    )
    delta = made.privacy.delta
    return Answered(made.answers(counts.workload), delta, str(made.privacy.neighbours))


def _ours(bench: Bench, promise: Promise, seed: int, *, rows: bool) -> Answered:
    """The package with all its defaults; the reference number of rows is that of the table."""
    public = bench.rows if promise.neighbours is Neighbours.ADD_REMOVE else None
    if rows and len(bench.workload.schema) > WIDEST_ROWS:
        raise DualQueryError(
            f"as many rows as the table has are counted up to {WIDEST_ROWS:,} columns"
        )
    job = DualQuery(
        promise.epsilon,
        promise.delta,
        neighbours=str(promise.neighbours),
        rows=public,
        seed=seed,
    )
    made = job.fit(bench.data.table, schema=bench.workload.schema, workload=bench.workload)
    if rows:
        codes = made.sample_codes(bench.rows, np.random.default_rng(seed))
        answers = shares_of(codes, bench.workload)
    else:
        answers = np.clip(made.answers(bench.workload), 0.0, 1.0)
    return Answered(answers, promise.delta, str(promise.neighbours))


def _paper(
    bench: Bench, setting: Setting, promise: Promise, seed: int, accountant: str
) -> Answered:
    spend = Spend(promise.epsilon, promise.delta, accountant)
    game = paper_game(setting.dataset, setting.columns)
    found = play_records(
        bench, bench.binary_workload, spend, game, seed, lambda stage, done, total: None
    )
    return Answered(found.answers, promise.delta, str(Neighbours.REPLACE_ONE))


def paper_game(dataset: str, columns: int) -> Game:
    """The paper's η and s for a table of this kind."""
    if dataset == "biased":
        return Game(0.4, samples_for(columns))
    return Game(2.0, 5000 if columns > WIDEST_ROWS else 1000)
