"""Writes SAS files for tests, by the library in pyreadstat, which itself only reads them."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyreadstat

TEXT, NUMBER = 0, 5
_SINK = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


@cache
def library() -> Any:
    """ReadStat, as it is compiled into pyreadstat's module for writing."""
    (file,) = Path(pyreadstat.__file__).parent.glob("_readstat_writer*.so")
    found = ctypes.CDLL(str(file))
    for name in ("writer_init", "add_variable", "add_label_set"):
        getattr(found, f"readstat_{name}").restype = ctypes.c_void_p
    return found


def write_table(
    path: Path,
    columns: Mapping[str, Sequence[object]],
    labels: Mapping[str, str],
    formats: Mapping[str, str],
) -> None:
    """A .sas7bdat file. A missing cell is None.

    Args:
        path: the file.
        columns: of numbers, or of texts.
        labels: of columns.
        formats: of columns, such as DATE9.
    """
    lib, writer, content, kept = _begun()
    variables = []
    for name, cells in columns.items():
        text = any(isinstance(cell, str) for cell in cells)
        width = max(len(str(cell).encode()) for cell in cells) if text else 8
        made = _pointer(
            lib.readstat_add_variable(
                writer, name.encode(), TEXT if text else NUMBER, ctypes.c_size_t(width)
            )
        )
        lib.readstat_variable_set_label(made, labels.get(name, "").encode())
        lib.readstat_variable_set_format(made, formats.get(name, "").encode())
        variables.append((made, cells))
    rows = len(variables[0][1])
    _done(lib.readstat_begin_writing_sas7bdat(writer, None, ctypes.c_long(rows)))
    for row in range(rows):
        _done(lib.readstat_begin_row(writer))
        for variable, cells in variables:
            cell = cells[row]
            if isinstance(cell, str):
                _done(lib.readstat_insert_string_value(writer, variable, cell.encode()))
            else:
                number = ctypes.c_double(math.nan if cell is None else float(cell))  # type: ignore[arg-type]
                _done(lib.readstat_insert_double_value(writer, variable, number))
        _done(lib.readstat_end_row(writer))
    _end(lib, writer, content, path)
    del kept


def write_catalogue(path: Path, sets: Mapping[str, Mapping[float, str]]) -> None:
    """A .sas7bcat file: what numbers are called, by the name of a format."""
    lib, writer, content, kept = _begun()
    for name, words in sets.items():
        made = _pointer(lib.readstat_add_label_set(writer, NUMBER, name.encode()))
        for value, text in words.items():
            lib.readstat_label_double_value(made, ctypes.c_double(value), text.encode())
    _done(lib.readstat_begin_writing_sas7bcat(writer, None))
    _end(lib, writer, content, path)
    del kept


def _begun() -> tuple[Any, ctypes.c_void_p, bytearray, object]:
    lib, content = library(), bytearray()

    def take(data: int, length: int, _: object) -> int:
        content.extend(ctypes.string_at(data, length))
        return length

    sink = _SINK(take)
    writer = _pointer(lib.readstat_writer_init())
    _done(lib.readstat_set_data_writer(writer, sink))
    return lib, writer, content, sink


def _end(lib: Any, writer: ctypes.c_void_p, content: bytearray, path: Path) -> None:
    _done(lib.readstat_end_writing(writer))
    lib.readstat_writer_free(writer)
    path.write_bytes(content)


def _pointer(address: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(address)


def _done(code: int) -> None:
    assert code == 0, f"ReadStat says {code}"
