"""A public start: half of Adult is public, the other half is private.

Errors of releases of the private half at ε = 0.25, over 100,000 random 3-way marginals: without a
start, with the public half as a start, with an earlier release of the public half, and with a poor
start, the public half with every column shuffled by itself.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables import missing, public_table, true_answers
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.workloads.generators import random_marginals

RUNS = int(os.environ.get("DUALQUERY_RUNS", "3"))
EPSILON, DELTA = 0.25, 1e-3


def run() -> list[dict[str, Any]]:
    found = public_table("adult")
    if found is None:
        return missing("adult")
    table, given = found
    rows = EncodedRows.read(open_table(table), given, range(len(given)), OutOfDomain.CLAMP)
    codes = pd.DataFrame({given.names[a]: column for a, column in rows.columns.items()}).astype(str)
    schema = Schema(
        tuple(
            Attribute.categorical(a.name, [str(code) for code in range(a.size)])
            for a in given.attributes
        )
    )
    chosen = np.random.default_rng(0).permutation(len(codes))
    public, private = codes.iloc[chosen[::2]], codes.iloc[chosen[1::2]]
    random = np.random.default_rng(1)
    shuffled = public.apply(lambda column: random.permutation(column.to_numpy()))
    workload = random_marginals(schema, 3, 100_000)
    truth = true_answers(open_table(private), workload)
    earlier = DualQuery(EPSILON, DELTA, seed=99, errors=False).fit(
        public, schema=schema, workload=workload
    )
    starts = {"none": None, "public half": public, "release of it": earlier, "poor": shuffled}
    figures = []
    for name, start in starts.items():
        errors = []
        for seed in range(RUNS):
            job = DualQuery(EPSILON, DELTA, seed=seed, errors=False, start=start)
            made = job.fit(private, schema=schema, workload=workload)
            away = np.abs(made.answers() - truth)
            errors.append((away.max(), away.mean()))
        most, mean = np.mean(errors, axis=0)
        figures.append({"name": f"adult half, start: {name}", "max_error": most, "average": mean})
    for one in figures:
        one["average_of_none"] = one["average"] / figures[0]["average"]
    return figures
