"""Shares of formulas, alone and within the cells of a table, from weighted components.

Inside a component attributes are independent. So a diagram is evaluated from its last level up, for
all components at once, and the result is exact to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import QueryError
from dualquery.domain.diagrams import NO, YES, Diagram, Remainder, classes
from dualquery.domain.formulas import Formula
from dualquery.domain.schema import Schema
from dualquery.release.components import Components

Floats = npt.NDArray[np.float64]

MOST_CELLS = 1_000_000
"""The most cells of a cross table."""


def by_component(components: Components, diagram: Diagram) -> Floats:
    """Per component, the probability that the formula of a diagram holds."""
    count = len(components.weights)
    ends = {YES: np.ones(count), NO: np.zeros(count)}
    below: list[Floats] = []
    for attribute, nodes in zip(
        reversed(diagram.attributes), reversed(diagram.levels), strict=True
    ):
        table = components.table(attribute)
        level = []
        for branches in nodes:
            targets = [ends[b.target] if b.target < 0 else below[b.target] for b in branches]
            if len(branches) == 1:  # the attribute decides nothing here
                level.append(targets[0])
                continue
            masses = [table[:, list(branch.codes)].sum(axis=1) for branch in branches]
            level.append(
                sum((m * t for m, t in zip(masses, targets, strict=True)), np.zeros(count))
            )
        below = level
    return ends[diagram.root] if diagram.root < 0 else below[0]


def share(components: Components, diagram: Diagram) -> float:
    """The share of the records that satisfy the formula of a diagram."""
    components = components.among(diagram.attributes)
    return float(components.weights @ by_component(components, diagram))


def cells(
    components: Components, columns: Sequence[int], schema: Schema, where: Formula | None = None
) -> Floats:
    """The share of every cell of a cross table, among all records.

    Args:
        components: what the release answers from.
        columns: different attributes.
        schema: the attributes.
        where: what the records in the cells also satisfy.

    Returns:
        An array with one axis per column, and along it one entry per code.
    """
    sizes = [int(schema.sizes[column]) for column in columns]
    if prod(sizes) > MOST_CELLS:
        raise QueryError(
            f"a table of {prod(sizes):,} cells; expected at most {MOST_CELLS:,}: name fewer columns"
        )
    found = np.zeros(sizes)
    named = set() if where is None else set(Diagram.of(where, schema).attributes)
    components = components.among({*columns, *named})
    tables = [components.table(column) for column in columns]
    if where is None:
        _fill(found, components.weights, tables)
        return found
    memory: dict[Remainder, Floats] = {}
    for codes, rest in classes(where, columns, schema):
        if rest not in memory:
            memory[rest] = components.weights * by_component(components, Diagram.of(rest, schema))
        if not memory[rest].any():
            continue
        picked = [table[:, list(own)] for table, own in zip(tables, codes, strict=True)]
        part = np.zeros([len(own) for own in codes])
        _fill(part, memory[rest], picked)
        found[np.ix_(*[list(own) for own in codes])] = part
    return found


def _fill(out: Floats, weights: Floats, tables: Sequence[Floats]) -> None:
    """Products of the tables' columns, summed over components; the last two at once."""
    if len(tables) == 1:
        out[...] = weights @ tables[0]
    elif len(tables) == 2:
        out[...] = (weights[:, None] * tables[0]).T @ tables[1]
    else:
        for code in range(out.shape[0]):
            _fill(out[code], weights * tables[0][:, code], tables[1:])
