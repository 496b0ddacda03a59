"""Rows of persons: who they belong to, which are kept, and what each of them weighs. Private side.

The cap is enforced here. Which records of a person are kept depends on that person's records
alone, so changing one person changes nothing for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dualquery.base.errors import NoRowsError, TableError
from dualquery.privacy.unit import Persons, Weigh
from dualquery.rows.arrow import ArrowTable
from dualquery.rows.cells import OutOfDomain
from dualquery.rows.ids import coded_ids
from dualquery.rows.long import LongTable
from dualquery.rows.table import Table
from dualquery.rows.weighed import DROPPED, Strata, Weighed

_MIX = np.uint64(0x9E3779B97F4A7C15)


class ByPerson(Weighed):
    """A table whose rows belong to persons. Its rows are counted by what they weigh."""

    def __init__(
        self,
        table: Table,
        persons: Persons,
        out_of_domain: OutOfDomain = OutOfDomain.REFUSE,
    ) -> None:
        """Nothing is read yet.

        Args:
            table: the private rows.
            persons: who they belong to, and how many rows of a person count.
            out_of_domain: what to do with a row that names no person.
        """
        super().__init__(table)
        self.persons = persons
        self.refuses = out_of_domain is OutOfDomain.REFUSE

    @cached_property
    def strata(self) -> Strata:
        """Read the column of persons, and say which rows are kept and what they weigh."""
        found = persons_of_rows(self.table, self.persons.column, refuses=self.refuses)
        return weigh_rows(found, self.persons)

    def notices(self) -> list[str]:
        dropped = self.strata.dropped
        if not dropped:
            return []
        return [
            f"{dropped:,} rows are left out, because their persons have more than "
            f"{self.persons.most}" + ("" if self.refuses else ", or because they name no person")
        ]


def persons_of_rows(table: Table, column: str, *, refuses: bool = True) -> pa.DictionaryArray:
    """The person of every row, in the order of the rows: numbers of ids, and the ids' texts.

    Args:
        table: the private rows.
        column: the column that names their persons.
        refuses: whether to refuse a row that names no person; if not, it has no number.
    """
    if isinstance(table, LongTable):
        return table.owners(column, refuses=refuses)
    if not isinstance(table, ArrowTable):
        raise TableError(f"unit = {column!r} needs a frame, a CSV or a Parquet file")
    if column not in table.header:
        raise TableError(
            f"unit = {column!r}: the table has no such column; it has "
            f"{', '.join(table.header[:6])}{' …' if len(table.header) > 6 else ''}"
        )
    found = [batch.column(0) for batch in table.batches([column])]
    if not found:
        raise NoRowsError
    missing = f"unit = {column!r}: a cell is missing; every row needs its person"
    return coded_ids(
        pa.chunked_array(found), column, missing if refuses else None, inferred=table.inferred
    )


def weigh_rows(coded: pa.DictionaryArray, persons: Persons) -> Strata:
    """Which rows are kept, and the stratum of each.

    At most `persons.most` rows of a person are kept. They are picked by numbers that are made from
    the person's id and the row's place among the rows of that person, as if at random, but
    the same in every run.

    Args:
        coded: the person of every row (`rows.ids`). A row without a person is left out: it would
            be protected by nobody's cap.
        persons: how many rows of a person are kept, and what they weigh.
    """
    if coded.indices.null_count:
        named = coded.indices.is_valid().to_numpy(zero_copy_only=False)
        strata = weigh_rows(coded.drop_null(), persons)
        spread = np.full(len(named), DROPPED, dtype=np.uint32)
        spread[named] = strata.of_row
        return Strata(spread, strata.weights)
    person = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.argsort(person, kind="stable")
    counts = np.bincount(person, minlength=len(coded.dictionary))
    first = np.cumsum(counts) - counts
    within = np.arange(len(person)) - np.repeat(first, counts)
    kept = np.minimum(counts, persons.most)
    owner = np.repeat(np.arange(len(counts)), counts)
    # The order of a person's rows matters only if not all of them count, or not all the same.
    uneven = persons.weigh is Weigh.PERSON and persons.parts % np.maximum(kept, 1) != 0
    is_unequal = (counts > kept) | uneven
    unequal = np.flatnonzero(is_unequal)
    seeds = np.zeros(len(counts), dtype=np.uint64)
    seeds[unequal] = _digests(coded.dictionary.take(pa.array(unequal)).to_pylist())
    ordered = np.flatnonzero(is_unequal[owner])
    picked = _mixed(seeds[owner[ordered]], within[ordered].astype(np.uint64))
    by_number = ordered[np.lexsort((picked, owner[ordered]))]
    rank = within.copy()
    rank[by_number] = within[ordered]  # persons stay in their order, so ranks run as `within` does
    weight = np.where(rank < kept[owner], _weights(rank, kept[owner], persons), 0)
    of_row = np.empty(len(person), dtype=np.int64)
    of_row[order] = weight
    return Strata.of(of_row)


def _weights(
    rank: npt.NDArray[np.int64], kept: npt.NDArray[np.int64], persons: Persons
) -> npt.NDArray[np.int64]:
    """The parts of each row: one, or an equal share of its person's."""
    if persons.weigh is Weigh.RECORD:
        return np.ones(len(rank), dtype=np.int64)
    share, over = np.divmod(persons.parts, np.maximum(kept, 1))
    found: npt.NDArray[np.int64] = share + (rank < over)
    return found


def _digests(names: Sequence[str]) -> npt.NDArray[np.uint64]:
    """A number per person, made from the id's text alone."""
    made = b"".join(blake2b(name.encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(made, dtype="<u8").astype(np.uint64)


def _mixed(seeds: npt.NDArray[np.uint64], places: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """A number per row that looks random, by the finalizer of splitmix64."""
    x = seeds + places * _MIX
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: npt.NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return mixed
