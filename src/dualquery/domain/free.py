"""Free attributes: no drawn query, or no query at all, mentions them, so nothing decides them."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import numpy.typing as npt

from dualquery.domain.schema import Schema


class Free(StrEnum):
    """What a free attribute takes: code zero, a random code, or its declared default."""

    ZERO = "zero"
    RANDOM = "random"
    DEFAULT = "default"

    def record(self, schema: Schema, generator: np.random.Generator) -> npt.NDArray[np.int32]:
        """A record in which every attribute is free."""
        if self is Free.ZERO:
            return np.zeros(len(schema), dtype=np.int32)
        if self is Free.RANDOM:
            return generator.integers(0, schema.sizes, dtype=np.int32)
        return schema.defaults

    def shares(self, schema: Schema) -> npt.NDArray[np.float64]:
        """The distribution of every attribute, all codes laid end to end."""
        if self is Free.RANDOM:
            return np.repeat(1.0 / schema.sizes, schema.sizes)
        shares = np.zeros(int(schema.code_start[-1]))
        codes = schema.defaults if self is Free.DEFAULT else np.zeros(len(schema), dtype=np.int32)
        shares[schema.code_start[:-1] + codes] = 1.0
        return shares
