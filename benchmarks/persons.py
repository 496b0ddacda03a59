"""A ratings-shaped long table whose persons have several records: 480,189 persons, at most 20 each.

    python -m benchmarks persons           times and memory
    python -m benchmarks persons.errors    errors at ε = 1

A record is a session: pairs (session, film), each session of one person, 17,770 films, a hundred
million pairs. The queries are about 1,000 of the films. Releases, each in a process of its own:
every session is protected for itself, as if there were no persons; all sessions of a person
together, weighed by record and by person; and one record per person, with all films.

Where a person has twenty records, less can be learnt at the same ε, so less is tried: the plan is
another one. So that times can be compared, all releases of the first part have the plan of the
first one: their μ is larger by as much as one unit moves more. Errors are compared at the same ε,
against the answers that each release is about. DUALQUERY_PERSONS sets another number of persons.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale import peak_gb
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.paper.datasets import RatingsTable
from dualquery.privacy.accountants.gaussian import epsilon_of_mu, mu_of
from dualquery.privacy.unit import Persons, Weigh
from dualquery.rows.counting import count_rows
from dualquery.rows.long import LongTable
from dualquery.rows.persons import ByPerson
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.workload import Literals, Workload

PERSONS = int(os.environ.get("DUALQUERY_PERSONS", "480189"))
FILMS, ASKED, QUERIES, CAP, MOST_SESSIONS = 17_770, 1_000, 20_000, 20, 24
PER_PERSON = 3.33
"""Sessions per person, about."""

DELTA = 1e-6
ALONE, RECORD, PERSON = "sessions, each for itself", "weigh record", "weigh person"
SINGLE = "one record per person"


def write_pairs(path: Path) -> None:
    """Pairs of session and film, with the person of each session, in the order of sessions."""
    import pyarrow as pa
    from pyarrow import parquet

    random = np.random.default_rng(1)
    sessions = np.minimum(random.geometric(1.0 / PER_PERSON, PERSONS), MOST_SESSIONS)
    first = np.cumsum(sessions) - sessions
    matrix = RatingsTable(PERSONS, FILMS).matrix()
    popular = np.argsort(-np.diff(matrix.indptr), kind="stable")[:ASKED]
    np.save(path.with_suffix(".npy"), np.sort(popular))
    matrix = matrix.tocsr()
    fields = [(name, pa.int32()) for name in ("person", "session", "film")]
    with parquet.ParquetWriter(path, pa.schema(fields)) as writer:
        for low in range(0, PERSONS, 1 << 16):
            high = min(low + (1 << 16), PERSONS)
            start, end = matrix.indptr[low], matrix.indptr[high]
            person = np.repeat(np.arange(low, high), np.diff(matrix.indptr[low : high + 1]))
            chosen = (random.random(end - start) * sessions[person]).astype(np.int64)
            session = first[person] + chosen
            order = np.argsort(session, kind="stable")
            columns = (person, session, matrix.indices[start:end])
            arrays = [pa.array(column[order], pa.int32()) for column in columns]
            writer.write_table(pa.table(dict(zip([n for n, _ in fields], arrays, strict=True))))


def asked(path: Path) -> Workload:
    """Queries about the most popular films; all films are in the schema, and in the pairs."""
    schema = RatingsTable(1, FILMS).schema
    chosen = np.load(path.with_suffix(".npy"))
    few = random_marginals(Schema(tuple(schema.attributes[a] for a in chosen)), 3, QUERIES)
    literals = Literals.of([(int(chosen[a]), (1,)) for a in few.literals.attribute])
    return Workload.conjunctions(schema, literals, few.terms.reshape(QUERIES, 3))


def part(name: str, path: Path, same_plan: bool) -> dict[str, Any]:
    """One release, timed, and its errors."""
    pairs = LongTable(path, "person" if name == SINGLE else "session", "film", prefix="x")
    workload = asked(path)
    unit: dict[str, Any] = {}
    if name in (RECORD, PERSON):
        weigh = "record" if name == RECORD else "person"
        unit = {"unit": "person", "most_records": CAP, "weigh": weigh}
    by_session = name in (ALONE, RECORD)
    mu = mu_of(1.0, DELTA)
    if same_plan:
        mu *= CAP if name == RECORD else 1.0 if name == ALONE else PER_PERSON
    rows = round(PERSONS * (PER_PERSON if by_session else 1.0))
    job = DualQuery(
        epsilon_of_mu(mu, DELTA),
        DELTA,
        neighbours="add-remove",
        rows=rows,
        seed=0,
        errors=False,
        **unit,
    )
    before = processor_seconds()
    made = job.fit(pairs, schema=workload.schema, workload=workload)
    seconds, peak = processor_seconds() - before, peak_gb()
    counted: Any = pairs
    if unit:
        counted = ByPerson(pairs, Persons("person", CAP, Weigh(unit["weigh"])))
    true = count_rows(counted, workload)
    away = np.abs(made.answers() - true.counts / true.rows)
    return {
        "part": name,
        "epsilon": made.privacy.epsilon,
        "measured_tables": sum(len(m.marginals) for m in made.transcript.measurements),
        "release_processor_s": seconds,
        "peak_GB": peak,
        "max_error": float(away.max()),
        "average_error": float(away.mean()),
    }


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def figures(names: tuple[str, ...], same_plan: bool) -> list[dict[str, Any]]:
    """Each release in a process of its own, after one that compiles the kernels."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.parquet"
        subprocess.run([sys.executable, "-m", "benchmarks.persons", str(path)], check=True)
        found = []
        for name in names:
            command = [sys.executable, "-m", "benchmarks.persons", str(path), name]
            command += ["same"] if same_plan else []
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            found.append(json.loads(done.stdout))
    for one in found:
        for figure in ("release_processor_s", "peak_GB"):
            one[f"{figure}_over_first"] = one[figure] / found[0][figure]
    return found


def run() -> list[dict[str, Any]]:
    return figures((ALONE, RECORD, PERSON), same_plan=True)


def errors() -> list[dict[str, Any]]:
    """Errors at the same ε, beside those of one record per person."""
    return figures((RECORD, PERSON, SINGLE), same_plan=False)


PARTS = {"errors": errors}


if __name__ == "__main__":
    if len(sys.argv) == 2:
        write_pairs(Path(sys.argv[1]))
    else:
        same = sys.argv[3:] == ["same"]
        print(json.dumps(part(sys.argv[2], Path(sys.argv[1]), same)))
