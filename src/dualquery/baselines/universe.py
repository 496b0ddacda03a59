"""Distributions over every possible record, and the answers of a workload on them.

One number per possible record is too much for a wide table, so this is for narrow ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import ParameterError
from dualquery.baselines.baseline import Floats
from dualquery.domain.schema import Schema
from dualquery.workloads.workload import Workload

AttributeSet = tuple[int, ...]
"""Positions of attributes, in rising order."""

MEMORY = 2 * 2**30
"""Bytes that the universe may take if the caller states no other limit."""

ARRAYS = 4
"""The most arrays of the universe's size that are alive at once: the distribution before and after
a step, the sum over rounds, and a path of marginal tables, each at most half of the one before."""


def universe_size(schema: Schema) -> int:
    """How many records are possible, as an exact number."""
    return math.prod(int(size) for size in schema.sizes)


def fits(schema: Schema, memory: int = MEMORY) -> bool:
    """Whether distributions over all records fit; numpy has at most 64 axes."""
    return 8 * ARRAYS * universe_size(schema) <= memory and len(schema) <= 60


def require_memory(schema: Schema, memory: int = MEMORY) -> None:
    """Refuse a universe that does not fit."""
    size = universe_size(schema)
    if not fits(schema, memory):
        needed = 8 * ARRAYS * size
        raise ParameterError(
            f"a distribution over all possible records of this schema has {_power(size)} entries "
            f"and needs {_power(needed)} bytes, over the limit of {memory} bytes; "
            "use fewer attributes or a method that does not enumerate records"
        )


def _power(number: int) -> str:
    return str(number) if number < 10**6 else f"about 10^{math.log10(number):.1f}"


@dataclass(frozen=True, eq=False)
class Group:
    """Queries on the same attributes, as products of one factor per attribute.

    A conjunction is Π 1[literal], and its expectation is the answer. A parity is
    (1 + Π (1 − 2·1[literal]))/2, which is affine in the expectation of such a product.

    Attributes:
        positions: where the queries stand in the workload.
        attributes: the attributes that all of them name.
        factors: per attribute, the value of the factor by query and code.
        parity: per query, whether it is a parity.
    """

    positions: npt.NDArray[np.int64]
    attributes: AttributeSet
    factors: tuple[Floats, ...]
    parity: npt.NDArray[np.bool_]

    def answers(self, table: Floats) -> Floats:
        """The answers on the marginal table of the group's attributes."""
        folded: Floats = np.einsum("gi,i...->g...", self.factors[0], table)
        for factor in self.factors[1:]:
            folded = np.einsum("gi,gi...->g...", factor, folded)
        return np.where(self.parity, (1.0 + folded) / 2.0, folded)

    def indicator(self, member: int, width: int) -> Floats:
        """One query's value on every record, shaped to be broadcast over the universe."""
        value = np.ones((1,) * width)
        for attribute, factor in zip(self.attributes, self.factors, strict=True):
            shape = [1] * width
            shape[attribute] = factor.shape[1]
            value = value * factor[member].reshape(shape)
        return (1.0 + value) / 2.0 if self.parity[member] else value


class OnUniverse:
    """A workload that is ready to be answered on distributions over the universe.

    All answers come from marginal tables of the attributes that queries name. Each of these tables
    is summed out of a table with one attribute more. So the large array is read a few times, and
    not once per query.
    """

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.groups = groups_of(workload)
        self._place: dict[int, tuple[Group, int]] = {}
        self._asked: dict[AttributeSet, list[Group]] = {}
        self._below: dict[AttributeSet, list[AttributeSet]] = {}
        for group in self.groups:
            for member, position in enumerate(group.positions):
                self._place[int(position)] = (group, member)
            self._asked.setdefault(group.attributes, []).append(group)
            self._link(group.attributes)

    def _link(self, attributes: AttributeSet) -> None:
        """Note which table each table is summed out of, up to the whole universe."""
        while len(attributes) < len(self.workload.schema):
            missing = next(a for a in range(len(attributes) + 1) if a not in attributes)
            larger = tuple(sorted((*attributes, missing)))
            siblings = self._below.setdefault(larger, [])
            if attributes in siblings:
                return
            siblings.append(attributes)
            attributes = larger

    def answers(self, distribution: Floats) -> Floats:
        """The answer to each query; `distribution` has one axis per attribute."""
        found = np.empty(len(self.workload))
        self._descend(tuple(range(distribution.ndim)), distribution, found)
        return found

    def _descend(self, attributes: AttributeSet, table: Floats, found: Floats) -> None:
        """Answer the groups of a table and of all tables below it, one path of them at a time."""
        for group in self._asked.get(attributes, ()):
            found[group.positions] = group.answers(table)
        for smaller in self._below.get(attributes, ()):
            gone = next(axis for axis, a in enumerate(attributes) if a not in smaller)
            # An attribute with one value needs no sum, and the view needs no copy.
            one = table.shape[gone] == 1
            self._descend(smaller, table.squeeze(gone) if one else table.sum(axis=gone), found)

    def indicator(self, query: int) -> Floats:
        """One query's value on every record, shaped to be broadcast over the universe."""
        group, member = self._place[query]
        return group.indicator(member, len(self.workload.schema))


def groups_of(workload: Workload) -> list[Group]:
    sizes = workload.schema.sizes
    literals = workload.literals
    holds = [
        literals.membership(i, int(sizes[literals.attribute[i]])) for i in range(len(literals))
    ]
    members: dict[tuple[int, ...], list[tuple[int, list[int]]]] = {}
    for query in range(len(workload)):
        terms = workload.terms[workload.start[query] : workload.start[query + 1]].tolist()
        terms.sort(key=lambda term: int(literals.attribute[term >> 1]))
        key = tuple(int(literals.attribute[term >> 1]) for term in terms)
        members.setdefault(key, []).append((query, terms))
    groups = []
    for attributes, found in members.items():
        positions = np.array([query for query, _ in found], dtype=np.int64)
        parity = workload.is_parity[positions]
        factors = []
        for place in range(len(attributes)):
            held = np.array([holds[terms[place] >> 1] for _, terms in found])
            negated = np.array([terms[place] & 1 for _, terms in found], dtype=bool)
            truth = (held ^ negated[:, None]).astype(np.float64)
            factors.append(np.where(parity[:, None], 1.0 - 2.0 * truth, truth))
        groups.append(Group(positions, attributes, tuple(factors), parity))
    return groups
