"""Free attributes: no drawn query, or no query at all, mentions them, so nothing decides them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dualquery.domain.schema import Schema

Floats = npt.NDArray[np.float64]


class Filling(Protocol):
    """What free attributes take."""

    def record(self, schema: Schema, generator: np.random.Generator) -> npt.NDArray[np.int32]:
        """A record in which every attribute is free."""
        ...

    def shares(self, schema: Schema) -> Floats:
        """The distribution of every attribute, all codes laid end to end."""
        ...


class Free(StrEnum):
    """What a free attribute takes.

    Code zero, a random code, its declared default, or what was measured of it. What was measured is
    known only to `MeasuredShares`; before that, and where nothing was, it is the declared default.
    """

    ZERO = "zero"
    RANDOM = "random"
    DEFAULT = "default"
    MEASURED = "measured"

    def record(self, schema: Schema, generator: np.random.Generator) -> npt.NDArray[np.int32]:
        """A record in which every attribute is free."""
        if self is Free.ZERO:
            return np.zeros(len(schema), dtype=np.int32)
        if self is Free.RANDOM:
            return generator.integers(0, schema.sizes, dtype=np.int32)
        return schema.defaults

    def shares(self, schema: Schema) -> Floats:
        """The distribution of every attribute, all codes laid end to end."""
        if self is Free.RANDOM:
            return np.repeat(1.0 / schema.sizes, schema.sizes)
        shares = np.zeros(int(schema.code_start[-1]))
        codes = np.zeros(len(schema), dtype=np.int32) if self is Free.ZERO else schema.defaults
        shares[schema.code_start[:-1] + codes] = 1.0
        return shares


@dataclass(frozen=True, eq=False)
class MeasuredShares:
    """Free attributes follow noisy one-way tables; public, because the tables are.

    Attributes:
        of_codes: the distribution of every attribute, all codes laid end to end.
    """

    of_codes: Floats

    @classmethod
    def of(
        cls, schema: Schema, attributes: npt.NDArray[np.int32], counts: npt.NDArray[np.int64]
    ) -> MeasuredShares:
        """The shares within each noisy table, so that the number of rows is not needed.

        Counts below zero become zero. A table of which nothing is left is uniform. Attributes
        without a table take their declared default.

        Args:
            schema: the attributes.
            attributes: those that were measured.
            counts: their noisy counts, one code after another.
        """
        found = Free.DEFAULT.shares(schema)
        first = 0
        for attribute in attributes.tolist():
            size = int(schema.sizes[attribute])
            kept = np.maximum(counts[first : first + size], 0).astype(np.float64)
            total = float(kept.sum())
            start = int(schema.code_start[attribute])
            found[start : start + size] = kept / total if total else 1.0 / size
            first += size
        return cls(found)

    def record(self, schema: Schema, generator: np.random.Generator) -> npt.NDArray[np.int32]:
        """A record in which every attribute is drawn from its shares."""
        # The shares of each attribute sum to one, so those of attribute a end at a + 1.
        borders = np.cumsum(self.of_codes)
        wanted = np.arange(len(schema)) + generator.random(len(schema))
        codes = np.searchsorted(borders, wanted, side="right") - schema.code_start[:-1]
        found: npt.NDArray[np.int32] = np.clip(codes, 0, schema.sizes - 1).astype(np.int32)
        return found

    def shares(self, schema: Schema) -> Floats:
        return self.of_codes
