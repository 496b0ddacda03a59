"""Does anything besides noise and draws leave the table? Private side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dualquery.auditing.forced import forced
from dualquery.auditing.report import Finding
from dualquery.domain.schema import Schema
from dualquery.estimator.job import DualQuery
from dualquery.estimator.settings import Mechanism
from dualquery.release.frames import decode

PLAYS: dict[str, dict[str, Any]] = {
    "tables": {"queries": 200},
    "draws": {"queries": 200, "measure": False},
    "records": {"queries": 200, "player": "record", "refit": False},
}
"""The ways to play, each with few queries."""

SEED = 20


def look(
    rows: pa.Table, schema: Schema, mechanism: Mechanism, out_of_domain: str, folder: Path
) -> Finding:
    """Release the table and an unrelated one of the same size, and compare every byte.

    Noise and draws are forced, so both releases should be the same.

    Args:
        rows: some rows of the private table, with the columns of the schema and of persons.
        schema: as bound to it.
        mechanism: what is promised.
        out_of_domain: the treatment of cells outside their domain.
        folder: an empty one, which only its owner can read.
    """
    compared = unlike = 0
    names: list[str] = []
    for name, play in PLAYS.items():
        job = DualQuery(
            mechanism.epsilon, mechanism.delta, neighbours=mechanism.neighbours,
            accountant=mechanism.accountant, rows=mechanism.rows, unit=mechanism.unit,
            most_records=mechanism.most_records, seed=SEED, out_of_domain=out_of_domain,
            errors=False, **play,
        )  # fmt: skip
        contents = []
        for number, table in enumerate((rows, _unrelated(rows, schema, mechanism))):
            out = folder / f"{name}-{number}"
            told: list[tuple[str, int, int]] = []
            with forced():
                job.release(
                    table, out, schema=schema,
                    progress=lambda *message, told=told: told.append(message),
                )  # fmt: skip
            found = {file.name: file.read_bytes() for file in sorted(out.iterdir())}
            contents.append({**found, "progress": repr(told).encode()})
        for file in sorted(set(contents[0]) | set(contents[1])):
            first, second = (content.get(file, b"") for content in contents)
            compared += len(first)
            different = _different(first, second)
            if different:
                names.append(f"{file} of {name}")
            unlike += different
    made = f"{2 * len(PLAYS)} releases of {rows.num_rows:,} rows"
    told_bytes = f"{made}, {compared:,} bytes: {unlike:,} differ"
    if names:
        told_bytes += f" (first in {names[0]})"
    figures = {"rows": rows.num_rows, "bytes": compared, "bytes_that_differ": unlike}
    return Finding("c", "two unrelated tables", not unlike, told_bytes, figures)


def _different(first: bytes, second: bytes) -> int:
    both = min(len(first), len(second))
    one, other = (np.frombuffer(content[:both], dtype=np.uint8) for content in (first, second))
    return int(np.count_nonzero(one != other)) + abs(len(first) - len(second))


def _unrelated(rows: pa.Table, schema: Schema, mechanism: Mechanism) -> pa.Table:
    """A table of the same size that has nothing else in common."""
    generator = np.random.default_rng(SEED)
    codes = generator.integers(0, schema.sizes, (rows.num_rows, len(schema)), dtype=np.int32)
    found = decode(codes, schema)
    if mechanism.unit is None:
        return found
    persons = generator.integers(0, max(1, rows.num_rows // 3), rows.num_rows)
    return found.append_column(mechanism.unit, pa.array(persons))
