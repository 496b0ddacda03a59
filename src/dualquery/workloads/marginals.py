"""Marginals: whole tables of cells, of which every record lies in exactly one.

A marginal is a set of attributes, each with a public grouping of its codes; usually every code is a
group of its own. Because the cells are disjoint, replacing one row changes at most two counts,
whatever the number of cells. So measuring a whole marginal costs no more than one or two queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import ParameterError
from dualquery.base.ragged import offsets
from dualquery.domain.schema import Schema
from dualquery.workloads.workload import Literals, Workload

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Groups:
    """A public partition of the codes of every attribute.

    The codes of all attributes are laid end to end, as `Schema.code_start` says. Code c of
    attribute a belongs to group `of_code[code_start[a] + c]` of that attribute; the groups of an
    attribute are numbered from 0, and there are `sizes[a]` of them, none of them empty.
    """

    code_start: Int64
    of_code: Int32
    sizes: Int32

    @classmethod
    def single(cls, schema: Schema) -> Groups:
        """Every code is a group of its own."""
        start = schema.code_start
        of_code = np.arange(start[-1]) - np.repeat(start[:-1], schema.sizes)
        return cls(start, of_code.astype(np.int32), schema.sizes)

    def merged(self, attribute: int, of_code: Int32) -> Groups:
        """The same groups, except that one attribute's codes are grouped as `of_code` says."""
        part = slice(self.code_start[attribute], self.code_start[attribute + 1])
        found = np.unique(of_code)
        if of_code.shape != self.of_code[part].shape or not np.array_equal(
            found, np.arange(len(found))
        ):
            raise ParameterError(
                f"grouping of attribute {attribute}; expected a group for each of its "
                f"{part.stop - part.start} codes, numbered from 0 without gaps"
            )
        every, sizes = self.of_code.copy(), self.sizes.copy()
        every[part], sizes[attribute] = of_code, len(found)
        return Groups(self.code_start, every, sizes)

    def of_attribute(self, attribute: int) -> Int32:
        """The group of each code of one attribute."""
        return self.of_code[self.code_start[attribute] : self.code_start[attribute + 1]]

    def is_single(self, attribute: int) -> bool:
        """Whether every code of the attribute is a group of its own, under its own number."""
        of_code = self.of_attribute(attribute)
        return bool(np.array_equal(of_code, np.arange(len(of_code))))

    @cached_property
    def start(self) -> Int64:
        """Where each attribute's groups begin if all attributes' groups are laid end to end."""
        return offsets(self.sizes)


def require_distinct(sets: Int32, noun: str) -> None:
    """Refuse a set that names an attribute twice, and a set that is listed twice.

    Args:
        sets: of attributes, one per row.
        noun: what they are, for the refusal.
    """
    ordered = np.sort(sets, axis=1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        raise ParameterError(f"{noun} names an attribute twice; expected different attributes")
    # Sorted here, because `np.unique` imports masked arrays, which take longer than an answer.
    listed = ordered[np.lexsort(ordered.T)]
    if (listed[1:] == listed[:-1]).all(axis=1).any():
        raise ParameterError(f"{noun} is listed twice; expected each once")


@dataclass(frozen=True, eq=False)
class Marginals:
    """Several marginals of the same number of attributes.

    Marginal t is about `attributes[t]`, with the codes grouped as `groups` says. Its cells are
    numbered in row-major order: the group of the last attribute varies fastest. The cells of all
    marginals are laid end to end; those of marginal t are `start[t]:start[t + 1]`.
    """

    groups: Groups
    attributes: Int32

    def __post_init__(self) -> None:
        if self.attributes.ndim != 2 or not self.attributes.shape[1]:
            raise ParameterError(
                f"marginals of shape {self.attributes.shape}; expected a row of attributes each"
            )
        require_distinct(self.attributes, "a marginal")

    def __len__(self) -> int:
        return len(self.attributes)

    @property
    def arity(self) -> int:
        """The number of attributes of each marginal."""
        return int(self.attributes.shape[1])

    @cached_property
    def shapes(self) -> Int64:
        """Per marginal, the number of groups of each of its attributes."""
        return self.groups.sizes[self.attributes].astype(np.int64)

    @cached_property
    def start(self) -> Int64:
        return offsets(self.shapes.prod(axis=1))

    @property
    def cells(self) -> int:
        """The number of cells of all marginals together."""
        return int(self.start[-1])

    def cell_of(self, marginal: int, records: Int32) -> Int64:
        """The cell of each record, numbered within one marginal."""
        found = np.zeros(len(records), dtype=np.int64)
        for attribute, size in zip(self.attributes[marginal], self.shapes[marginal], strict=True):
            found = found * size + self.groups.of_attribute(attribute)[records[:, attribute]]
        return found

    def queries(self, schema: Schema) -> Workload:
        """All cells as conjunctions, in order."""
        used = np.unique(self.attributes)
        sizes = self.groups.sizes[used].astype(np.int64)
        first = np.zeros(len(self.groups.sizes), dtype=np.int64)
        first[used] = np.cumsum(sizes) - sizes
        terms = np.empty((self.cells, self.arity), dtype=np.int64)
        marginal = np.repeat(np.arange(len(self)), np.diff(self.start))
        rest = np.arange(self.cells) - self.start[marginal]
        for place in range(self.arity - 1, -1, -1):
            size = self.shapes[marginal, place]
            terms[:, place] = first[self.attributes[marginal, place]] + rest % size
            rest //= size
        return Workload.conjunctions(schema, self._literals(used), 2 * terms)

    def _literals(self, used: Int32) -> Literals:
        """One literal per group of the attributes in use, attribute by attribute."""
        groups = self.groups
        codes = np.concatenate(
            [np.arange(groups.code_start[a], groups.code_start[a + 1]) for a in used]
        )
        attribute = np.repeat(used, np.diff(groups.code_start)[used])
        order = np.lexsort((codes, groups.of_code[codes], attribute))
        codes, attribute = codes[order], attribute[order]
        group = groups.of_code[codes]
        fresh = np.ones(len(codes), dtype=bool)
        fresh[1:] = (attribute[1:] != attribute[:-1]) | (group[1:] != group[:-1])
        return Literals(
            attribute[fresh].astype(np.int32),
            np.append(np.flatnonzero(fresh), len(codes)).astype(np.int64),
            (codes - groups.code_start[attribute]).astype(np.int32),
        )
