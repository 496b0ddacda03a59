"""Cells to codes: one column against one declared attribute."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dualquery.errors import TableError
from dualquery.schema import Attribute

Codes = npt.NDArray[np.int32]


class OutOfDomain(StrEnum):
    """What to do with a cell outside its declared domain."""

    REFUSE = "refuse"
    CLAMP = "clamp"
    MISSING = "missing"


def encode_column(
    column: pa.Array | pa.ChunkedArray,
    attribute: Attribute,
    out_of_domain: OutOfDomain = OutOfDomain.REFUSE,
) -> Codes:
    """The code of every cell of one column.

    Raises `TableError`, naming column and value, for a cell outside the domain, unless
    it is to be clamped (numbers: to the nearest bin; other values: to the declared
    default) or counted as missing.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    if pa.types.is_null(column.type):
        column = column.cast(pa.string())
    if attribute.is_numeric and not pa.types.is_dictionary(column.type) and _is_number(column.type):
        numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return _encode_numbers(numbers, attribute, out_of_domain)
    if attribute.is_binary and not column.null_count and _is_whole(column.type):
        flags: Codes = column.cast(pa.int32()).to_numpy(zero_copy_only=False)
        if not flags.size or (flags.min() >= 0 and flags.max() <= 1):
            return flags
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    cells = column.dictionary.to_pylist()
    if attribute.is_numeric:
        numbers = np.array([_to_number(cell, attribute) for cell in cells], dtype=float)
        codes = _encode_numbers(numbers, attribute, out_of_domain, lenient_missing=True)
    else:
        known = {_canonical(value): code for code, value in enumerate(attribute.values)}
        codes = np.array(
            [_code_of(cell, known, attribute, out_of_domain) for cell in cells], dtype=np.int32
        )
    # A dictionary may list values that no cell uses; only used ones can be refused.
    indices = pc.fill_null(column.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    null = len(codes)
    lookup = np.append(codes, _missing_or(attribute, -2)).astype(np.int32)
    result = lookup[np.where(indices < 0, null, indices)]
    if result.size and result.min() < 0:
        first = int(np.argmin(result))
        cell = None if indices[first] < 0 else cells[indices[first]]
        raise _refusal(cell, attribute)
    return result


def _encode_numbers(
    numbers: npt.NDArray[np.float64],
    attribute: Attribute,
    out_of_domain: OutOfDomain,
    lenient_missing: bool = False,
) -> Codes:
    """Bins of numbers; NaN is a missing cell. `lenient_missing` marks refusals as −1."""
    edges = np.asarray(attribute.edges, dtype=float)
    codes = np.searchsorted(edges, numbers, side="right").astype(np.int32) - 1
    np.clip(codes, 0, attribute.proper_size - 1, out=codes)
    missing = np.isnan(numbers)
    outside = (numbers < edges[0]) | (numbers > edges[-1])
    codes[missing] = _missing_or(attribute, -2)
    if outside.any() and out_of_domain is not OutOfDomain.CLAMP:
        codes[outside] = _require_missing(attribute) if out_of_domain is OutOfDomain.MISSING else -1
    if not lenient_missing and codes.size and codes.min() < 0:
        first = int(np.argmin(codes))
        raise _refusal(None if missing[first] else float(numbers[first]), attribute)
    return codes


def _code_of(
    cell: Any, known: dict[str, int], attribute: Attribute, out_of_domain: OutOfDomain
) -> int:
    if cell is None or (isinstance(cell, float) and cell != cell):
        return _missing_or(attribute, -2)
    code = known.get(_canonical(cell))
    if code is not None:
        return code
    if out_of_domain is OutOfDomain.CLAMP:
        return attribute.default
    if out_of_domain is OutOfDomain.MISSING:
        return _require_missing(attribute)
    return -1


def _canonical(cell: Any) -> str:
    """One text for equal cells of different types: 1, 1.0, True and "1" are the same."""
    if isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    text = str(cell)
    return {"True": "1", "False": "0", "true": "1", "false": "0"}.get(text, text)


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    )


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_boolean(kind) or (pa.types.is_integer(kind) and kind.bit_width <= 32))


def _to_number(cell: Any, attribute: Attribute) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        raise TableError(
            f"column {attribute.name!r}: {cell!r} is not a number; expected {attribute.describe()}"
        ) from None


def _missing_or(attribute: Attribute, otherwise: int) -> int:
    return otherwise if attribute.missing_code is None else attribute.missing_code


def _require_missing(attribute: Attribute) -> int:
    if attribute.missing_code is None:
        raise TableError(
            f"column {attribute.name!r}: a cell is outside the domain and the attribute has no "
            "missing bucket; declare missing = true"
        )
    return attribute.missing_code


def _refusal(cell: Any, attribute: Attribute) -> TableError:
    if cell is None:
        return TableError(
            f"column {attribute.name!r}: a cell is missing and the attribute has no missing "
            "bucket; declare missing = true"
        )
    return TableError(
        f"column {attribute.name!r}: {cell!r} is outside its declared domain "
        f"({attribute.describe()})"
    )
