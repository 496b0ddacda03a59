"""What all series of one experiment share: a table, a workload and the true answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import one_of
from dualquery.baselines.baseline import Floats
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.paper.experiments.sizes import MARGINALS, BenchSize, size_of
from dualquery.rows.counting import count_packed
from dualquery.rows.opening import open_table
from dualquery.rows.packed import PackedRows
from dualquery.workloads.binary_view import binarised, binarised_workload, is_binary
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.workload import Literals, Workload

Made = TypeVar("Made")

if TYPE_CHECKING:
    import pyarrow as pa

K = 3
"""The arity of the paper's queries."""


@dataclass(frozen=True, eq=False)
class NamedTable:
    """A table of the experiments.

    Attributes:
        name: what results call it.
        table: the rows, as anything that `open_table` takes.
        schema: its attributes.
        free: the value that the paper gives attributes which no drawn query names. It is 0 where
            the data are sparse, and a coin toss where they are not.
    """

    name: str
    table: Any
    schema: Schema
    free: str = "zero"


def named_table(
    name: str, data: Path | None = None, *, download: bool = False, quick: bool = False
) -> NamedTable:
    """A data set of the experiments by name.

    Args:
        name: the data set.
        data: its file or folder; None searches the usual places.
        download: whether to fetch a file that is in none of them.
        quick: whether a generated table has the small size of a quick run.
    """
    from dualquery.paper.datasets import RatingsTable, catalogue

    one_of("dataset", name, [*catalogue.DATA_SETS, "ratings", "netflix"])
    if name in catalogue.DATA_SETS:
        table, schema = catalogue.load(name, data, download=download)
        return NamedTable(name, table, schema)
    if name == "ratings":
        ratings = RatingsTable(*size_of(name, quick))
        return NamedTable(name, ratings, ratings.schema)
    matrix, schema = catalogue.load_netflix(data)
    return NamedTable(name, matrix, schema)


def biased(rows: int, width: int, seed: int = 0) -> NamedTable:
    """The paper's synthetic table."""
    from dualquery.paper.datasets import BiasedTable

    table = BiasedTable(rows, width, seed)
    return NamedTable("biased", table, table.schema, free="random")


@dataclass(frozen=True, eq=False)
class Bench:
    """One workload on one table, counted once."""

    data: NamedTable
    kind: str  # "marginals" or "parities"
    workload: Workload
    answers: Counted
    counting_seconds: float

    @classmethod
    def of(cls, data: NamedTable, queries: int, seed: int = 0) -> Bench:
        """Random 3-way marginals, as in the paper."""
        workload = random_marginals(data.schema, min(K, len(data.schema)), queries, seed)
        return cls.count(data, MARGINALS, workload)

    @classmethod
    def count(cls, data: NamedTable, kind: str, workload: Workload) -> Bench:
        table = open_table(data.table)
        packed = PackedRows.pack(table, data.schema, workload.literals)
        begun = time.perf_counter()
        answers = count_packed(packed, workload)
        return cls(data, kind, workload, answers, time.perf_counter() - begun)

    @property
    def rows(self) -> int:
        return self.answers.rows

    @cached_property
    def truth(self) -> Floats:
        return self.answers.counts / self.answers.rows

    @cached_property
    def bits(self) -> int:
        return int(self.workload.schema.bit_counts.sum())

    @property
    def is_binary(self) -> bool:
        """Whether the paper's view of the table is the table itself."""
        return is_binary(self.workload.schema)

    @cached_property
    def binary_workload(self) -> Workload:
        """The same queries over independent bits."""
        if self.is_binary:
            return self.workload
        return binarised_workload(self.workload, binarised(self.workload.schema))

    @property
    def size(self) -> BenchSize:
        """The sizes that were found, to be compared with those that were announced."""
        return BenchSize(self.data.name, self.rows, self.bits, len(self.workload), self.kind)


class Latest(Generic[Made]):
    """Keeps the last thing that was made, and only that, because benches are large."""

    def __init__(self) -> None:
        self._name: object = None
        self._made: Made | None = None

    def __call__(self, name: object, make: Callable[[], Made]) -> Made:
        """What `make` gives; called again with the same name, the same thing."""
        if self._made is None or name != self._name:
            self._made = None  # freed before the next is made
            self._made = make()
            self._name = name
        return self._made


def narrow(data: NamedTable, bits: tuple[tuple[str, str], ...], queries: int, kind: str) -> Bench:
    """A few bits of a table as 0/1 columns of their own, and random 3-way queries on them.

    As in the wide experiments, no query names two bits of one original attribute.

    Args:
        data: the whole table.
        bits: the attribute and the value of each bit.
        queries: how many queries to draw.
        kind: "marginals" or "parities".
    """
    schema = data.schema
    owners = np.array([schema.position(name) for name, _ in bits])
    workload = _triples(owners, queries, kind == "parities")
    # The wide table is counted: bit i of the narrow view is one code of its attribute owners[i].
    codes = np.array([schema[name].code_of(value) for name, value in bits], dtype=np.int32)
    wide_literals = Literals(
        owners[workload.literals.attribute].astype(np.int32),
        workload.literals.start,
        codes[workload.literals.attribute],
    )
    wide = Workload(schema, wide_literals, workload.start, workload.terms, workload.is_parity)
    counted = Bench.count(data, kind, wide)
    view = Schema(tuple(Attribute.binary(f"{name}={value}") for name, value in bits))
    table = _columns(data, owners, codes, view)
    named = Workload(view, workload.literals, workload.start, workload.terms, workload.is_parity)
    narrowed = NamedTable(data.name, table, view, free="zero")
    return Bench(narrowed, kind, named, counted.answers, counted.counting_seconds)


def _triples(owners: npt.NDArray[np.int64], queries: int, parity: bool) -> Workload:
    stand_in = Schema(tuple(Attribute.binary(str(i)) for i in range(len(owners))))
    drawn = random_marginals(stand_in, K, 4 * queries)
    attributes = drawn.literals.attribute[drawn.terms >> 1].reshape(-1, K)
    held = np.sort(owners[attributes], axis=1)
    sensible = np.flatnonzero((held[:, 1:] != held[:, :-1]).all(axis=1))[:queries]
    chosen = drawn.take(sensible)
    if not parity:
        return chosen
    even = np.ones(len(chosen), dtype=bool)
    return Workload(stand_in, chosen.literals, chosen.start, chosen.terms & ~np.int32(1), even)


def _columns(
    data: NamedTable, owners: npt.NDArray[np.int64], codes: npt.NDArray[np.int32], view: Schema
) -> pa.Table:
    """The bits of a narrow view as an Arrow table."""
    import pyarrow as pa

    from dualquery.rows.encoding import OutOfDomain

    wanted = [int(a) for a in np.unique(owners)]
    blocks = list(data.table.blocks(data.schema, wanted, OutOfDomain.REFUSE))
    columns = {}
    for name, owner, code in zip(view.names, owners, codes, strict=True):
        hit = [block.codes(int(owner)) == code for block in blocks]
        columns[name] = np.concatenate(hit).astype(np.int8)
    return pa.table(columns)
