"""Tables that come as Arrow batches: frames, CSV and Parquet files. Private side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from dualquery.base.errors import TableError
from dualquery.domain.schema import Schema
from dualquery.rows import table as tables
from dualquery.rows.cells import column_of_objects
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.table import ArrowBlock, reading


class ArrowTable:
    """A table that gives Arrow batches: the base of all frames and files."""

    def __init__(self, header: Sequence[str]) -> None:
        self.header = tuple(header)

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Batches of any size with these columns; without columns they still have rows."""
        raise NotImplementedError

    def bind(self, schema: Schema) -> Schema:
        return schema.resolve(self.header)

    def blocks(
        self, schema: Schema, attributes: Sequence[int], out_of_domain: OutOfDomain
    ) -> Iterator[ArrowBlock]:
        names = list(dict.fromkeys(schema.attributes[a].column for a in attributes))
        for block in _regroup(self.batches(names), batch_rows(len(names))):
            yield ArrowBlock(block, schema, out_of_domain)


def batch_rows(columns: int) -> int:
    """The number of rows to read at a time: fewer of a wide table, so that a batch stays small.

    It is `BLOCK_ROWS` or a smaller power of two, at least 64, so that batches fill whole blocks.
    """
    rows = 64
    while 2 * rows * columns <= tables.BATCH_CELLS and rows < tables.BLOCK_ROWS:
        rows *= 2
    return min(rows, tables.BLOCK_ROWS)


def _regroup(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of `rows` rows each; only the last may be shorter."""
    waiting: list[pa.RecordBatch] = []
    held = 0
    for batch in batches:
        waiting.append(batch)
        held += batch.num_rows
        while held >= rows:
            table = joined(waiting)
            yield table.slice(0, rows)
            waiting = table.slice(rows).to_batches()
            held -= rows
    if held:
        yield joined(waiting)


def joined(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Batches as one table; all files of a folder must have the same columns and types."""
    try:
        return pa.Table.from_batches(batches)
    except pa.ArrowInvalid:
        for batch in batches:
            for one, other in zip(batches[0].schema, batch.schema, strict=False):
                if one != other:
                    raise TableError(
                        f"column {one.name!r} is {one.type} in one file of the table and "
                        f"{other.type} in another; expected one type"
                    ) from None
        raise TableError("the files of the table have different columns") from None


def is_frame(source: object) -> bool:
    """Whether the source is a pandas, polars or pyarrow table, which holds its rows in memory."""
    import narwhals as nw

    try:
        return nw.from_native(source, eager_only=True, pass_through=True) is not source
    except (ValueError, nw.exceptions.NarwhalsError):  # such as two columns of one name
        return True


class FrameTable(ArrowTable):
    """A pandas, polars or pyarrow frame, through narwhals."""

    def __init__(self, frame: Any) -> None:
        import narwhals as nw

        refuse_repeated(_header_of(frame))
        try:
            self.frame = nw.from_native(frame, eager_only=True)
            columns = list(self.frame.columns)
        except TypeError:
            raise TableError(
                f"expected a pandas, polars or pyarrow table, an Arrow stream, a dictionary of "
                f"columns, a sparse matrix or a path, found {type(frame).__name__}"
            ) from None
        except (
            ValueError,
            nw.exceptions.NarwhalsError,
        ) as error:  # such as two columns of one name
            told = " ".join(str(error).split())
            raise TableError(f"cannot read the frame: {told[:200]}") from None
        super().__init__([str(name) for name in columns])
        self.named = dict(zip(self.header, columns, strict=True))  # a pandas name can be a number

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        step = batch_rows(len(names))
        for first in range(0, len(self.frame), step):
            part = self.frame[first : first + step]
            arrays = [_arrow_column(part.get_column(self.named[name])) for name in names]
            yield pa.RecordBatch.from_arrays(arrays, names=list(names))


def refuse_repeated(header: Sequence[str]) -> None:
    """Refuse a table with two columns of one name."""
    if len(set(header)) < len(header):
        repeated = next(name for name in header if header.count(name) > 1)
        raise TableError(f"the table has two columns named {repeated!r}")


def _header_of(frame: object) -> list[str]:
    """The column names of a frame, as text; empty if it has none."""
    names = getattr(frame, "column_names", None)  # pyarrow's; pandas and polars have `columns`
    if names is None:
        names = getattr(frame, "columns", ())
    return [str(name) for name in names] if isinstance(names, Iterable) else []


def _arrow_column(series: Any) -> pa.Array:
    # Asked of the native column: narwhals guesses from the first cells what objects are.
    if str(getattr(series.to_native(), "dtype", "")).lower() == "object":
        return column_of_objects(series.to_list())
    try:
        column = series.to_arrow()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # A pandas column of a kind that Arrow does not know: the schema judges its cells as text.
        return column_of_objects(series.to_list())
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


PART_BYTES, LONGEST_LINE = 1 << 20, 1 << 23
"""The number of bytes of a CSV file that are parsed at a time, and the same where a line is longer.

The cells of a small part are still in the cache when they are converted.
"""


class CsvTable(ArrowTable):
    """A CSV file, plain or gzipped; every cell is read as text and judged by the schema.

    In a file of one column a blank line is a missing cell. If it were skipped, the number of rows,
    which is published, would depend on a cell. In a file of several columns a row of missing cells
    is a line of separators, and a blank line is no row.

    Cells are separated by commas, in a `.tsv` file by tabs. Where commas are decimal points,
    programs write semicolons: a header that has some, and no comma, is taken so. Rows have no say.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.single = False
        self.separator = "\t" if ".tsv" in path.suffixes else ","
        with reading(path):
            try:
                self._part, header = PART_BYTES, self._header(PART_BYTES)
            except pa.ArrowInvalid:  # the header may be longer; if it is not, this fails again
                self._part, header = LONGEST_LINE, self._header(LONGEST_LINE)
            if len(header) == 1 and ";" in header[0] and not self._is_quoted():
                self.separator = ";"
                header = self._header(self._part)
        super().__init__(header)
        self.single = len(self.header) == 1

    def _is_quoted(self) -> bool:
        """Whether the header begins with a quote: what is inside the quotes is one name."""
        with pa.input_stream(str(self.path), compression="detect") as stream:
            return bool(stream.read(4).removeprefix(b"\xef\xbb\xbf").startswith(b'"'))

    def _header(self, part: int) -> list[str]:
        with self._open(None, part) as reader:
            return list(reader.schema.names)

    def _open(self, names: Sequence[str] | None, part: int) -> Any:
        from pyarrow import csv

        convert = csv.ConvertOptions(
            include_columns=list(names) if names is not None else [],
            column_types={name: pa.string() for name in names or ()},
            null_values=[""],
            strings_can_be_null=True,
        )
        return csv.open_csv(
            str(self.path),
            read_options=csv.ReadOptions(block_size=part),
            parse_options=csv.ParseOptions(
                delimiter=self.separator, ignore_empty_lines=not self.single
            ),
            convert_options=convert,
        )

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with reading(self.path):
            if self.single:
                self._require_lines()
            given = 0
            try:
                for batch in self._open(names, self._part):
                    yield batch
                    given += batch.num_rows
                return
            except pa.ArrowInvalid as error:
                if not _is_long_line(error):
                    raise
            # Some line is longer than a part: begin again with larger ones after what was given.
            for batch in self._open(names, LONGEST_LINE):
                skipped = min(given, batch.num_rows)
                given -= skipped
                if skipped < batch.num_rows:
                    yield batch.slice(skipped)

    def _require_lines(self) -> None:
        """Refuse a file of one column in which a blank line may not mean a missing cell.

        If the last line has no line end, a missing last cell cannot be told from the file's end.
        """
        with pa.input_stream(str(self.path), compression="detect") as stream:
            first, last = b"", b""
            while part := stream.read(1 << 20):
                first = first or part[:1]
                last = part[-1:]
        if first in (b"\n", b"\r"):
            raise TableError(f"{str(self.path)!r} begins with a blank line; expected its header")
        if last not in (b"\n", b"\r"):
            raise TableError(
                f"{str(self.path)!r} has one column and no line end after its last row, so that a "
                "missing last cell would not count as a row; end the file with a new line"
            )


def _is_long_line(error: pa.ArrowInvalid) -> bool:
    """Whether Arrow gave up because one line did not fit into two parts of the file."""
    return "straddl" in str(error)


class ParquetTable(ArrowTable):
    """A Parquet file, or a folder of them."""

    def __init__(self, path: Path) -> None:
        from pyarrow import dataset

        self.path = path
        with reading(path):
            self.dataset = dataset.dataset(str(path), format="parquet")
            super().__init__(self.dataset.schema.names)

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with reading(self.path):
            for fragment in self.dataset.get_fragments():
                yield from parquet_batches(fragment.path, names)


def parquet_batches(
    path: str, names: Sequence[str], row_groups: Sequence[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """Rows of one file, page by page, because one row group may be most of the file."""
    from pyarrow import parquet

    with parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 16) as file:
        groups = range(file.num_row_groups) if row_groups is None else row_groups
        yield from file.iter_batches(
            batch_size=batch_rows(len(names)), row_groups=list(groups), columns=list(names)
        )
