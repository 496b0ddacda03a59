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

from benchmarks.tables import missing, public_table
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.model.arranging import arranged, targets_of
from dualquery.model.mixture import Mixture
from dualquery.release.release import Release
from dualquery.rows.counting import count_rows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.table import BLOCK_ROWS, DenseBlock
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
        for first in range(0, len(self.codes), BLOCK_ROWS):
            part = self.codes[first : first + BLOCK_ROWS]
            yield DenseBlock(len(part), {a: np.ascontiguousarray(part[:, a]) for a in attributes})


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
}


def run() -> Rows:
    return [row for part in PARTS.values() for row in part()]
