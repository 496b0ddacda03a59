"""Attributes in order: what queries, records and rules refer to by position."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import SchemaError
from dualquery.base.ragged import offsets
from dualquery.base.similar import did_you_mean
from dualquery.domain.attributes import Attribute


@dataclass(frozen=True)
class Attributes:
    """Attributes in order, with different names. Queries and records refer to them by position."""

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        if len(self.index) != len(self.attributes):
            seen: set[str] = set()
            for name in self.names:
                if name in seen:
                    raise SchemaError(f"attribute {name!r} is declared twice")
                seen.add(name)

    def __len__(self) -> int:
        return len(self.attributes)

    def __getitem__(self, name: str) -> Attribute:
        return self.attributes[self.position(name)]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def index(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.names)}

    @cached_property
    def sizes(self) -> npt.NDArray[np.int32]:
        """The number of codes of each attribute."""
        return np.fromiter((a.size for a in self.attributes), np.int32, len(self.attributes))

    @cached_property
    def code_start(self) -> npt.NDArray[np.int64]:
        """Where each attribute's codes begin if all attributes' codes are laid end to end."""
        return offsets(self.sizes)

    @cached_property
    def defaults(self) -> npt.NDArray[np.int32]:
        """The record that has the declared default in every attribute."""
        return np.fromiter((a.default for a in self.attributes), np.int32, len(self.attributes))

    @cached_property
    def bit_counts(self) -> npt.NDArray[np.int32]:
        """Per attribute, the bits of its binary view: one for a 0/1 column, else one per code."""
        return np.fromiter(
            (1 if a.is_binary else a.size for a in self.attributes), np.int32, len(self.attributes)
        )

    def position(self, name: str) -> int:
        """Where an attribute stands in the schema."""
        try:
            return self.index[name]
        except KeyError:
            hint = did_you_mean(name, self.names[:5000])
            raise SchemaError(f"the schema has no attribute {name!r}{hint}") from None
