"""Tables that come as Arrow batches: frames and Parquet files. Private side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from dualquery.base.errors import TableError
from dualquery.domain.schema import Schema
from dualquery.rows import table as tables
from dualquery.rows.cells import column_of_objects
from dualquery.rows.documented import Documented
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.table import ArrowBlock, reading


class ArrowTable:
    """A table that gives Arrow batches: the base of all frames and files.

    Attributes:
        header: the names of its columns.
        inferred: whether a library may have chosen the types of its columns by looking at cells.
        documented: what a statistical file says about its columns.
    """

    inferred = False
    documented: Mapping[str, Documented] = {}

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
        self.inferred = not isinstance(frame, pa.Table)
        self.named = dict(zip(self.header, columns, strict=True))  # a pandas name can be a number

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        step = batch_rows(len(names))
        native = self.frame.to_native()
        if isinstance(native, pa.Table) and names:
            # As they are held: to join chunks whose dictionaries differ, Arrow needs all of them to
            # be without missing values, and mixes up numbers of half precision.
            yield from native.select(list(names)).to_batches(max_chunksize=step)
            return
        for first in range(0, len(self.frame), step):
            part = self.frame[first : first + step]
            arrays = [arrow_column(part.get_column(self.named[name])) for name in names]
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


def arrow_column(series: Any) -> pa.Array:
    """A column of a frame, through narwhals; no cell changes how others are read."""
    # Asked of the native column: narwhals guesses from the first cells what objects are.
    native = series.to_native()
    kind = str(getattr(native, "dtype", "")).lower()
    if "object" in kind:  # a sparse column may hold objects, too
        return column_of_objects(series.to_list())
    if kind == "category" and hasattr(native, "cat"):
        return _categories(native.cat)
    try:
        column = series.to_arrow()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # A pandas column of a kind that Arrow does not know: the schema judges its cells as text.
        return column_of_objects(series.to_list())
    if isinstance(column.type, pa.BaseExtensionType):
        # Periods and intervals of pandas, which become objects as soon as one cell is none.
        return column_of_objects(series.to_list())
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _categories(column: Any) -> pa.Array:  # pandas' accessor of a categorical column
    """A categorical column of pandas. Its categories are objects of any kind, each one a text.

    Arrow would find one type for all categories, and has crashed on mixed ones.
    """
    codes = column.codes.to_numpy()
    texts = column_of_objects(column.categories.tolist())
    return pa.DictionaryArray.from_arrays(
        pa.array(codes, pa.int32(), mask=codes < 0), texts, ordered=bool(column.ordered)
    )


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
