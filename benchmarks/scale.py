"""Whole jobs at the sizes the package is made for, each in a process of its own.

    python -m benchmarks scale                    all parts
    python -m benchmarks scale.ratings            one of them
    python -m benchmarks.scale biased-512000      the same, in this process

Peak memory is that of the process that did the part. What a user would do instead is timed on a
sample of the same queries and scaled up.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.paper.datasets import BiasedTable, RatingsTable
from dualquery.paper.datasets.generated import GeneratedTable
from dualquery.rows.counting import count_packed, count_rows
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.workload import Workload

Rows = list[dict[str, Any]]

WIDTHS = (1_000, 8_000, 64_000, 512_000)


def peak_gb() -> float:
    """The most memory this process has held, in GB; Linux counts the parent's in `getrusage`."""
    status = Path("/proc/self/status")
    if status.is_file():
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def release(
    table: Any, schema: Schema, folder: Path, workload: Workload | None = None, **settings: Any
) -> dict[str, float]:
    """Seconds of each stage of a release."""
    seconds: dict[str, float] = {}
    last = ["preparing", time.perf_counter()]

    def progress(stage: str, done: int, total: int) -> None:
        if stage != last[0]:
            now = time.perf_counter()
            seconds[last[0]] = seconds.get(last[0], 0.0) + now - last[1]
            last[:] = [stage, now]

    job = DualQuery(
        **{"epsilon": 1.0, "delta": 1e-3, "player": "record", "refit": False} | settings
    )
    job.release(table, folder / "release", schema=schema, workload=workload, progress=progress)
    progress("done", 0, 0)
    return seconds


def by_numpy(table: GeneratedTable, workload: Workload, sample: int = 40) -> float:
    """Seconds boolean columns would take for the whole workload, if all were in memory."""
    terms = workload.terms.reshape(len(workload), -1)[:sample]
    used = np.unique(terms >> 1)
    bits = table.columns(workload.literals.attribute[used])
    bytes_ = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")[:, : table.rows]
    columns = dict(zip(used.tolist(), bytes_.view(bool), strict=True))
    start = time.perf_counter()
    for query in terms:
        held = [~columns[t >> 1] if t & 1 else columns[t >> 1] for t in query.tolist()]
        np.logical_and.reduce(held).mean()
    return (time.perf_counter() - start) / len(terms) * len(workload)


def biased(width: int) -> Rows:
    """The paper's synthetic table: 100,000 rows, 100,000 queries, everything by default."""
    start = time.perf_counter()
    table = BiasedTable(100_000, width)
    schema = table.schema
    workload = random_marginals(schema, 3, 100_000)
    with tempfile.TemporaryDirectory() as folder:
        seconds = release(table, schema, Path(folder), workload, player=None, refit=True)
    whole = time.perf_counter() - start
    packed, counted = pack_and_count(table, workload)
    peak = peak_gb()
    instead = by_numpy(table, workload)
    return [
        {
            "part": f"biased-{width}",
            "attributes": width,
            "whole_s": whole,
            "generate_s": packed,
            "count_s": counted,
            "measure_s": seconds["measuring"],
            "write_s": seconds["writing the release"],
            "peak_GB": peak,
            "numpy_boolean_columns_s": instead,
            "times_faster_than_boolean_columns": instead / counted,
        }
    ]


def pack_and_count(table: Any, workload: Workload) -> tuple[float, float]:
    """Seconds to pack the columns of a workload, and to count it."""
    from dualquery.rows.opening import open_table
    from dualquery.rows.packed import PackedRows

    start = time.perf_counter()
    rows = PackedRows.pack(open_table(table), workload.schema, workload.literals)
    packed = time.perf_counter() - start
    start = time.perf_counter()
    count_packed(rows, workload)
    return packed, time.perf_counter() - start


def ratings() -> Rows:
    """480,189 people, 17,770 films, 500,000 queries, s = 5000."""
    start = time.perf_counter()
    table = RatingsTable()
    schema = table.schema
    matrix = table.matrix()
    made = time.perf_counter() - start
    workload = random_marginals(schema, 3, 500_000)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        release(matrix, schema, Path(folder), workload, eta=2.0, samples=5000)
    whole = time.perf_counter() - start
    packed, counted = pack_and_count(matrix, workload)
    peak = peak_gb()
    instead = by_numpy(table, workload)
    return [
        {
            "part": "ratings",
            "share_of_ones": matrix.nnz / matrix.shape[0] / matrix.shape[1],
            "generate_s": made,
            "pack_s": packed,
            "count_s": counted,
            "release_s": whole,
            "peak_GB": peak,
            "numpy_boolean_columns_s": instead,
            "times_faster_than_boolean_columns": instead / (packed + counted),
        }
    ]


def rounds(sizes: Sequence[int] = (500_000, 2_000_000)) -> Rows:
    """Seconds a round on KDD99, its oracle left out: draws, weights and the record's matches."""
    from benchmarks.counting import best_of, kdd99
    from dualquery.game.query_player import QueryPlayer
    from dualquery.privacy.sources import SystemSource
    from dualquery.workloads.matching import add_matches, share

    name, schema, table = kdd99()
    record = schema.defaults
    source = SystemSource()
    rows: Rows = []
    for queries in sizes:
        workload = random_marginals(schema, 3, queries)
        answers = count_rows(table, workload)
        player = QueryPlayer(answers)
        matches = np.zeros(queries, dtype=np.int32)

        def one_round(
            player: QueryPlayer = player, matches: Any = matches, workload: Workload = workload
        ) -> None:
            player.draw(100.0, share(matches, 50), 1000, source)
            after = matches.copy()
            add_matches(workload, record, after)

        def plain(
            counts: Any = answers.counts, matches: Any = matches, n: int = answers.rows
        ) -> None:
            exponent = 100.0 * (counts / n - matches / 50)
            both = np.concatenate([exponent, -exponent])
            sums = np.cumsum(np.exp(both - both.max()))
            np.searchsorted(sums, np.random.default_rng(0).random(1000) * sums[-1])

        one_round()
        ours, instead = best_of(one_round, 9), best_of(plain, 5)
        rows.append(
            {
                "part": f"rounds on {name}",
                "queries": queries,
                "round_ms": 1e3 * ours,
                "over_first": 1.0 if not rows else 1e3 * ours / rows[0]["round_ms"],
                "numpy_weights_and_draws_ms": 1e3 * instead,
                "over_numpy": ours / instead,
            }
        )
    return rows


def folder(limit_mb: int = 640) -> Rows:
    """A Parquet folder three times as large as the memory the process may have."""
    import pyarrow as pa
    from pyarrow import parquet

    names = [f"x{i}" for i in range(40)]
    rows = 3 * limit_mb * 10**6 // (8 * len(names)) // 6 + 1
    generator = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "data"
        data.mkdir()
        for number in range(6):
            part = {n: (generator.random(rows) < 0.3).astype(np.int64) for n in names}
            parquet.write_table(
                pa.table(part), data / f"{number}.parquet", compression="none", use_dictionary=False
            )
        size = sum(file.stat().st_size for file in data.iterdir())
        limited = subprocess.run(
            [sys.executable, "-m", "benchmarks.scale", "within", str(data), str(limit_mb)],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    if limited.returncode:
        raise SystemExit(f"the folder was not released within {limit_mb} MB:\n{limited.stderr}")
    found = json.loads(limited.stdout)
    return [
        {
            "part": "folder",
            "folder_MB": size / 1e6,
            "limit_MB": limit_mb,
            "folder_over_limit": size / 1e6 / limit_mb,
            **found,
        }
    ]


def within(data: Path, limit_mb: int) -> dict[str, float]:
    """Release a folder of 0/1 columns under a limit on this process's memory."""
    resource.setrlimit(resource.RLIMIT_DATA, (limit_mb * 10**6, limit_mb * 10**6))
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(40)))
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        release(data, schema, Path(place), queries=20_000, rounds=10, samples=100)
    return {"release_s": time.perf_counter() - start, "peak_GB": peak_gb()}


def cluster() -> Rows:
    """Two Dask workers, one of them killed in the middle, against this process alone."""
    import pyarrow as pa
    from pyarrow import parquet

    from dualquery.engines.cluster import DaskEngine

    generator = np.random.default_rng(0)
    names = [f"x{i}" for i in range(100)]
    schema = Schema(tuple(Attribute.binary(name) for name in names))
    job = {"epsilon": 1.0, "delta": 1e-6, "seed": 7, "rounds": 20, "samples": 200}
    job |= {"player": "record", "refit": False, "queries": 200_000}
    with tempfile.TemporaryDirectory() as place:
        for number in range(8):
            part = {n: (generator.random(50_000) < 0.3).astype(np.int8) for n in names}
            parquet.write_table(pa.table(part), Path(place) / f"{number}.parquet")
        start = time.perf_counter()
        here = DualQuery(**job).fit(place, schema=schema)
        alone = time.perf_counter() - start
        engines: list[DaskEngine] = []
        enter = DaskEngine.__enter__
        DaskEngine.__enter__ = lambda self: (engines.append(self), enter(self))[1]  # type: ignore[method-assign]

        def kill(stage: str, done: int, total: int) -> None:
            if stage == "playing" and done == 7:
                workers = engines[0].client.run(os.getpid)
                os.kill(workers[min(workers)], signal.SIGKILL)

        start = time.perf_counter()
        there = DualQuery(**job, engine="dask").fit(place, schema=schema, progress=kill)
        shared = time.perf_counter() - start
    same = all(
        np.array_equal(a.draws.queries, b.draws.queries)
        and np.array_equal(a.draws.negated, b.draws.negated)
        and np.array_equal(a.move.record, b.move.record)
        for a, b in zip(here.transcript, there.transcript, strict=True)
    )
    if not same:
        raise SystemExit("the release from the cluster is another one")
    return [
        {
            "part": "cluster",
            "local_s": alone,
            "dask_with_a_killed_worker_s": shared,
            "over_local": shared / alone,
            "same_release": same,
        }
    ]


def share(rows: int = 4_000_000, width: int = 100) -> Rows:
    """The client's share of the processor time: a default release of a Parquet folder, two workers.

    DUALQUERY_ROWS sets another number of rows.
    """
    import pyarrow as pa
    from pyarrow import parquet

    from dualquery.engines.cluster import DaskEngine

    rows = int(os.environ.get("DUALQUERY_ROWS", rows))
    generator = np.random.default_rng(0)
    names = [f"x{i}" for i in range(width)]
    schema = Schema(tuple(Attribute.binary(name) for name in names))
    workers: dict[str, float] = {}
    leave = DaskEngine.__exit__

    def leaving(self: DaskEngine, *error: Any) -> None:
        workers.update(self.client.run(time.process_time))
        leave(self, *error)

    DaskEngine.__exit__ = leaving  # type: ignore[method-assign]  # the last moment they can be asked
    stages: dict[str, float] = {}
    last = ["preparing", time.process_time()]

    def progress(stage: str, done: int, total: int) -> None:
        if stage != last[0]:
            now = time.process_time()
            stages[last[0]] = stages.get(last[0], 0.0) + now - last[1]
            last[:] = [stage, now]

    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "data"
        data.mkdir()
        for number in range(8):
            part = {n: (generator.random(rows // 8) < 0.3).astype(np.int8) for n in names}
            parquet.write_table(pa.table(part), data / f"{number}.parquet", row_group_size=1 << 18)
        begun, clock = time.process_time(), time.perf_counter()
        last[1] = begun
        job = DualQuery(epsilon=1.0, delta=1e-6, seed=7, engine="dask")
        job.release(data, Path(place) / "out", schema=schema, progress=progress)
        progress("done", 0, 0)
        client, whole = time.process_time() - begun, time.perf_counter() - clock
    spent = sum(workers.values())
    return [
        {
            "part": "share",
            "rows": rows,
            "columns": width,
            "clock_s": whole,
            "client_processor_s": client,
            "workers_processor_s": spent,
            "client_share": client / (client + spent),
            **{f"client, {stage}": seconds for stage, seconds in stages.items()},
        }
    ]


HERE: dict[str, Callable[[], Rows]] = {
    **{f"biased-{width}": partial(biased, width) for width in WIDTHS},
    "ratings": ratings,
    "rounds": rounds,
    "rounds-large": partial(rounds, (2_000_000, 20_000_000)),
    "folder": folder,
    "cluster": cluster,
    "share": share,
}


def apart(part: str) -> Rows:
    """One part in a process of its own, so that its peak memory is its own."""
    command = [sys.executable, "-m", "benchmarks.scale", part]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    rows: Rows = json.loads(done.stdout)
    return rows


PARTS: dict[str, Callable[[], Rows]] = {part: partial(apart, part) for part in HERE}


def run() -> Rows:
    return [row for part in PARTS.values() for row in part()]


if __name__ == "__main__":
    if sys.argv[1:2] == ["within"]:
        print(json.dumps(within(Path(sys.argv[2]), int(sys.argv[3]))))
    else:
        print(json.dumps([row for part in sys.argv[1:] for row in HERE[part]()]))
