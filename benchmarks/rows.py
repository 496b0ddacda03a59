"""Synthetic rows: how near arranged rows are to their model, and how long they take.

    python -m benchmarks rows                all parts
    python -m benchmarks rows.adult-1        one of them

`average` and `maximum` are the distances of the rows' answers from the model's over all asked
queries, `of_independent_…` the same as a share of independent draws' in the same run. `seconds` is
the whole command `dualquery sample`, the second time it is run; `processor_seconds` are those of
the command on all cores.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.tables import missing, public_table
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.model.arranging import arranged, targets_of
from dualquery.model.mixture import Mixture
from dualquery.release.release import Release
from dualquery.rows.counting import count_rows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.table import DenseBlock, blocks_of_codes
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.workload import Workload

Rows = list[dict[str, Any]]
Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class CodedTable:
    """Codes as a table, so that they are counted as private rows are."""

    codes: Codes

    def bind(self, schema: Schema) -> Schema:
        return schema

    def blocks(
        self, schema: Schema, attributes: Sequence[int], out_of_domain: OutOfDomain
    ) -> Iterator[DenseBlock]:
        return blocks_of_codes(self.codes, attributes)


def adult(epsilon: float) -> Rows:
    """30,162 and a million rows of Adult, δ = 10⁻³, 500,000 3-way queries."""
    found = public_table("adult")
    if found is None:
        return missing("adult")
    table, schema = found
    workload = random_marginals(schema, 3, 500_000)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "release"
        made = DualQuery(epsilon, 1e-3, seed=1).release(
            table, out, schema=schema, workload=lambda _: workload
        )
        return [_figures(f"adult ε={epsilon:g}", made, out, rows) for rows in (30_162, 1_000_000)]


def wide() -> Rows:
    """A mixture over 17,770 0/1 columns, 100,000 random 3-way queries."""
    width, components = 17_770, 16
    random = np.random.default_rng(0)
    schema = Schema(tuple(Attribute.binary(f"movie_{i}") for i in range(width)))
    ones = random.beta(0.3, 4.0, (width, components))
    tables = np.stack([1.0 - ones, ones], axis=1).reshape(2 * width, components)
    model = Mixture(schema, random.dirichlet(np.ones(components)), tables)
    workload = random_marginals(schema, 3, 100_000)
    rows = 30_162
    begun, worked = time.perf_counter(), time.process_time()
    near = arranged(model, rows, np.random.default_rng(1), targets_of(workload))
    seconds, processor = time.perf_counter() - begun, time.process_time() - worked
    far = model.sample(rows, np.random.default_rng(1))
    return [
        {
            "table": f"17,770 columns, {rows:,} rows",
            **_distances(workload, model.answers(workload), near, far),
            "seconds": seconds,
            "processor_seconds": processor,
        }
    ]


def values() -> Rows:
    """Means and quantiles of sampled columns against 50,000 rows, ε = 1, δ = 10⁻⁶.

    `mean_off` is relative; `quantiles_off` is by how many sub-bins the 10, 50, 90 and 99 %
    quantiles are off, at most. `evenly_in_bins` is what values that are uniform in their bins give.
    """
    table, schema = _hospital()
    made = DualQuery(1.0, 1e-6, seed=1, errors=False).fit(table, schema=schema)
    sampled = made.sample(table.num_rows, seed=1)
    found = []
    for attribute in schema.attributes:
        if not attribute.is_numeric:
            continue
        true, drawn = (_numbers(one.column(attribute.name)) for one in (table, sampled))
        edges = np.asarray(attribute.edges, dtype=float)
        codes = np.clip(np.searchsorted(edges, drawn, side="right") - 1, 0, len(edges) - 2)
        evenly = ((edges[codes] + edges[codes + 1]) / 2.0).mean()
        parts = made.within(attribute.name).edges
        off = [
            abs(
                int(np.searchsorted(parts, np.quantile(true, q), side="right"))
                - int(np.searchsorted(parts, np.quantile(drawn, q), side="right"))
            )
            for q in (0.1, 0.5, 0.9, 0.99)
        ]
        found.append(
            {
                "column": attribute.name,
                "mean": float(true.mean()),
                "mean_off": float(drawn.mean() / true.mean() - 1.0),
                "quantiles_off": max(off),
                "evenly_in_bins": float(evenly / true.mean() - 1.0),
            }
        )
    return found


def _numbers(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    cells = column.drop_null().to_numpy()
    days = cells.astype("datetime64[D]").astype(np.int64) if cells.dtype.kind == "M" else cells
    return np.asarray(days, dtype=np.float64)


def _hospital(rows: int = 50_000) -> tuple[pa.Table, Schema]:
    """Stays with costs and incomes that have long tails, in the bins a person would write down."""
    random = np.random.default_rng(7)
    age = np.clip(random.normal(52, 19, rows), 0, 104).astype(np.int64)
    severe = random.random(rows) < 0.1 + age / 250
    stay = np.minimum(random.geometric(np.where(severe, 0.12, 0.35)), 120)
    cost = np.minimum(np.exp(random.normal(np.log(900.0 * stay), 0.7)), 249_999.0)
    income = np.minimum(np.exp(random.normal(np.log(28_000.0), 0.8, rows)), 999_999.0)
    table = pa.table(
        {
            "sex": random.choice(["f", "m"], rows),
            "region": random.choice([f"r{i}" for i in range(8)], rows),
            "severe": severe.astype(np.int64),
            "ward": random.choice(["medical", "surgical", "other"], rows, p=[0.5, 0.3, 0.2]),
            "age": age,
            "stay": stay,
            "cost": pa.array(cost, mask=random.random(rows) < 0.03),
            "income": income,
            "admitted": (18_993 + random.integers(0, 365, rows)).astype("datetime64[D]"),
        }
    )
    schema = Schema(
        (
            Attribute.categorical("sex", ["f", "m"]),
            Attribute.categorical("region", [f"r{i}" for i in range(8)]),
            Attribute.binary("severe"),
            Attribute.categorical("ward", ["medical", "surgical", "other"]),
            Attribute.numeric("age", [0, 18, 35, 50, 65, 80, 105]),
            Attribute.numeric("stay", [1, 3, 7, 14, 120]),
            Attribute.numeric(
                "cost", [0.0, 1000.0, 2000.0, 5000.0, 10_000.0, 250_000.0], missing=True
            ),
            Attribute.numeric("income", [0.0, 10_000.0, 20_000.0, 40_000.0, 80_000.0, 1e6]),
            Attribute.numeric(
                "admitted", ["2022-01-01", "2022-04-01", "2022-07-01", "2023-01-01"], type="date"
            ),
        )
    )
    return table, schema


def _figures(name: str, made: Release, directory: Path, rows: int) -> dict[str, Any]:
    answers = made.answers()
    near = made.sample_codes(rows, np.random.default_rng(1))
    far = made.sample_codes(rows, np.random.default_rng(1), independent=True)
    seconds, processor = _command(directory, rows)
    return {
        "table": f"{name}, {rows:,} rows",
        **_distances(made.workload, answers, near, far),
        "seconds": seconds,
        "processor_seconds": processor,
    }


def _distances(
    workload: Workload, answers: npt.NDArray[np.float64], near: Codes, far: Codes
) -> dict[str, float]:
    one, other = (np.abs(_answers(workload, codes) - answers) for codes in (near, far))
    return {
        "average": float(one.mean()),
        "maximum": float(one.max()),
        "of_independent_average": float(one.mean() / other.mean()),
        "of_independent_maximum": float(one.max() / other.max()),
    }


def _answers(workload: Workload, codes: Codes) -> npt.NDArray[np.float64]:
    found = count_rows(CodedTable(codes), workload)
    shares: npt.NDArray[np.float64] = found.counts / found.rows
    return shares


def _command(directory: Path, rows: int) -> tuple[float, float]:
    """Wall and processor seconds of the second of two runs: the first compiles."""
    command = [sys.executable, "-m", "dualquery", "sample", str(directory), "--rows", str(rows)]
    for again in (False, True):
        out = directory.parent / f"rows-{rows}-{again}.parquet"
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([*command, "--out", str(out)], check=True, capture_output=True)
        seconds, after = (
            time.perf_counter() - begun,
            resource.getrusage(resource.RUSAGE_CHILDREN),
        )
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, worked


PARTS: dict[str, Callable[[], Rows]] = {
    "adult-1": partial(adult, 1.0),
    "adult-10": partial(adult, 10.0),
    "wide": wide,
    "values": values,
}


def run() -> Rows:
    return [row for part in PARTS.values() for row in part()]
