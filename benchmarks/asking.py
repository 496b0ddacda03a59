"""What is asked is what is right: options that say what matters, and other promises.

    python -m benchmarks asking.focus       a focus on two columns, beside none
    python -m benchmarks asking.marginals   whole marginals of one and two columns
    python -m benchmarks asking.bits        16 dependent 0/1 columns: the default beside draws alone
    python -m benchmarks asking.pure        δ = 0 on 17 bits of Adult: the default beside MWEM

Means over RUNS seeded runs. Figures that are compared come from the same run and the same table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.accuracy import RUNS, Rows
from benchmarks.tables import missing, public_table, true_answers
from dualquery.baselines.mwem import IMPROVED, Mwem, Settings
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.paper.datasets.adult import SEVENTEEN
from dualquery.paper.experiments.bench import NamedTable, narrow
from dualquery.privacy.sources import SeededSource
from dualquery.rows.opening import open_table
from dualquery.workloads.generators import all_marginals, random_marginals
from dualquery.workloads.workload import Workload

Floats = npt.NDArray[np.float64]


def _errors(
    settings: dict[str, Any], table: Any, schema: Schema, asked: Workload | None, judged: Workload
) -> Floats:
    """The absolute error of every judged answer, over all runs: one row per run."""
    truth = true_answers(table, judged)
    found = []
    for seed in range(RUNS):
        job = DualQuery(
            **{"epsilon": 1.0, "delta": 1e-3, "errors": False, "out_of_domain": "clamp"}
            | settings
            | {"seed": seed}
        )
        made = job.fit(table, schema=schema, workload=asked)
        found.append(np.abs(made.answers(judged) - truth))
    return np.stack(found)


def _row(name: str, errors: Floats, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "runs": len(errors),
        "max_error": float(errors.max(axis=1).mean()),
        "average_error": float(errors.mean()),
        **more,
    }


def focus() -> Rows:
    """Adult, ε = 1: pairs and triples that name one of two columns, with and without a focus."""
    found = public_table("adult")
    if found is None:
        return missing("adult")
    table, schema = found
    chosen = ("age", "hours_per_week")
    judged = random_marginals(schema, 2, 20_000, seed=5) + random_marginals(schema, 3, 20_000, 6)
    wanted = [schema.position(name) for name in chosen]
    attribute = judged.literals.attribute[judged.terms >> 1]
    names = np.add.reduceat(np.isin(attribute, wanted), judged.start[:-1]) > 0
    rows = []
    for name, focused in (("no focus", ()), ("focus", chosen)):
        errors = _errors({"focus": focused}, table, schema, None, judged)
        others = float(errors[:, ~names].mean())
        rows.append(_row(f"adult, {name}", errors[:, names], average_of_others=others))
    return rows


def marginals() -> Rows:
    """Adult, ε = 1: all pairs, asked as such and as random 3-way queries."""
    found = public_table("adult")
    if found is None:
        return missing("adult")
    table, schema = found
    judged = all_marginals(schema, 1) + all_marginals(schema, 2)
    rows = []
    for name, settings in (("random 3-way", {}), ("--marginals 1,2", {"marginals": (1, 2)})):
        rows.append(_row(f"adult, {name}", _errors(settings, table, schema, None, judged)))
    return rows


def dependent_bits(rows: int = 21_000, seed: int = 0) -> tuple[pa.Table, Schema]:
    """16 0/1 columns: two hidden causes, a chain of copies, and a parity that pairs do not show."""
    random = np.random.default_rng(seed)
    causes = random.random((rows, 2)) < (0.3, 0.6)
    columns: dict[str, npt.NDArray[np.int64]] = {}
    for i in range(8):
        chance = np.where(causes[:, i % 2], 0.85 - 0.05 * i, 0.1 + 0.03 * i)
        columns[f"x{i}"] = (random.random(rows) < chance).astype(np.int64)
    for i in range(8, 14):
        kept = random.random(rows) < 0.9
        columns[f"x{i}"] = np.where(kept, columns[f"x{i - 8}"], 1 - columns[f"x{i - 8}"])
    columns["x14"] = random.integers(0, 2, rows)
    flipped = random.random(rows) < 0.05
    columns["x15"] = columns["x14"] ^ columns["x0"] ^ flipped.astype(np.int64)
    return pa.table(columns), Schema(tuple(Attribute.binary(name) for name in columns))


def bits() -> Rows:
    """ε = 1, δ = 10⁻⁶, add-remove: the default beside draws alone, in the same run."""
    table, schema = dependent_bits()
    judged = all_marginals(schema, 3)
    common = {"delta": 1e-6, "neighbours": "add-remove", "rows": table.num_rows}
    source = open_table(table)
    return [
        _row(name, _errors(common | more, source, schema, None, judged))
        for name, more in (("16 bits, default", {}), ("16 bits, draws alone", {"measure": False}))
    ]


def pure() -> Rows:
    """ε = 1 and 5, δ = 0, replace-one: whole tables with discrete Laplace noise beside MWEM."""
    found = public_table("adult")
    if found is None:
        return missing("adult")
    bench = narrow(NamedTable("adult", *found), SEVENTEEN, 10_000, "marginals")
    table, schema, judged = open_table(bench.data.table), bench.workload.schema, bench.workload
    rows = []
    for epsilon in (1.0, 5.0):
        common = {"epsilon": epsilon, "delta": 0.0, "accountant": "pure"}
        ours = _errors(common, table, schema, judged, judged)
        rows.append(_row("17 bits, default", ours, epsilon=epsilon))
        for name, settings in (("published", Settings()), ("improved", IMPROVED)):
            theirs = []
            for seed in range(RUNS):
                made = Mwem.fit(
                    bench.answers, judged, epsilon=epsilon, source=SeededSource(seed),
                    settings=settings,
                )  # fmt: skip
                theirs.append(np.abs(made.answers(judged) - bench.truth))
            rows.append(_row(f"17 bits, MWEM {name}", np.stack(theirs), epsilon=epsilon))
    return rows


PARTS: dict[str, Callable[[], Rows]] = {
    "focus": focus,
    "marginals": marginals,
    "bits": bits,
    "pure": pure,
}


def run() -> Rows:
    return [row for part in PARTS.values() for row in part()]
