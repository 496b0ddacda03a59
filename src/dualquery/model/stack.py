"""The attributes that a model is about, their codes stacked one attribute after the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dualquery.domain.schema import Schema

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Stack:
    """Some attributes of a schema, in its order; each code of theirs is a row of the tables.

    Attributes that nothing asks about have no rows: half a million of them would cost memory and
    the model could not learn a thing about them.
    """

    schema: Schema
    attributes: Ints

    @classmethod
    def of(cls, schema: Schema, attributes: npt.ArrayLike) -> Stack:
        """The stack of these attributes; repeats count once."""
        return cls(schema, np.unique(np.asarray(attributes, dtype=np.int64)))

    @cached_property
    def start(self) -> Ints:
        """Where the rows of each attribute begin; the last entry is the number of rows."""
        return np.concatenate([[0], np.cumsum(self.schema.sizes[self.attributes], dtype=np.int64)])

    @cached_property
    def codes(self) -> Ints:
        """Per row, its place among the codes of *all* attributes laid end to end."""
        before = self.schema.code_start[self.attributes] - self.start[:-1]
        return np.repeat(before, np.diff(self.start)) + np.arange(self.start[-1])

    @property
    def rows(self) -> int:
        return int(self.start[-1])

    def positions(self, attributes: npt.ArrayLike) -> Ints:
        """Where these attributes stand among those of the stack."""
        return np.searchsorted(self.attributes, np.asarray(attributes)).astype(np.int64)
