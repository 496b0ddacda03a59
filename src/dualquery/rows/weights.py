"""Survey weights: a column that says how much each row counts, and its bound. Private side.

The bound is enforced here. What a row weighs depends on that row alone. Where cells outside their
domain are not refused, a row whose cell is no weight weighs nothing, because otherwise that one
cell would decide whether there is a release.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dualquery.base.errors import NoRowsError, TableError
from dualquery.domain.types import Type, loose_text, number_of
from dualquery.privacy.unit import Persons, Weight
from dualquery.rows.arrow import ArrowTable
from dualquery.rows.cells import OutOfDomain, python_cells
from dualquery.rows.encoding import decoded, is_text, plain_column, read_numbers
from dualquery.rows.persons import ByPerson
from dualquery.rows.table import Table
from dualquery.rows.weighed import DROPPED, Strata, Weighed

Floats = npt.NDArray[np.float64]


class ByWeight(Weighed):
    """A table whose rows weigh what one of its columns says, at most the bound."""

    def __init__(
        self,
        table: Table,
        weight: Weight,
        persons: Persons | None = None,
        out_of_domain: OutOfDomain = OutOfDomain.REFUSE,
    ) -> None:
        """Nothing is read yet.

        Args:
            table: the private rows.
            weight: the column and its bound.
            persons: who the rows belong to; at most so many rows of a person count.
            out_of_domain: what to do with a cell that is no weight, or names no person.
        """
        super().__init__(table)
        self.weight = weight
        self.persons = None if persons is None else ByPerson(table, persons, out_of_domain)
        self.refuses = out_of_domain is OutOfDomain.REFUSE

    @cached_property
    def weights(self) -> Floats:
        """The weight of every row as the column says it."""
        return weights_of_rows(self.table, self.weight.column, refuses=self.refuses)

    @cached_property
    def strata(self) -> Strata:
        parts = self.weight.in_parts(self.weights)
        if self.persons is not None:
            parts = np.where(self.persons.strata.of_row == DROPPED, 0, parts)
        return Strata.of(parts)

    def notices(self) -> list[str]:
        told = [] if self.persons is None else self.persons.notices()
        cut = int((self.weights > self.weight.bound).sum())
        if cut:
            told.append(f"{cut:,} weights above {self.weight.bound:g} are cut to it")
        return told


def weights_of_rows(table: Table, column: str, *, refuses: bool = True) -> Floats:
    """The weights of all rows, in their order.

    Args:
        table: the private rows.
        column: the column that holds their weights.
        refuses: whether to refuse a cell that is no weight; if not, its row weighs nothing.
    """
    if not isinstance(table, ArrowTable):
        raise TableError(
            f"weight = {column!r} needs one row per record: a frame, a CSV or a Parquet file"
        )
    if column not in table.header:
        raise TableError(
            f"weight = {column!r}: the table has no such column; it has "
            f"{', '.join(table.header[:6])}{' …' if len(table.header) > 6 else ''}"
        )
    found = [_numbers(batch.column(0), column, refuses) for batch in table.batches([column])]
    if not found:
        raise NoRowsError
    return np.concatenate(found)


def _numbers(cells: pa.Array, column: str, refuses: bool) -> Floats:
    """The weight of every cell; each is read for itself."""
    cells = plain_column(cells, column)
    cells = decoded(cells)
    if cells.null_count and refuses:
        raise TableError(f"weight = {column!r}: a cell is missing; every row needs its weight")
    if pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type):
        numbers: Floats = cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    elif is_text(cells.type) or pa.types.is_decimal(cells.type):
        numbers = _written(cells.cast(pa.large_string()))
    else:  # dates and the like: none of them is a weight
        numbers = np.full(len(cells), np.nan)
    is_none = ~((numbers >= 0.0) & (numbers < np.inf))  # NaN compares as neither
    if refuses and is_none.any():
        raise _refusal(column)
    return np.where(is_none, 0.0, numbers)


def _written(texts: pa.Array) -> Floats:
    """Numbers that are written as text; NaN for what is none."""
    numbers, is_read = read_numbers(texts)
    numbers[~is_read] = np.nan
    for row in np.flatnonzero(~is_read):
        cell = python_cells(texts[row : row + 1])[0]
        found = None if loose_text(cell) != cell else number_of(Type.DECIMAL, cell)
        with suppress(OverflowError):  # of hundreds of digits: no weight either
            numbers[row] = np.nan if found is None else float(found)
    return numbers


def _refusal(column: str) -> TableError:
    return TableError(
        f"weight = {column!r}: a cell is missing or no weight; expected a number, 0 or more"
    )
