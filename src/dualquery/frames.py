"""Codes to cells: synthetic records as frames and files. Public side."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dualquery.errors import ParameterError
from dualquery.schema import Attribute, Schema

CodeMatrix = npt.NDArray[np.integer]

WIDEST = 20_000
"""Attributes up to which `records.parquet` has a column for each."""


def decode(
    codes: CodeMatrix, schema: Schema, generator: np.random.Generator | None = None
) -> pa.Table:
    """Records as an Arrow table.

    A bin becomes a value inside it: its middle, or with a generator a uniform one; bins
    declared by whole numbers become whole numbers.
    """
    arrays = [
        decode_column(codes[:, position], attribute, generator)
        for position, attribute in enumerate(schema.attributes)
    ]
    return pa.Table.from_arrays(arrays, names=list(schema.names))


def records_table(codes: CodeMatrix, schema: Schema) -> pa.Table:
    """Records as `records.parquet` holds them.

    A column an attribute, as in any table, up to `WIDEST` attributes. Parquet keeps a kilobyte
    or so of description for every column, and readers look at all of it first, so a wider table is
    one column `codes`: per record a list with one code an attribute, in the order of the schema.
    """
    if len(schema) <= WIDEST:
        return decode(codes, schema)
    kind = np.min_scalar_type(int(schema.sizes.max()))
    flat = pa.array(np.ascontiguousarray(codes, dtype=kind).reshape(-1))
    lists = pa.FixedSizeListArray.from_arrays(flat, codes.shape[1])
    return pa.Table.from_arrays([lists], names=["codes"])


def decode_column(
    codes: CodeMatrix, attribute: Attribute, generator: np.random.Generator | None = None
) -> pa.Array:
    """One column of cells."""
    if attribute.is_numeric:
        cells = _inside_bins(np.minimum(codes, attribute.proper_size - 1), attribute, generator)
        mask = codes == attribute.missing_code if attribute.missing else None
        return pa.array(cells, mask=mask)
    if attribute.is_binary:  # cells are their own codes; tables can have very many such columns
        return pa.array(codes.astype(np.int64))
    kind = _arrow_type(attribute)
    values = [*attribute.values, *([None] if attribute.missing else [])]
    if kind == pa.string():
        values = [None if value is None else str(value) for value in values]
    return pa.array(values, type=kind).take(pa.array(codes))


def _arrow_type(attribute: Attribute) -> pa.DataType:
    kinds = {type(value) for value in attribute.values}
    if kinds == {bool}:
        return pa.bool_()
    if kinds <= {int, bool}:
        return pa.int64()
    if kinds <= {int, float, bool}:
        return pa.float64()
    return pa.string()


def _inside_bins(
    codes: CodeMatrix, attribute: Attribute, generator: np.random.Generator | None
) -> npt.NDArray[Any]:
    edges: npt.NDArray[np.float64] = np.asarray(attribute.edges, dtype=float)
    low, high = edges[codes], edges[codes + 1]
    share = np.full(len(codes), 0.5) if generator is None else generator.random(len(codes))
    inside = low + share * (high - low)
    if attribute.is_integral:
        whole: npt.NDArray[Any] = np.floor(inside).astype(np.int64)
        return whole
    # low + share·(high − low) may round up to the open end of the bin.
    kept: npt.NDArray[Any] = np.minimum(inside, np.nextafter(high, low))
    return kept


@dataclass(frozen=True)
class FrameStyle:
    """The kind of frame a user handed in, and its column types: what `sample` gives back.

    It holds no row. It lives in memory only: a release on disk knows the schema alone,
    because the type of a column that a reader inferred may depend on the data.
    """

    backend: str = "pyarrow"
    native: Any = None
    order: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, source: Any) -> FrameStyle:
        """The style of a frame; a file or anything else counts as pyarrow."""
        import narwhals as nw

        if hasattr(source, "tocsc"):
            return cls("sparse")
        try:
            frame = nw.from_native(source, eager_only=True)
        except TypeError:
            return cls()
        backend = frame.implementation.name.lower()
        return cls(backend, frame.head(0).to_native(), tuple(str(c) for c in frame.columns))

    def frame(self, table: pa.Table) -> Any:
        """The table as a frame of this style, with the same column types where they can hold it."""
        if self.backend == "pyarrow":
            return _cast_arrow(table, self.native)
        if self.backend == "sparse":
            from scipy import sparse

            columns = [column.to_numpy() for column in table.columns]
            return sparse.csr_matrix(np.column_stack(columns).astype(np.int8))
        if self.backend == "pandas":
            return _as_pandas(table, self.native)
        import narwhals as nw

        backend: Any = self.backend
        frame: Any = nw.from_arrow(table, backend=backend)
        wanted = nw.from_native(self.native, eager_only=True).schema
        return frame.with_columns(
            nw.col(name).cast(wanted[name]) for name in table.column_names
        ).to_native()


def _cast_arrow(table: pa.Table, native: Any) -> pa.Table:
    if native is None:
        return table
    columns = []
    for name in table.column_names:
        column, kind = table.column(name), native.schema.field(name).type
        if pa.types.is_dictionary(kind):
            column = column.cast(kind.value_type).dictionary_encode()
        columns.append(column.cast(kind))
    return pa.table(dict(zip(table.column_names, columns, strict=True)))


def _as_pandas(table: pa.Table, native: Any) -> Any:
    frame = table.to_pandas()
    for name, kind in native.dtypes.items():
        if str(name) not in frame.columns:
            continue
        holds_missing = frame[str(name)].isna().any()
        if holds_missing and getattr(kind, "kind", "O") in "iub":
            continue  # a plain integer column cannot hold the missing cells the schema declares
        frame[str(name)] = frame[str(name)].astype(kind)
    return frame


def write_table(table: pa.Table, path: Path) -> None:
    """Write csv or parquet, by the file's ending; a 0/1 table also as a sparse .npz."""
    endings = path.name.lower()
    if endings.endswith((".parquet", ".pq")):
        from pyarrow import parquet

        parquet.write_table(table, path)
    elif endings.endswith((".csv", ".csv.gz")):
        from pyarrow import csv

        with pa.output_stream(str(path), compression="detect") as stream:
            csv.write_csv(table, stream)
    elif endings.endswith(".npz"):
        from scipy import sparse

        sparse.save_npz(path, FrameStyle("sparse").frame(table))
    else:
        raise ParameterError(f"cannot write {path.name!r}; expected .csv, .csv.gz or .parquet")
