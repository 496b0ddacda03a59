"""Opening a table, whatever the user has: the one place that knows all kinds. Private side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dualquery.base.errors import TableError
from dualquery.rows.arrow import FrameTable, ParquetTable, is_frame
from dualquery.rows.csv_file import CsvTable
from dualquery.rows.sparse import SparseFile, SparseTable
from dualquery.rows.streams import (
    ArrowDataset,
    ArrowDatasetTable,
    ArrowStream,
    LazyFrame,
    LazyTable,
    columns_table,
    csv_folder,
    stream_table,
)
from dualquery.rows.table import Table


def open_table(source: object) -> Table:
    """A table from a frame, a dictionary of columns, a sparse matrix, or a path.

    Lazy frames of polars, data sets of `datasets`, and everything that offers an Arrow stream are
    frames too.
    """
    if isinstance(source, str | Path):
        return _open_path(Path(source))
    if hasattr(source, "tocsc"):
        return SparseTable(source)
    if hasattr(source, "bind") and hasattr(source, "blocks"):
        table: Table = source
        return table
    if isinstance(source, Mapping):
        return columns_table(source)
    if isinstance(source, ArrowDataset):
        return ArrowDatasetTable(source)
    if isinstance(source, LazyFrame):
        return LazyTable(source)
    if isinstance(source, ArrowStream) and not is_frame(source):
        return stream_table(source)
    return FrameTable(source)


def _open_path(path: Path) -> Table:
    if not path.exists():
        raise TableError(f"no such table: {str(path)!r}")
    endings = path.name.lower()
    if path.is_dir():
        return csv_folder(path) or ParquetTable(path)
    if endings.endswith((".parquet", ".pq")):
        return ParquetTable(path)
    if endings.endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
        return CsvTable(path)
    if endings.endswith(".npz"):
        return SparseFile(path)
    raise TableError(
        f"cannot tell the format of {str(path)!r}; expected .csv, .csv.gz, .parquet, .npz "
        "or a folder"
    )
