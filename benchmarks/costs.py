"""What runs take, and the rates from which `plan` foretells it: `python -m benchmarks costs`.

Tables of several shapes are invented and released, each by a process of its own. The rates in
`src/dualquery/game/costs.json` are then those with which the works of all runs (`game.costs.Work`)
foretell their seconds and their bytes best, in proportion: non-negative least squares of what each
run took, divided by it. They are written anew if DUALQUERY_WRITE_COSTS is set; without it the
benchmark compares what the file foretells with what was measured.

Run it where nothing else runs. The seconds of a run are those of the clock, or the processor's if
these are fewer, because then something else took the clock's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.game.costs import FILE, RATES, Rates, Work, foretold
from dualquery.release.frames import write_table

EPSILON, DELTA = 1.0, 1e-6


@dataclass(frozen=True)
class Shape:
    """A table to invent, and what is asked of it."""

    name: str
    columns: int
    values: int
    """Per column; numbers have as many bins."""
    numbers: int
    """How many of the columns hold numbers."""
    rows: int
    queries: int
    player: str = "model"


SHAPES = (
    Shape("few columns", 6, 4, 2, 2_000, 1_000),
    Shape("a survey", 20, 5, 5, 10_000, 20_000),
    Shape("many rows", 15, 6, 3, 400_000, 50_000),
    Shape("many queries", 25, 5, 5, 20_000, 1_000_000),
    Shape("many values", 12, 60, 2, 50_000, 50_000),
    Shape("many columns", 60, 4, 10, 30_000, 50_000),
    Shape("yes and no", 250, 2, 0, 50_000, 50_000),
    Shape("wide", 2_000, 2, 0, 50_000, 50_000),
    Shape("records", 20, 4, 0, 10_000, 20_000, "record"),
    Shape("wide records", 1_000, 2, 0, 50_000, 20_000, "record"),
)


LARGE = ((64_000, 20.0, 1_300_000_000), (512_000, 60.0, 4_400_000_000))
"""Columns of 0/1 tables with 100,000 rows, and the processor seconds and bytes that their releases
took. They count when rates are fitted, and are measured by `benchmarks scale`."""


def large() -> list[dict[str, Any]]:
    found = []
    for width, seconds, peak in LARGE:
        schema = Schema(tuple(Attribute.binary(f"x{place}") for place in range(width)))
        job = DualQuery(epsilon=1.0, delta=1e-3, queries=100_000)
        work = Work.of(job.plan(100_000, schema, None), schema, 100_000, 3)
        found.append({"shape": f"{width:,} columns", "work": work.to_dict(), "seconds": seconds,
                      "memory_bytes": peak})  # fmt: skip
    return found


def invented(shape: Shape, folder: Path) -> Schema:
    """The table as a Parquet file, in which columns depend on a common factor."""
    import pyarrow as pa

    random = np.random.default_rng(len(shape.name))
    factor = random.random(shape.rows)
    attributes, columns = [], {}
    for place in range(shape.columns):
        name, size = f"c{place}", shape.values
        mixed = (0.6 * factor + 0.4 * random.random(shape.rows)) ** (1 + place % 3)
        if place < shape.numbers:
            columns[name] = pa.array(np.round(mixed * 10 * size).astype(np.int64))
            attributes.append(Attribute.numeric(name, range(0, 10 * size + 1, 10)))
        elif size == 2:
            columns[name] = pa.array((mixed > 0.6).astype(np.int64))
            attributes.append(Attribute.binary(name))
        else:
            columns[name] = pa.array(np.minimum((mixed * size).astype(np.int64), size - 1))
            attributes.append(Attribute.categorical(name, range(size)))
    schema = Schema(tuple(attributes))
    schema.save(folder / "schema.toml")
    write_table(pa.table(columns), folder / "table.parquet")
    return schema


def work_of(shape: Shape, schema: Schema) -> Work:
    job = DualQuery(
        epsilon=EPSILON, delta=DELTA, rows=None, player=shape.player, queries=shape.queries
    )
    outline = job.tuning.outline(schema, None)
    return Work.of(job.plan(shape.rows, schema, None), schema, outline.queries, outline.widest)


def measured(shape: Shape, folder: Path) -> tuple[float, int]:
    """Seconds and bytes of a release from the command line."""
    line = [
        sys.executable, "-m", "dualquery", "release", "table.parquet", "--schema", "schema.toml",
        "--epsilon", EPSILON, "--delta", DELTA, "--player", shape.player, "--queries",
        shape.queries, "--out", "out", "--overwrite", "--quiet",
    ]  # fmt: skip
    code = (
        "import resource, subprocess, sys, time, json\n"
        "begun = time.perf_counter()\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
        "clock = time.perf_counter() - begun\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(json.dumps([clock, used.ru_utime + used.ru_stime, used.ru_maxrss]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, line)],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    clock, processor, peak = json.loads(done.stdout)
    return min(clock, processor), peak * (1 if sys.platform == "darwin" else 1024)


def one(shape: Shape) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        work = work_of(shape, invented(shape, folder))
        seconds, peak = measured(shape, folder)
    told = foretold(work, RATES)
    return {
        "shape": shape.name, "work": work.to_dict(), "seconds": seconds, "memory_bytes": peak,
        "foretold_seconds": told.seconds, "foretold_bytes": told.memory_bytes,
        "seconds_ratio": told.seconds / seconds, "memory_ratio": told.memory_bytes / peak,
    }  # fmt: skip


def fitted(figures: list[dict[str, Any]]) -> Rates:
    """The rates that foretell these runs best, in proportion."""
    names = list(figures[0]["work"])
    works = np.array([[one["work"][name] for name in names] for one in figures], dtype=float)

    def rates(key: str) -> dict[str, float]:
        took = np.array([one[key] for one in figures])
        scaled = works / took[:, None]
        size = np.maximum(np.linalg.norm(scaled, axis=0), 1e-300)
        found, _ = nnls(scaled / size, np.ones(len(took)))
        return {name: float(f"{r:.4g}") for name, r in zip(names, found / size, strict=True)}

    return Rates(rates("seconds"), rates("memory_bytes"))


def run() -> list[dict[str, Any]]:
    return finished([one(shape) for shape in SHAPES])


def finished(figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The figures; with rates of their own, written down, if that is asked for."""
    if os.environ.get("DUALQUERY_WRITE_COSTS"):
        figures = [*figures, *large()]
        made = fitted(figures)
        FILE.write_text(json.dumps(made.to_dict(), indent=2) + "\n", encoding="utf-8")
        for figure in figures:
            told = foretold(Work(**figure["work"]), made)
            figure |= {
                "foretold_seconds": told.seconds, "foretold_bytes": told.memory_bytes,
                "seconds_ratio": told.seconds / figure["seconds"],
                "memory_ratio": told.memory_bytes / figure["memory_bytes"],
            }  # fmt: skip
    return [{key: value for key, value in one.items() if key != "work"} for one in figures]


PARTS = {shape.name.replace(" ", "-"): (lambda shape=shape: [one(shape)]) for shape in SHAPES}
