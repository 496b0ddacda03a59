"""What a release answers from: weighted components, inside which attributes are independent.

A fitted mixture has such components. A set of records is the special case in which every component
is certain of its codes. So one evaluator, in Python and in the page, serves both. Only this file
knows how a release keeps its answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dualquery.domain.schema import Schema

Floats = npt.NDArray[np.float64]

FIXED = 2**48 - 1
"""Probabilities travel as 48-bit fixed point: six bytes, wrong by at most 2e-15."""


class Components(Protocol):
    """The weight of each component, and its distribution of each attribute."""

    @property
    def kind(self) -> str: ...

    @property
    def weights(self) -> Floats: ...

    def table(self, attribute: int) -> Floats:
        """Probabilities of one attribute's codes, one row per component."""
        ...

    def packed_size(self, attribute: int) -> int:
        """Bytes that `pack` will need."""
        ...

    def pack(self, attribute: int) -> bytes:
        """One attribute as the page keeps it; `assets/model.js` reads it."""
        ...

    def packed(self, attributes: Sequence[int]) -> bytes:
        """Several attributes, one after the other."""
        ...


@dataclass(frozen=True, eq=False)
class RecordComponents:
    """The game's records: equal weights, one code per attribute."""

    schema: Schema
    records: npt.NDArray[np.int32]
    kind: str = "records"

    @cached_property
    def weights(self) -> Floats:
        return np.full(len(self.records), 1.0 / len(self.records))

    def table(self, attribute: int) -> Floats:
        return np.eye(int(self.schema.sizes[attribute]))[self.records[:, attribute]]

    def packed_size(self, attribute: int) -> int:
        count, size = len(self.records), int(self.schema.sizes[attribute])
        return -(-count // 8) if size <= 2 else count * np.dtype(_width(size)).itemsize

    def pack(self, attribute: int) -> bytes:
        codes, size = self.records[:, attribute], int(self.schema.sizes[attribute])
        if size <= 2:
            return np.packbits(codes.astype(bool), bitorder="little").tobytes()
        return codes.astype(_width(size)).tobytes()

    def packed(self, attributes: Sequence[int]) -> bytes:
        return b"".join(self.pack(a) for a in attributes)


def _width(size: int) -> str:
    """The narrowest numbers that hold the codes of a domain."""
    return "<u1" if size <= 1 << 8 else "<u2" if size <= 1 << 16 else "<u4"


@dataclass(frozen=True, eq=False)
class MixtureComponents:
    """A fitted mixture of product distributions."""

    schema: Schema
    weights: Floats
    tables: Floats
    """One row per code, those of the first attribute first; one column per component."""
    kind: str = "mixture"

    @property
    def start(self) -> npt.NDArray[np.int64]:
        return self.schema.code_start

    def table(self, attribute: int) -> Floats:
        rows = self.tables[self.start[attribute] : self.start[attribute + 1]]
        return np.asarray(rows, dtype=np.float64).T

    def packed_size(self, attribute: int) -> int:
        return 6 * len(self.weights) * (int(self.schema.sizes[attribute]) - 1)

    def pack(self, attribute: int) -> bytes:
        # The probability of the first code is 1 minus all others, so it is left out, and a 0/1
        # column costs one number per component.
        return _fixed(self.table(attribute)[:, 1:])

    def packed(self, attributes: Sequence[int]) -> bytes:
        # Half a million 0/1 columns are packed at once.
        if np.all(self.schema.sizes[attributes] == 2):
            return _fixed(self.tables[self.start[attributes] + 1])
        return b"".join(self.pack(a) for a in attributes)


def _fixed(shares: Floats) -> bytes:
    """Probabilities as whole numbers of six bytes each."""
    words = np.ascontiguousarray(np.rint(np.clip(shares, 0.0, 1.0) * FIXED).astype("<u8"))
    return words.view(np.uint8).reshape(-1, 8)[:, :6].tobytes()


def shares(components: Components, attribute: int) -> Floats:
    """The distribution of one attribute."""
    found: Floats = components.weights @ components.table(attribute)
    return found


def joint(components: Components, first: int, second: int) -> Floats:
    """The distribution of two different attributes, one row per code of the first."""
    weighted = components.weights[:, None] * components.table(first)
    found: Floats = weighted.T @ components.table(second)
    return found
