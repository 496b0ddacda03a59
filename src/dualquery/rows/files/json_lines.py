"""JSON lines: one object per line, read cell by cell. Private side.

Objects declare no columns and no types. A number is the text that stands in the file, and a key
that an object lacks is a missing cell. So every line says by itself what its row is. That holds for
the columns as well: any declared column may be absent from all objects.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from dualquery.base.errors import TableError
from dualquery.domain.schema import Schema
from dualquery.rows.arrow import ArrowTable, batch_rows
from dualquery.rows.cells import Written, column_of_objects
from dualquery.rows.table import reading

ENDINGS = (".jsonl", ".ndjson")
LONGEST_LINE = 1 << 24
PART_BYTES = 1 << 20


class JsonLinesTable(ArrowTable):
    """A file of JSON objects, one per line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def header(self) -> tuple[str, ...]:  # type: ignore[override]
        """The keys of all objects, in the order in which they appear; for drafts and checks."""
        return tuple(dict.fromkeys(key for row in self._rows() for key in row))

    def bind(self, schema: Schema) -> Schema:
        return schema.require_resolved()

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        step, held = batch_rows(len(names)), []
        for row in self._rows():
            held.append([_cell(row.get(name)) for name in names])
            if len(held) == step:
                yield _batch(held, names)
                held = []
        if held:
            yield _batch(held, names)

    def _rows(self) -> Iterator[dict[str, object]]:
        for number, line in enumerate(self._lines(), start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line, parse_int=Written, parse_float=Written, parse_constant=str)
            except (ValueError, RecursionError):
                row = None
            if not isinstance(row, dict):
                raise TableError(
                    f"{str(self.path)!r}: line {number:,} is no JSON object; expected one per "
                    'line, such as {"sex": "Female", "age": 41}'
                )
            yield row

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        with reading(self.path), pa.input_stream(str(self.path), compression="detect") as stream:
            while part := stream.read(max(PART_BYTES, len(rest))):
                *whole, rest = (rest + part).split(b"\n")
                yield from whole
                if len(rest) > LONGEST_LINE:
                    raise TableError(
                        f"{str(self.path)!r} has a line of more than {LONGEST_LINE:,} bytes; "
                        "expected one JSON object per line"
                    )
        if rest:
            yield rest


def _cell(cell: object) -> object:
    """A cell as an object says it; what is nested is the text that it has in the file."""
    if cell == "":
        return None
    return json.dumps(cell, ensure_ascii=False) if isinstance(cell, dict | list) else cell


def _batch(rows: Sequence[Sequence[object]], names: Sequence[str]) -> pa.RecordBatch:
    if not names:
        return pa.table({"": pa.nulls(len(rows))}).to_batches()[0].select([])
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays([column_of_objects(c) for c in columns], names=list(names))
