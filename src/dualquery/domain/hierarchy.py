"""A declared hierarchy: which codes of a column belong together where single ones are too rare.

A column of thousands of codes usually has a public order above it: the chapter of a diagnosis, the
region of a municipality. A schema declares it as `group = "prefix:1"`, the first letters of a value
being its parent, or as a table of parents, `group = { Heart = ["I10", "I11"], … }`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import SchemaError


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The parent of every value of a column.

    Attributes:
        parents: the name of each value's parent, in the order of the values.
        rule: how it was declared: `prefix:N`, or empty for a table of parents.
    """

    parents: tuple[str, ...]
    rule: str = ""

    @classmethod
    def of(
        cls, name: str, declared: str | Mapping[str, Sequence[object]], values: Sequence[object]
    ) -> Hierarchy:
        """Read what a schema declares about a column.

        Args:
            name: the column's name, for messages.
            declared: `prefix:N`, or the values of every parent.
            values: the column's values.
        """
        if not values:
            raise SchemaError(f"attribute {name!r}: group is for columns with values only")
        if isinstance(declared, str):
            kind, _, length = declared.partition(":")
            if kind != "prefix" or not length.isdecimal() or int(length) < 1:
                raise SchemaError(
                    f'attribute {name!r}: group = {declared!r}; expected "prefix:N", such as '
                    '"prefix:1", or a table of parents and their values'
                )
            return cls(tuple(str(value)[: int(length)] for value in values), f"prefix:{length}")
        if not isinstance(declared, Mapping):
            raise SchemaError(
                f'attribute {name!r}: group = {declared!r}; expected "prefix:N" or a table of '
                "parents and their values"
            )
        parent_of: dict[str, str] = {}
        for parent, members in declared.items():
            if not isinstance(members, list | tuple) or not members:
                raise SchemaError(
                    f"attribute {name!r}: group {parent!r} = {members!r}; expected a list of values"
                )
            for member in members:
                if str(member) in parent_of:
                    raise SchemaError(f"attribute {name!r}: {member!r} is in two groups")
                parent_of[str(member)] = str(parent)
        unknown = set(parent_of) - {str(value) for value in values}
        if unknown:
            raise SchemaError(
                f"attribute {name!r}: group holds {min(unknown)!r}, which is not one of its values"
            )
        for value in values:
            if str(value) not in parent_of:
                raise SchemaError(
                    f"attribute {name!r}: value {value!r} is in no group; expected each in one"
                )
        return cls(tuple(parent_of[str(value)] for value in values))

    def declared(self, values: Sequence[object]) -> str | dict[str, list[object]]:
        """The inverse of `of`."""
        if self.rule:
            return self.rule
        table: dict[str, list[object]] = {}
        for parent, value in zip(self.parents, values, strict=True):
            table.setdefault(parent, []).append(value)
        return table

    @property
    def names(self) -> tuple[str, ...]:
        """The parents, in the order in which their first value stands."""
        return tuple(dict.fromkeys(self.parents))

    def codes_of(self, parent: str) -> tuple[int, ...]:
        """The codes of a parent's values."""
        return tuple(code for code, one in enumerate(self.parents) if one == parent)

    def numbers(self, size: int) -> npt.NDArray[np.int64]:
        """Per code the number of its parent; a code beyond the values is a parent of its own."""
        place = {parent: number for number, parent in enumerate(self.names)}
        found = [place[parent] for parent in self.parents]
        return np.array(found + list(range(len(place), len(place) + size - len(found))))
