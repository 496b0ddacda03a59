"""Rows that do not all count the same: what each of them weighs, in parts. Private side.

Counting knows only whole rows. So rows are sorted into layers: all rows of a layer count the same
number of parts, each layer is counted for itself, and the counts are added up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import TableError
from dualquery.domain.schema import Schema
from dualquery.rows import table as tables
from dualquery.rows.arrow import ArrowTable
from dualquery.rows.encoding import Codes, OutOfDomain
from dualquery.rows.table import ArrowBlock, Block, DenseBlock, Ones, Table

DROPPED = 0
"""The stratum of rows that are not counted."""

FEW_WEIGHTS = 32
"""With more different weights than this, rows are counted by the binary digits of their weights."""


@dataclass(frozen=True, eq=False)
class Layer:
    """Rows that are counted together.

    Attributes:
        parts: what each of them counts.
        holds: by stratum, whether its rows belong to the layer.
    """

    parts: int
    holds: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Strata:
    """Rows by what they weigh; `of_row[r]` is 0 for a row that is left out.

    Attributes:
        of_row: the stratum of every row.
        weights: in parts, of a row of stratum 1, 2, …
    """

    of_row: npt.NDArray[np.uint32]
    weights: tuple[int, ...]

    @classmethod
    def of(cls, parts: npt.NDArray[np.int64]) -> Strata:
        """The strata of rows that weigh so many parts; a row without parts is left out."""
        values, stratum = np.unique(np.append(parts, 0), return_inverse=True)
        return cls(stratum[:-1].astype(np.uint32), tuple(int(v) for v in values[1:]))

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """How many rows each stratum has, the one of dropped rows first."""
        return np.bincount(self.of_row, minlength=len(self.weights) + 1)

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """What is counted: stratum by stratum, or digit by digit of the weights if they are many.

        Both give the same counts. A weight of five parts is one row of four and one of one.
        """
        weights = np.array((0, *self.weights), dtype=np.int64)
        if len(self.weights) <= FEW_WEIGHTS:
            numbers = np.arange(len(weights))
            return tuple(Layer(int(weights[n]), numbers == n) for n in numbers[1:])
        digits = range(int(weights.max()).bit_length())
        return tuple(Layer(1 << d, (weights >> d) & 1 == 1) for d in digits)

    @property
    def disjoint(self) -> bool:
        """Whether every row is in one layer at most."""
        return len(self.weights) <= FEW_WEIGHTS

    def members(self, layer: Layer) -> npt.NDArray[np.int64]:
        """The rows of a layer."""
        return np.flatnonzero(layer.holds[self.of_row])

    @cached_property
    def places(self) -> npt.NDArray[np.uint32]:
        """The number of every row among those of its stratum."""
        narrow = np.min_scalar_type(len(self.weights))  # a radix sort for 8 or 16 bits
        order = np.argsort(self.of_row.astype(narrow), kind="stable")
        first = np.repeat(np.cumsum(self.sizes) - self.sizes, self.sizes)
        found = np.empty(len(self.of_row), dtype=np.uint32)
        found[order] = np.arange(len(order)) - first
        return found

    @property
    def parts(self) -> int:
        """The weight of all rows together."""
        return int(self.sizes[1:] @ np.array(self.weights, dtype=np.int64))

    @property
    def dropped(self) -> int:
        """How many rows are left out. Private: for the curator's eyes."""
        return int(self.sizes[DROPPED])


class Weighed:
    """A table whose rows are counted by what they weigh. Who weighs them is said by subclasses."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def bind(self, schema: Schema) -> Schema:
        return self.table.bind(schema)

    @cached_property
    def strata(self) -> Strata:
        """What every row weighs."""
        raise NotImplementedError

    def notices(self) -> list[str]:
        """What the curator should know of the weighing, for their eyes only."""
        return []

    def blocks(
        self, schema: Schema, attributes: Sequence[int], out_of_domain: OutOfDomain
    ) -> Iterator[Block]:
        """All rows, those that are left out included: use `by_layer` to count."""
        return self.table.blocks(schema, attributes, out_of_domain)

    def by_layer(
        self, schema: Schema, attributes: Sequence[int], out_of_domain: OutOfDomain
    ) -> Iterator[tuple[int, Block]]:
        """The rows of all layers, in one pass: (number of the layer, block) after another."""
        strata, seen = self.strata, 0
        waiting = [_Waiting() for _ in strata.layers]
        for block in self.table.blocks(schema, attributes, out_of_domain):
            if isinstance(block, Ones):
                yield from self._ones(block)
                continue
            if not isinstance(block, DenseBlock | ArrowBlock):
                raise TableError("a sparse matrix has no column that names persons or weights")
            stratum = strata.of_row[seen : seen + block.rows]
            seen += block.rows
            codes = {a: block.codes(a) for a in attributes}
            for number, layer in enumerate(strata.layers):
                chosen = np.flatnonzero(layer.holds[stratum])
                part = {a: column[chosen] for a, column in codes.items()}
                for full in waiting[number].add(len(chosen), part):
                    yield number, full
        for number, rest in enumerate(waiting):
            if rest.rows:
                yield number, rest.take(rest.rows)

    def _ones(self, ones: Ones) -> Iterator[tuple[int, Ones]]:
        strata = self.strata
        for number, layer in enumerate(strata.layers):
            holds = layer.holds[strata.of_row]
            place = np.cumsum(holds) - 1  # the number of every row within its layer
            chosen = holds[ones.row]
            row = place[ones.row[chosen]]
            yield number, Ones(int(holds.sum()), row, ones.attribute[chosen])


def reads_cells(table: Table) -> bool:
    """Whether a table reads cells, and not codes: only cells can be told apart inside a bin."""
    return isinstance(table.table if isinstance(table, Weighed) else table, ArrowTable)


class _Waiting:
    """Rows of one layer, until they fill a block, because small blocks take long to count."""

    def __init__(self) -> None:
        self.rows = 0
        self._parts: list[dict[int, Codes]] = []

    def add(self, rows: int, part: dict[int, Codes]) -> Iterator[DenseBlock]:
        if not rows:
            return
        self._parts.append(part)
        self.rows += rows
        while self.rows >= tables.BLOCK_ROWS:
            yield self.take(tables.BLOCK_ROWS)

    def take(self, rows: int) -> DenseBlock:
        columns = {a: np.concatenate([p[a] for p in self._parts]) for a in self._parts[0]}
        self._parts = [{a: column[rows:] for a, column in columns.items()}]
        self.rows -= rows
        return DenseBlock(rows, {a: column[:rows] for a, column in columns.items()})
