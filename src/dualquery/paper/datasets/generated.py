"""What generated 0/1 tables share: packed columns are made on demand, never a dense matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import whole
from dualquery.base.errors import ParameterError
from dualquery.base.ragged import offsets
from dualquery.base.threads import over_ranges
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.packed import PackedRows, Words, last_word
from dualquery.rows.sparse import require_binary
from dualquery.rows.table import BLOCK_ROWS, Ones
from dualquery.workloads.workload import Literals

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix

COLUMNS = 256
"""How many columns are made at a time."""


class GeneratedTable:
    """A 0/1 table of `rows` records and `width` attributes, each a function of the seed alone.

    It can be handed to `DualQuery.fit` like a frame. `schema` names its columns.
    """

    def __init__(self, rows: int, width: int, seed: int) -> None:
        self.rows = whole("rows", rows)
        self.width = whole("width", width)
        self.seed = seed

    @property
    def schema(self) -> Schema:
        return Schema(tuple(Attribute.binary(f"x{i}") for i in range(self.width)))

    def columns(self, attributes: npt.NDArray[np.integer]) -> Words:
        """These columns packed, bit i of word w being row 64w + i; zero past the last row."""
        chosen = np.asarray(attributes, dtype=np.int64)
        out = np.empty((len(chosen), -(-self.rows // 64)), dtype=np.uint64)
        self._fill(chosen, out)
        out[:, -1] &= last_word(self.rows)
        return out

    def _fill(self, attributes: npt.NDArray[np.int64], out: Words) -> None:
        raise NotImplementedError

    def bind(self, schema: Schema) -> Schema:
        if len(schema) != self.width:
            raise ParameterError(f"the schema has {len(schema)} attributes, not {self.width}")
        return require_binary(schema, "a generated table")

    def pack(self, literals: Literals) -> PackedRows:
        """The bits of these literals."""
        sizes = [min(BLOCK_ROWS, self.rows - f) for f in range(0, self.rows, BLOCK_ROWS)]
        blocks = [np.empty((len(literals), -(-rows // 64)), dtype=np.uint64) for rows in sizes]
        owner = literals.owner
        holds = np.zeros((len(literals), 2), dtype=bool)
        holds[owner, literals.codes] = True
        for first in range(0, len(literals), COLUMNS):
            part = slice(first, first + COLUMNS)
            bits = self.columns(literals.attribute[part])
            on, off = holds[part, 1], holds[part, 0]
            bits[~on] = 0
            bits[off & on] = ~np.uint64(0)
            zeros = np.flatnonzero(off & ~on)
            if len(zeros):
                bits[zeros] = ~self.columns(literals.attribute[part][zeros])
            bits[:, -1] &= last_word(self.rows)
            done = 0
            for block in blocks:
                block[part] = bits[:, done : done + block.shape[1]]
                done += block.shape[1]
        return PackedRows(self.rows, literals, tuple(blocks), tuple(sizes))

    def blocks(
        self, schema: Schema, attributes: Sequence[int], out_of_domain: OutOfDomain
    ) -> Iterator[Ones]:
        chosen = np.asarray(attributes, dtype=np.int64)
        for first in range(0, len(chosen), COLUMNS):
            start, rows = self._ones(chosen[first : first + COLUMNS])
            attribute = np.repeat(chosen[first : first + COLUMNS], np.diff(start))
            yield Ones(self.rows, rows.astype(np.int64), attribute.astype(np.int32))

    def _ones(
        self, attributes: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """The offset of each column, and the rows of its ones in rising order."""
        from dualquery.rows._counting_kernels import list_ones

        bits = self.columns(attributes)
        start = offsets(np.bitwise_count(bits).sum(axis=1, dtype=np.int64))
        rows = np.empty(start[-1], dtype=np.int32)

        def task(first: int, last: int) -> None:
            list_ones(bits, np.arange(len(bits)), start, rows, first, last)

        over_ranges(task, len(bits), grain=8)
        return start, rows

    def matrix(self) -> csc_matrix:
        """The whole table as a SciPy sparse matrix, by columns."""
        from scipy import sparse

        starts, pieces, done = [np.zeros(1, dtype=np.int64)], [], 0
        for first in range(0, self.width, COLUMNS):
            chosen = np.arange(first, min(first + COLUMNS, self.width))
            start, rows = self._ones(chosen)
            starts.append(start[1:] + done)
            pieces.append(rows)
            done += len(rows)
        indices = np.concatenate(pieces)
        pieces.clear()
        return sparse.csc_matrix(
            (np.ones(done, dtype=np.int8), indices, np.concatenate(starts)),
            shape=(self.rows, self.width),
        )
