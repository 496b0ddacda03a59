"""Opening a table, whatever the user has: the one place that knows all kinds. Private side."""

from __future__ import annotations

from pathlib import Path

from dualquery.base.errors import TableError
from dualquery.rows.arrow import CsvTable, FrameTable, ParquetTable
from dualquery.rows.sparse import SparseFile, SparseTable
from dualquery.rows.table import Table


def open_table(source: object) -> Table:
    """A table from a frame, a sparse matrix, or the path of a file."""
    if isinstance(source, str | Path):
        return _open_path(Path(source))
    if hasattr(source, "tocsc"):
        return SparseTable(source)
    if hasattr(source, "bind") and hasattr(source, "blocks"):
        table: Table = source
        return table
    return FrameTable(source)


def _open_path(path: Path) -> Table:
    if not path.exists():
        raise TableError(f"no such table: {str(path)!r}")
    endings = path.name.lower()
    if path.is_dir() or endings.endswith((".parquet", ".pq")):
        return ParquetTable(path)
    if endings.endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
        return CsvTable(path)
    if endings.endswith(".npz"):
        return SparseFile(path)
    raise TableError(
        f"cannot tell the format of {str(path)!r}; expected .csv, .csv.gz, .parquet or .npz"
    )
