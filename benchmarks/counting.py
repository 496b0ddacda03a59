"""Counting on KDD99 (494,021 rows, 396 bits) against NumPy, and against a bare popcount.

    python -m benchmarks counting

The data set comes from the folder DUALQUERY_DATA; without it, biased bits of the same
shape stand in. NumPy is timed on a sample of the same queries, on one thread, as a user would
write it, and on as many threads as the package uses for the packed form.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from benchmarks.tables import data_folder
from dualquery.base.threads import over_ranges, thread_count
from dualquery.domain.schema import Schema
from dualquery.paper.datasets import BiasedTable
from dualquery.rows._kernels import popcount
from dualquery.rows.counting import Tally, count_by_popcounts, count_packed
from dualquery.rows.packed import PackedRows
from dualquery.rows.table import Table
from dualquery.workloads.generators import all_marginals, random_marginals

QUERIES = 500_000


def kdd99() -> tuple[str, Schema, Table]:
    """The table, with its name; a stand-in of the same shape where there is no file."""
    from dualquery.paper.datasets.catalogue import load

    folder = data_folder()
    if (folder / "kdd99.csv.gz").is_file():
        table, schema = load("kdd99", folder)
        return "kdd99", schema, table
    stand_in = BiasedTable(494_021, 396)
    return "biased bits", stand_in.schema, stand_in


def best_of(task: Callable[[], object], repeats: int = 5) -> float:
    """The shortest of several times, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


@numba.njit(nogil=True, cache=True)
def bare(words, repeats):
    """Popcounts of a buffer that stays in the nearest cache."""
    total = np.uint64(0)
    for repeat in range(repeats):
        here = np.uint64(repeat)
        for w in range(len(words)):
            here += popcount(words[w])
        total ^= here
    return total


def bare_speed() -> float:
    """Bytes a second of the bare loop, on all threads."""
    words = np.random.default_rng(0).integers(0, 2**63, 2048).astype(np.uint64)
    repeats = 40_000
    bare(words, 1)

    def task() -> None:
        over_ranges(lambda first, last: bare(words, last - first), repeats, grain=1000)

    return repeats * words.nbytes / best_of(task)


def run() -> list[dict[str, Any]]:
    name, schema, table = kdd99()
    workload = random_marginals(schema, 3, QUERIES)
    start = time.perf_counter()
    packed_rows = PackedRows.pack(table, schema, workload.literals)
    packing = time.perf_counter() - start
    terms = workload.terms.reshape(-1, 3)
    counts = count_packed(packed_rows, workload).counts
    ours = best_of(lambda: count_packed(packed_rows, workload))
    popcounts = best_of(lambda: count_by_popcounts(Tally(packed_rows), terms), 3)
    booleans, packed = numpy_times(packed_rows, terms, counts)
    moved = 3 * 8 * len(terms) * sum(bits.shape[1] for bits in packed_rows.blocks)
    speed = bare_speed()
    rows = [
        {
            "table": name,
            "queries": len(workload),
            "threads": thread_count(),
            "pack_s": packing,
            "count_s": ours,
            "popcounts_only_s": popcounts,
            "times_faster_than_boolean_columns": booleans * len(terms) / ours,
            "times_faster_than_packed_bytes": packed * len(terms) / ours,
            "GB_per_s": moved / ours / 1e9,
            "popcounts_only_GB_per_s": moved / popcounts / 1e9,
            "bare_popcount_GB_per_s": speed / 1e9,
            "over_bare_popcount": moved / ours / speed,
            "popcounts_only_over_bare_popcount": moved / popcounts / speed,
        }
    ]
    cells = all_marginals(schema, 2)
    packed_rows = PackedRows.pack(table, schema, cells.literals)
    pairs = cells.terms.reshape(-1, 2)
    count_packed(packed_rows, cells)
    chosen = best_of(lambda: count_packed(packed_rows, cells), 3)
    forced = best_of(lambda: count_by_popcounts(Tally(packed_rows), pairs), 3)
    rows.append(
        {
            "table": f"{name}, all 2-way cells",
            "queries": len(cells),
            "count_s": chosen,
            "popcounts_only_s": forced,
            "times_faster_than_popcounts": forced / chosen,
        }
    )
    return rows


def numpy_times(
    packed_rows: PackedRows, terms: np.ndarray, counts: np.ndarray
) -> tuple[float, float]:
    """Seconds a query by NumPy, on boolean columns and on packed bytes."""
    packed = np.concatenate([bits.view(np.uint8) for bits in packed_rows.blocks], axis=1)
    used = np.unique(terms[:60] >> 1)
    columns = {
        int(i): np.unpackbits(packed[i], bitorder="little")[: packed_rows.rows].view(bool)
        for i in used
    }
    valid = np.packbits(np.ones(packed_rows.rows, dtype=bool), bitorder="little")
    valid = np.pad(valid, (0, packed.shape[1] - len(valid)))
    flipped = packed ^ valid

    def boolean(query: np.ndarray) -> float:
        a, b, c = (~columns[t >> 1] if t & 1 else columns[t >> 1] for t in query)
        return (a & b & c).mean()

    def by_bytes(query: np.ndarray) -> int:
        a, b, c = ((flipped if t & 1 else packed)[t >> 1] for t in query)
        return int(np.bitwise_count(a & b & c).sum())

    sample = terms[:60]
    for query, expected in zip(sample, counts, strict=False):
        assert round(boolean(query) * packed_rows.rows) == expected == by_bytes(query)
    slow = best_of(lambda: [boolean(query) for query in sample], 3) / len(sample)
    fast = best_of(lambda: [by_bytes(query) for query in sample], 3) / len(sample)
    return slow, fast
