"""What SDMetrics needs for its reports: metadata, real rows, synthetic rows. NOT PRIVATE."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from dualquery.base.files import write_private
from dualquery.base.stored import Json
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.domain.types import Type
from dualquery.release.frames import decode_column
from dualquery.release.release import Release
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.table import ArrowBlock, DenseBlock, Table

NOT_PRIVATE = "NOT PRIVATE: real.csv beside this file holds private rows; do not publish them"
FILES = ("metadata.json", "real.csv", "synthetic.csv", "NOT_PRIVATE.txt")

_KINDS = {
    Type.TEXT: "categorical",
    Type.WHOLE: "numerical",
    Type.DECIMAL: "numerical",
    Type.YES_NO: "boolean",
    Type.DATE: "datetime",
    Type.TIMESTAMP: "datetime",
    Type.TIME: "categorical",
}


def metadata(schema: Schema) -> Json:
    """The columns as SDMetrics describes a single table."""
    return {"columns": {one.name: _column(one) for one in schema.attributes}}


def _column(attribute: Attribute) -> dict[str, str]:
    kind = _KINDS[attribute.type]
    if attribute.is_binary or (not attribute.is_numeric and not attribute.ordered):
        kind = "boolean" if attribute.type is Type.YES_NO else "categorical"
    if kind == "datetime":
        day = "%Y-%m-%d"
        clock = day if attribute.type is Type.DATE else f"{day} %H:%M:%S"
        return {"sdtype": kind, "datetime_format": clock}
    return {"sdtype": kind}


def write_input(
    release: Release, table: Table, schema: Schema, folder: Path, treatment: OutOfDomain
) -> list[Path]:
    """Write `metadata.json`, `real.csv` and `synthetic.csv`; only their owner may read them.

    A csv has no place for a mark, and SDMetrics refuses metadata with keys that it does not know,
    so `NOT_PRIVATE.txt` stands beside them.

    Args:
        release: what was published.
        table: the private table, of which the declared columns are copied.
        schema: the schema as bound to it.
        folder: where to; it must exist.
        treatment: of cells outside their domain.
    """
    real = _real(table, schema, treatment)
    made = release.sample(real.num_rows, seed=0, kind="pyarrow")
    texts = (json.dumps(metadata(schema), indent=1), _text(real), _text(made), NOT_PRIVATE + "\n")
    written = []
    for name, text in zip(FILES, texts, strict=True):
        write_private(folder / name, text)
        written.append(folder / name)
    return written


def _real(table: Table, schema: Schema, treatment: OutOfDomain) -> pa.Table:
    """The declared columns of the private table; if only codes are known, what they stand for."""
    every = list(range(len(schema)))
    parts = []
    for block in table.blocks(schema, every, treatment):
        if isinstance(block, ArrowBlock):
            parts.append(block.table.select(list(schema.columns)))
        elif isinstance(block, DenseBlock):
            columns = [decode_column(block.codes(a), schema.attributes[a]) for a in every]
            parts.append(pa.Table.from_arrays(columns, names=list(schema.names)))
        else:
            from dualquery.base.errors import ParameterError

            raise ParameterError("SDMetrics needs a table of columns; this one is sparse")
    return pa.concat_tables(parts, promote_options="permissive")


def _text(table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    csv.write_csv(table, sink)
    return bytes(sink.getvalue()).decode("utf-8")
