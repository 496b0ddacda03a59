"""What joins attributes in a fitted model: the edges of its components, and tables along them.

A child's shares in component k, given the group g of its parent's code, are its own shares times
exp(W(g, ·)), made to add up to one. W belongs to the edge and to a fit; all components of the fit
share it. Rare codes are in groups, and W tells groups apart, not the codes in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dualquery.base.stored import Array, Arrays
from dualquery.model.forest.trees import APART, Trees
from dualquery.workloads.marginals import Groups

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges of a mixture of forests.

    Attributes:
        trees: over all attributes of the schema.
        groups: of their codes.
        ties: W of all edges end to end, one row per fit.
        fit: per component the fit that it is of.
    """

    trees: Trees
    groups: Groups
    ties: Floats
    fit: Ints

    @cached_property
    def start(self) -> Ints:
        """Where the ties of each edge begin."""
        return self.trees.tie_start(self.groups.sizes)

    @cached_property
    def joined(self) -> frozenset[int]:
        """The attributes that have an edge."""
        return frozenset([*self.trees.children.tolist(), *self.trees.parents.tolist()])

    def to_arrays(self) -> dict[str, Array]:
        """The edges as arrays, for files."""
        return {
            "parent": self.trees.parent,
            "group_of_code": self.groups.of_code,
            "group_sizes": self.groups.sizes,
            "ties": self.ties,
            "fit": self.fit,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, code_start: Ints) -> Edges:
        """The inverse of `to_arrays`; the schema says where the codes of attributes begin."""
        groups = Groups(code_start, arrays["group_of_code"], arrays["group_sizes"])
        return cls(Trees(arrays["parent"]), groups, arrays["ties"], arrays["fit"])

    def in_groups(self, codes: Floats, attribute: int) -> Floats:
        """Shares of groups from those of codes: one row per component each."""
        groups = self.groups.of_attribute(attribute)
        found = np.zeros((len(codes), int(self.groups.sizes[attribute])))
        np.add.at(found.T, groups, codes.T)
        return found

    def given(self, own: Floats, child: int) -> Floats:
        """Shares of a child's groups given its parent's, per component.

        Args:
            own: the child's own shares of groups, one row per component.
            child: which attribute.
        """
        e = int(self.trees.edge[child])
        rows = int(self.groups.sizes[self.trees.parent[child]])
        tied = self.ties[:, self.start[e] : self.start[e + 1]].reshape(len(self.ties), rows, -1)
        pull = np.exp(tied - tied.max(axis=2, keepdims=True))[self.fit]
        shares = own[:, None, :] * pull
        total = shares.sum(axis=2, keepdims=True)
        found: Floats = shares / np.where(total > 0.0, total, 1.0)
        return found

    def of_components(self, chosen: npt.NDArray[np.integer | np.bool_]) -> Edges:
        """The edges of some components, or of all of them several times."""
        return replace(self, fit=self.fit[chosen])

    @classmethod
    def merged(cls, fits: Sequence[Edges]) -> Edges:
        """The edges of several fits of the same forest, their components end to end."""
        before = np.cumsum([0, *(len(one.ties) for one in fits[:-1])])
        return replace(
            fits[0],
            ties=np.concatenate([one.ties for one in fits]),
            fit=np.concatenate([one.fit + more for one, more in zip(fits, before, strict=True)]),
        )


class Inferred:
    """Shares of attributes together, in every component of a mixture of forests.

    Args:
        edges: of the mixture.
        code_start: where the codes of every attribute begin.
        codes: the own shares of all codes, one column per component.
    """

    def __init__(self, edges: Edges, code_start: Ints, codes: Floats) -> None:
        self.edges = edges
        self._start, self._codes = code_start, codes
        self._own: dict[int, Floats] = {}
        self._given: dict[int, Floats] = {}
        self._margins: dict[int, Floats] = {}

    def own(self, attribute: int) -> Floats:
        """An attribute's own shares of groups, one row per component."""
        if attribute not in self._own:
            codes = self._codes[self._start[attribute] : self._start[attribute + 1]]
            self._own[attribute] = self.edges.in_groups(codes.T, attribute)
        return self._own[attribute]

    def parts(self, attribute: int, sets: Floats) -> Floats:
        """The share of every group that is in sets of codes.

        Args:
            attribute: of the codes.
            sets: one row per code, one column per set: 1 if the code is in it, and 0 if not.

        Returns:
            One row per component, or one for all of them if every code is a group; then one per
            group, and one column per set.
        """
        if self.edges.groups.is_single(attribute):
            return sets[None]
        codes = self._codes[self._start[attribute] : self._start[attribute + 1]]
        groups = self.edges.groups.of_attribute(attribute)
        own = self.own(attribute)
        found = np.zeros((*own.shape, sets.shape[1]))
        for code, group in enumerate(groups):
            found[:, group] += codes[code][:, None] * sets[code]
        return found / np.where(own > 0.0, own, 1.0)[..., None]

    def given(self, child: int) -> Floats:
        """Shares of a child's groups given its parent's, per component."""
        if child not in self._given:
            self._given[child] = self.edges.given(self.own(child), child)
        return self._given[child]

    def margin(self, attribute: int) -> Floats:
        """Shares of an attribute's groups, one row per component."""
        if attribute not in self._margins:
            above = int(self.edges.trees.parent[attribute])
            if above == APART:
                found = self.own(attribute)
            else:
                found = np.einsum("ka,kab->kb", self.margin(above), self.given(attribute))
            self._margins[attribute] = found
        return self._margins[attribute]

    def joint(self, asked: Mapping[int, Floats]) -> Floats:
        """The shares of sets of groups of attributes of one tree, together.

        Args:
            asked: per attribute a matrix: one row per group, one column per set of codes, with the
                share of the group that is in the set; before them an axis of components, or of one
                if they are alike. The identity asks for every group.

        Returns:
            An array with an axis of components, and then one per attribute, in the order asked.
        """
        trees = self.edges.trees
        names = list(asked)
        top = names[0]
        for other in names[1:]:
            top = trees.meeting(top, other)
        needed = {a for name in names for a in trees.way(top, name)} | {top}
        below: dict[int, list[int]] = {a: [] for a in needed}
        for a in needed - {top}:
            below[int(trees.parent[a])].append(a)
        # Few sets are counted on the way. Where they are no fewer than groups, groups are kept, and
        # sets are counted at the end: an attribute has one axis at a time.
        early = {a: sets for a, sets in asked.items() if sets.shape[2] < sets.shape[1]}
        kept = asked.keys() - early.keys()
        shares, order = self._from_top(top, below, early, kept)
        shares = np.moveaxis(shares, [1 + order.index(a) for a in names], range(1, len(names) + 1))
        for place, a in enumerate(names, start=1):
            if a in kept and not _is_identity(asked[a]):
                shares = _counted(shares, place, asked[a])
        return shares

    def _from_top(
        self, top: int, below: Mapping[int, list[int]], early: Mapping[int, Floats], kept: Set[int]
    ) -> tuple[Floats, list[int]]:
        """What is asked of a whole tree: components first, then an axis per name."""
        found, order = self._joined(top, below[top][:-1], below, early, kept)
        found = found * self.margin(top).reshape(*found.shape[:2], *[1] * (found.ndim - 2))
        if not below[top]:
            return (found, [top]) if top in kept else (found.sum(axis=1), order)
        part, names = self._through(below[top][-1], below, early, kept)
        if top in kept:
            return _outer(found, part), [top, *order, *names]
        flat = [one.reshape(*one.shape[:2], -1) for one in (found, part)]
        shares = np.matmul(flat[0].transpose(0, 2, 1), flat[1])
        return shares.reshape(len(found), *found.shape[2:], *part.shape[2:]), [*order, *names]

    def _through(
        self,
        child: int,
        below: Mapping[int, list[int]],
        early: Mapping[int, Floats],
        kept: Set[int],
    ) -> tuple[Floats, list[int]]:
        """Shares of what is asked at and below a child, given the groups of its parent."""
        part, names = self._joined(child, below[child], below, early, kept)
        given = self.given(child)
        if child in kept:
            wide = given.reshape(*given.shape, *[1] * (part.ndim - 2))
            return wide * part[:, None], [child, *names]
        flat = np.matmul(given, part.reshape(*part.shape[:2], -1))
        return flat.reshape(*given.shape[:2], *part.shape[2:]), names

    def _joined(
        self,
        here: int,
        children: Sequence[int],
        below: Mapping[int, list[int]],
        early: Mapping[int, Floats],
        kept: Set[int],
    ) -> tuple[Floats, list[int]]:
        """Shares of what is asked here, if it is not kept, and below, given the groups of here."""
        components, size = len(self.edges.fit), int(self.edges.groups.sizes[here])
        found, order = np.ones((components, size)), []
        if here in early:
            found = np.broadcast_to(early[here], (components, *early[here].shape[1:]))
            order.append(here)
        for child in children:
            part, names = self._through(child, below, early, kept)
            found = _outer(found, part)
            order += names
        return found, order


def _outer(found: Floats, part: Floats) -> Floats:
    """Products with the first two axes in common, then the axes of both."""
    wide = found.reshape(*found.shape, *[1] * (part.ndim - 2))
    return wide * part.reshape(*part.shape[:2], *[1] * (found.ndim - 2), *part.shape[2:])


def _is_identity(sets: Floats) -> bool:
    return sets.shape[1] == sets.shape[2] and bool(np.all(sets == np.eye(sets.shape[1])))


def _counted(shares: Floats, place: int, sets: Floats) -> Floats:
    """Shares with an axis of groups turned into one of sets."""
    last = np.moveaxis(shares, place, -1)
    flat = np.matmul(last.reshape(len(last), -1, last.shape[-1]), sets)
    return np.moveaxis(flat.reshape(*last.shape[:-1], sets.shape[2]), -1, place)
