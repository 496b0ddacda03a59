"""Two tables that differ in a few records, and what a run on either would count. Private side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dualquery.domain.schema import Schema
from dualquery.engines.local import LocalEngine
from dualquery.privacy.neighbours import Neighbours
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.encoding import Codes, OutOfDomain
from dualquery.rows.table import DenseBlock, blocks_of_codes
from dualquery.rows.tabulation import tabulate
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import distinct_rows
from dualquery.workloads.marginals import Marginals
from dualquery.workloads.rare import RareCells
from dualquery.workloads.workload import Literals, Workload

Int64 = npt.NDArray[np.int64]

ALL_SETS, SOME_SETS = 24, 2_000
"""Up to so many attributes, all sets of three are asked about; beyond, so many of them."""

NAMED = 3
"""Attributes per query."""


class CodedTable:
    """Records that are held as codes of sub-bins; it gives codes of sub-bins or of bins."""

    def __init__(self, schema: Schema, fine: Codes) -> None:
        self.schema = schema
        self.fine = fine
        self.codes = bins_of(schema, fine)
        self._encoded: dict[int, EncodedRows] = {}

    def bind(self, schema: Schema) -> Schema:
        return schema

    def blocks(
        self, schema: Schema, attributes: Sequence[int], out_of_domain: OutOfDomain
    ) -> Iterator[DenseBlock]:
        return blocks_of_codes(self._of(schema), attributes)

    def encoded(self, schema: Schema) -> EncodedRows:
        """All columns, in the order of the attributes."""
        held = self._of(schema)
        if id(held) not in self._encoded:
            columns = {a: held[:, a].astype(np.uint32) for a in range(held.shape[1])}
            self._encoded[id(held)] = EncodedRows(len(held), columns)
        return self._encoded[id(held)]

    def _of(self, schema: Schema) -> Codes:
        return self.codes if np.array_equal(schema.sizes, self.schema.sizes) else self.fine


def bins_of(schema: Schema, fine: Codes) -> Codes:
    """Codes of bins, from codes of sub-bins."""
    found = schema.code_of_fine[schema.fine.code_start[:-1] + fine] - schema.code_start[:-1]
    codes: Codes = found.astype(np.int32)
    return codes


@dataclass(frozen=True, eq=False)
class Worlds:
    """Two tables, and who counts them.

    Attributes:
        schema: of both.
        tables: the two. They share all records except `apart` ones.
        apart: how many records of one are others, or are missing, in the other.
        lone: as tables of one record each, those that only one of the two has; None for none.
        neighbours: what makes two tables neighbours.
    """

    schema: Schema
    tables: tuple[CodedTable, CodedTable]
    apart: int
    lone: tuple[CodedTable, CodedTable | None]
    neighbours: Neighbours

    @classmethod
    def of(cls, schema: Schema, fine: Codes, apart: int, neighbours: Neighbours) -> Worlds:
        """Worst-case tables: the other records are other in every attribute.

        Every marginal then moves as far as its price says. Under add-remove the records are there
        in one table, and missing in the other.

        Args:
            schema: the declared domain.
            fine: the records as codes of sub-bins; the first `apart` give way to others.
            apart: how many records differ.
            neighbours: whether they are replaced, or added and removed.
        """
        first, second = _unlike(schema, fine)
        shared = fine[apart:]
        planted = [np.repeat(one[None, :], apart, axis=0) for one in (first, second)]
        replaced = neighbours is Neighbours.REPLACE_ONE
        tables = (
            CodedTable(schema, np.concatenate([shared, planted[0]])),
            CodedTable(schema, np.concatenate([shared, planted[1]]) if replaced else shared),
        )
        lone = (
            CodedTable(schema, first[None, :]),
            CodedTable(schema, second[None, :]) if replaced else None,
        )
        return cls(schema, tables, apart, lone, neighbours)

    @property
    def rows(self) -> int:
        """Of the first table, which is the larger one where they differ in size."""
        return len(self.tables[0].fine)

    def workload(self) -> Workload:
        """Queries on which every record that differs differs: each draw tells as much as it may."""
        width = len(self.schema)
        named = min(NAMED, width)
        if width <= ALL_SETS:
            sets = np.array(list(combinations(range(width), named)), dtype=np.int64)
        else:
            generator = np.random.default_rng(0)
            sets = np.unique(
                np.sort(distinct_rows(generator, width, named, SOME_SETS), axis=1), axis=0
            )
        sides = [one for one in self.lone if one is not None]
        attribute = np.tile(np.arange(width), len(sides))
        literals = Literals.single(attribute, np.concatenate([one.codes[0] for one in sides]))
        terms = np.concatenate([2 * (sets + width * side) for side in range(len(sides))])
        return Workload.conjunctions(self.schema, literals, terms.astype(np.int32))

    def counted(self, workload: Workload) -> tuple[Counted, Counted]:
        """The counts of some queries in both tables."""
        first, second = (
            LocalEngine().count(table, workload, OutOfDomain.REFUSE) for table in self.tables
        )
        return first, second


class Counter:
    """Counts cells in one of two tables, and remembers what they are in both.

    The same few tables are counted in thousands of runs, so their counts are kept.
    """

    def __init__(self, worlds: Worlds, world: int) -> None:
        self.worlds = worlds
        self.world = world
        self.both: list[tuple[Int64, Int64]] = []
        self._engines = (LocalEngine(), LocalEngine())
        self._kept: dict[tuple[bytes, bytes], tuple[Int64, Int64]] = {}

    def begin(self) -> None:
        """Forget what was remembered of an earlier run."""
        self.both = []

    def tabulate(self, marginals: Marginals) -> Int64:
        groups = marginals.groups
        grouping = groups.of_code.tobytes()
        found = []
        for attributes in marginals.attributes:
            key = (grouping, attributes.tobytes())
            if key not in self._kept:
                self._kept[key] = self._tabulated(Marginals(groups, attributes[None, :]))
            found.append(self._kept[key])
        here, there = (np.concatenate(side) for side in zip(*found, strict=True))
        return self._remembered(here, there)

    def _tabulated(self, marginals: Marginals) -> tuple[Int64, Int64]:
        """Both counts. They differ by the lone records, so one table is counted."""
        worlds = self.worlds
        single = np.array_equal(marginals.groups.code_start, worlds.schema.code_start)
        schema = worlds.schema if single else worlds.schema.fine
        rows = worlds.tables[self.world].encoded(schema)
        here = tabulate(rows, marginals)
        own, other = worlds.lone if self.world == 0 else worlds.lone[::-1]
        moved = _cells(own, schema, marginals) - _cells(other, schema, marginals)
        return here, here - worlds.apart * moved

    def histogram(self, cells: RareCells, edges: Int64) -> Int64:
        here, there = (
            engine.rare_histogram(table, self.worlds.schema, cells, edges, OutOfDomain.REFUSE)
            for engine, table in self._pairs()
        )
        return self._remembered(here, there)

    def counts(self, cells: RareCells, most: int) -> Int64:
        here, there = (
            engine.rare_counts(table, self.worlds.schema, cells, most, OutOfDomain.REFUSE)
            for engine, table in self._pairs()
        )
        return self._remembered(here, there)

    def _pairs(self) -> list[tuple[LocalEngine, CodedTable]]:
        """This world's engine and table first, then the other's."""
        pairs = list(zip(self._engines, self.worlds.tables, strict=True))
        return pairs if self.world == 0 else pairs[::-1]

    def _remembered(self, here: Int64, there: Int64) -> Int64:
        self.both.append((here, there) if self.world == 0 else (there, here))
        return here


def _cells(table: CodedTable | None, schema: Schema, marginals: Marginals) -> Int64:
    """The cells that one record is in."""
    if table is None:
        return np.zeros(marginals.cells, dtype=np.int64)
    return tabulate(table.encoded(schema), marginals)


def _unlike(schema: Schema, fine: Codes) -> tuple[Codes, Codes]:
    """Two records that differ in every attribute that has two codes.

    Their codes are the most frequent ones: rare codes may be grouped, and then differ in no table.
    """
    codes = bins_of(schema, fine)
    found = np.zeros((2, len(schema)), dtype=np.int32)
    for attribute in range(len(schema)):
        inside = fine[:, attribute]
        times = np.bincount(codes[:, attribute], minlength=int(schema.sizes[attribute]))
        common = np.argsort(-times, kind="stable")[:2]
        first, last = schema.fine.code_start[attribute : attribute + 2]
        bins = schema.code_of_fine[first:last] - schema.code_start[attribute]
        within = np.bincount(inside, minlength=int(last - first))
        for side, code in enumerate(common[[0, -1]]):
            found[side, attribute] = int(np.argmax(np.where(bins == code, within, -1)))
    return found[0], found[1]
