"""The public tables that benchmarks use, where their files are at hand."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dualquery.domain.schema import Schema
from dualquery.engines.local import LocalEngine
from dualquery.paper.datasets.catalogue import DATA_SETS, load
from dualquery.rows.encoding import OutOfDomain
from dualquery.workloads.workload import Workload


def data_folder() -> Path:
    """Where files of public tables are: `DUALQUERY_DATA`, or `data` where one stands."""
    return Path(os.environ.get("DUALQUERY_DATA", "data"))


def public_table(name: str) -> tuple[Any, Schema] | None:
    """A table in the paper's discretisation; None where its file is not here."""
    data = DATA_SETS[name]
    file = data.find() or data_folder() / data.file
    return load(name, file) if file.is_file() else None


def missing(name: str) -> list[dict[str, Any]]:
    """What a benchmark prints instead of figures."""
    file = DATA_SETS[name].file if name in DATA_SETS else f"{name}.csv.gz"
    return [{"name": name, "skipped": f"needs {file} (set DUALQUERY_DATA)"}]


def true_answers(table: Any, workload: Workload) -> npt.NDArray[np.float64]:
    """The share of rows that satisfy each query."""
    answers = LocalEngine().count(table, workload, OutOfDomain.CLAMP)
    shares: npt.NDArray[np.float64] = answers.counts / answers.rows
    return shares
