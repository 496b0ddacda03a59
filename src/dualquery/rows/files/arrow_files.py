"""Files whose columns have Arrow types: Feather and Arrow's own formats, and ORC. Private side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from dualquery.rows.arrow import ArrowTable, batch_rows, refuse_repeated
from dualquery.rows.table import reading

ENDINGS = (".feather", ".arrow", ".ipc", ".orc")
STREAMS = (".arrows",)


class ArrowFile(ArrowTable):
    """A file in Arrow's file format, which Feather is too, or an ORC file."""

    def __init__(self, path: Path) -> None:
        from pyarrow import dataset

        self.path = path
        with reading(path):
            kind = "orc" if path.suffix.lower() == ".orc" else "ipc"
            self.dataset = dataset.dataset(str(path), format=kind)
        refuse_repeated(self.dataset.schema.names)
        super().__init__(self.dataset.schema.names)

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        asked = list(names) or list(self.header[:1])
        with reading(self.path):
            found = self.dataset.to_batches(
                columns=asked, batch_size=batch_rows(len(asked)), use_threads=False
            )
            for batch in found:
                yield batch if names else batch.select([])


class ArrowStreamFile(ArrowTable):
    """A file in Arrow's stream format."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path), pa.ipc.open_stream(str(path)) as stream:
            refuse_repeated(stream.schema.names)
            super().__init__(stream.schema.names)

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with reading(self.path), pa.ipc.open_stream(str(self.path)) as stream:
            for batch in stream:
                yield batch.select(list(names))
