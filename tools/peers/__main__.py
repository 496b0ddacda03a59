"""`python -m tools.peers build`, then `python -m tools.peers adult acs35 --epsilon 1`.

`python -m tools.peers field --out docs/results` makes the missing peers' runs of `dualquery
experiment field` and adds them to `peers.csv`, from which the page of that comparison is made.

All methods get the same rows and are judged on the same random 3-way marginals. The peers protect
tables of which one has a record more, so this package runs with add-remove neighbours too; the
number of records, which most peers take from the table, is its public reference.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from benchmarks.tables import data_folder, public_table

from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.paper.datasets import BiasedTable
from dualquery.paper.datasets.encoded import EncodedTable
from dualquery.paper.experiments.experiment import Options, require_folder
from dualquery.paper.experiments.store import FinishedRun, Store
from dualquery.paper.field.beforehand import untried
from dualquery.paper.field.methods import PEERS as COMPARED
from dualquery.paper.field.methods import WIDEST_ROWS
from dualquery.paper.field.runs import LAYOUT, PEERS_FILE, Run, field_runs, make
from dualquery.paper.field.settings import Counts, shares_of
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.workloads.generators import random_marginals
from tools.peers.registry import ENVIRONMENTS, FOLDER, PEERS
from tools.peers.running import Codes, run, write_table

PEER = "peer "
"""How the comparison marks the methods of other packages."""

HEADINGS = ("table", "method", "epsilon", "delta", "max_error", "average_error", "seconds", "end")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.peers", description=__doc__)
    parser.add_argument(
        "tables", nargs="+", help="build; field; or adult, kdd99, acs35, biased-WIDTH"
    )
    parser.add_argument("--epsilon", type=float, nargs="+", help="1; of field: all of its own")
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--dataset", help="of field: adult, kdd99, biased or ratings")
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--methods", nargs="+", choices=["ours", *PEERS], default=["ours", *PEERS])
    parser.add_argument(
        "--out", type=Path, help="a file of JSON lines; rows are added to it. Of field: a folder"
    )
    asked = parser.parse_args()
    if asked.tables == ["build"]:
        return build()
    if asked.tables == ["field"]:
        chosen = [name for name in asked.methods if f"{PEER}{name}" in COMPARED]
        options = Options(
            runs=asked.runs, queries=asked.queries, dataset=asked.dataset,
            epsilon=tuple(asked.epsilon) if asked.epsilon else None,
        )  # fmt: skip
        return field(asked.out or Path("results"), chosen, options)
    print(" ".join(f"{heading:>14}" for heading in HEADINGS))
    for name in asked.tables:
        for row in compared(name, asked):
            print(" ".join(f"{_shown(row[heading]):>14}" for heading in HEADINGS), flush=True)
            if asked.out:
                with asked.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    return 0


def build() -> int:
    """An environment per group of peers; one that cannot be made is named, with the reason."""
    failed = 0
    uv = shutil.which("uv")
    for one in ENVIRONMENTS:
        folder = FOLDER / one.name
        print(f"peers: {one.name}", flush=True)
        venv.create(folder, with_pip=True)
        command = [one.python, "-m", "pip", "install", "--quiet", *one.packages]
        if uv:  # finds versions in seconds
            command = [uv, "pip", "install", "--quiet", "--python", one.python, *one.packages]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            failed += 1
            print(f"peers: {one.name} cannot be installed: {done.stderr.strip()[-300:]}")
    return 1 if failed else 0


def compared(name: str, asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row per method and run."""
    table, schema = opened(name)
    rows = EncodedRows.read(table, schema, range(len(schema)), OutOfDomain.CLAMP)
    codes = np.column_stack([rows.columns[a] for a in range(len(schema))]).astype(np.int32)
    workload = random_marginals(schema, 3, asked.queries)
    truth = shares_of(codes, workload)
    for number in range(asked.runs):
        for method, epsilon in product(asked.methods, asked.epsilon or [1.0]):
            delta = 0.0 if method in PEERS and PEERS[method].pure else asked.delta
            row = {"table": name, "epsilon": epsilon, "delta": delta, "run": number}
            row |= {"max_error": None, "average_error": None, "end": ""}
            if method == "ours":
                started = time.monotonic()
                job = DualQuery(
                    epsilon, asked.delta, neighbours="add-remove", rows=len(codes),
                    out_of_domain="clamp",
                )  # fmt: skip
                release = job.fit(table, schema=schema, workload=workload)
                row |= {"method": "dualquery", "seconds": time.monotonic() - started}
                row |= errors(release.answers(workload), truth)
                yield row
                rows_of_ours = release.sample_codes(len(codes), np.random.default_rng(number))
                sampled = errors(shares_of(rows_of_ours, workload), truth)
                row = {**row, "method": "its rows", **sampled}
            else:
                row |= peer(method, codes, schema, epsilon, asked.delta)
                if (synthetic := row.pop("codes")) is not None:
                    row |= errors(shares_of(synthetic, workload), truth)
            yield row


def peer(method: str, codes: Codes, schema: Schema, epsilon: float, delta: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="dualquery-peer-") as place:
        table = write_table(Path(place) / "table.npz", codes, schema.sizes)
        made = run(method, table, epsilon, delta, Path(place))
    told = {"seconds": made.told.get("seconds"), "peak": made.told.get("peak_bytes")}
    return {"method": PEERS[method].title, **told, "end": made.end, "codes": made.codes}


def field(out: Path, chosen: list[str], options: Options) -> int:
    """The peers' part of the comparison: rows are added to `peers.csv`.

    Args:
        out: the folder of the results.
        chosen: the peers.
        options: which tables and budgets.
    """
    require_folder(out)
    store = Store(out / f"{PEERS_FILE}.csv", LAYOUT)
    planned = list(field_runs(options, [f"{PEER}{name}" for name in chosen]))
    with tempfile.TemporaryDirectory(prefix="dualquery-peers-") as place:
        folder = Path(place)

        def performer(run: Run, counts: Path) -> dict[str, object]:
            cells = _performed(run, Counts.load(counts), folder)
            print(run.title, cells, flush=True)
            return cells

        make(planned, store, performer, options, folder, _silent, left_out)
    return 0


def _silent(stage: str, done: int, total: int) -> None:
    """Progress is told run by run."""


def left_out(key: Mapping[str, object], stored: Sequence[FinishedRun]) -> str:
    """Why a run of a peer need not be tried; empty if it may run.

    Args:
        key: the cells that tell the run from others.
        stored: all runs so far.
    """
    if past := untried(key, stored):
        return past
    if int(str(key["columns"])) > WIDEST_ROWS:
        return f"not run: synthetic rows are counted up to {WIDEST_ROWS} columns"
    return ""


def _performed(task: Run, counts: Counts, folder: Path) -> dict[str, object]:
    """One run of a peer, judged on the counts of the setting."""
    method = task.method.removeprefix(PEER)
    setting = task.setting
    named = setting.table()
    rows = EncodedRows.read(
        open_table(named.table), named.schema, range(len(named.schema)), OutOfDomain.CLAMP
    )
    codes = np.column_stack([rows.columns[a] for a in range(len(named.schema))]).astype(np.int32)
    table = write_table(folder / "table.npz", codes, named.schema.sizes)
    made = run(method, table, task.promise.epsilon, task.promise.delta, folder)
    if made.codes is None:
        return {"end": made.end}
    truth = counts.answers.counts / counts.answers.rows
    return {
        **made.told,
        **errors(shares_of(made.codes, counts.workload), truth),
        "kept_delta": 0.0 if PEERS[method].pure else task.promise.delta,
        "kept_neighbours": str(task.promise.neighbours),
        "counting_seconds": counts.seconds,
    }


def errors(answers: npt.NDArray[np.float64], truth: npt.NDArray[np.float64]) -> dict[str, float]:
    away = np.abs(answers - truth)
    return {"max_error": float(away.max()), "average_error": float(away.mean())}


def opened(name: str) -> tuple[Any, Schema]:
    """A table by its name."""
    if name.startswith("biased-"):
        table = BiasedTable(100_000, int(name.removeprefix("biased-")))
        return table, table.schema
    if name == "acs35":
        schema = Schema.load(data_folder() / "acs35-domain.json")
        return EncodedTable(data_folder() / "acs35.csv.gz", schema, OutOfDomain.CLAMP), schema
    found = public_table(name)
    if found is None:
        raise SystemExit(f"the file of {name} is not here; set DUALQUERY_DATA")
    return found


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.5g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
