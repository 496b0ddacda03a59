"""Reading a table and counting all that a default release counts, against polars' own reading.

    python -m benchmarks reading               both files
    python -m benchmarks reading.csv           one of them

The table has 20 columns: text of 2 to 50 values, flags, and numbers in bins. 100,000 random 3-way
queries are asked. `asked` reads the file and counts the queries. `whole` counts also what a default
release measures: every column, every pair of columns and sixty tables of three. Both are ours; how
they compare with polars' reading of the same file is a ratio of processor seconds in the same run,
so other work on the machine takes no part in it. DUALQUERY_ROWS sets another number of rows.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from pyarrow import csv, parquet

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.engines.local import LocalEngine
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.marginals import Groups, Marginals

Rows = list[dict[str, Any]]

ROWS = int(os.environ.get("DUALQUERY_ROWS", "10000000"))
QUERIES = 100_000
TEXT = (2, 3, 4, 5, 7, 9, 12, 16, 25, 50)
"""How many values the columns of text have."""

NAMED = 60
"""Tables of three that the draws of a default release name."""


def columns(rows: int) -> tuple[pa.Table, Schema]:
    """Rows of a made-up table, and its schema."""
    random = np.random.default_rng(0)
    arrays: dict[str, pa.Array] = {}
    attributes = []
    for number, size in enumerate(TEXT):
        values = [f"value {code}" for code in range(size)]
        codes = random.integers(0, size, rows, dtype=np.int8)
        arrays[f"text{number}"] = pa.DictionaryArray.from_arrays(codes, values).cast(pa.string())
        attributes.append(Attribute.categorical(f"text{number}", values))
    for number in range(5):
        arrays[f"flag{number}"] = pa.array((random.random(rows) < 0.3).astype(np.int8))
        attributes.append(Attribute.binary(f"flag{number}"))
    for number in range(5):
        arrays[f"number{number}"] = pa.array(random.integers(0, 1000, rows, dtype=np.int32))
        attributes.append(Attribute.numeric(f"number{number}", [*range(0, 1000, 100), 1000]))
    return pa.table(arrays), Schema(tuple(attributes))


def processor(work: Callable[[], object]) -> tuple[float, float]:
    """Processor seconds of all threads, and seconds on the clock."""
    clock, begun = time.perf_counter(), time.process_time()
    work()
    return time.process_time() - begun, time.perf_counter() - clock


def measure(kind: str) -> Rows:
    """One kind of file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table.{kind}"
        held, schema = columns(ROWS)
        if kind == "csv":
            csv.write_csv(held, path)
        else:
            parquet.write_table(held, path, row_group_size=1 << 20)
        small = Path(folder) / f"small.{kind}"
        first = held.slice(0, 1000)
        csv.write_csv(first, small) if kind == "csv" else parquet.write_table(first, small)
        del held
        figures(kind, small, schema)  # kernels are loaded, and their first call is not timed
        return [figures(kind, path, schema)]


def figures(kind: str, path: Path, schema: Schema) -> dict[str, Any]:
    workload = random_marginals(schema, 3, QUERIES)
    fine, pairs, named = tables(schema)

    def asked() -> None:
        LocalEngine().count(open_table(path), workload, OutOfDomain.REFUSE)

    def whole() -> None:
        engine, table = LocalEngine(), open_table(path)
        engine.count(table, workload, OutOfDomain.REFUSE, schema.fine)
        engine.tabulate(table, schema.fine, fine, OutOfDomain.REFUSE)
        engine.tabulate(table, schema, pairs, OutOfDomain.REFUSE)
        engine.tabulate(table, schema, named, OutOfDomain.REFUSE)

    read: Callable[..., object] = pl.read_csv if kind == "csv" else pl.read_parquet
    polars, polars_clock = processor(lambda: read(path))
    ours, ours_clock = processor(asked)
    all_of_it, all_clock = processor(whole)
    return {
        "file": kind,
        "rows": ROWS,
        "file_MB": path.stat().st_size / 1e6,
        "polars_processor_s": polars,
        "asked_processor_s": ours,
        "whole_processor_s": all_of_it,
        "asked_over_polars": ours / polars,
        "whole_over_polars": all_of_it / polars,
        "whole_over_asked": all_of_it / ours,
        "whole_clock_over_polars_clock": all_clock / polars_clock,
        "asked_clock_s": ours_clock,
        "packed_bytes_per_row": len(workload.literals) / 8,
        "code_bytes_per_row": len(schema),
    }


def tables(schema: Schema) -> tuple[Marginals, Marginals, Marginals]:
    """The tables that a default release measures: columns in sub-bins, pairs, some of three."""
    width = range(len(schema))
    single = Groups.single(schema)
    pairs = np.array(list(combinations(width, 2)), dtype=np.int32)
    threes = np.array(list(combinations(width, 3)), dtype=np.int32)
    chosen = np.sort(np.random.default_rng(1).choice(len(threes), NAMED, replace=False))
    return (
        Marginals(Groups.single(schema.fine), np.array(width, dtype=np.int32)[:, None]),
        Marginals(single, pairs),
        Marginals(single, threes[chosen]),
    )


PARTS: dict[str, Callable[[], Rows]] = {
    "csv": partial(measure, "csv"),
    "parquet": partial(measure, "parquet"),
}


def run() -> Rows:
    return [row for part in PARTS.values() for row in part()]
