"""What a release answers from: weighted components, inside which attributes are independent.

A fitted mixture has such components. A set of records is the special case in which every component
is certain of its codes. So one evaluator, in Python and in the page, serves both. Only this file
knows how a release keeps its answers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from dualquery.domain.schema import Schema

if TYPE_CHECKING:  # a question that needs it imports it
    from dualquery.model.mixture import Mixture

Floats = npt.NDArray[np.float64]

FIXED = 2**48 - 1
"""Probabilities travel as 48-bit fixed point: six bytes, wrong by at most 2e-15."""


class Components(Protocol):
    """The weight of each component, and its distribution of each attribute."""

    @property
    def kind(self) -> str: ...

    @property
    def weights(self) -> Floats: ...

    def table(self, attribute: int) -> Floats:
        """Probabilities of one attribute's codes, one row per component."""
        ...

    def among(self, attributes: Collection[int]) -> Components:
        """The same for questions about these attributes, which are then independent in each."""
        ...

    def packed_size(self, attribute: int) -> int:
        """Bytes that `pack` will need."""
        ...

    def pack(self, attribute: int) -> bytes:
        """One attribute as the page keeps it; `assets/model.js` reads it."""
        ...

    def packed(self, attributes: Sequence[int]) -> bytes:
        """Several attributes, one after the other."""
        ...


@dataclass(frozen=True, eq=False)
class RecordComponents:
    """The game's records: equal weights, one code per attribute."""

    schema: Schema
    records: npt.NDArray[np.int32]
    kind: str = "records"

    @cached_property
    def weights(self) -> Floats:
        return np.full(len(self.records), 1.0 / len(self.records))

    def table(self, attribute: int) -> Floats:
        return np.eye(int(self.schema.sizes[attribute]))[self.records[:, attribute]]

    def among(self, attributes: Collection[int]) -> RecordComponents:
        return self

    def packed_size(self, attribute: int) -> int:
        count, size = len(self.records), int(self.schema.sizes[attribute])
        return -(-count // 8) if size <= 2 else count * np.dtype(_width(size)).itemsize

    def pack(self, attribute: int) -> bytes:
        codes, size = self.records[:, attribute], int(self.schema.sizes[attribute])
        if size <= 2:
            return np.packbits(codes.astype(bool), bitorder="little").tobytes()
        return codes.astype(_width(size)).tobytes()

    def packed(self, attributes: Sequence[int]) -> bytes:
        return b"".join(self.pack(a) for a in attributes)


def _width(size: int) -> str:
    """The narrowest numbers that hold the codes of a domain."""
    return "<u1" if size <= 1 << 8 else "<u2" if size <= 1 << 16 else "<u4"


@dataclass(frozen=True, eq=False)
class Unrolled:
    """Components for questions about a few attributes; those of one tree have been told apart.

    If a component of a mixture joins attributes, it becomes one component for each cell of all of
    them except the last.
    """

    weights: Floats
    tables: Mapping[int, Floats]
    kind: str = "unrolled"

    def table(self, attribute: int) -> Floats:
        return self.tables[attribute]

    def among(self, attributes: Collection[int]) -> Unrolled:
        return self

    def packed_size(self, attribute: int) -> int:
        raise NotImplementedError("only what a page shows is packed")

    def pack(self, attribute: int) -> bytes:
        raise NotImplementedError("only what a page shows is packed")

    def packed(self, attributes: Sequence[int]) -> bytes:
        raise NotImplementedError("only what a page shows is packed")


@dataclass(frozen=True, eq=False)
class MixtureComponents:
    """A fitted mixture of forests."""

    model: Mixture
    kind: str = "mixture"

    @property
    def schema(self) -> Schema:
        return self.model.schema

    @property
    def weights(self) -> Floats:
        return self.model.weights

    @property
    def tables(self) -> Floats:
        """One row per code, those of the first attribute first; one column per component."""
        return self.model.tables

    @property
    def start(self) -> npt.NDArray[np.int64]:
        return self.schema.code_start

    def table(self, attribute: int) -> Floats:
        rows = self.tables[self.start[attribute] : self.start[attribute + 1]]
        return np.asarray(rows, dtype=np.float64).T

    def among(self, attributes: Collection[int]) -> Components:
        edges = self.model.edges
        if edges is None:
            return self
        trees: dict[int, list[int]] = {}
        for a in sorted(attributes):
            trees.setdefault(int(edges.trees.root[a]), []).append(a)
        if all(len(tree) == 1 for tree in trees.values()):
            return self
        return unrolled(self.model, list(trees.values()))

    def packed_size(self, attribute: int) -> int:
        return 6 * len(self.weights) * (int(self.schema.sizes[attribute]) - 1)

    def pack(self, attribute: int) -> bytes:
        # The probability of the first code is 1 minus all others, so it is left out, and a 0/1
        # column costs one number per component. A page moves own shares along edges by itself.
        own = self.model.own[self.start[attribute] : self.start[attribute + 1]]
        return _fixed(np.asarray(own, dtype=np.float64).T[:, 1:])

    def packed(self, attributes: Sequence[int]) -> bytes:
        # Half a million 0/1 columns are packed at once.
        if np.all(self.schema.sizes[attributes] == 2):
            return _fixed(self.model.own[self.start[attributes] + 1])
        return b"".join(self.pack(a) for a in attributes)


def unrolled(model: Mixture, trees: Sequence[Sequence[int]]) -> Unrolled:
    """The components of a model with edges, for questions about some attributes.

    Args:
        model: the model.
        trees: the attributes, those of one tree together.
    """
    from dualquery.model.forest.answers import shares_by_component

    sizes = model.schema.sizes
    weights = model.weights
    origin = np.arange(len(weights))  # the component of the model that each one is a part of
    tables: dict[int, Floats] = {}
    for tree in trees:
        if len(tree) == 1:
            continue
        # The largest domain last: all others are unrolled.
        order = sorted(tree, key=lambda a: int(sizes[a]))
        joint = shares_by_component(model, {a: np.eye(int(sizes[a])) for a in order})
        shape = joint.shape[1:-1]
        joint = joint.reshape(len(joint), -1, joint.shape[-1])
        share = joint.sum(axis=2)
        cells = share.shape[1]
        codes = np.unravel_index(np.arange(cells), shape)
        for a, table in tables.items():
            tables[a] = np.repeat(table, cells, axis=0)
        for a, own in zip(order[:-1], codes, strict=True):
            tables[a] = np.tile(np.eye(int(sizes[a]))[own], (len(weights), 1))
        last = joint / np.where(share > 0.0, share, 1.0)[..., None]
        tables[order[-1]] = last[origin].reshape(-1, joint.shape[-1])
        weights = (weights[:, None] * share[origin]).reshape(-1)
        origin = np.repeat(origin, cells)
    for tree in trees:
        if len(tree) == 1:
            part = slice(*model.schema.code_start[tree[0] : tree[0] + 2])
            tables[tree[0]] = model.tables[part].T[origin]
    return Unrolled(weights, tables)


def _fixed(shares: Floats) -> bytes:
    """Probabilities as whole numbers of six bytes each."""
    words = np.ascontiguousarray(np.rint(np.clip(shares, 0.0, 1.0) * FIXED).astype("<u8"))
    return words.view(np.uint8).reshape(-1, 8)[:, :6].tobytes()


def shares(components: Components, attribute: int) -> Floats:
    """The distribution of one attribute."""
    found: Floats = components.weights @ components.table(attribute)
    return found


def joint(components: Components, first: int, second: int) -> Floats:
    """The distribution of two different attributes, one row per code of the first."""
    both = components.among((first, second))
    weighted = both.weights[:, None] * both.table(first)
    found: Floats = weighted.T @ both.table(second)
    return found
