"""Private 0/1 tables given by their ones: sparse matrices in memory and in files. Private side."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from dualquery.base.errors import SchemaError, TableError, first_line
from dualquery.base.stored import Array
from dualquery.domain.schema import Schema
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.table import Columns, Ones

BATCH = 1 << 22
"""The number of ones handled at a time."""


class OnesTable:
    """A 0/1 matrix. Its columns have no names, so the schema names them, in its order."""

    def __init__(self, rows: int, width: int) -> None:
        self.rows = rows
        self.width = width

    def bind(self, schema: Schema) -> Schema:
        if schema.patterns:
            stem = schema.patterns[0].replace("*", "{}")
            named = schema.names
            rest = self.width - len(named)
            schema = schema.resolve([*named, *(stem.format(i) for i in range(rest))])
        if len(schema) != self.width:
            raise SchemaError(
                f"the sparse matrix has {self.width} columns and the schema {len(schema)}"
            )
        return require_binary(schema, "a sparse matrix")


class SparseTable(OnesTable):
    """A SciPy sparse matrix of 0/1."""

    def __init__(self, matrix: Any) -> None:
        columns = matrix.tocsc()
        if not columns.has_canonical_format or not columns.data.all():
            columns = columns.copy() if columns is matrix else columns  # never change the caller's
            columns.sum_duplicates()
            columns.eliminate_zeros()
        super().__init__(*columns.shape)
        self.columns = columns

    def blocks(
        self, schema: Schema, attributes: Sequence[int], out_of_domain: OutOfDomain
    ) -> Iterator[Columns]:
        held = self.columns
        if not np.all(held.data == 1):
            column = np.repeat(np.arange(self.width), np.diff(held.indptr))
            on = _ones(held.data, column, schema, out_of_domain)
            start = np.append(0, np.cumsum(on))[held.indptr]
            yield Columns(self.rows, start, held.indices[on])
            return
        yield Columns(self.rows, held.indptr, held.indices)


class SparseFile(OnesTable):
    """A matrix saved by `scipy.sparse.save_npz`, read in batches of its ones."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
                kind = _member(archive, "format").item().decode()
                rows, width = (int(size) for size in _member(archive, "shape"))
        except Exception as error:  # damaged archives fail in many ways
            raise self._unreadable(error) from None
        if kind not in ("csr", "csc", "coo"):
            raise TableError(
                f"{str(path)!r} holds a sparse matrix of format {kind!r}; expected csr, csc or coo"
            )
        self.kind = kind
        # SciPy saves a coordinate array as `coords` and a coordinate matrix as `row` and `col`.
        self.stacked = "coords.npy" in names
        super().__init__(rows, width)

    def blocks(
        self, schema: Schema, attributes: Sequence[int], out_of_domain: OutOfDomain
    ) -> Iterator[Ones]:
        used = np.zeros(self.width, dtype=bool)
        used[np.asarray(attributes, dtype=np.int64)] = True
        yield no_ones(self.rows)
        try:
            with zipfile.ZipFile(self.path) as archive:
                for row, column, data in self._pieces(archive):
                    on = used[column] & _ones(data, column, schema, out_of_domain)
                    yield Ones(self.rows, row[on].astype(np.int64), column[on].astype(np.int32))
        except TableError:
            raise
        except Exception as error:  # damaged archives fail in many ways
            raise self._unreadable(error) from None

    def _pieces(self, archive: zipfile.ZipFile) -> Iterator[tuple[Array, ...]]:
        if self.kind == "coo":
            if self.stacked:
                row, column = _member(archive, "coords")
                streams = [_array(row), _array(column), _stream(archive, "data")]
            else:
                streams = [_stream(archive, name) for name in ("row", "col", "data")]
            for rows, columns, data in zip(*streams, strict=True):
                yield rows, columns, data
            return
        start = _member(archive, "indptr").astype(np.int64)
        done = 0
        for inner, data in zip(_stream(archive, "indices"), _stream(archive, "data"), strict=True):
            end = done + len(inner)
            low, high = np.searchsorted(start, [done, end], side="right")
            owners = np.arange(low - 1, high)
            sizes = np.clip(start[owners + 1 - (owners + 1 == len(start))], done, end)
            outer = np.repeat(owners, np.diff(np.concatenate([[done], sizes])))
            yield (outer, inner, data) if self.kind == "csr" else (inner, outer, data)
            done = end

    def _unreadable(self, error: Exception) -> TableError:
        return TableError(f"cannot read {str(self.path)!r} as a sparse matrix: {first_line(error)}")


def require_binary(schema: Schema, needed_by: str) -> Schema:
    """The schema itself, if all its attributes are 0/1."""
    for attribute in schema.attributes:
        if not attribute.is_binary:
            raise SchemaError(f"attribute {attribute.name!r} is not binary, as {needed_by} needs")
    return schema


def no_ones(rows: int) -> Ones:
    return Ones(rows, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32))


def _ones(data: Array, column: Array, schema: Schema, out_of_domain: OutOfDomain) -> Array:
    """Which entries are ones. Another number is refused, or is what its attribute's default is."""
    wrong = np.flatnonzero((data != 1) & (data != 0))
    if len(wrong) and out_of_domain is OutOfDomain.REFUSE:
        raise TableError(
            f"column {int(column[wrong[0]])} of the sparse matrix holds another number; "
            "expected only 0 and 1"
        )
    on: Array = data == 1
    defaults = [schema.attributes[int(column[place])].default for place in wrong]
    on[wrong] = np.array(defaults, dtype=bool)
    return on


def _member(archive: zipfile.ZipFile, name: str) -> Array:
    """One array of an archive, whole."""
    with archive.open(f"{name}.npy") as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def _array(whole: Array) -> Iterator[Array]:
    return (whole[first : first + BATCH] for first in range(0, len(whole), BATCH))


def _stream(archive: zipfile.ZipFile, name: str) -> Iterator[Array]:
    """One flat array of an archive, in pieces of `BATCH` entries."""
    with archive.open(f"{name}.npy") as stream:
        total, kind = _header(stream)
        for first in range(0, total, BATCH):
            wanted = min(BATCH, total - first) * kind.itemsize
            content = stream.read(wanted)
            if len(content) < wanted:
                raise ValueError(f"{name} ends early")
            yield np.frombuffer(content, dtype=kind)


def _header(stream: IO[bytes]) -> tuple[int, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, _, kind = read(stream)
    if len(shape) != 1 or kind.hasobject:
        raise ValueError("expected a flat array of numbers")
    return int(shape[0]), kind
