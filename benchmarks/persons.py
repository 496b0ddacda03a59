"""A ratings-shaped long table whose persons have several records: 480,189 persons, at most 20 each.

    python -m benchmarks persons

A record is a session: pairs (session, film), each session of one person. Four releases with the
same settings, each in a process of its own: every session is protected for itself; all sessions of
a person together, weighed by record and by person; and one record per person, with all films.
Errors are against the answers that each of them is about. There are 500 films instead of the
paper's 17,770, so that pairs of four releases fit into the memory and time of a small machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale import peak_gb
from dualquery.estimator import DualQuery
from dualquery.paper.datasets import RatingsTable
from dualquery.privacy.unit import Persons, Weigh
from dualquery.rows.counting import count_rows
from dualquery.rows.long import LongTable
from dualquery.rows.persons import ByPerson
from dualquery.workloads.generators import random_marginals

PERSONS, FILMS, QUERIES, CAP, MOST_SESSIONS = 480_189, 500, 20_000, 20, 24
SETTINGS: dict[str, dict[str, Any]] = {
    "sessions, each for itself": {},
    "sessions of a person, weigh record": {"most_records": CAP, "weigh": "record"},
    "sessions of a person, weigh person": {"most_records": CAP, "weigh": "person"},
    "one record per person": {},
}


def write_pairs(path: Path) -> None:
    """Pairs of session and film, with the person of each session."""
    import pyarrow as pa
    from pyarrow import parquet

    table = RatingsTable(PERSONS, FILMS)
    random = np.random.default_rng(1)
    sessions = np.minimum(random.geometric(0.3, PERSONS), MOST_SESSIONS)
    first = np.cumsum(sessions) - sessions
    matrix = table.matrix()
    person = matrix.indices.astype(np.int32)
    film = np.repeat(np.arange(FILMS, dtype=np.int32), np.diff(matrix.indptr))
    session = first[person] + (random.random(len(person)) * sessions[person]).astype(np.int64)
    order = np.argsort(session, kind="stable")
    columns = {"person": person[order], "session": session[order].astype(np.int32)}
    parquet.write_table(pa.table({**columns, "film": film[order]}), path)


def part(name: str, path: Path) -> dict[str, Any]:
    """One release, timed, and its errors."""
    settings = SETTINGS[name]
    single = name == "one record per person"
    pairs = LongTable(path, "person" if single else "session", "film", prefix="x")
    schema = RatingsTable(1, FILMS).schema
    workload = random_marginals(schema, 3, QUERIES)
    rows = PERSONS if single or settings.get("weigh") == "person" else 1_400_000
    unit = {"unit": "person", **settings} if settings else {}
    job = DualQuery(1.0, 1e-6, neighbours="add-remove", rows=rows, seed=0, errors=False, **unit)
    start = time.perf_counter()
    made = job.fit(pairs, schema=schema, workload=workload)
    seconds, peak = time.perf_counter() - start, peak_gb()
    counted: Any = pairs
    if settings:
        counted = ByPerson(pairs, Persons("person", CAP, Weigh(settings["weigh"])))
    true = count_rows(counted, workload)
    away = np.abs(made.answers() - true.counts / true.rows)
    return {
        "part": name,
        "epsilon": made.privacy.epsilon,
        "release_s": seconds,
        "peak_GB": peak,
        "max_error": float(away.max()),
        "average_error": float(away.mean()),
    }


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.parquet"
        subprocess.run([sys.executable, "-m", "benchmarks.persons", str(path)], check=True)
        figures = []
        for name in SETTINGS:
            command = [sys.executable, "-m", "benchmarks.persons", str(path), name]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            figures.append(json.loads(done.stdout))
    for one in figures:
        one["time_over_first"] = one["release_s"] / figures[0]["release_s"]
        one["memory_over_first"] = one["peak_GB"] / figures[0]["peak_GB"]
    return figures


if __name__ == "__main__":
    if len(sys.argv) == 2:
        write_pairs(Path(sys.argv[1]))
    else:
        print(json.dumps(part(sys.argv[2], Path(sys.argv[1]))))
