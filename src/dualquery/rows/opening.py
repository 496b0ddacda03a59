"""Opening a table, whatever the user has: the one place that knows all kinds. Private side."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dualquery.base.errors import TableError
from dualquery.rows.arrow import FrameTable, ParquetTable, is_frame
from dualquery.rows.csv_file import CSV_ENDINGS, CsvTable
from dualquery.rows.files import arrow_files, databases, json_lines, spreadsheet, statistics
from dualquery.rows.sparse import SparseFile, SparseTable
from dualquery.rows.streams import (
    ArrowDataset,
    ArrowDatasetTable,
    ArrowStream,
    CsvFolder,
    LazyFrame,
    LazyTable,
    columns_table,
    csv_folder,
    stream_table,
)
from dualquery.rows.table import Table, reading


@dataclass(frozen=True)
class TableFile:
    """A file that holds a table, with what the file does not say itself.

    Attributes:
        path: of the file; or a table of a database, `sqlite:FILE#TABLE` or `duckdb:FILE#TABLE`.
        encoding: of its text, such as "windows-1252"; else UTF-8, or what the file says.
        sheet: which sheet of a spreadsheet; else the only one.
    """

    path: str | Path
    encoding: str | None = None
    sheet: str | None = None


@dataclass(frozen=True)
class Format:
    """One kind of file: how its name ends, and how it is opened.

    Attributes:
        endings: of the file's name.
        opens: the table in it.
        takes: which of `encoding` and `sheet` say something about it.
    """

    endings: tuple[str, ...]
    opens: Callable[[Path, TableFile], Table]
    takes: tuple[str, ...] = ()


FORMATS = (
    Format((".parquet", ".pq"), lambda path, _: ParquetTable(path)),
    Format(CSV_ENDINGS, lambda path, told: CsvTable(path, told.encoding), ("encoding",)),
    Format((".npz",), lambda path, _: SparseFile(path)),
    Format((".npy",), lambda path, _: _records(path)),
    Format(arrow_files.ENDINGS, lambda path, _: arrow_files.ArrowFile(path)),
    Format(arrow_files.STREAMS, lambda path, _: arrow_files.ArrowStreamFile(path)),
    Format(
        statistics.ENDINGS,
        lambda path, told: statistics.StatisticsTable(path, told.encoding),
        ("encoding",),
    ),
    Format(
        spreadsheet.ENDINGS,
        lambda path, told: spreadsheet.SheetTable(path, told.sheet),
        ("sheet",),
    ),
    Format(
        tuple(e + c for e in json_lines.ENDINGS for c in ("", ".gz", ".bz2", ".zst")),
        lambda path, _: json_lines.JsonLinesTable(path),
    ),
    Format(databases.ENDINGS, lambda path, _: databases.database_file(path)),
)
"""All kinds of files, one line each."""

_CONVERTED = {
    ".json": "jq -c '.[]' FILE > TABLE.jsonl",
    ".rds": "in R: arrow::write_parquet(readRDS('FILE'), 'TABLE.parquet')",
    ".rdata": "in R: load('FILE'), then arrow::write_parquet(…, 'TABLE.parquet')",
    ".avro": "polars.read_avro('FILE').write_parquet('TABLE.parquet')",
    ".h5": "pandas.read_hdf('FILE').to_parquet('TABLE.parquet')",
    ".hdf5": "pandas.read_hdf('FILE').to_parquet('TABLE.parquet')",
    ".pkl": "pandas.read_pickle('FILE').to_parquet('TABLE.parquet'); it runs code of the file",
    ".xml": "pandas.read_xml('FILE', dtype=str).to_parquet('TABLE.parquet')",
    ".mdb": "mdb-export FILE TABLE > TABLE.csv, from mdbtools",
    ".accdb": "mdb-export FILE TABLE > TABLE.csv, from mdbtools",
    ".dbf": "in R: arrow::write_parquet(foreign::read.dbf('FILE', as.is = TRUE), 'TABLE.parquet')",
    ".mat": "scipy.io.loadmat('FILE') gives arrays; pass a dictionary of columns",
    ".por": "in SPSS or PSPP: save it as .sav",
    ".zip": "unzip FILE",
    ".xz": "unxz FILE",
    ".7z": "7z x FILE",
    ".txt": "rename it to .csv (separators , ; |) or .tsv; columns of fixed width: "
            "pandas.read_fwf('FILE', dtype=str).to_csv('TABLE.csv', index=False)",
    ".dat": "rename it to .csv (separators , ; |) or .tsv; columns of fixed width: "
            "pandas.read_fwf('FILE', dtype=str).to_csv('TABLE.csv', index=False)",
}  # fmt: skip
"""What converts a file that is not read, by the ending of its name."""


def open_table(source: object) -> Table:
    """A table from a frame, a dictionary of columns, a sparse matrix, or a path.

    Lazy frames of polars, data sets of `datasets`, and everything that offers an Arrow stream are
    frames too.
    """
    if isinstance(source, str | Path):
        return _open_path(TableFile(source))
    if isinstance(source, TableFile):
        return _open_path(source)
    if isinstance(source, np.ndarray) and source.dtype.names:
        return columns_table({name: source[name] for name in source.dtype.names})
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


def is_absent(source: object) -> bool:
    """Whether the source is a path at which nothing is."""
    if isinstance(source, TableFile):
        source = source.path
    return isinstance(source, str | Path) and not Path(source).exists()


def _open_path(told: TableFile) -> Table:
    text = str(told.path)
    database = databases.database_table(text)
    if database is not None:
        _refuse_more(told, ())
        return database
    path = Path(text)
    if not path.exists():
        raise TableError(f"no such table: {text!r}")
    if path.is_dir():
        found = csv_folder(path, told.encoding) or ParquetTable(path)
        _refuse_more(told, ("encoding",) if isinstance(found, CsvFolder) else ())
        return found
    name = path.name.lower()
    for one in FORMATS:
        if name.endswith(one.endings):
            _refuse_more(told, one.takes)
            return one.opens(path, told)
    ending = os.path.splitext(name)[1]
    if ending in _CONVERTED:
        way = _CONVERTED[ending].replace("FILE", path.name)
        raise TableError(f"{ending} files are not read; convert it first: {way}")
    raise TableError(
        f"cannot tell the format of {text!r}; expected a name that ends in "
        f"{', '.join(e for one in FORMATS for e in one.endings if e.count('.') == 1)}, or a folder"
    )


def _refuse_more(told: TableFile, takes: tuple[str, ...]) -> None:
    """Refuse what says nothing about this kind of file."""
    for name in ("encoding", "sheet"):
        if getattr(told, name) is not None and name not in takes:
            kinds = "CSV and statistical files" if name == "encoding" else "spreadsheets"
            raise TableError(f"{name}: {str(told.path)!r} has none; it is for {kinds}")


def _records(path: Path) -> Table:
    """A NumPy file of records, whose dtype declares names and types."""
    with reading(path):
        try:
            records = np.load(path, allow_pickle=False)
        except ValueError:
            raise TableError(f"cannot read {str(path)!r}: no NumPy file without objects") from None
    if not records.dtype.names or records.ndim != 1:
        raise TableError(f"{str(path)!r} holds no records; expected a dtype with named columns")
    return open_table(records)
