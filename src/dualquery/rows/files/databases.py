"""Tables and queries of SQLite and DuckDB files, opened for reading only. Private side.

DuckDB declares what type a column has. SQLite does not: a column of numbers may hold a text. So its
cells are read one by one, as text.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from dualquery.base.errors import TableError
from dualquery.base.similar import did_you_mean
from dualquery.rows.arrow import ArrowTable, batch_rows, refuse_repeated
from dualquery.rows.cells import column_of_objects
from dualquery.rows.files.needed import needed

ENDINGS = (".duckdb", ".sqlite", ".sqlite3", ".db")
_ADDRESS = re.compile(r"(sqlite|duckdb):([^#]+)(?:#(.*))?", re.DOTALL)
_QUERY = re.compile(r"\s*(select|with|from|values)\s", re.IGNORECASE)


def database_table(text: str) -> ArrowTable | None:
    """The table at an address such as sqlite:FILE#TABLE; None if the text is no address.

    A query may stand instead of the name of a table.
    """
    found = _ADDRESS.fullmatch(text)
    if found is None:
        return None
    kind, file, asked = found.groups()
    if not Path(file).is_file():
        raise TableError(f"no such database: {file!r}")
    return (SqliteTable if kind == "sqlite" else DuckdbTable)(Path(file), asked or "")


def database_file(path: Path) -> ArrowTable:
    """The only table of a database file."""
    with path.open("rb") as file:
        is_sqlite = file.read(15) == b"SQLite format 3"
    return (SqliteTable if is_sqlite else DuckdbTable)(path, "")


class _DatabaseTable(ArrowTable):
    """One table of a database, or the result of a query."""

    program = ""

    def __init__(self, path: Path, asked: str) -> None:
        self.path = path
        if _QUERY.match(asked):
            self.source = f"({asked.rstrip().removesuffix(';')})"
        else:
            self.source = _quoted(self._chosen(asked))
        header = self._header()
        refuse_repeated(header)
        super().__init__(header)

    def _chosen(self, asked: str) -> str:
        tables = self._tables()
        if asked in tables:
            return asked
        listed = ", ".join(repr(name) for name in tables[:6]) or "no table"
        if asked:
            hint = did_you_mean(asked, tables) or f"; it has {listed}"
            raise TableError(f"{str(self.path)!r} has no table {asked!r}{hint}")
        if len(tables) != 1:
            raise TableError(
                f"{str(self.path)!r} has {listed}; say which one: {self.program}:{self.path}#TABLE"
            )
        return tables[0]

    def _select(self, names: Sequence[str]) -> str:
        columns = ", ".join(_quoted(name) for name in names) or "1"
        return f"select {columns} from {self.source}"

    def _failed(self, error: Exception) -> TableError:
        """An error without the program's own text, which may quote a cell."""
        return TableError(
            f"cannot read {str(self.path)!r}: {type(error).__name__}; run the query in "
            f"{self.program} itself to see why"
        )

    def _tables(self) -> list[str]:
        raise NotImplementedError

    def _header(self) -> list[str]:
        raise NotImplementedError


class SqliteTable(_DatabaseTable):
    """A table of a SQLite file, cell by cell."""

    program = "sqlite"

    def _open(self) -> sqlite3.Connection:
        found = sqlite3.connect(f"file:{quote(str(self.path))}?mode=ro", uri=True)
        found.text_factory = lambda text: text.decode("utf-8", "replace")
        return found

    def _tables(self) -> list[str]:
        asked = "select name from sqlite_master where type in ('table', 'view') and " \
                "name not like 'sqlite%' order by name"  # fmt: skip
        return [str(row[0]) for row in self._rows(asked)]

    def _header(self) -> list[str]:
        try:
            with closing(self._open()) as base:
                described = base.execute(f"select * from {self.source} limit 0").description
        except sqlite3.Error as error:
            raise self._failed(error) from None
        return [str(column[0]) for column in described]

    def _rows(self, asked: str) -> Iterator[tuple[object, ...]]:
        try:
            with closing(self._open()) as base:
                yield from base.execute(asked)
        except sqlite3.Error as error:
            raise self._failed(error) from None

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        step, held = batch_rows(len(names)), []
        labels = list(names) or ["1"]
        for row in self._rows(self._select(names)):
            held.append(row)
            if len(held) == step:
                yield _of_rows(held, labels).select(list(names))
                held = []
        if held:
            yield _of_rows(held, labels).select(list(names))


class DuckdbTable(_DatabaseTable):
    """A table of a DuckDB file, with the types that it declares."""

    program = "duckdb"

    def _open(self) -> Any:
        duckdb = needed("duckdb", "duckdb", "a DuckDB file")
        try:
            return duckdb.connect(str(self.path), read_only=True)
        except duckdb.Error as error:
            raise self._failed(error) from None

    def _tables(self) -> list[str]:
        asked = "select table_name from information_schema.tables order by table_name"
        return [str(cell) for batch in self._read(asked) for cell in batch.column(0).to_pylist()]

    def _header(self) -> list[str]:
        with closing(self._open()) as base:
            try:
                stream = pa.RecordBatchReader.from_stream(
                    base.sql(f"select * from {self.source} limit 0")
                )
                return list(stream.schema.names)
            except Exception as error:  # of DuckDB
                raise self._failed(error) from None

    def _read(self, asked: str) -> Iterator[pa.RecordBatch]:
        with closing(self._open()) as base:
            try:
                yield from pa.RecordBatchReader.from_stream(base.sql(asked))
            except Exception as error:  # of DuckDB, at any row
                raise self._failed(error) from None

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in self._read(self._select(names)):
            yield batch.select(list(names))


def _of_rows(rows: Sequence[Sequence[object]], names: Sequence[str]) -> pa.RecordBatch:
    arrays = [column_of_objects(None if c == "" else c for c in column)
              for column in zip(*rows, strict=True)]  # fmt: skip
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
