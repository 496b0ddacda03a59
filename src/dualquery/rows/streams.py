"""Tables that other libraries hold: lazy frames, Arrow streams, data sets, folders. Private side.

None of these libraries is imported here. A table is known by what it can do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from dualquery.base.errors import TableError
from dualquery.rows.arrow import (
    ArrowTable,
    FrameTable,
    arrow_column,
    batch_rows,
    refuse_repeated,
)
from dualquery.rows.cells import column_of_objects
from dualquery.rows.csv_file import CSV_ENDINGS, CsvTable


@runtime_checkable
class ArrowStream(Protocol):
    """Whatever offers its rows as an Arrow stream, such as a DuckDB relation."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@runtime_checkable
class LazyFrame(Protocol):
    """A polars LazyFrame."""

    def collect_schema(self) -> Any: ...  # a type of polars, which may not be installed

    def select(self, names: Sequence[str]) -> LazyFrame: ...

    def collect(self) -> object: ...


@runtime_checkable
class ArrowDataset(Protocol):
    """A data set of Hugging Face's `datasets`, which is Arrow inside."""

    column_names: list[str]
    num_rows: int

    def with_format(self, kind: str) -> Any: ...  # a type of `datasets`, which may be absent


class LazyTable(ArrowTable):
    """A lazy frame. Only the columns that are asked for are collected, anew for every pass."""

    inferred = True

    def __init__(self, frame: LazyFrame) -> None:
        self.frame = frame
        super().__init__(list(frame.collect_schema().names()))

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        asked = list(names) or list(self.header[:1])
        try:
            collected = self.frame.select(asked).collect()
        except Exception as error:  # a query can fail in any way when it is run
            raise _failed("collect the lazy frame", error) from None
        for batch in FrameTable(collected).batches(asked):
            yield batch if names else batch.select([])


class ArrowDatasetTable(ArrowTable):
    """A data set of Hugging Face's `datasets`, read in parts."""

    def __init__(self, source: ArrowDataset) -> None:
        refuse_repeated(source.column_names)
        self.source = source
        super().__init__(source.column_names)

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        rows = self.source.with_format("arrow")
        step = batch_rows(len(names))
        for first in range(0, self.source.num_rows, step):
            part: pa.Table = rows[first : first + step]
            yield from part.select(list(names)).to_batches()


class CsvFolder(ArrowTable):
    """A folder of CSV files with the same columns, read one after the other by name."""

    def __init__(self, files: Sequence[Path], encoding: str | None = None) -> None:
        self.parts = [CsvTable(file, encoding) for file in files]
        super().__init__(self.parts[0].header)
        for part in self.parts[1:]:
            if set(part.header) != set(self.header):
                other = sorted(set(part.header) ^ set(self.header))[0]
                raise TableError(
                    f"{str(self.parts[0].path)!r} and {str(part.path)!r} have different columns: "
                    f"only one of them has {other!r}"
                )

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for part in self.parts:
            yield from part.batches(names)


def stream_table(source: ArrowStream) -> FrameTable:
    """A table from an Arrow stream. It is read once, because a stream may not begin again."""
    try:
        held = pa.RecordBatchReader.from_stream(source).read_all()
    except Exception as error:  # a query can fail in any way when it is run
        raise _failed("read the Arrow stream", error) from None
    return FrameTable(held)


def _failed(what: str, error: Exception) -> TableError:
    """The error of a query that failed when it was run; its own text may quote a cell."""
    return TableError(f"cannot {what}: {type(error).__name__}; run the query itself to see why")


def columns_table(columns: Mapping[object, object]) -> FrameTable:
    """A table from a dictionary of columns."""
    if any(isinstance(part, ArrowDataset) for part in columns.values()):
        splits = ", ".join(repr(str(name)) for name in columns)
        raise TableError(f"the data set has the splits {splits}; pass one of them")
    refuse_repeated([str(name) for name in columns])
    arrays = {}
    for name, cells in columns.items():
        if isinstance(cells, str) or not hasattr(cells, "__len__"):
            raise TableError(f"column {str(name)!r} is {type(cells).__name__}; expected a sequence")
        arrays[str(name)] = _array(cells)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        shortest, longest = (of(lengths, key=lengths.__getitem__) for of in (min, max))
        raise TableError(
            f"column {shortest!r} has {lengths[shortest]:,} cells and column {longest!r} has "
            f"{lengths[longest]:,}; expected the same number"
        )
    table = FrameTable(pa.table(arrays))
    table.inferred = True
    return table


def _array(cells: Any) -> pa.Array:  # whatever sequence the user has
    import narwhals as nw

    if isinstance(cells, pa.Array | pa.ChunkedArray):
        return cells
    series = nw.from_native(cells, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return arrow_column(series)
    if isinstance(cells, np.ndarray) and cells.dtype != object:
        try:
            return pa.array(cells, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            pass  # numbers of a kind that Arrow does not know are judged one by one
    return column_of_objects(cells)


def csv_folder(path: Path, encoding: str | None = None) -> CsvFolder | None:
    """The CSV files of a folder as one table; None if it has Parquet files instead."""
    files = sorted(file for file in path.iterdir() if not file.name.startswith((".", "_")))
    found = [f for f in files if f.name.lower().endswith(CSV_ENDINGS)]
    others = any(f.name.lower().endswith((".parquet", ".pq")) for f in path.rglob("*"))
    if found and others:
        raise TableError(f"{str(path)!r} has CSV and Parquet files; expected one kind")
    if not found and not others:
        raise TableError(f"{str(path)!r} has no .csv and no .parquet file")
    return CsvFolder(found, encoding) if found else None
