"""What a private table is: rows that come in blocks. Private side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dualquery.base.errors import TableError, first_line
from dualquery.domain.schema import Schema
from dualquery.rows.encoding import Codes, OutOfDomain, encode_column

BLOCK_ROWS = 1 << 16
"""The number of rows handled at a time.

It is a multiple of 64, so that blocks pack into whole words, and at most 65,536, so that a row's
number within its block has 16 bits.
"""

BATCH_CELLS = 1 << 23
"""The approximate number of cells read at a time."""


class Table(Protocol):
    """Rows that can be counted without ever being held whole."""

    def bind(self, schema: Schema) -> Schema:
        """The schema itself, if the table has its columns; patterns are resolved."""
        ...

    def blocks(
        self, schema: Schema, attributes: Sequence[int], out_of_domain: OutOfDomain
    ) -> Iterator[Block]:
        """All rows, restricted to some attributes.

        A table gives either blocks of consecutive rows or blocks of ones, never both. A block of
        consecutive rows has at most `BLOCK_ROWS` rows; except for the last block, their number is
        a multiple of 64.
        """
        ...


@dataclass(frozen=True)
class DenseBlock:
    """Some consecutive rows, encoded: codes by attribute."""

    rows: int
    columns: dict[int, Codes]

    def codes(self, attribute: int) -> Codes:
        return self.columns[attribute]


def blocks_of_codes(codes: Codes, attributes: Sequence[int]) -> Iterator[DenseBlock]:
    """Some columns of a matrix of codes, a row per record, as blocks."""
    for first in range(0, len(codes), BLOCK_ROWS):
        part = codes[first : first + BLOCK_ROWS]
        yield DenseBlock(len(part), {a: np.ascontiguousarray(part[:, a]) for a in attributes})


@dataclass(frozen=True)
class ArrowBlock:
    """Some consecutive rows as they were read; a column is encoded when it is asked for."""

    table: pa.Table
    schema: Schema
    out_of_domain: OutOfDomain

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    def codes(self, attribute: int) -> Codes:
        declared = self.schema.attributes[attribute]
        return encode_column(self.table.column(declared.column), declared, self.out_of_domain)


@dataclass(frozen=True)
class Ones:
    """Some ones of a 0/1 table, in any order: row `row[i]` has a 1 in `attribute[i]`.

    `rows` is the number of rows known so far; that of the last block is the table's. A one that is
    given twice counts once.
    """

    rows: int
    row: npt.NDArray[np.int64]
    attribute: npt.NDArray[np.int32]


@dataclass(frozen=True)
class Columns:
    """All ones of a 0/1 table, by column.

    Attribute a is 1 in the rows `indices[start[a]:start[a + 1]]`, which are in rising order.
    """

    rows: int
    start: npt.NDArray[np.integer]
    indices: npt.NDArray[np.integer]


Block = DenseBlock | ArrowBlock | Ones | Columns
"""Consecutive rows as codes or as they were read, or ones of a 0/1 table."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn the errors of a file reader into one line that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"cannot read {str(path)!r}: {first_line(error)}") from None
