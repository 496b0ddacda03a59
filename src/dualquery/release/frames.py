"""Codes to cells: synthetic records as frames and files. Public side."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dualquery.base.checks import choice
from dualquery.base.errors import ParameterError
from dualquery.base.escapes import for_spreadsheet
from dualquery.base.files import replacing
from dualquery.base.interrupts import held
from dualquery.base.stored import Array
from dualquery.domain.answers import together
from dualquery.domain.attributes import Attribute
from dualquery.domain.decimals import common_grids, grid_of
from dualquery.domain.grid import Grid
from dualquery.domain.orders import Order, extents, ordered_cells
from dualquery.domain.schema import Schema
from dualquery.domain.types import DAY, Type, number_of
from dualquery.release.within import Within

CodeMatrix = npt.NDArray[np.integer]

WIDEST = 20_000
"""The most attributes for which `records.parquet` has one column per attribute."""


Frame = Any
"""A frame of the user's library: which of them is known only when the program runs."""

Kinds = Mapping[str, Any]
"""Column types in the words of that library, by the names of the columns."""


def decode(
    codes: CodeMatrix,
    schema: Schema,
    generator: np.random.Generator | None = None,
    within: Callable[[str], Within] | None = None,
    *,
    independent: bool = False,
) -> pa.Table:
    """Records as an Arrow table.

    A bin becomes a value inside it. The types of the columns follow from the schema.

    Args:
        codes: one row per record, one column per attribute.
        schema: what the codes mean.
        generator: draws the values inside bins; None takes the middles.
        within: says of a column how values are spread inside its bins; None for evenly.
    """
    arrays = [
        decode_column(
            codes[:, position],
            attribute,
            generator,
            _spread(attribute, within),
            independent=independent,
        )
        for position, attribute in enumerate(schema.attributes)
    ]
    for order in schema.orders:
        _put_in_order(arrays, codes, order, schema, generator, within, independent)
    if len(schema.columns) < len(schema):
        arrays = _joined_answers(arrays, codes, schema)
    return pa.Table.from_arrays(arrays, names=list(schema.columns))


def _joined_answers(
    arrays: Sequence[pa.Array], codes: CodeMatrix, schema: Schema
) -> list[pa.Array]:
    """One array per column: the answers of a column in one cell, missing if there are none."""
    columns: dict[str, list[int]] = {}
    for position, attribute in enumerate(schema.attributes):
        columns.setdefault(attribute.column, []).append(position)
    joined = []
    for positions in columns.values():
        answer = schema.attributes[positions[0]].answer
        if answer is None:
            joined.append(arrays[positions[0]])
            continue
        sets, place = np.unique(codes[:, positions], axis=0, return_inverse=True)
        cells = [
            together(
                [v for v, given in zip(answer.values, one, strict=True) if given], answer.separator
            )
            for one in sets
        ]
        joined.append(pa.array(cells, pa.string()).take(pa.array(place.reshape(-1))))
    return joined


def _spread(attribute: Attribute, within: Callable[[str], Within] | None) -> Within | None:
    return within(attribute.name) if within and attribute.is_numeric else None


def _put_in_order(
    arrays: list[pa.Array],
    codes: CodeMatrix,
    order: Order,
    schema: Schema,
    generator: np.random.Generator | None,
    within: Callable[[str], Within] | None,
    independent: bool,
) -> None:
    """Replace the columns of an order by cells that obey it, each still in its bin."""
    attributes = [schema.attributes[place] for place in order.places]
    columns = [codes[:, place] for place in order.places]
    cells = []
    for attribute, column, grid in zip(attributes, columns, common_grids(attributes), strict=True):
        proper = np.minimum(column, attribute.proper_size - 1)
        if attribute.is_numeric:
            spread = _spread(attribute, within)
            inside = _inside_bins(proper, attribute, generator, spread, independent, grid)
            cells.append(inside.astype(float))
        else:
            cells.append(extents(attribute)[0][proper])
    for place, attribute, column, ordered in zip(
        order.places,
        attributes,
        columns,
        ordered_cells(cells, columns, attributes, order, generator),
        strict=True,
    ):
        if attribute.is_numeric:
            mask = column == attribute.missing_code if attribute.missing else None
            counted = ordered.astype(np.int64) if attribute.type.is_counted else ordered
            arrays[place] = typed_cells(counted, attribute.type, mask)


def records_table(codes: CodeMatrix, schema: Schema) -> pa.Table:
    """Records as `records.parquet` holds them.

    Up to `WIDEST` attributes there is one column per attribute, as in any table. Parquet keeps
    about a kilobyte of description per column, and readers parse all of it first. So a wider table
    is one column `codes`: per record a list with one code per attribute, in the schema's order.
    """
    if len(schema) <= WIDEST:
        return decode(codes, schema)
    kind = np.min_scalar_type(int(schema.sizes.max()))
    flat = pa.array(np.ascontiguousarray(codes, dtype=kind).reshape(-1))
    lists = pa.FixedSizeListArray.from_arrays(flat, codes.shape[1])
    return pa.Table.from_arrays([lists], names=["codes"])


def decode_column(
    codes: CodeMatrix,
    attribute: Attribute,
    generator: np.random.Generator | None = None,
    within: Within | None = None,
    *,
    independent: bool = False,
) -> pa.Array:
    """One column of cells.

    Args:
        codes: one per cell.
        attribute: what they mean.
        generator: draws the values inside bins; None takes the middles.
        within: how values are spread inside bins; None as nothing was measured there.
        independent: draw every value for itself, instead of in proportion.
    """
    if attribute.is_numeric:
        proper = np.minimum(codes, attribute.proper_size - 1)
        grid = grid_of(attribute)
        cells = _inside_bins(proper, attribute, generator, within, independent, grid)
        mask = codes == attribute.missing_code if attribute.missing else None
        return typed_cells(cells, attribute.type, mask)
    if attribute.is_binary and attribute.type is Type.WHOLE:
        # A shortcut, as tables can have very many columns like this.
        return pa.array(codes.astype(np.int64))
    kind = ARROW_TYPES[attribute.type]
    values: list[object] = [*attribute.values, *([None] if attribute.missing else [])]
    if attribute.type is Type.TEXT:
        values = [None if value is None else str(value) for value in values]
    elif attribute.type is Type.YES_NO:
        values = [None if value is None else bool(value) for value in values]
    elif attribute.type.is_temporal:
        counted = [0 if value is None else number_of(attribute.type, value) for value in values]
        gone = np.array([value is None for value in values])
        return typed_cells(np.array(counted), attribute.type, gone).take(pa.array(codes))
    return pa.array(values, type=kind).take(pa.array(codes))


ARROW_TYPES = {
    Type.TEXT: pa.string(),
    Type.WHOLE: pa.int64(),
    Type.DECIMAL: pa.float64(),
    Type.YES_NO: pa.bool_(),
    Type.DATE: pa.date32(),
    Type.TIMESTAMP: pa.timestamp("us"),
    Type.TIME: pa.time64("us"),
}
"""The Arrow type of a column, by its declared type."""


def typed_cells(
    numbers: Array, kind: Type, missing: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    """The numbers inside, as cells of the declared type.

    Args:
        numbers: one per cell, as `domain.types` counts them.
        kind: any type with numbers inside.
        missing: where a cell is missing instead.
    """
    if kind is Type.DATE:
        return pa.array(numbers.astype(np.int32), mask=missing).cast(ARROW_TYPES[kind])
    if kind.is_temporal:
        microseconds = numbers.astype(np.int64) * 1_000_000
        return pa.array(microseconds, mask=missing).cast(ARROW_TYPES[kind])
    return pa.array(numbers, type=ARROW_TYPES[kind], mask=missing)


def _inside_bins(
    codes: CodeMatrix,
    attribute: Attribute,
    generator: np.random.Generator | None,
    within: Within | None,
    independent: bool,
    grid: Grid | None,
) -> Array:
    """A cell inside each bin: a multiple of what the grid says, if there is one."""
    if generator is None:
        edges: npt.NDArray[np.float64] = np.asarray(attribute.edges, dtype=float)
        inside = (edges[codes] + edges[codes + 1]) / 2.0
    else:
        spread = within or Within.unmeasured(attribute)
        inside = spread.draw(codes, generator, independent=independent)
    if attribute.type.is_counted:
        counted: Array = np.floor(inside).astype(np.int64)
        # The last bin of a day includes its end, 24:00, which no clock shows.
        return np.minimum(counted, DAY - 1) if attribute.type is Type.TIME else counted
    if grid is None:
        return inside
    # Rounding must not take a cell out of its bin.
    low, high = grid.in_bins(attribute.edges)
    return np.clip(grid.nearest(inside), low[codes], high[codes])


class FrameKind(StrEnum):
    """The kinds of frames that can be asked for."""

    PANDAS = "pandas"
    POLARS = "polars"
    PYARROW = "pyarrow"


@dataclass(frozen=True)
class FrameStyle:
    """The kind of frame that `sample` returns: the kind that the user handed in.

    The types of its columns follow from the schema alone. The types of the private table would tell
    something about its cells: one missing cell turns a column of whole numbers into one of
    decimals, and a categorical column lists the values that occur. Only if the curator asks for
    them, `types` holds the types of the private table. They are kept in memory only, and never
    include the categories of a categorical column.
    """

    backend: str = "pyarrow"
    types: Kinds = field(default_factory=dict)

    @classmethod
    def named(cls, kind: str) -> FrameStyle:
        """The style of that name: pandas, polars or pyarrow; types follow from the schema."""
        return cls(choice("kind", kind, FrameKind))

    @classmethod
    def of(cls, source: Frame, *, like_input: bool = False) -> FrameStyle:
        """The style of a frame; a file, or anything else that is not a frame, has pyarrow's."""
        import narwhals as nw

        if hasattr(source, "tocsc"):
            return cls("sparse")
        try:
            frame = nw.from_native(source)
        except TypeError:
            return cls()
        if isinstance(frame, nw.LazyFrame):
            return cls("polars" if frame.implementation.is_polars() else "pyarrow")
        backend = frame.implementation.name.lower()
        return cls(backend, _types_of(frame)) if like_input else cls(backend)

    def plain(self, table: pa.Table) -> Frame:
        """A table of figures as a frame of this style, with the types it has."""
        if self.backend in ("pyarrow", "sparse"):
            return table
        if self.backend == "pandas":
            return table.to_pandas()
        import narwhals as nw

        backend: Any = self.backend
        return nw.from_arrow(table, backend=backend).to_native()

    def frame(self, table: pa.Table, schema: Schema) -> Frame:
        """The table as a frame of this style."""
        if self.backend == "sparse":
            return _sparse(table)
        if self.backend == "pyarrow":
            names = table.column_names
            return pa.table({n: _fitting(table.column(n), self.types.get(n)) for n in names})
        if self.backend == "pandas":
            return _pandas_like(table, schema, self.types) if self.types else _pandas(table, schema)
        import narwhals as nw

        backend: Any = self.backend
        frame: Frame = nw.from_arrow(table, backend=backend)
        for name in table.column_names:
            kind = self.types.get(name)
            if kind is nw.Enum and name in schema.index:
                kind = nw.Enum([str(value) for value in schema[name].values])
            with suppress(Exception):  # if the type cannot hold the cells, they stay as they are
                frame = frame if kind is None else frame.with_columns(nw.col(name).cast(kind))
        return frame.to_native()


def _types_of(frame: Frame) -> Kinds:
    """The column types of a narwhals frame, without what a type tells about its cells."""
    import narwhals as nw

    if frame.implementation.is_pandas():
        native = frame.to_native()
        return {str(name): _pandas_kind(kind) for name, kind in native.dtypes.items()}
    if frame.implementation.is_pyarrow():
        return {f.name: _arrow_kind(f.type) for f in frame.to_native().schema}
    return {str(n): nw.Enum if k == nw.Enum else k for n, k in frame.schema.items()}


def _pandas(table: pa.Table, schema: Schema) -> Frame:
    """A pandas frame whose types follow from the schema.

    By default pandas turns whole numbers into decimals as soon as one cell is missing. Here a
    column that may have missing cells always has a type that can hold them.
    """
    import pandas as pd

    holding = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    holed = [n for n in table.column_names if table.field(n).type in holding and schema[n].missing]
    frame = table.to_pandas(date_as_object=False)  # dates as pandas holds them, at midnight
    for name in holed:
        frame[name] = pd.array(table.column(name).to_pylist(), holding[table.field(name).type])
    return frame


def _pandas_like(table: pa.Table, schema: Schema, types: Kinds) -> Frame:
    """A pandas frame with these types; a column keeps its own if they cannot hold its cells."""
    import pandas as pd

    frame = table.to_pandas()
    for name, kind in types.items():
        if name not in frame.columns or name not in schema.index:
            continue
        if isinstance(kind, pd.CategoricalDtype):
            kind = pd.CategoricalDtype(_cells(schema[name], frame[name]), kind.ordered)
        holds_missing = schema[name].missing and frame[name].isna().any()
        if holds_missing and getattr(kind, "kind", "O") in "iub":
            continue  # a plain integer column cannot hold the missing cells the schema declares
        with suppress(TypeError, ValueError, OverflowError):
            cast = frame[name].astype(kind)
            narrow = getattr(kind, "kind", "O") in "iu"
            if not narrow or (cast == frame[name]).all():  # NumPy wraps numbers that do not fit
                frame[name] = cast
    return frame


def _sparse(table: pa.Table) -> Frame:
    from scipy import sparse

    columns = [column.to_numpy() for column in table.columns]
    return sparse.csr_matrix(np.column_stack(columns).astype(np.int8))


def _pandas_kind(kind: Any) -> Any:
    import pandas as pd

    if isinstance(kind, pd.CategoricalDtype):
        return pd.CategoricalDtype(None, kind.ordered)
    return kind


def _cells(attribute: Attribute, sampled: Frame) -> list[object]:
    """All values that a categorical column can have; for a numeric one, those in the sample."""
    if attribute.is_numeric:
        return sorted(sampled.dropna().unique())
    column = decode_column(np.arange(attribute.proper_size), attribute)
    return list(column.to_pylist())


def _arrow_kind(kind: pa.DataType) -> pa.DataType:
    """The type; that of a dictionary without its order and its values."""
    return pa.dictionary(kind.index_type, kind.value_type) if pa.types.is_dictionary(kind) else kind


def _fitting(column: pa.ChunkedArray, kind: pa.DataType | None) -> pa.ChunkedArray:
    if kind is None:
        return column
    try:
        if pa.types.is_dictionary(kind):
            return column.cast(kind.value_type).dictionary_encode().cast(kind)
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # the type cannot hold the cells
        return column


def _to_the_second(table: pa.Table) -> pa.Table:
    """The table with times in whole seconds, so that a csv shows no fractions that say nothing."""
    short = {pa.timestamp("us"): pa.timestamp("s"), pa.time64("us"): pa.time32("s")}
    for place, column in enumerate(table.schema):
        if column.type in short:
            cells = table.column(place).cast(short[column.type])
            table = table.set_column(place, column.name, cells)
    return table


PARQUET, CSV, SPARSE = (".parquet", ".pq"), (".csv", ".csv.gz"), ".npz"
"""How the names of files end that can be written."""


def note_key(name: str) -> bytes:
    """The key of one of this package's notes in the metadata of a Parquet file."""
    return f"dualquery.{name}".encode()


def write_table(
    table: pa.Table, path: Path, notes: Mapping[str, str] | None = None, *, raw: bool = True
) -> None:
    """Write csv or parquet, by the ending of the file's name; a 0/1 table also as a sparse .npz.

    `notes` are about the whole file. Parquet keeps them in its key-value metadata, and an .npz
    keeps them as arrays. A csv has no place for them that readers would not mistake for data. The
    file is there when it is whole, and not before. Unless `raw`, texts of a csv that a spreadsheet
    would run as a formula get an apostrophe in front.
    """
    if not path.name.lower().endswith((*PARQUET, *CSV, SPARSE)):
        raise ParameterError(f"cannot write {path.name!r}; expected .csv, .csv.gz or .parquet")
    with replacing(path) as waiting:
        _write(table if raw else _without_formulas(table, path), waiting, notes or {})


def _without_formulas(table: pa.Table, path: Path) -> pa.Table:
    """The table as a csv may show it to a spreadsheet; other kinds of files stay as they are."""
    if not path.name.lower().endswith(CSV):
        return table
    columns = []
    for column in table.columns:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            coded = column.cast(kind).combine_chunks().dictionary_encode()
            words = pa.array([for_spreadsheet(w) for w in coded.dictionary.to_pylist()], kind)
            column = words.take(coded.indices)
        columns.append(column)
    return pa.Table.from_arrays(columns, [for_spreadsheet(name) for name in table.column_names])


def _write(table: pa.Table, path: Path, told: Mapping[str, str]) -> None:
    endings = path.name.lower()
    if endings.endswith(PARQUET):
        from pyarrow import parquet

        kept = {**(table.schema.metadata or {}), **{note_key(n): t for n, t in told.items()}}
        parquet.write_table(table.replace_schema_metadata(kept or None), path)
    elif endings.endswith(CSV):
        from pyarrow import csv

        with pa.output_stream(str(path), compression="detect") as stream:
            csv.write_csv(_to_the_second(table), stream)
    else:
        from scipy import sparse

        sparse.save_npz(path, _sparse(table))
        with held(), zipfile.ZipFile(path, "a") as archive:
            for name, text in told.items():
                with archive.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array(member, np.array(text))
