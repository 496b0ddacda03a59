"""Answers to many queries about joined attributes: one table for each set of attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dualquery.domain.schema import Schema
from dualquery.model.forest.edges import Edges, Inferred
from dualquery.workloads.marginals import Marginals
from dualquery.workloads.workload import Workload

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FEW = 64
"""If a table of the sets that queries name would have more cells per query than this, they are
answered from a table of codes."""

MOST_CELLS = 1 << 22
"""Of a table of codes; of a larger one, half as many queries are answered at a time."""


class Components(Protocol):
    """A mixture as tables are made from it."""

    @property
    def schema(self) -> Schema: ...
    @property
    def weights(self) -> Floats: ...
    @property
    def tables(self) -> Floats: ...
    @property
    def edges(self) -> Edges | None: ...
    @property
    def inferred(self) -> Inferred: ...


def is_joined(inferred: Inferred, workload: Workload) -> npt.NDArray[np.bool_]:
    """Per query, whether two of its attributes are in one tree."""
    root = inferred.edges.trees.root
    matrix = workload.sorted_terms()
    named = workload.literals.attribute[np.maximum(matrix, 0) >> 1]
    trees = np.where(matrix >= 0, root[named], -1 - np.arange(matrix.shape[1]))
    trees.sort(axis=1)
    found: npt.NDArray[np.bool_] = (trees[:, 1:] == trees[:, :-1]).any(axis=1)
    return found


def joined_answers(model: Components, workload: Workload, queries: Ints) -> Floats:
    """The probabilities of some queries, in their order.

    Args:
        model: a mixture with edges.
        workload: of the queries.
        queries: their numbers.
    """
    matrix = workload.sorted_terms()[queries]
    attributes = np.where(matrix >= 0, workload.literals.attribute[np.maximum(matrix, 0) >> 1], -1)
    order = np.argsort(attributes, axis=1, kind="stable")
    attributes = np.take_along_axis(attributes, order, axis=1)
    terms = np.take_along_axis(matrix, order, axis=1).astype(np.int64)
    keys = np.concatenate([attributes, workload.is_parity[queries][:, None]], axis=1)
    sets, which = np.unique(keys, axis=0, return_inverse=True)
    by_set = np.argsort(which.reshape(-1), kind="stable")
    bounds = np.searchsorted(which.reshape(-1)[by_set], np.arange(len(sets) + 1))
    found = np.empty(len(queries))
    for number, key in enumerate(sets):
        chosen = by_set[bounds[number] : bounds[number + 1]]
        used = key[:-1] >= 0
        found[chosen] = _answers_of_set(
            model, workload, key[:-1][used], terms[chosen][:, used], bool(key[-1])
        )
    return found


def _answers_of_set(
    model: Components, workload: Workload, attributes: Ints, terms: Ints, parity: bool
) -> Floats:
    """The probabilities of queries about the same attributes.

    Args:
        model: a mixture with edges.
        workload: of the queries.
        attributes: what they are about.
        terms: one row per query, one column per attribute.
        parity: whether the queries are parities.
    """
    columns, places = [], []
    for a, own in zip(attributes.tolist(), terms.T, strict=True):
        different, place = np.unique(own, return_inverse=True)
        columns.append(_sets(workload, a, different, parity))
        places.append(place.reshape(-1))
    cells = np.prod([float(one.shape[1]) for one in columns])
    if cells <= FEW * len(terms):
        table = table_of_sets(model, dict(zip(attributes.tolist(), columns, strict=True)))
        values: Floats = table[tuple(places)]
    elif np.prod([float(one.shape[0]) for one in columns]) <= MOST_CELLS or len(terms) == 1:
        values = _answers_by_codes(model, attributes, columns, places)
    else:
        half = len(terms) // 2
        return np.concatenate(
            [
                _answers_of_set(model, workload, attributes, one, parity)
                for one in (terms[:half], terms[half:])
            ]
        )
    return 0.5 + 0.5 * values if parity else values


def _answers_by_codes(
    model: Components, attributes: Ints, columns: list[Floats], places: list[Ints]
) -> Floats:
    """The same from one table of all codes, each query adding up the cells it holds for.

    Args:
        model: a mixture with edges.
        attributes: what the queries are about.
        columns: per attribute its different sets of codes.
        places: per attribute which of them every query names.
    """
    table = table_of_sets(
        model, {a: np.eye(len(one)) for a, one in zip(attributes.tolist(), columns, strict=True)}
    )
    found = np.empty(len(places[0]))
    at_once = max(1, MOST_CELLS // (table.size // table.shape[0]))
    for first in range(0, len(found), at_once):
        part = slice(first, first + at_once)
        held = [one[:, place[part]] for one, place in zip(columns, places, strict=True)]
        left = np.tensordot(held[0], table, axes=(0, 0))
        for one in held[1:]:
            left = np.einsum("qb...,bq->q...", left, one)
        found[part] = left
    return found


def _sets(workload: Workload, attribute: int, terms: Ints, parity: bool) -> Floats:
    """One column per term: 1 for codes that satisfy it, else 0; of a parity -1 and 1."""
    size = int(workload.schema.sizes[attribute])
    found = np.zeros((size, len(terms)))
    literals = workload.literals
    for column, term in enumerate(terms.tolist()):
        literal = term >> 1
        found[literals.codes[literals.start[literal] : literals.start[literal + 1]], column] = 1.0
        if term & 1:
            found[:, column] = 1.0 - found[:, column]
    return 1.0 - 2.0 * found if parity else found


def table_of_sets(model: Components, asked: Mapping[int, Floats]) -> Floats:
    """The shares of records whose codes are in sets of codes, one axis per attribute.

    Args:
        model: any mixture.
        asked: per attribute one row per code and one column per set.
    """
    names = list(asked)
    parts: list[tuple[list[int], Floats]] = []
    for tree in _by_tree(model, names):
        parts.append((tree, shares_by_component(model, {a: asked[a] for a in tree})))
    order = [a for tree, _ in parts for a in tree]
    shares = [one.reshape(len(model.weights), -1) for _, one in parts]
    # All except the largest are multiplied out; it comes last, as a matrix product.
    last = max(range(len(shares)), key=lambda i: shares[i].shape[1])
    found = model.weights[:, None]
    for number, one in enumerate(shares):
        if number != last:
            found = (found[:, :, None] * one[:, None, :]).reshape(len(found), -1)
    table = found.T @ shares[last]
    order = [a for i, (tree, _) in enumerate(parts) if i != last for a in tree] + parts[last][0]
    table = table.reshape([asked[a].shape[1] for a in order])
    return np.moveaxis(table, [order.index(a) for a in names], range(len(names)))


def shares_of(
    model: Components, marginals: Marginals, places: npt.NDArray[np.integer] | None = None
) -> Floats:
    """The share of every cell of some tables, laid end to end.

    Args:
        model: any mixture.
        marginals: the tables.
        places: where their attributes stand in the model's schema, if that is another one.
    """
    groups = marginals.groups
    sets = {
        a: np.eye(int(groups.sizes[a]))[groups.of_attribute(a)]
        for a in np.unique(marginals.attributes).tolist()
    }
    place = {a: a if places is None else int(places[a]) for a in sets}
    return np.concatenate(
        [
            table_of_sets(model, {place[a]: sets[a] for a in attributes}).reshape(-1)
            for attributes in marginals.attributes.tolist()
        ]
    )


def shares_by_component(model: Components, asked: Mapping[int, Floats]) -> Floats:
    """The same for attributes of one tree, with an axis of components first."""
    if len(asked) == 1:
        ((a, sets),) = asked.items()
        part = slice(*model.schema.code_start[a : a + 2])
        return model.tables[part].T @ sets
    inferred = model.inferred
    return inferred.joint({a: inferred.parts(a, sets) for a, sets in asked.items()})


def _by_tree(model: Components, attributes: list[int]) -> list[list[int]]:
    """The attributes, those of one tree together."""
    if model.edges is None:
        return [[a] for a in attributes]
    trees: dict[int, list[int]] = {}
    for a in attributes:
        trees.setdefault(int(model.edges.trees.root[a]), []).append(a)
    return list(trees.values())
