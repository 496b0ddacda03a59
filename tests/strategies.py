"""Hypothesis strategies for schemas, queries and records."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from dualquery.domain.attributes import Attribute
from dualquery.domain.query import Literal, Query
from dualquery.domain.schema import Schema

MOMENTS = {
    "date": st.dates(),
    "timestamp": st.datetimes().map(lambda moment: moment.replace(microsecond=0)),
    "time": st.times().map(lambda time: time.replace(microsecond=0)),
}
"""Edges and values of the types that have dates or times in their cells."""

names = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\x7f"),
    min_size=1,
    max_size=8,
).filter(lambda text: text.strip() == text)


@st.composite
def attributes(draw: st.DrawFn, name: str | None = None) -> Attribute:
    name = draw(names) if name is None else name
    missing = draw(st.booleans())
    kind = draw(
        st.sampled_from(
            ["values", "numbers", "edges", "integers", "binary", "yes/no", "decimal", *MOMENTS]
        )
    )
    if kind == "binary":
        return Attribute.binary(name, missing=missing)
    if kind == "yes/no":
        return Attribute.binary(name, missing=missing, type=kind)
    if kind in MOMENTS:
        moments = draw(st.lists(MOMENTS[kind], min_size=2, max_size=5, unique=True))
        if draw(st.booleans()):
            return Attribute.categorical(name, moments, missing=missing)
        return Attribute.numeric(name, sorted(moments), missing=missing)
    if kind == "values":
        values = draw(st.lists(names, min_size=1, max_size=5, unique=True))
        return Attribute.categorical(name, values, missing=missing, ordered=draw(st.booleans()))
    if kind == "numbers":
        values = draw(st.lists(st.integers(-50, 50), min_size=1, max_size=6, unique=True))
        return Attribute.categorical(name, values, missing=missing)
    number = st.floats(-1e3, 1e3, width=32) if kind == "edges" else st.integers(-1000, 1000)
    edges = sorted(draw(st.lists(number, min_size=2, max_size=6, unique=True)))
    return Attribute.numeric(
        name, edges, missing=missing, type="decimal" if kind == "decimal" else None
    )


@st.composite
def schemas(draw: st.DrawFn, most: int = 5) -> Schema:
    chosen = draw(st.lists(names, min_size=1, max_size=most, unique=True))
    return Schema(tuple(draw(attributes(name)) for name in chosen))


@st.composite
def queries(draw: st.DrawFn, schema: Schema) -> Query:
    kind = draw(st.sampled_from(["conjunction", "parity"]))
    positions = draw(
        st.lists(st.integers(0, len(schema) - 1), min_size=1, max_size=len(schema), unique=True)
    )
    literals = []
    for position in positions:
        size = int(schema.sizes[position])
        codes = draw(st.sets(st.integers(0, size - 1), min_size=1, max_size=size))
        literals.append(Literal(position, tuple(sorted(codes)), draw(st.booleans())))
    return Query(kind, tuple(literals))


@st.composite
def code_matrices(draw: st.DrawFn, schema: Schema, most: int = 30) -> np.ndarray:
    rows = draw(st.integers(1, most))
    seed = draw(st.integers(0, 2**32 - 1))
    return np.random.default_rng(seed).integers(0, schema.sizes, (rows, len(schema)), np.int32)
