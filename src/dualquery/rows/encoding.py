"""Columns of cells to columns of codes. Private side.

What a cell means is said by `rows.cells`, one cell at a time. Here are the ways to do that for many
cells at once: distinct cells are read once, text that is plainly a number is read by a compiled
loop, and columns whose file declares a type are read as arrays. Each way reads every cell for
itself. None of them decides about a block or a column, because then one person's cell would change
how other people's are read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dualquery.base.errors import TableError
from dualquery.base.similar import brief
from dualquery.domain.attributes import Attribute
from dualquery.domain.spelling import PLAIN
from dualquery.domain.types import DAY, Type
from dualquery.rows.cells import OBJECTS, CellReader, lost_digits, python_cells
from dualquery.rows.cells import OutOfDomain as OutOfDomain
from dualquery.rows.refusals import refused

Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]


def encode_column(
    column: pa.Array | pa.ChunkedArray,
    attribute: Attribute,
    out_of_domain: OutOfDomain = OutOfDomain.REFUSE,
) -> Codes:
    """The code of every cell of one column.

    A cell outside the domain is refused with a `TableError` that names the column, unless
    `out_of_domain` says otherwise: clamped (a number goes to the nearest bin, another value to the
    declared default), or counted as missing. `rows.cells` says what each cell becomes.
    """
    judged = judge_column(column, attribute, out_of_domain)
    if judged.codes.size and judged.codes.min() < 0:
        first = int(np.argmin(judged.codes))
        mark = int(judged.codes[first])
        raise refused(mark, attribute)
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
        judged = _judge(plain, CellReader(attribute, out_of_domain))
        if attribute.spelling == PLAIN or _objects_of(column.type) is None:
            return judged
        return _judge_objects(column, plain, judged, attribute, out_of_domain)
    except (pa.ArrowException, OverflowError, ValueError) as error:
        if isinstance(error, TableError):
            raise
        raise unreadable(attribute.name, column.type) from None


def _judge_objects(
    column: pa.Array | pa.ChunkedArray,
    texts: pa.Array,
    judged: Judged,
    attribute: Attribute,
    out_of_domain: OutOfDomain,
) -> Judged:
    """The codes of objects: what was no text is read as it is, and not as texts are spelled."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    is_text = np.concatenate([_were_text(chunk) for chunk in chunks])
    if attribute.spelling.format:  # which numbers such as 20251231 follow, too
        is_text = is_text | read_numbers(decoded(texts).cast(pa.string()))[1]
    others = np.flatnonzero(~is_text)
    codes = judged.codes.copy()
    bare = CellReader(replace(attribute, spelling=PLAIN), out_of_domain)
    codes[others] = _judge(texts.take(pa.array(others)), bare).codes
    return Judged(codes, judged.cell)


def _objects_of(kind: pa.DataType) -> pa.DataType | None:
    """The type of objects that a column of this type holds, if it holds some."""
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return inner if inner == OBJECTS else None


def _were_text(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Which cells of objects were texts; missing cells count as such."""
    places = None
    if pa.types.is_dictionary(column.type):
        places = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        column = column.dictionary
    flags: npt.NDArray[np.bool_] = pc.struct_field(column, "is_text").to_numpy(zero_copy_only=False)
    return flags if places is None else np.append(flags, True)[places]


def _texts(column: pa.Array) -> pa.Array:
    """The texts of objects, in the same layout."""
    if pa.types.is_dictionary(column.type):
        texts = pc.struct_field(column.dictionary, "text")
        return pa.DictionaryArray.from_arrays(column.indices, texts, ordered=column.type.ordered)
    return pc.struct_field(column, "text")


def plain_column(column: pa.Array | pa.ChunkedArray, name: str) -> pa.Array:
    """A column as one plain array, however the reader laid it out; nested cells are refused."""
    if _objects_of(column.type) is not None:
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        column = pa.chunked_array(
            [_texts(chunk) for chunk in chunks] or [pa.array([], pa.string())]
        )
    if isinstance(column, pa.ChunkedArray) and column.num_chunks == 1:
        column = column.chunk(0)
    if isinstance(column, pa.ChunkedArray):
        if pa.types.is_dictionary(column.type) and column.num_chunks:
            # Not unified: Arrow fails at a missing value in a dictionary, and mixes up numbers of
            # half precision.
            column = pa.chunked_array([decoded(chunk) for chunk in column.chunks])
        column = column.combine_chunks()
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
    if pa.types.is_decimal(kind) and kind.bit_width < 128:  # few functions of Arrow know these
        return column.cast(pa.decimal128(kind.precision, kind.scale))
    return column.cast(pa.binary()) if pa.types.is_binary_view(kind) else column


def decoded(column: pa.Array) -> pa.Array:
    """The cells of an array, without a dictionary."""
    if not pa.types.is_dictionary(column.type):
        return column
    values = column.dictionary
    if pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type):
        values = values.cast(pa.string() if pa.types.is_string_view(values.type) else pa.binary())
        column = pa.DictionaryArray.from_arrays(column.indices, values)
    return column.dictionary_decode()


def unreadable(name: str, kind: pa.DataType) -> TableError:
    """The error of a column whose cells cannot be read at all; Arrow's own would show a cell."""
    return TableError(f"column {name!r}: cells of type {_kind(kind)} cannot be read")


def _kind(kind: pa.DataType) -> str:
    """The kind of a type, without what is inside: the keys of a nested cell are private too."""
    return brief(str(kind).partition("<")[0])


def _judge(column: pa.Array, reader: CellReader) -> Judged:
    attribute = reader.attribute
    held = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_floating(held) and not attribute.is_numeric and reader.is_exact:
        raise lost_digits(attribute.column)  # whatever its cells hold: none of them decides
    if attribute.is_numeric:
        numbers = _typed_numbers(column, attribute.type)
        if numbers is not None:
            return Judged(_binned(numbers, reader), lambda row: numbers[row].item())
    if attribute.is_binary and attribute.answer is None and _is_whole(column):
        flags: Codes = column.cast(pa.int32()).to_numpy(zero_copy_only=False)
        if not flags.size or (flags.min() >= 0 and flags.max() <= 1):
            return Judged(flags, lambda row: int(flags[row]))
    if attribute.is_numeric and not attribute.type.is_temporal:
        if pa.types.is_decimal(column.type):  # digit by digit; as a double it would be rounded
            return _judge_written_numbers(column.cast(pa.string()), reader)
        if is_text(column.type) and attribute.spelling == PLAIN:
            return _judge_written_numbers(column, reader)
    distinct = distinct_text(column) or _distinct(column)
    cells = python_cells(distinct.cells)
    # A dictionary may list values that no cell uses; only values in use can be refused.
    codes = [reader.code(cell) for cell in cells]
    return _spread(np.array([*codes, reader.code(None)], dtype=np.int32), cells, distinct.places)


def _spread(codes: Codes, cells: list[object], places: npt.NDArray[np.integer]) -> Judged:
    """The codes of all rows from those of distinct cells; a missing cell has the last place."""
    return Judged(codes[places], lambda row: [*cells, None][places[row]])


def _judge_written_numbers(column: pa.Array, reader: CellReader) -> Judged:
    """Bins of numbers that are written as text."""
    distinct = distinct_text(column)
    texts = column if distinct is None else distinct.cells
    numbers, is_read = read_numbers(texts)
    codes = _binned(numbers, reader)
    odd = np.flatnonzero(~is_read)
    if len(odd):
        rare = _distinct(texts.take(pa.array(odd)))
        found = [reader.code(cell) for cell in python_cells(rare.cells)]
        codes[odd] = np.array([*found, reader.missing], dtype=np.int32)[rare.places]
    if distinct is None:
        return Judged(codes, lambda row: texts[row].as_py())
    cells = python_cells(texts)
    return _spread(np.append(codes, np.int32(reader.missing)), cells, distinct.places)


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

    if not len(column) or not is_text(column.type):
        return None
    most = min(MOST_DISTINCT, 16 + len(column) // 4)
    places = np.empty(len(column), dtype=np.int32)
    examples = np.empty(most, dtype=np.int32)
    found = distinct_cells(*_bytes_of(column), most, places, examples)
    return None if found < 0 else Distinct(column.take(pa.array(examples[:found])), places)


def _bytes_of(column: pa.Array) -> tuple[npt.NDArray[np.integer], Bytes, npt.NDArray[np.bool_]]:
    """Where the cells of a column of text begin, their bytes, and which cells are missing."""
    wide = pa.types.is_large_string(column.type)
    _, start, data = column.buffers()
    starts: npt.NDArray[np.integer] = np.frombuffer(start, dtype=np.int64 if wide else np.int32)
    text = np.frombuffer(b"" if data is None else data, dtype=np.uint8)
    missing: npt.NDArray[np.bool_] = np.zeros(0, dtype=bool)
    if column.null_count:
        missing = column.is_null().to_numpy(zero_copy_only=False)
    return starts[column.offset : column.offset + len(column) + 1], text, missing


def read_numbers(texts: pa.Array) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The numbers that cells of text plainly are, NaN for a missing cell, and which were read.

    Cells that are not read are no numbers, or are written in a way that only Python reads.
    """
    from dualquery.rows._text_kernels import written_numbers

    numbers = np.full(len(texts), np.nan)
    is_read = np.ones(len(texts), dtype=bool)
    if len(texts):
        written_numbers(*_bytes_of(texts), numbers, is_read)
    return numbers, is_read


def _distinct(column: pa.Array) -> Distinct:
    """The distinct cells of a column of any kind, by Arrow's own means."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    places = pc.fill_null(column.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    return Distinct(column.dictionary, places)


_DAYS = (-719_162, 2_932_896)
"""The first and the last day that Python knows, in days since 1970-01-01."""


def _typed_numbers(column: pa.Array, kind: Type) -> Floats | None:
    """The numbers that stand for the cells of a column whose type says what they are.

    NaN stands for a missing cell. None if the cells have to be read one by one.
    """
    held = column.type
    if not kind.is_temporal:
        if not pa.types.is_integer(held) and not pa.types.is_floating(held):
            return None
        # Not `safe`: whole numbers beyond 2^53 are rounded, which matters only next to an edge.
        return _floats(column.cast(pa.float64(), safe=False))
    if kind is Type.TIME:
        return _counted(column, _PER_SECOND[held.unit]) if pa.types.is_time(held) else None
    seconds_per_unit = 1 if kind is Type.TIMESTAMP else DAY
    if pa.types.is_timestamp(held):
        if held.tz is not None:
            column = pc.local_timestamp(column)
        return _counted(column, _PER_SECOND[held.unit] * seconds_per_unit)
    if pa.types.is_date(held):
        days = _counted(column, 1 if pa.types.is_date32(held) else 1000 * DAY)
        return days * (DAY // seconds_per_unit)
    return None


_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def _counted(column: pa.Array, units: int) -> Floats:
    """How many times `units` each cell holds; fractions are dropped. NaN for a missing cell."""
    ticks = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    whole = np.floor_divide(pc.fill_null(ticks, 0).to_numpy(zero_copy_only=False), units)
    counted: Floats = whole.astype(float)
    counted[pc.is_null(column).to_numpy(zero_copy_only=False)] = np.nan
    return counted


def _floats(column: pa.Array) -> Floats:
    numbers: Floats = column.to_numpy(zero_copy_only=False)
    return numbers


MOST_COMPARED = 128
"""A number is compared with so many edges, one after the other; with more it is searched for."""


def _binned(numbers: Floats, reader: CellReader) -> Codes:
    """Bins of numbers; NaN is a missing cell."""
    from dualquery.rows._text_kernels import bins_of

    edges = np.asarray(reader.attribute.edges, dtype=float)
    last = reader.attribute.proper_size - 1
    codes: Codes = np.empty(len(numbers), dtype=np.int32)
    if len(edges) <= MOST_COMPARED:
        bins_of(
            np.ascontiguousarray(numbers),
            edges,
            last,
            reader.missing,
            reader.below,
            reader.above,
            codes,
        )
    else:
        codes[:] = np.searchsorted(edges, numbers, side="right") - 1
        np.clip(codes, 0, last, out=codes)
        codes[np.isnan(numbers)] = reader.missing
        codes[numbers < edges[0]] = reader.below
        codes[numbers > edges[-1]] = reader.above
    if reader.missing_numbers:
        codes[np.isin(numbers, reader.missing_numbers)] = reader.missing
    kind = reader.attribute.type
    if kind is Type.DATE or kind is Type.TIMESTAMP:
        first, final = (day * (DAY if kind is Type.TIMESTAMP else 1) for day in _DAYS)
        beyond = final + (DAY if kind is Type.TIMESTAMP else 1)
        codes[(numbers < first) | (numbers >= beyond)] = reader.unfit
    return codes


def is_text(kind: pa.DataType) -> bool:
    """Whether a column is of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_whole(column: pa.Array) -> bool:
    """Whether every cell is there and is a whole number that 32 bits hold."""
    kind = column.type
    return not column.null_count and bool(
        pa.types.is_boolean(kind)
        or (pa.types.is_integer(kind) and kind.bit_width <= 32 and kind != pa.uint32())
    )
