"""What a column looks like, for a draft of its schema. Private side: it reads every cell."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dualquery.base.errors import DualQueryError, TableError
from dualquery.domain.grid import written_decimals
from dualquery.domain.spelling import PLAIN, Spelling
from dualquery.domain.types import DAY, Number, Type, number_of, text_of
from dualquery.rows.documented import Documented
from dualquery.rows.encoding import plain_column, unreadable
from dualquery.rows.spelt import run_together, ways_to_read

MOST_COUNTED = 200_000
"""How many different cells of a column are told apart."""

FEW_ODD = 0.02
"""If at most this share of the cells is not of the type that all others have, they are odd ones."""

MOST_ODD = 5
"""How many different odd cells there may be."""

MOST_TRIED = 200
"""How many different cells of text are tried in all ways; only ways that fit those go on."""

_GONE = frozenset({"na", "n/a", "nan", "null", "?"})
"""Words that stand for a missing cell in any column, whatever their case."""

_LEADING_ZERO = re.compile(r"[+-]?0\d")
_WHOLE = re.compile(r"[+-]?\d+\Z", re.ASCII)
_DECIMALS = re.compile(r"[.,]\d{1,2}\b(?![.,])")
_NO_ANSWER = re.compile(
    r"refus|don.?t know|not? (stated|known|answer|applicable)|missing|unknown|no answer"
    r"|keine angabe|wei(ss|ß) nicht|sans r.ponse|n/a\b|prefer not|inapplicable",
    re.IGNORECASE,
)
"""Labels of values that are no answer."""

_YES_NO = frozenset({"yes", "no", "true", "false", "y", "n"})


@dataclass
class Profile:
    """One column, read to the end.

    Attributes:
        name: the column's name.
        rows: how many cells it has, missing ones included.
        missing: how many are missing.
        counts: how often each cell occurs; with very many different cells, only the first ones.
        held: the type that Arrow holds the cells in; None before the first batch.
        categories: the declared categories of a categorical column, in their order.
        ordered: whether that order means something.
        problem: why the cells cannot be read, if they cannot.
        uncounted: how many cells are not in `counts`, because it is full.
        low: the smallest number among them.
        high: the largest number among them.
        rising: whether whole numbers rise from row to row, as running numbers do.
        last: the last of them so far.
        documented: what the file says about the column; None if it is no statistical file.
    """

    name: str
    rows: int = 0
    missing: int = 0
    counts: Counter[object] = field(default_factory=Counter)
    held: pa.DataType | None = None
    categories: tuple[object, ...] = ()
    ordered: bool = False
    problem: str = ""
    uncounted: int = 0
    low: float = math.inf
    high: float = -math.inf
    rising: bool = True
    last: object = None
    documented: Documented | None = None

    def read(self, batch: pa.Array) -> None:
        """Take in some more cells."""
        if self.problem:
            return
        try:
            column = plain_column(batch, self.name)
        except TableError as error:
            self.problem = str(error).removeprefix(f"column {self.name!r} ")
            return
        if pa.types.is_dictionary(column.type):
            if not self.categories:
                self.categories = tuple(column.dictionary.to_pylist())
            self.ordered = self.ordered or bool(column.type.ordered)
            column = column.dictionary_decode()
        if pa.types.is_timestamp(column.type):
            if column.type.tz is not None:
                column = pc.local_timestamp(column)
            column = column.cast(pa.timestamp("us"), safe=False)
        self.held = column.type
        self.rows += len(column)
        try:
            found = pc.value_counts(column)
            cells, times = found.field("values").to_pylist(), found.field("counts").to_pylist()
        except (pa.ArrowException, ValueError, OverflowError):
            self.problem = (
                "has text that is not UTF-8; say how it is encoded, such as --encoding windows-1252"
                if _is_text(column.type)
                else str(unreadable(self.name, column.type))
            )
            return
        self._watch_order(column)
        for cell, count in zip(cells, times, strict=True):
            if cell is None or cell == "" or cell != cell:
                self.missing += count
            elif cell in self.counts or len(self.counts) < MOST_COUNTED:
                self.counts[cell] += count
            else:
                self.uncounted += count
                number = number_of(Type.DECIMAL, cell)
                if number is not None:
                    self.low, self.high = min(self.low, number), max(self.high, number)

    def _watch_order(self, column: pa.Array) -> None:
        """Whether whole numbers rise from row to row, as running numbers do."""
        if not self.rising:
            return
        try:
            numbers = column.drop_null().cast(pa.int64()).to_numpy(zero_copy_only=False)
        except pa.ArrowException:
            self.rising = False
            return
        if len(numbers):
            first = self.last is None or numbers[0] > self.last
            self.rising = bool(first and (np.diff(numbers.astype(float)) > 0).all())
            self.last = numbers[-1]

    # What the cells say

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Cells that stand for a missing one: such words, what the file says, and the few odd cells
        of a column that otherwise has numbers or dates."""
        if self.documented is not None:
            return self._documented_words(self.documented)
        if self.held is None or not _is_text(self.held):
            return ()
        return tuple(sorted({str(cell).strip() for cell in (*self._gone, *self._way[2])}))

    def _documented_words(self, told: Documented) -> tuple[str, ...]:
        """The declared codes of missing cells, those of its ranges only if they have a label or
        occur; and without any, labels of a few codes that say that there is no answer."""
        named = [value for value, _ in told.labels]
        seen = [text_of(cell) for cell in self.counts]
        words = {*told.missing, *(text for text in (*named, *seen) if told.is_missing(text))}
        if not words:
            words = {value for value, text in told.labels if _NO_ANSWER.search(text)}
        return tuple(sorted(words))

    @cached_property
    def _gone(self) -> frozenset[object]:
        """Words among the cells that stand for a missing one in any column."""
        said = (c for c in self.counts if isinstance(c, str) and c.strip().lower() in _GONE)
        return frozenset(said)

    @cached_property
    def _way(self) -> tuple[Type | None, Spelling, list[object]]:
        """How cells of text are meant: their type, how they are written, and the few odd ones."""
        rest = {cell: n for cell, n in self.counts.items() if cell not in self._gone}
        some = [str(cell).strip() for cell in list(rest)[:MOST_TRIED]]
        total = sum(rest.values())
        for kind, way in ways_to_read(self.name, some):
            if sum(way.number(kind, text) is None for text in some) > MOST_ODD:
                continue
            unfit = [cell for cell in rest if way.number(kind, cell) is None]
            share = sum(rest[cell] for cell in unfit)
            if len(rest) > len(unfit) and len(unfit) <= MOST_ODD and share <= FEW_ODD * total:
                return kind, way, unfit
        return None, PLAIN, []

    @cached_property
    def spelling(self) -> Spelling:
        """How the cells are written, where that is not the package's own way."""
        held = self.held
        if held is None or self.categories:
            return PLAIN
        if _is_text(held):
            return self._way[1]
        if pa.types.is_integer(held) and self.counts and not self.uncounted:
            texts = [text_of(cell) for cell in self.counts]
            for kind, way in run_together(self.name, texts):
                if all(way.number(kind, text) is not None for text in texts):
                    return way
        return PLAIN

    @cached_property
    def cells(self) -> dict[object, int]:
        """How often each cell occurs, without those that stand for a missing one."""
        if not self.words:
            return dict(self.counts)
        return {
            cell: n for cell, n in self.counts.items() if text_of(cell).strip() not in self.words
        }

    @property
    def has_missing(self) -> bool:
        return bool(self.missing or self.words)

    @property
    def present(self) -> int:
        """How many cells are there."""
        return sum(self.cells.values()) + self.uncounted

    @property
    def different(self) -> int:
        """How many different cells there are, at least."""
        return len(self.cells)

    @cached_property
    def kind(self) -> Type:
        """The type that all cells have."""
        held = self.held
        if held is None or self.categories:
            return Type.TEXT
        if self.spelling.format and not _is_text(held):
            return Type.DATE if "%d" in self.spelling.format else Type.TIME
        if pa.types.is_boolean(held):
            return Type.YES_NO
        if pa.types.is_integer(held):
            return Type.WHOLE
        if pa.types.is_floating(held) or pa.types.is_decimal(held):
            # pandas turns whole numbers into decimals as soon as one of them is missing. SPSS and
            # SAS know no others.
            may_be_whole = self.missing or self.documented is not None
            return Type.WHOLE if may_be_whole and self._all_whole() else Type.DECIMAL
        if pa.types.is_date(held):
            return Type.DATE
        if pa.types.is_timestamp(held):
            midnight = all(self._number(Type.TIMESTAMP, cell) % DAY == 0 for cell in self.cells)
            return Type.DATE if midnight else Type.TIMESTAMP
        return Type.TIME if pa.types.is_time(held) else self._kind_of_text()

    def _kind_of_text(self) -> Type:
        texts = [str(cell).strip() for cell in self.cells]
        if not texts:
            return Type.TEXT
        if {text.lower() for text in texts} <= _YES_NO:
            return Type.YES_NO
        kind, way, _ = self._way
        if way != PLAIN and kind is not None:
            plain = kind is Type.DECIMAL and self._all_whole()
            return Type.WHOLE if plain and not any(_DECIMALS.search(t) for t in texts) else kind
        if any(_LEADING_ZERO.match(text) and "." not in text and ":" not in text for text in texts):
            leading = any(_WHOLE.match(text) for text in texts)
            if leading and all(_WHOLE.match(text) for text in texts):
                return Type.TEXT  # a code such as 04847
        for kind in (Type.DECIMAL, Type.DATE, Type.TIMESTAMP, Type.TIME):
            numbers = [number_of(kind, text) for text in texts]
            if all(number is not None for number in numbers):
                if kind is Type.DECIMAL:
                    whole = all(_WHOLE.match(text) for text in texts)
                    return Type.WHOLE if whole or (self.missing and self._all_whole()) else kind
                if kind is Type.DATE and any(
                    self._number(Type.TIMESTAMP, text) % DAY for text in texts
                ):
                    continue
                return kind
        return Type.TEXT

    def _all_whole(self) -> bool:
        return all(self._number(Type.DECIMAL, cell).is_integer() for cell in self.cells)

    def _number(self, kind: Type, cell: object) -> float:
        number = self.spelling.number(kind, cell)
        return math.nan if number is None else float(number)

    @cached_property
    def numbers(self) -> npt.NDArray[np.float64]:
        """The numbers that stand for the cells, each as often as it occurs."""
        values = np.array([self._number(self.kind, cell) for cell in self.cells], dtype=float)
        times = np.array(list(self.cells.values()), dtype=np.int64)
        kept = np.isfinite(values)
        ends = [end for end in (self.low, self.high) if math.isfinite(end)]
        return np.append(np.repeat(values[kept], times[kept]), ends)

    @property
    def decimals(self) -> int:
        """The most decimals of a cell, among those that are counted."""
        numbers = [self._number(Type.DECIMAL, cell) for cell in self.cells]
        if self.held is not None and pa.types.is_float32(self.held):
            # As a double, the single 3.4 would be 3.4000000953674316.
            numbers = [float(str(np.float32(number))) for number in numbers]
        return max((written_decimals(n) for n in numbers if math.isfinite(n)), default=0)

    def texts(self) -> list[str]:
        """The different cells as text, in the order of their categories or of the alphabet."""
        if self.categories:
            return [text_of(cell) for cell in self.categories if cell is not None]
        return sorted({text_of(cell) for cell in self.cells})

    def whole_values(self) -> list[Number]:
        """The different whole numbers, in rising order."""
        return sorted({int(number) for number in self.numbers})


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def read_profiles(
    batches: Iterable[pa.RecordBatch],
    names: Iterable[str],
    documented: Mapping[str, Documented],
) -> tuple[dict[str, Profile], int]:
    """The profiles of some columns, and the number of rows."""
    profiles = {name: Profile(name, documented=documented.get(name)) for name in names}
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        for name, profile in profiles.items():
            try:
                profile.read(batch.column(batch.schema.get_field_index(name)))
            except DualQueryError as error:
                profile.problem = str(error)
    return profiles, rows
