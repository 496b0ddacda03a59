"""CSV files: which bytes are a row, and its cells as text. Private side.

A file is cut into pieces of whole rows here, and Arrow parses one piece at a time. Arrow's own
cuts are not used: by default they ignore quotes, so that a line end inside a cell could change how
other rows are read, and a quote that is never closed goes unnoticed.
"""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dualquery.base.errors import TableError
from dualquery.base.threads import thread_count
from dualquery.rows.arrow import ArrowTable
from dualquery.rows.table import reading

CSV_ENDINGS = tuple(kind + packed for kind in (".csv", ".tsv") for packed in
                    ("", ".gz", ".bz2", ".zst"))  # fmt: skip
"""How the names of CSV files end; packed ones are unpacked while they are read."""

PART_BYTES = 1 << 20
"""How many bytes are parsed at a time: they are still in the cache when cells are made."""

LONGEST_ROW = 1 << 24
"""The most bytes of a row. A longer one is taken for a quote that is never closed."""

_MARK = b"\xef\xbb\xbf"
"""What some programs write at the beginning of a file of UTF-8 text."""


def known_encoding(name: str) -> str:
    """The encoding of that name, if each of its bytes, or pairs of bytes, stands for itself.

    In others, one broken character could swallow a separator, and with it other cells.
    """
    try:
        codec = codecs.lookup(name)
        if codec.name in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"):
            return codec.name
        if len(codec.decode(bytes(range(256)), "replace")[0]) == 256:
            return codec.name
    except (LookupError, TypeError, UnicodeError, ValueError):
        pass
    raise TableError(
        f"encoding {name!r} is not known; expected utf-8, utf-16, latin-1, windows-1252 or another "
        "one with one byte per character; convert other files with iconv -t utf-8"
    )


class CsvTable(ArrowTable):
    """A CSV file, plain or packed; every cell is read as text and judged by the schema.

    In a file of one column a blank line is a missing cell. If it were skipped, the number of rows,
    which is published, would depend on a cell. In a file of several columns a row of missing cells
    is a line of separators, and a blank line is no row.

    Cells are separated by commas, in a `.tsv` file by tabs. Where commas are decimal points,
    programs write semicolons: a header that has some, and no comma, is taken so, and one with tabs
    or bars as well. Rows have no say.
    """

    def __init__(self, path: Path, encoding: str | None = None) -> None:
        self.path = path
        self.encoding = None if encoding is None else known_encoding(encoding)
        self.single = False
        self.separator = "\t" if ".tsv" in path.suffixes else ","
        with reading(path):
            line = self._first_line()
            header = self._names(line)
            for separator in (";", "\t", "|"):
                if len(header) == 1 and separator in header[0] and not line.startswith(b'"'):
                    self.separator = separator
                    header = self._names(line)
        super().__init__(header)
        self.single = len(self.header) == 1

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        asked = list(names) or list(self.header[:1])
        with reading(self.path), ThreadPoolExecutor(thread_count()) as pool:
            waiting: deque[tuple[int, Future[pa.Table]]] = deque()
            for before, piece in self._rows():
                waiting.append((before, pool.submit(self._parsed, piece, asked)))
                if len(waiting) > thread_count():
                    yield from self._given(*waiting.popleft(), names)
            while waiting:
                yield from self._given(*waiting.popleft(), names)

    def _given(
        self, before: int, parsed: Future[pa.Table], names: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        try:
            found = parsed.result()
        except pa.ArrowInvalid as error:
            raise self._refused(before, error) from None
        for batch in found.to_batches():
            yield batch if names else batch.select([])

    # Bytes to rows

    def _rows(self) -> Iterator[tuple[int, bytes]]:
        """Pieces of whole rows, and how many rows stand before each; the header is left out."""
        before, is_first, last = 1, True, b""
        for count, piece in self._pieces():
            rows = piece
            if is_first:
                if self.single and piece.removeprefix(_MARK)[:1] in (b"\n", b"\r"):
                    raise TableError(
                        f"{str(self.path)!r} begins with a blank line; expected its header"
                    )
                rows, count, is_first = piece[self._header_size(piece) :], count - 1, False
            if rows:
                yield before, rows
                last = rows[-1:]
            before += count
        if self.single and last not in (b"", b"\n", b"\r"):
            raise TableError(
                f"{str(self.path)!r} has one column and no line end after its last row, so that a "
                "missing last cell would not count as a row; end the file with a new line"
            )

    def _pieces(self) -> Iterator[tuple[int, bytes]]:
        """The file in pieces of whole rows, and how many line ends each has."""
        rest, lines = b"", 0
        text = None if self.encoding is None else codecs.getincrementaldecoder(self.encoding)
        decoder = None if text is None else text("replace")
        with pa.input_stream(str(self.path), compression="detect") as stream:
            while read := stream.read(max(PART_BYTES, len(rest))):
                block = read if decoder is None else decoder.decode(read).encode()
                if b"\0" in block:
                    raise TableError(
                        f"{str(self.path)!r} holds a NUL byte, which no text has; save it as "
                        "UTF-8, or say --encoding utf-16"
                    )
                rest += block
                end, count = self._whole(rest, lines)
                if end:
                    yield count, rest[:end]
                    rest, lines = rest[end:], lines + count
                elif len(rest) > LONGEST_ROW:
                    raise TableError(
                        f"{self._row(lines)} has more than {LONGEST_ROW:,} bytes; is a "
                        "quote not closed?"
                    )
        if rest:
            self._whole(rest + b"\n", lines, is_last=True)
            yield 1, rest

    def _whole(self, piece: bytes, lines: int, is_last: bool = False) -> tuple[int, int]:
        """How many bytes of a piece are whole rows, and how many line ends close them."""
        from dualquery.rows._csv_kernels import BROKEN, QUOTED

        if b'"' not in piece and b"\r" not in piece:
            return piece.rfind(b"\n") + 1, piece.count(b"\n")
        end, rows, state = self._scan(piece)
        if state == BROKEN:
            raise TableError(
                f"{self._row(lines + rows)} has text after a closing quote; inside quotes, write "
                "a quote twice"
            )
        if is_last and state == QUOTED:
            raise TableError(f"{self._row(lines + rows)} has a quote that is not closed")
        return end, rows

    def _scan(self, piece: bytes, most: int = 0) -> tuple[int, int, int]:
        """Where whole rows end, how many there are, and where the scan stands (`whole_rows`)."""
        from dualquery.rows._csv_kernels import whole_rows

        held = np.frombuffer(piece, dtype=np.uint8)
        end, rows, state = whole_rows(held, np.uint8(ord(self.separator)), most)
        return int(end), int(rows), int(state)

    def _row(self, before: int) -> str:
        return f"{str(self.path)!r}: row {before + 1:,}, counted from the header,"

    # Rows to cells

    def _first_line(self) -> bytes:
        """The header as it stands in the file, without its line end."""
        for _, piece in self._pieces():
            size = self._header_size(piece)
            line = piece[:size].removeprefix(_MARK)
            if line.strip(b"\r\n"):
                return line.strip(b"\r\n")
        raise TableError(f"{str(self.path)!r} is empty; expected a header and rows")

    def _header_size(self, piece: bytes) -> int:
        """The bytes up to the end of the header; blank lines before it belong to it."""
        begin = len(_MARK) if piece.startswith(_MARK) else 0
        begin = len(piece) - len(piece[begin:].lstrip(b"\r\n"))
        end, _, _ = self._scan(piece[begin:], most=1)
        return begin + end if end else len(piece)

    def _names(self, line: bytes) -> list[str]:
        from pyarrow import csv

        try:
            line.decode()
        except UnicodeDecodeError:
            raise TableError(
                f"{str(self.path)!r}: the header is not UTF-8 text; save the file as UTF-8, or say "
                "--encoding windows-1252, or whatever it is"
            ) from None
        found = csv.read_csv(
            pa.BufferReader(line + b"\n"),
            read_options=self._read_options(line),
            parse_options=self._parse_options(),
        )
        return list(found.schema.names)

    def _parsed(self, piece: bytes, names: Sequence[str]) -> pa.Table:
        from pyarrow import csv

        if not self.single and not piece.strip(b"\r\n"):  # Arrow refuses what has no rows at all
            return pa.table({name: pa.array([], pa.string()) for name in names})
        return csv.read_csv(
            pa.BufferReader(piece),
            read_options=self._read_options(piece, column_names=list(self.header)),
            parse_options=self._parse_options(),
            convert_options=csv.ConvertOptions(
                include_columns=list(names),
                column_types={name: pa.string() for name in names},
                null_values=[""],
                strings_can_be_null=True,
                check_utf8=False,  # a cell that is no text is judged by itself
            ),
        )

    def _read_options(self, piece: bytes, **more: Any) -> Any:
        from pyarrow import csv

        return csv.ReadOptions(use_threads=False, block_size=len(piece) + 2, **more)

    def _parse_options(self) -> Any:
        from pyarrow import csv

        return csv.ParseOptions(
            delimiter=self.separator, newlines_in_values=True, ignore_empty_lines=not self.single
        )

    def _refused(self, before: int, error: pa.ArrowInvalid) -> TableError:
        """Arrow's error without the row, which it would show."""
        found = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error))
        if found is None:
            return TableError(f"cannot read {str(self.path)!r}: some row is no row of a CSV file")
        place, wanted, got = (int(group) for group in found.groups())
        return TableError(
            f"{self._row(before + place - 1)} has {got:,} cells; expected {wanted:,}, "
            "as many as the header"
        )
