"""A mixed table: codes with thousands of values, dates, amounts, flags and missing cells.

The table looks like an extract of hospital stays: 34 columns, two of them with 2,000 codes, numbers
in ten to twenty bins, short categories and flags. All dependence is known: a latent group of
patients and a severity drive most columns, some columns are functions of others, some are pure
noise. Everything is a function of the seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import SchemaError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.table import DenseBlock, blocks_of_codes

Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

ROWS = 50_000
CODES = 2_000
"""Values of each of the two long columns."""

GROUPS = 6
"""Latent groups of patients; no column shows them."""

MISSING = {"weight": 0.12, "income": 0.25, "referral": 0.05, "follow_up": 0.4}
"""The share of missing cells; a missing cell has the last code of its column."""

DETERMINED = ("dose", "dose_step")
"""Ten bins each; the second is nine minus the first in every row: a correlation of −1."""


@dataclass(frozen=True, eq=False)
class MixedTable:
    """A table of codes that a job takes as it is.

    Attributes:
        names: of the columns.
        sizes: how many codes each column has, the code of missing cells included.
        numeric: which columns are numbers in bins.
        codes: a row per record.
    """

    names: tuple[str, ...]
    sizes: npt.NDArray[np.int64]
    numeric: npt.NDArray[np.bool_]
    codes: Codes

    def column(self, name: str) -> Codes:
        """The codes of one column."""
        found: Codes = self.codes[:, self.names.index(name)]
        return found

    @property
    def schema(self) -> Schema:
        """Every column as integer codes; a flag is a 0/1 column."""
        return Schema(
            tuple(
                Attribute.binary(name)
                if size == 2
                else Attribute.categorical(name, range(int(size)))
                for name, size in zip(self.names, self.sizes, strict=True)
            )
        )

    def bind(self, schema: Schema) -> Schema:
        if schema != self.schema:
            raise SchemaError("the mixed table has a schema of its own; use table.schema")
        return schema

    def blocks(
        self, schema: Schema, attributes: Sequence[int], out_of_domain: OutOfDomain
    ) -> Iterator[DenseBlock]:
        return blocks_of_codes(self.codes, attributes)


def mixed_table(rows: int = ROWS, seed: int = 0) -> MixedTable:
    """The whole table; column order is fixed."""
    generator = np.random.default_rng(seed)
    columns = _Columns(rows, generator)
    group = generator.choice(GROUPS, rows, p=_falling(GROUPS, 0.6))
    severity = generator.normal(0.5 * (group % 3), 1.0)

    columns.codes("diagnosis", CODES, group, shift=CODES // GROUPS)
    columns.codes("procedure", CODES, group, shift=CODES // (2 * GROUPS))
    age = columns.bins("age", 18, 4.0 * (group % 4) + generator.normal(0.0, 3.0, rows) + 4.0)
    admitted = columns.bins("admitted", 12, generator.uniform(0.0, 12.0, rows))
    columns.bins("discharged", 12, (admitted + generator.exponential(0.3, rows)) % 12)
    columns.category("weekday", 7, generator.integers(0, 7, rows))
    stay = columns.bins("stay", 15, np.exp(0.4 * severity + generator.normal(0.3, 0.5, rows)))
    columns.bins("cost", 20, 1.1 * stay + generator.gamma(2.0, 0.8, rows))
    columns.bins("paid", 20, 1.0 * stay + generator.gamma(2.0, 0.9, rows))
    dose = columns.bins("dose", 10, 3.0 + 1.5 * severity + generator.normal(0.0, 1.0, rows))
    columns.bins("dose_step", 10, 9 - dose)
    columns.bins("weight", 14, 7.0 + 0.3 * age / 4.0 + generator.normal(0.0, 2.0, rows))
    columns.bins("income", 12, generator.gamma(2.5, 1.2, rows) + 0.5 * (group == 1))
    columns.bins("pulse", 12, 5.0 + 0.8 * severity + generator.normal(0.0, 1.5, rows))
    columns.bins("pressure", 12, 4.0 + 0.15 * age + generator.normal(0.0, 1.5, rows))
    columns.bins("glucose", 10, 2.0 + 1.2 * (group == 2) + generator.gamma(2.0, 0.8, rows))

    sex = columns.category("sex", 2, generator.random(rows) < 0.4 + 0.05 * (group % 3))
    region = columns.category("region", 9, generator.choice(9, rows, p=_falling(9, 0.3)))
    columns.category("hospital", 27, 3 * region + generator.integers(0, 3, rows))
    columns.category("insurance", 5, _near(generator, group % 5, 5, 0.6))
    columns.category("admission", 4, _near(generator, np.clip(severity + 1, 0, 3), 4, 0.5))
    columns.category("outcome", 4, _near(generator, np.clip(severity, 0, 3), 4, 0.7))
    columns.category("referral", 6, _near(generator, group, 6, 0.4))
    columns.category("ward", 8, _near(generator, group + 1, 8, 0.7))
    columns.category("blood", 8, generator.choice(8, rows, p=_falling(8, 0.4)))
    columns.category("follow_up", 3, _near(generator, stay > 3, 3, 0.6))

    columns.flag("emergency", 0.2 + 0.15 * (severity > 1.0))
    surgery = columns.flag("surgery", 0.15 + 0.5 * (group == 3))
    columns.flag("intensive", np.where(surgery == 1, 0.35, 0.04))
    columns.flag("pregnant", np.where((sex == 1) & (age >= 4) & (age < 9), 0.25, 0.0))
    columns.flag("smoker", 0.2 + 0.1 * (group == 4))
    columns.flag("diabetic", 0.05 + 0.6 * (group == 2))
    columns.flag("readmitted", 0.05 + 0.1 * (severity > 1.5))
    columns.flag("consented", np.full(rows, 0.93))
    return columns.table()


class _Columns:
    """Collects columns; cells go missing as their column is added."""

    def __init__(self, rows: int, generator: np.random.Generator) -> None:
        self._rows = rows
        self._generator = generator
        self._names: list[str] = []
        self._sizes: list[int] = []
        self._numeric: list[bool] = []
        self._codes: list[Codes] = []

    def bins(self, name: str, size: int, value: npt.ArrayLike) -> Codes:
        """A number: the bin of width one it lies in, the ends taking what is beyond them."""
        return self._add(name, size, np.clip(np.floor(value), 0, size - 1), numeric=True)

    def category(self, name: str, size: int, code: npt.ArrayLike) -> Codes:
        return self._add(name, size, code, numeric=False)

    def flag(self, name: str, chance: npt.NDArray[np.floating]) -> Codes:
        return self._add(name, 2, self._generator.random(self._rows) < chance, numeric=False)

    def codes(self, name: str, size: int, group: npt.NDArray[np.int64], shift: int) -> Codes:
        """A long list of codes by frequency rank: a steep tail, of which each group has a part."""
        rank = self._generator.choice(size, self._rows, p=_falling(size, 1.1))
        return self._add(name, size, (rank + shift * group) % size, numeric=False)

    def table(self) -> MixedTable:
        return MixedTable(
            tuple(self._names),
            np.array(self._sizes, dtype=np.int64),
            np.array(self._numeric, dtype=bool),
            np.column_stack(self._codes),
        )

    def _add(self, name: str, size: int, code: npt.ArrayLike, *, numeric: bool) -> Codes:
        complete = np.asarray(code).astype(np.int32)
        kept = complete
        if name in MISSING:
            gone = self._generator.random(self._rows) < MISSING[name]
            kept, size = np.where(gone, size, complete).astype(np.int32), size + 1
        self._names.append(name)
        self._sizes.append(size)
        self._numeric.append(numeric)
        self._codes.append(kept)
        return complete


def _falling(size: int, power: float) -> Floats:
    """Shares that fall like a power of the rank."""
    shares = (np.arange(size) + 1.0) ** -power
    normal: Floats = shares / shares.sum()
    return normal


def _near(
    generator: np.random.Generator, code: npt.ArrayLike, size: int, share: float
) -> npt.NDArray[np.int64]:
    """The given code with probability `share`, any code of the domain otherwise."""
    given = np.asarray(code).astype(np.int64)
    kept = generator.random(len(given)) < share
    return np.where(kept, given % size, generator.integers(0, size, len(given)))
