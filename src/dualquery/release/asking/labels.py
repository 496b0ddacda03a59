"""Figures as Arrow tables: one row each, with what they are about."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dualquery.domain.attributes import Attribute
from dualquery.domain.printing import bins_text, format_query
from dualquery.domain.schema import Schema
from dualquery.release.asking.figure import WITHIN
from dualquery.release.asking.questions import CrossTable
from dualquery.release.frames import decode_column
from dualquery.workloads.workload import Workload

Floats = npt.NDArray[np.float64]

FIGURES = ("share", "low", "high")
"""The columns of figures, behind those that name the cell."""


def code_labels(attribute: Attribute) -> pa.Array:
    """What each code stands for: a value, a bin as the query language writes it, or missing."""
    if attribute.is_numeric:
        texts = [bins_text(attribute, code, code) for code in range(attribute.proper_size)]
        return pa.array([*texts, *([None] if attribute.missing else [])], pa.string())
    return decode_column(np.arange(attribute.size), attribute)


def labelled(table: CrossTable, schema: Schema) -> pa.Table:
    """One row per cell; a share whose error is unknown has no interval."""
    codes = np.indices(table.share.shape).reshape(len(table.columns), -1)
    columns = {  # a column that is named like a figure gives way to it
        _free(schema.names[place]): code_labels(schema.attributes[place]).take(pa.array(own))
        for place, own in zip(table.columns, codes, strict=True)
    }
    for name in FIGURES:
        values = getattr(table, name).reshape(-1)
        columns[name] = pa.array(values, mask=np.isnan(values))
    return pa.table(columns)


def _free(name: str) -> str:
    return f"{name} (column)" if name in FIGURES else name


def answer_table(workload: Workload, answers: Floats, errors: Floats | None) -> pa.Table:
    """One row per query of a workload; what is unknown about an error is missing."""
    known = np.full(len(answers), np.nan) if errors is None else errors
    reach = WITHIN * known
    texts = [format_query(query, workload.schema) for query in workload]
    figures = {
        "share": answers,
        "standard_error": known,
        "low": np.maximum(answers - reach, 0.0),
        "high": np.minimum(answers + reach, 1.0),
    }
    columns = {name: pa.array(own, mask=np.isnan(own)) for name, own in figures.items()}
    return pa.table({"query": texts, **columns})
