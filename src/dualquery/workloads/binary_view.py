"""The paper's view of a table, in which every bit is a column of its own.

The paper treats the bits of a categorical attribute as independent 0/1 columns. So the records of
its data player may be young and old at once. To run its algorithm as published, schema and workload
are translated to that view. The queries, and therefore their true answers, are the same.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import QueryError
from dualquery.base.ragged import offsets
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.workloads.workload import Literals, Workload


def is_binary(schema: Schema) -> bool:
    """Whether every attribute is one bit already."""
    return all(attribute.is_binary for attribute in schema.attributes)


def bits_of(schema: Schema) -> npt.NDArray[np.int64]:
    """The number of bits of each attribute in the view: one, or one per code."""
    return np.array([1 if a.is_binary else a.size for a in schema.attributes], dtype=np.int64)


def binarised(schema: Schema) -> Schema:
    """One 0/1 attribute per bit, named `attribute=value`; rules between values are left behind."""
    bits: list[Attribute] = []
    for attribute in schema.attributes:
        if attribute.is_binary:
            bits.append(Attribute.binary(attribute.name))
        else:
            bits.extend(
                Attribute.binary(f"{attribute.name}={_label(attribute, code)}")
                for code in range(attribute.size)
            )
    return Schema(tuple(bits), about=schema.about)


def _label(attribute: Attribute, code: int) -> str:
    if code == attribute.missing_code:
        return "missing"
    if attribute.edges:
        edge = attribute.edges[code]
        return attribute.spell(edge) if attribute.type.is_temporal else f"{edge:.15g}"
    return str(attribute.values[code])


def binarised_workload(workload: Workload, view: Schema | None = None) -> Workload:
    """The same queries over the bits; each of their literals must name one value."""
    schema, literals = workload.schema, workload.literals
    if np.any(np.diff(literals.start) != 1):
        raise QueryError("a literal with several values has no single bit in the binary view")
    first = offsets(bits_of(schema))
    single = np.array([attribute.is_binary for attribute in schema.attributes])[literals.attribute]
    # The 0 of a 0/1 column has no bit of its own: it is the negation of the column's one bit.
    bits = first[literals.attribute] + np.where(single, 0, literals.codes)
    ones = np.where(single, literals.codes, 1)
    return Workload(
        binarised(schema) if view is None else view,
        Literals(bits.astype(np.int32), literals.start, ones.astype(np.int32)),
        workload.start,
        workload.terms,
        workload.is_parity,
    )
