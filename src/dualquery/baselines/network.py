"""Bayesian networks: which attributes depend on which, and rows that follow noisy tables. Public.

A network gives every attribute a few earlier ones as parents. A row is drawn attribute by
attribute, each from its table given the values of its parents.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dualquery.baselines.baseline import Floats

Records = npt.NDArray[np.int32]


TRIED = 64
"""The most attributes that are tried as parents of a random node."""


@dataclass(frozen=True, order=True)
class Node:
    """An attribute and its parents, all by position."""

    attribute: int
    parents: tuple[int, ...] = ()

    @property
    def attributes(self) -> tuple[int, ...]:
        """The attributes of its table: the parents, then the attribute itself."""
        return (*self.parents, self.attribute)


@dataclass(frozen=True)
class Limits:
    """Which nodes may be chosen; public.

    Attributes:
        sizes: of all attributes.
        cells: the most cells of a table with parents.
        parents: the most parents of a node.
        candidates: about the most nodes that one choice compares.
    """

    sizes: tuple[int, ...]
    cells: float
    parents: int
    candidates: int

    def fits(self, node: Node) -> bool:
        """Whether its table is small enough to be worth measuring. Without parents it always is."""
        cells = math.prod(self.sizes[a] for a in node.attributes)
        return not node.parents or (len(node.parents) <= self.parents and cells <= self.cells)

    def choices(
        self, chosen: Sequence[int], left: Sequence[int], generator: np.random.Generator
    ) -> list[Node]:
        """The nodes to choose from: each has as many parents as fit.

        All of them, if there are few. Else some, by public randomness: parents are taken in random
        order, and for a very wide table not every attribute that is left is looked at.

        Args:
            chosen: the attributes that are in the network.
            left: those that are not.
            generator: public randomness.
        """
        most = min(self.parents, len(chosen))
        every = sum(math.comb(len(chosen), count) for count in range(most + 1))
        if every * len(left) <= self.candidates:
            return [node for a in left for node in self._largest(a, chosen, most)]
        some = list(left)
        if len(some) > self.candidates:
            some = sorted(generator.choice(some, self.candidates, replace=False).tolist())
        each = max(1, self.candidates // len(some))
        return sorted({self._random(a, chosen, generator) for a in some for _ in range(each)})

    def _largest(self, attribute: int, chosen: Sequence[int], most: int) -> Iterator[Node]:
        """All nodes to which no further parent can be added."""
        for count in range(most + 1):
            for parents in combinations(sorted(chosen), count):
                node = Node(attribute, parents)
                if self.fits(node) and not any(
                    self.fits(Node(attribute, (*parents, more)))
                    for more in chosen
                    if more not in parents
                ):
                    yield node

    def _random(
        self, attribute: int, chosen: Sequence[int], generator: np.random.Generator
    ) -> Node:
        """One node to which hardly any further parent can be added: some were tried in vain."""
        parents: tuple[int, ...] = ()
        tried = chosen
        if len(chosen) > TRIED:
            # A permutation of thousands of attributes for every node would take longer than tables.
            tried = [chosen[place] for place in generator.integers(0, len(chosen), TRIED)]
        for more in generator.permutation(np.array(tried, dtype=np.int64)).tolist():
            if len(parents) == self.parents:
                break
            if more not in parents and self.fits(Node(attribute, (*parents, more))):
                parents = (*parents, more)
        return Node(attribute, tuple(sorted(parents)))

    def compared(self, attributes: int) -> int:
        """About how many nodes are compared until all attributes are in the network."""
        total = 0
        for chosen in range(1, attributes):
            every = sum(math.comb(chosen, count) for count in range(min(self.parents, chosen) + 1))
            total += min(every * (attributes - chosen), self.candidates)
        return total


@dataclass(frozen=True, eq=False)
class Network:
    """Nodes in an order in which parents come first, and their noisy tables.

    Attributes:
        sizes: of all attributes of the schema.
        nodes: the network; an attribute that is not in it is uniform.
        tables: per node its noisy counts, one axis per parent and the last for the attribute.
    """

    sizes: tuple[int, ...]
    nodes: tuple[Node, ...]
    tables: tuple[npt.NDArray[np.int64], ...]

    @cached_property
    def conditionals(self) -> tuple[Floats, ...]:
        """Per node the distribution of the attribute given its parents."""
        return tuple(conditional(table) for table in self.tables)

    def sample(self, rows: int, generator: np.random.Generator) -> Records:
        """Rows that follow the network, one row of codes each."""
        records = np.empty((rows, len(self.sizes)), dtype=np.int32)
        known = {node.attribute for node in self.nodes}
        for attribute, size in enumerate(self.sizes):
            if attribute not in known:
                records[:, attribute] = generator.integers(0, size, rows)
        for node, given in zip(self.nodes, self.conditionals, strict=True):
            place = np.zeros(rows, dtype=np.int64)
            for parent in node.parents:
                place = place * self.sizes[parent] + records[:, parent]
            borders = np.cumsum(given.reshape(-1, given.shape[-1]), axis=1)[:, :-1]
            chance = generator.random(rows)
            code = np.zeros(rows, dtype=np.int32)
            for border in borders.T:
                code += chance >= border[place]
            records[:, node.attribute] = code
        return records


def conditional(table: npt.NDArray[np.int64]) -> Floats:
    """Noisy counts as distributions along the last axis.

    Counts below zero become zero. Where nothing is left of a combination of parents, the attribute
    is distributed as in the whole table, and uniformly if nothing is left of that either.
    """
    kept = np.maximum(table, 0).astype(np.float64)
    whole = kept.reshape(-1, kept.shape[-1]).sum(axis=0)
    fallback = whole / whole.sum() if whole.sum() else np.full(whole.shape, 1.0 / len(whole))
    total = kept.sum(axis=-1, keepdims=True)
    found: Floats = np.where(total > 0.0, kept / np.maximum(total, 1.0), fallback)
    return found
