"""Cells to codes: one column, judged by its declared attribute. Private side."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dualquery.base.checks import choice
from dualquery.base.errors import TableError, first_line
from dualquery.base.similar import brief
from dualquery.domain.answers import Answer, split
from dualquery.domain.attributes import Attribute
from dualquery.domain.types import DAY, Key, Type, key_of, loose_text, number_of, text_of
from dualquery.rows.refusals import MISSING_CELL, NO_BUCKET, OUTSIDE, UNFIT, refusal_text

Codes = npt.NDArray[np.int32]


class OutOfDomain(StrEnum):
    """What to do with a cell outside its declared domain."""

    REFUSE = "refuse"
    CLAMP = "clamp"
    MISSING = "missing"

    @classmethod
    def parse(cls, name: str) -> OutOfDomain:
        """The treatment of that name, or an error that lists the names."""
        return choice("out_of_domain", name, cls)


def encode_column(
    column: pa.Array | pa.ChunkedArray,
    attribute: Attribute,
    out_of_domain: OutOfDomain = OutOfDomain.REFUSE,
) -> Codes:
    """The code of every cell of one column.

    A cell outside the domain is refused with a `TableError` that names column and value, unless
    `out_of_domain` says otherwise: clamped (a number goes to the nearest bin, another value to the
    declared default), or counted as missing.
    """
    judged = judge_column(column, attribute, out_of_domain)
    if judged.codes.size and judged.codes.min() < 0:
        first = int(np.argmin(judged.codes))
        mark = int(judged.codes[first])
        raise TableError(refusal_text(mark, judged.cell(first), attribute))
    return judged.codes


@dataclass(frozen=True)
class Judged:
    """One column, judged by its attribute.

    Attributes:
        codes: per row, its code; a negative one marks a cell that is refused (`rows.refusals`).
        cell: the cell of a row, as it was read.
    """

    codes: Codes
    cell: Callable[[int], object]


def judge_column(
    column: pa.Array | pa.ChunkedArray,
    attribute: Attribute,
    out_of_domain: OutOfDomain = OutOfDomain.REFUSE,
) -> Judged:
    """The code of every cell of one column, or a mark; `encode_column` refuses what is marked."""
    try:
        plain = plain_column(column, attribute.column)
        if attribute.answer is not None:
            return _judge_answers(plain, attribute.answer, out_of_domain)
        return _judge(plain, attribute, out_of_domain)
    except (pa.ArrowException, OverflowError, ValueError) as error:
        if isinstance(error, TableError):
            raise
        # Arrow holds values that Python cannot, such as the year 10000.
        raise unreadable(attribute.name, column.type, error) from None


def plain_column(column: pa.Array | pa.ChunkedArray, name: str) -> pa.Array:
    """A column as one plain array, however the reader laid it out; nested cells are refused."""
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # text of more than 2 GiB does not fit one array
        column = pa.concat_arrays(column.cast(pa.large_string()).chunks)
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        column = pc.run_end_decode(column)
        kind = column.type
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_nested(inner):
        raise TableError(
            f"column {name!r} holds {_kind(kind)} in a cell; expected one value in each cell"
        )
    if pa.types.is_null(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.string())
    return column.cast(pa.binary()) if pa.types.is_binary_view(kind) else column


def unreadable(name: str, kind: pa.DataType, error: Exception) -> TableError:
    """The error of a column whose cells cannot be read at all."""
    return TableError(
        f"column {name!r}: cells of type {_kind(kind)} cannot be read: {first_line(error)}"
    )


def _kind(kind: pa.DataType) -> str:
    return brief(str(kind))


def _judge(column: pa.Array, attribute: Attribute, out_of_domain: OutOfDomain) -> Judged:
    distinct = distinct_text(column)
    if attribute.is_numeric:
        numbers = _as_numbers(column if distinct is None else distinct.cells, attribute)
        if numbers is not None:
            binned = _encode_numbers(numbers, attribute, out_of_domain)
            if distinct is None:
                return Judged(binned, lambda row: numbers[row].item())
            spread = np.append(binned, _missing_or(attribute, MISSING_CELL)).astype(np.int32)
            places = distinct.places  # a missing cell has the last one
            return Judged(
                spread[places], lambda row: np.append(numbers, np.nan)[places[row]].item()
            )
    if attribute.is_binary and not column.null_count and _is_whole(column.type):
        flags: Codes = column.cast(pa.int32()).to_numpy(zero_copy_only=False)
        if not flags.size or (flags.min() >= 0 and flags.max() <= 1):
            return Judged(flags, lambda row: int(flags[row]))
    distinct = distinct or _distinct(column)
    cells = [_unless_word(cell, attribute) for cell in distinct.cells.to_pylist()]
    if attribute.is_numeric:
        codes = _encode_words(cells, attribute, out_of_domain)
    else:
        known = attribute.value_keys()
        codes = np.array(
            [_code_of(cell, known, attribute, out_of_domain) for cell in cells], dtype=np.int32
        )
    # A dictionary may list values that no cell uses; only values in use can be refused.
    lookup = np.append(codes, _missing_or(attribute, MISSING_CELL)).astype(np.int32)
    places = distinct.places
    return Judged(lookup[places], lambda row: [*cells, None][places[row]])


@dataclass(frozen=True, eq=False)
class Distinct:
    """A column as its distinct cells.

    Attributes:
        cells: each of them once.
        places: per row, the place of its cell among them; −1 for a missing one, which is the last
            place of whatever is looked up with one entry more.
    """

    cells: pa.Array
    places: npt.NDArray[np.integer]


MOST_DISTINCT = 4096
"""Text with more distinct cells than this in one block is left to Arrow."""


def distinct_text(column: pa.Array) -> Distinct | None:
    """The distinct cells of a column of text; None if there are many, or if it is no text."""
    from dualquery.rows._text_kernels import distinct_cells

    wide = pa.types.is_large_string(column.type)
    if not len(column) or not (wide or pa.types.is_string(column.type)):
        return None
    _, start, data = column.buffers()
    starts = np.frombuffer(start, dtype=np.int64 if wide else np.int32)
    text = np.frombuffer(b"" if data is None else data, dtype=np.uint8)
    missing = np.zeros(0, dtype=bool)
    if column.null_count:
        missing = column.is_null().to_numpy(zero_copy_only=False)
    most = min(MOST_DISTINCT, 16 + len(column) // 4)
    places = np.empty(len(column), dtype=np.int32)
    examples = np.empty(most, dtype=np.int32)
    held = starts[column.offset : column.offset + len(column) + 1]
    found = distinct_cells(held, text, missing, most, places, examples)
    return None if found < 0 else Distinct(column.take(pa.array(examples[:found])), places)


def _distinct(column: pa.Array) -> Distinct:
    """The distinct cells of a column of any kind, by Arrow's own means."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    places = pc.fill_null(column.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    return Distinct(column.dictionary, places)


def _judge_answers(column: pa.Array, answer: Answer, out_of_domain: OutOfDomain) -> Judged:
    """Per cell, whether it holds one answer; an answer that was not declared is refused.

    Where cells outside the domain are not refused, such an answer counts as not given.
    """
    distinct = distinct_text(column) or _distinct(column)
    cells = distinct.cells.to_pylist()
    known = set(answer.values)
    parts = [[] if cell is None else split(cell, answer.separator) for cell in cells]
    codes = np.array([answer.value in part for part in parts], dtype=np.int32)
    if out_of_domain is OutOfDomain.REFUSE:
        codes[[not known.issuperset(part) for part in parts]] = OUTSIDE
    unknown = [next((one for one in part if one not in known), None) for part in parts]
    places = distinct.places
    # A missing cell holds no answer; it stands after all others.
    return Judged(np.append(codes, 0).astype(np.int32)[places], lambda row: unknown[places[row]])


def _unless_word(cell: object, attribute: Attribute) -> object:
    """The cell; None if it is a word that stands for a missing one."""
    words = attribute.missing_words
    return None if words and cell is not None and text_of(cell).strip() in words else cell


def _as_numbers(column: pa.Array, attribute: Attribute) -> npt.NDArray[np.float64] | None:
    """The numbers that stand for the cells, NaN where one is missing.

    None if the cells have to be read one by one.
    """
    held, kind, words = column.type, attribute.type, attribute.missing_words
    if pa.types.is_dictionary(held):
        return None
    if not kind.is_temporal:
        numbers = _plain_numbers(column, words)
        meant = [n for n in (number_of(kind, word) for word in words) if n is not None]
        if numbers is not None and meant:
            numbers = np.where(np.isin(numbers, meant), np.nan, numbers)
        return numbers
    if kind is Type.TIME:
        return _counted(column, _PER_SECOND[held.unit]) if pa.types.is_time(held) else None
    seconds_per_unit = 1 if kind is Type.TIMESTAMP else DAY
    if pa.types.is_timestamp(held):
        if held.tz is not None:
            column = pc.local_timestamp(column)
        return _counted(column, _PER_SECOND[held.unit] * seconds_per_unit)
    if pa.types.is_date(held):
        days = column.cast(pa.date32()).cast(pa.int32())
        return _floats(days.cast(pa.float64())) * (DAY // seconds_per_unit)
    return None


def _plain_numbers(column: pa.Array, words: tuple[str, ...]) -> npt.NDArray[np.float64] | None:
    """The numbers of a column of numbers, or of text that Arrow reads as numbers."""
    if _is_number(column.type):
        # Not `safe`: whole numbers beyond 2^53 are rounded, which matters only next to an edge.
        return _floats(column.cast(pa.float64(), safe=False))
    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        return None
    text = pc.utf8_trim_whitespace(column)
    if words:
        said = pc.is_in(text, value_set=pa.array(words, text.type))
        text = pc.if_else(said, pa.scalar(None, text.type), text)
    try:
        numbers = text.cast(pa.float64())
    except pa.ArrowInvalid:  # some cell is no number: the slow way says which
        return None
    # A cell that says nan is text, which Arrow takes for a number.
    return None if pc.any(pc.is_nan(numbers)).as_py() else _floats(numbers)


_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def _counted(column: pa.Array, units: int) -> npt.NDArray[np.float64]:
    """How many times `units` each cell holds; fractions are dropped. NaN for a missing cell."""
    ticks = column.cast(pa.int32() if pa.types.is_time32(column.type) else pa.int64())
    whole = np.floor_divide(pc.fill_null(ticks, 0).to_numpy(zero_copy_only=False), units)
    counted: npt.NDArray[np.float64] = whole.astype(float)
    counted[pc.is_null(column).to_numpy(zero_copy_only=False)] = np.nan
    return counted


def _floats(column: pa.Array) -> npt.NDArray[np.float64]:
    numbers: npt.NDArray[np.float64] = column.to_numpy(zero_copy_only=False)
    return numbers


def _encode_words(cells: list[object], attribute: Attribute, out_of_domain: OutOfDomain) -> Codes:
    """Bins of numbers that Arrow does not hold as numbers, such as text."""
    numbers = np.array([_to_number(cell, attribute.type) for cell in cells], dtype=float)
    codes = _encode_numbers(numbers, attribute, out_of_domain)
    for place in np.flatnonzero(np.isnan(numbers)):
        if not _is_missing(cells[place]):
            codes[place] = (
                _missing_or(attribute, NO_BUCKET) if out_of_domain is OutOfDomain.MISSING else UNFIT
            )
    return codes


MOST_COMPARED = 128
"""A number is compared with so many edges, one after the other; with more it is searched for."""


def _encode_numbers(
    numbers: npt.NDArray[np.float64], attribute: Attribute, out_of_domain: OutOfDomain
) -> Codes:
    """Bins of numbers; NaN is a missing cell."""
    from dualquery.rows._text_kernels import bins_of

    edges = np.asarray(attribute.edges, dtype=float)
    last = attribute.proper_size - 1
    missing = _missing_or(attribute, MISSING_CELL)
    below, above = 0, last
    if out_of_domain is OutOfDomain.MISSING:
        below = above = _missing_or(attribute, NO_BUCKET)
    elif out_of_domain is OutOfDomain.REFUSE:
        below = above = OUTSIDE
    codes: Codes
    if len(edges) <= MOST_COMPARED:
        codes = np.empty(len(numbers), dtype=np.int32)
        bins_of(np.ascontiguousarray(numbers), edges, last, missing, below, above, codes)
        return codes
    codes = np.searchsorted(edges, numbers, side="right").astype(np.int32) - 1
    np.clip(codes, 0, last, out=codes)
    codes[np.isnan(numbers)] = missing
    codes[numbers < edges[0]] = below
    codes[numbers > edges[-1]] = above
    return codes


def _code_of(
    cell: object, known: dict[Key, int], attribute: Attribute, out_of_domain: OutOfDomain
) -> int:
    if _is_missing(cell):
        return _missing_or(attribute, MISSING_CELL)
    key = key_of(attribute.cell_type, cell)
    code = None if key is None else known.get(key)
    if code is None and attribute.cell_type is Type.TEXT:
        code = known.get(loose_text(cell))
    if code is not None:
        return code
    if out_of_domain is OutOfDomain.CLAMP:
        return attribute.default
    if out_of_domain is OutOfDomain.MISSING:
        return _missing_or(attribute, NO_BUCKET)
    return OUTSIDE


def _is_missing(cell: object) -> bool:
    return cell is None or (isinstance(cell, float | Decimal) and cell != cell)


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    )


def _is_whole(kind: pa.DataType) -> bool:
    """Whether every cell is a whole number that 32 bits hold."""
    return bool(
        pa.types.is_boolean(kind)
        or (pa.types.is_integer(kind) and kind.bit_width <= 32 and kind != pa.uint32())
    )


def _to_number(cell: object, kind: Type) -> float:
    """The number that stands for a cell; NaN if it is none of the type."""
    if isinstance(cell, float) and not kind.is_temporal:
        return cell  # infinite ones are numbers, outside every domain
    number = number_of(kind, cell)
    try:
        return math.nan if number is None else float(number)
    except OverflowError:
        return math.nan


def _missing_or(attribute: Attribute, otherwise: int) -> int:
    return otherwise if attribute.missing_code is None else attribute.missing_code
