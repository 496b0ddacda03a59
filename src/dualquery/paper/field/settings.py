"""What is asked of which table: the settings of the comparison, and of published ones."""

from __future__ import annotations

import pickle
import time
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import one_of
from dualquery.domain.schema import Schema
from dualquery.paper.datasets import RatingsTable
from dualquery.paper.experiments.bench import Bench, K, NamedTable, biased, named_table
from dualquery.paper.experiments.sizes import MARGINALS
from dualquery.rows.counting import count_packed
from dualquery.rows.opening import open_table
from dualquery.rows.packed import PackedRows, Packer
from dualquery.rows.table import blocks_of_codes
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.marginals import Groups, Marginals
from dualquery.workloads.workload import Workload

WHOLE = ("some-3", "some-5", "all-3")
"""Kinds of workloads that ask for all cells of whole marginals: 64 random ones, or all."""

SOME = 64
"""How many marginals FEM's settings have."""

MADE = ("biased", "ratings")
"""Tables that are generated; they have any width."""

WIDTHS = {"adult": 15, "kdd99": 41}
ROWS = {"adult": 30_162, "kdd99": 494_021}


@dataclass(frozen=True)
class Setting:
    """A table and a workload, by name and size.

    Attributes:
        dataset: the table.
        table_rows: its rows.
        columns: its attributes.
        kind: `marginals` for random 3-way ones, or one of `WHOLE`.
        queries: how many random marginals; 0 for whole marginals, which say it themselves.
    """

    dataset: str
    table_rows: int
    columns: int
    kind: str = MARGINALS
    queries: int = 0

    @classmethod
    def named(cls, dataset: str, kind: str = MARGINALS, queries: int = 0) -> Setting:
        """A public table."""
        return cls(dataset, ROWS[dataset], WIDTHS[dataset], kind, queries)

    def cells(self) -> dict[str, object]:
        """The cells of a stored run."""
        return asdict(self)

    def table(self, data: Path | None = None) -> NamedTable:
        """The rows, made or read.

        Args:
            data: the file of a public table, or its folder; None searches the usual places.
        """
        if self.dataset == "biased":
            return biased(self.table_rows, self.columns)
        if self.dataset == "ratings":
            made = RatingsTable(self.table_rows, self.columns)
            return NamedTable("ratings", made, made.schema)
        return named_table(self.dataset, data)


@dataclass(frozen=True, eq=False)
class Counts:
    """A workload and its true counts, as runs in other processes read them.

    Attributes:
        workload: the queries.
        answers: their counts.
        marginals: where the cells of each marginal begin; None if no whole ones are asked.
        seconds: that counting took.
    """

    workload: Workload
    answers: Counted
    marginals: npt.NDArray[np.int64] | None
    seconds: float

    @classmethod
    def of(cls, setting: Setting, data: Path | None = None) -> Counts:
        """Count the workload of a setting.

        Args:
            setting: the table and the workload.
            data: the file of a public table, or its folder.
        """
        named = setting.table(data)
        workload, starts = asked_of(named.schema, setting)
        begun = time.process_time()
        packed = PackedRows.pack(open_table(named.table), named.schema, workload.literals)
        answers = count_packed(packed, workload)
        return cls(workload, answers, starts, time.process_time() - begun)

    def bench(self, setting: Setting, data: Path | None = None) -> Bench:
        """With the table, as the series of the paper's experiments want it.

        Args:
            setting: the table and the workload.
            data: the file of a public table, or its folder.
        """
        return Bench(setting.table(data), setting.kind, self.workload, self.answers, self.seconds)

    def l1(self, answers: npt.NDArray[np.float64]) -> float | None:
        """The mean L1 distance of whole marginals; None if no whole ones are asked."""
        if self.marginals is None:
            return None
        apart = np.abs(answers - self.answers.counts / self.answers.rows)
        return float(np.add.reduceat(apart, self.marginals[:-1]).mean())

    def save(self, path: Path) -> None:
        with path.open("wb") as stream:
            pickle.dump(self, stream, protocol=5)

    @staticmethod
    def load(path: Path) -> Counts:
        with path.open("rb") as stream:
            found: Any = pickle.load(stream)
        if not isinstance(found, Counts):
            raise TypeError(f"{path.name} holds no counts")
        return found


def asked_of(schema: Schema, setting: Setting) -> tuple[Workload, npt.NDArray[np.int64] | None]:
    """The queries of a setting, and where each whole marginal begins."""
    kind = one_of("kind", setting.kind, (MARGINALS, *WHOLE))
    if kind == MARGINALS:
        return random_marginals(schema, min(K, len(schema)), setting.queries), None
    marginals = Marginals(Groups.single(schema), chosen_sets(schema, kind, setting.table_rows))
    return marginals.queries(schema), marginals.start


def chosen_sets(schema: Schema, kind: str, rows: int, seed: int = 0) -> npt.NDArray[np.int32]:
    """The attributes of the whole marginals.

    Args:
        schema: the attributes.
        kind: `all-3`; or `some-K`, 64 random ones whose cells are at most the rows of the table.
        rows: of the table.
        seed: which 64.
    """
    k = int(kind.rpartition("-")[2])
    every = np.array(list(combinations(range(len(schema)), k)), dtype=np.int32)
    if kind.startswith("all"):
        return every
    cells = schema.sizes.astype(np.int64)[every].prod(axis=1)
    allowed = every[cells <= rows]
    chosen = np.random.default_rng(seed).permutation(len(allowed))[:SOME]
    found: npt.NDArray[np.int32] = allowed[np.sort(chosen)]
    return found


def shares_of(codes: npt.NDArray[np.int32], workload: Workload) -> npt.NDArray[np.float64]:
    """The answers of synthetic rows, counted like those of a table.

    Args:
        codes: one row of codes per record.
        workload: the queries.
    """
    packer = Packer(workload.schema, workload.literals)
    for block in blocks_of_codes(codes, [int(a) for a in workload.used]):
        packer.add(block)
    found: npt.NDArray[np.float64] = count_packed(packer.finish(), workload).counts / len(codes)
    return found
