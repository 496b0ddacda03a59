"""Rare cells: of some sets of 0/1 attributes, the one cell that fewest records are in.

One of the two codes of an attribute is its *rare* code: the one that fewer records are thought to
have. The rare cell of a set of attributes holds the records in which all of them have their rare
codes. Every record is in some cell of every marginal, but only in few rare cells. What a record can
change is what is paid for, so rare cells are much cheaper than marginals.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import ParameterError
from dualquery.domain.schema import Schema
from dualquery.workloads.marginals import require_distinct
from dualquery.workloads.workload import Literals, Workload

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class RareCells:
    """The rare cells of several sets of as many attributes each.

    Attributes:
        attributes: a row per set.
        codes: the rare code of every attribute of the schema, 0 or 1.
        weights: what a record is charged for being in each cell, a whole number. A cell with a
            larger weight is measured more precisely.
    """

    attributes: Int32
    codes: Codes
    weights: Int64

    def __post_init__(self) -> None:
        if self.attributes.ndim != 2 or not self.attributes.size:
            raise ParameterError(
                f"rare cells of shape {self.attributes.shape}; expected a row of attributes each"
            )
        if self.weights.shape != (len(self.attributes),) or (self.weights < 1).any():
            raise ParameterError("expected a positive weight for each rare cell")
        if self.attributes.min() < 0 or self.attributes.max() >= len(self.codes):
            raise ParameterError("expected attributes that have a rare code")
        if not np.isin(self.codes, (0, 1)).all():
            raise ParameterError("expected 0 or 1 as the rare code of every attribute")
        require_distinct(self.attributes, "a rare cell")

    def __len__(self) -> int:
        return len(self.attributes)

    @property
    def arity(self) -> int:
        """The number of attributes of each cell."""
        return int(self.attributes.shape[1])

    @cached_property
    def used(self) -> Int64:
        """The attributes of all cells, in order."""
        return np.unique(self.attributes).astype(np.int64)

    @property
    def heaviest(self) -> int:
        """What a record that is in all cells would be charged."""
        return int(self.weights.sum())

    def literals(self) -> Literals:
        """One literal per attribute in use: that it has its rare code."""
        return Literals.single(self.used, self.codes[self.used])

    def queries(self, schema: Schema) -> Workload:
        """The cells as counting queries, in order."""
        literals = self.literals()
        terms = 2 * np.searchsorted(self.used, self.attributes)
        return Workload.conjunctions(schema, literals, terms)
