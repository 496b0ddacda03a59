"""Trees over attributes: who is whose parent, where two attributes meet, and the ways between them.

An attribute is named by its position among those that are modelled. A *way* leads from an attribute
down to one below it. Two attributes of one tree meet at their lowest common ancestor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dualquery.base.ragged import offsets

Ints = npt.NDArray[np.int64]

APART = -1
"""Where two attributes of different trees meet, and the parent of a root."""


@dataclass(frozen=True, eq=False)
class Trees:
    """A forest over attributes.

    Attributes:
        parent: per attribute the attribute above it; `APART` for a root.
    """

    parent: Ints

    @classmethod
    def without_edges(cls, attributes: int) -> Trees:
        """Every attribute is a tree of its own."""
        return cls(np.full(attributes, APART, dtype=np.int64))

    @classmethod
    def of_edges(cls, attributes: int, edges: Iterable[tuple[int, int]]) -> Trees:
        """The forest with these edges; the attribute with most of them is the root of its tree.

        A root in the middle makes ways short. Edges that would close a circle are not expected.
        """
        near: list[list[int]] = [[] for _ in range(attributes)]
        for one, other in edges:
            near[one].append(other)
            near[other].append(one)
        parent = np.full(attributes, APART, dtype=np.int64)
        seen = np.zeros(attributes, dtype=bool)
        for top in sorted(range(attributes), key=lambda i: -len(near[i])):
            if seen[top]:
                continue
            seen[top], waiting = True, [top]
            for here in waiting:  # grows while it is read
                for there in near[here]:
                    if not seen[there]:
                        seen[there], parent[there] = True, here
                        waiting.append(there)
        return cls(parent)

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def depth(self) -> Ints:
        """How many attributes stand above each."""
        found = np.zeros(len(self), dtype=np.int64)
        above = self.parent
        while (above != APART).any():
            found += above != APART
            above = np.where(above == APART, APART, self.parent[above])
        return found

    @cached_property
    def children(self) -> Ints:
        """The attributes that have a parent, those nearer to their roots first. Edge e leads to the
        e-th of them."""
        order: Ints = np.argsort(self.depth, kind="stable")
        found: Ints = order[self.parent[order] != APART]
        return found

    @cached_property
    def parents(self) -> Ints:
        """Where every edge comes from."""
        return self.parent[self.children]

    def tie_start(self, sizes: npt.NDArray[np.integer]) -> Ints:
        """Where the cells of every edge begin, a row per code of its parent.

        Args:
            sizes: how many codes every attribute has.
        """
        return offsets(sizes[self.parents].astype(np.int64) * sizes[self.children])

    @cached_property
    def edge(self) -> Ints:
        """Per attribute the number of the edge that leads to it; `APART` for a root."""
        found = np.full(len(self), APART, dtype=np.int64)
        found[self.children] = np.arange(len(self.children))
        return found

    @cached_property
    def root(self) -> Ints:
        """Per attribute the root of its tree."""
        found = np.arange(len(self))
        while (above := self.parent[found]).max(initial=APART) != APART:
            found = np.where(above == APART, found, above)
        return found

    def meeting(self, one: int, other: int) -> int:
        """The lowest common ancestor of two attributes; `APART` if they are in different trees."""
        while one != other:
            if one == APART or other == APART:
                return APART
            if self.depth[one] >= self.depth[other]:
                one = int(self.parent[one])
            else:
                other = int(self.parent[other])
        return one

    def way(self, top: int, below: int) -> list[int]:
        """The attributes on the way down, without `top` and with `below`; empty if they are one."""
        found = []
        while below != top:
            found.append(below)
            below = int(self.parent[below])
        return found[::-1]


class Ways:
    """The ways that some tables need, listed so that each is one edge and then a shorter way.

    Way w leads from `top[w]` to `below[w]`. Its first step is edge `first[w]`. The rest of it is
    way `rest[w]`, which stands before it in the list; `APART` if the edge is all of it.
    """

    def __init__(self, trees: Trees) -> None:
        self._trees = trees
        self._number: dict[tuple[int, int], int] = {}
        self._listed: list[tuple[int, int, int, int]] = []

    def number(self, top: int, below: int) -> int:
        """The number of a way, which is listed if it was not; `APART` if its ends are one."""
        if top == below:
            return APART
        if (top, below) not in self._number:
            step = self._trees.way(top, below)[0]
            rest = self.number(step, below)
            self._number[top, below] = len(self._listed)
            self._listed.append((top, below, int(self._trees.edge[step]), rest))
        return self._number[top, below]

    def arrays(self) -> tuple[Ints, Ints, Ints, Ints]:
        """`top`, `below`, `first` and `rest` of all ways."""
        found = np.array(self._listed, dtype=np.int64).reshape(-1, 4)
        top, below, first, rest = (np.ascontiguousarray(one) for one in found.T)
        return top, below, first, rest


def spanning(attributes: int, weighed: Sequence[tuple[float, int, int]], largest: int) -> Trees:
    """The heaviest forest whose trees have at most so many attributes (Kruskal's way).

    Args:
        attributes: how many there are.
        weighed: edges that may be chosen: their weight, and the attributes that they join.
        largest: the most attributes of a tree.
    """
    tree = {a: frozenset([a]) for a in range(attributes)}
    edges = []
    for _, one, other in sorted(weighed, key=lambda found: (-found[0], found[1:])):
        joined = tree[one] | tree[other]
        if other in tree[one] or len(joined) > largest:
            continue
        edges.append((one, other))
        tree.update(dict.fromkeys(joined, joined))
    return Trees.of_edges(attributes, edges)
