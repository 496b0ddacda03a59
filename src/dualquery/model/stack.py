"""The attributes that a model is about, their codes stacked one attribute after the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dualquery.base.ragged import offsets
from dualquery.domain.schema import Schema
from dualquery.workloads.marginals import Groups

Ints = npt.NDArray[np.int64]
Singles = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Stack:
    """Some attributes of a schema, in its order; each group of their codes is a row of the tables.

    Attributes that nothing asks about have no rows: half a million of them would cost memory and
    the model could not learn a thing about them. Usually every code is a group of its own. Where
    rare codes are grouped, `within` says which share of its group every code has, in all
    components alike.
    """

    schema: Schema
    attributes: Ints
    groups: Groups
    within: npt.NDArray[np.float64] | None = None

    @classmethod
    def of(cls, schema: Schema, attributes: npt.ArrayLike) -> Stack:
        """The stack of these attributes with every code for itself; repeats count once."""
        named = np.unique(np.asarray(attributes, dtype=np.int64))
        return cls(schema, named, Groups.single(schema))

    @cached_property
    def start(self) -> Ints:
        """Where the rows of each attribute begin; the last entry is the number of rows."""
        sizes = self.groups.sizes[self.attributes]
        return offsets(sizes)

    @cached_property
    def codes(self) -> Ints:
        """The codes of the attributes, as places among the codes of *all* laid end to end."""
        sizes = self.schema.sizes[self.attributes].astype(np.int64)
        ends = np.cumsum(sizes)
        before = self.schema.code_start[self.attributes] - (ends - sizes)
        return np.repeat(before, sizes) + np.arange(ends[-1] if len(ends) else 0)

    @cached_property
    def row_of_code(self) -> Ints:
        """Per entry of `codes`, the row of its group."""
        sizes = self.schema.sizes[self.attributes].astype(np.int64)
        return np.repeat(self.start[:-1], sizes) + self.groups.of_code[self.codes]

    @property
    def rows(self) -> int:
        return int(self.start[-1])

    def is_ordered(self, position: int) -> bool:
        """Whether the groups of an attribute have an order."""
        one = self.schema.attributes[int(self.attributes[position])]
        return bool(one.is_numeric or one.ordered)

    def positions(self, attributes: npt.ArrayLike) -> Ints:
        """Where these attributes stand among those of the stack."""
        return np.searchsorted(self.attributes, np.asarray(attributes)).astype(np.int64)

    def expand(self, tables: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """Probabilities of codes from those of their groups."""
        spread = tables[self.row_of_code]
        return spread if self.within is None else spread * self.within[self.codes][:, None]
