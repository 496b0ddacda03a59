"""Tables of any attributes of a model, and answers to many queries about joined ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dualquery.base.ragged import offsets, taken
from dualquery.base.threads import over_ranges
from dualquery.domain.schema import Schema
from dualquery.model.forest.edges import Edges, Inferred
from dualquery.model.forest.trees import APART, Trees
from dualquery.workloads.marginals import Marginals
from dualquery.workloads.workload import Workload

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

MOST_ENTRIES = 1 << 25
"""Of what literals say at all attributes above them; of more, half as many queries are answered at
a time."""


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
    if not len(queries):
        return np.empty(0)
    matrix = np.ascontiguousarray(workload.sorted_terms()[queries, ::-1])  # fillers last
    return _answered(model, workload, matrix, workload.is_parity[queries])


def _answered(
    model: Components, workload: Workload, matrix: npt.NDArray[np.integer], parity: Bools
) -> Floats:
    """The probabilities of queries with these terms, some at a time if they say too much."""
    used = np.unique(matrix[matrix >= 0]).astype(np.int64)
    attributes = workload.literals.attribute[used >> 1].astype(np.int64)
    if len(matrix) > 1 and _entries(model, attributes) > MOST_ENTRIES:
        # Queries with the same first terms stand together, so that either half has fewer terms.
        order = np.lexsort(matrix.T[::-1])
        found = np.empty(len(matrix))
        for one in np.array_split(order, 2):
            found[one] = _answered(model, workload, matrix[one], parity[one])
        return found
    return _answered_at_once(model, workload, matrix, parity, used, attributes)


def _entries(model: Components, attributes: Ints) -> int:
    """How many numbers literals of these attributes say at all attributes above them."""
    edges = model.inferred.edges
    own = edges.groups.sizes.astype(np.int64)
    above, parent = own.copy(), edges.trees.parent
    for child in edges.trees.children:  # those nearer to their roots first
        above[child] = own[child] + above[parent[child]]
    return int(above[attributes].sum()) * len(model.weights)


def _answered_at_once(
    model: Components,
    workload: Workload,
    matrix: npt.NDArray[np.integer],
    parity: Bools,
    used: Ints,
    attributes: Ints,
) -> Floats:
    """The probabilities of queries, from what all their terms say.

    Args:
        model: a mixture with edges.
        workload: of the queries.
        matrix: the terms of each query, -1 behind the last.
        parity: whether each query is a parity.
        used: the terms that occur, ascending.
        attributes: of each of them.
    """
    from dualquery.model.forest._answers_kernels import answer_joined

    inferred = model.inferred
    trees, sizes = inferred.edges.trees, inferred.edges.groups.sizes
    components = len(model.weights)
    place = np.full((len(used), int(trees.depth.max(initial=0)) + 1), -1, dtype=np.int64)
    alone = np.empty((len(used), components))
    parts: list[Floats] = []
    filled = 0
    for a in np.unique(attributes).tolist():
        of_it = np.flatnonzero(attributes == a)
        said = inferred.parts(a, _sets(workload, a, used[of_it]))
        alone[of_it] = np.einsum("kg,kgt->tk", inferred.margin(a), _spread(said, components))
        here, steps = a, 0
        while True:
            rows = int(sizes[here])
            by_term = np.moveaxis(_spread(said, components), (2, 1, 0), (0, 1, 2))
            parts.append(by_term.reshape(-1, components))
            place[of_it, steps] = filled + rows * np.arange(len(of_it))
            filled += rows * len(of_it)
            above = int(trees.parent[here])
            if above == APART:
                break
            said = np.matmul(inferred.given(here), said)
            here, steps = above, steps + 1
    needed = _with_all_above(trees, np.unique(attributes))
    children = trees.children[np.isin(trees.children, needed)]
    margins = [inferred.margin(a).T for a in needed.tolist()]
    given = [np.moveaxis(inferred.given(a), 0, 2).reshape(-1, components) for a in children]
    known = np.zeros(len(trees), dtype=np.int64)
    known[needed] = sizes[needed]
    tied = np.zeros(len(trees.children), dtype=np.int64)
    tied[trees.edge[children]] = [len(one) for one in given]
    arrays = (
        np.where(matrix >= 0, np.searchsorted(used, matrix), -1),
        parity, model.weights, attributes, place, np.concatenate(parts), alone,
        trees.parent, trees.depth, trees.root, trees.edge, offsets(known),
        np.concatenate(margins), offsets(tied), np.concatenate(given),
    )  # fmt: skip
    found = np.empty(len(matrix))
    over_ranges(partial(answer_joined, *arrays, found), len(matrix), grain=256)
    return found


def _with_all_above(trees: Trees, attributes: Ints) -> Ints:
    """These attributes, and all those above them."""
    found = attributes
    while len(more := np.setdiff1d(trees.parent[found], [*found, APART])):
        found = np.union1d(found, more)
    return found


def _spread(said: Floats, components: int) -> Floats:
    """The same with an entry for every component."""
    return np.broadcast_to(said, (components, *said.shape[1:]))


def _sets(workload: Workload, attribute: int, terms: Ints) -> Floats:
    """One column per term: 1 for codes that satisfy it, else 0."""
    literals = workload.literals
    found = np.zeros((int(workload.schema.sizes[attribute]), len(terms)))
    start, places = taken(literals.start, terms >> 1)
    found[literals.codes[places], np.repeat(np.arange(len(terms)), np.diff(start))] = 1.0
    negated = (terms & 1) == 1
    found[:, negated] = 1.0 - found[:, negated]
    return found


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
