"""Attributes: columns with a declared, finite domain, alone and in order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import SchemaError
from dualquery.base.ragged import offsets

Value = str | int | float | bool

MOST_SUB_BINS = 1000
"""The most parts into which a schema may cut each bin of a column."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column with a declared, finite domain.

    A cell is stored as a *code*: the index of its value in `values`, or of its bin in `edges`.
    Bins are half open, except the last one, which is closed.

    Attributes:
        name: the column's name.
        values: the possible values; empty for a column that is cut into bins.
        edges: the edges of the bins; empty for a column of values.
        missing: whether one more code, after all others, stands for a missing cell.
        default: the code that a record takes where nothing else decides.
        ordered: whether values can be compared with < and >.
        sub_bins: into how many parts each bin is cut where the column's own distribution is
            measured; 0 leaves it to the rule in `domain.sub_bins`.
    """

    name: str
    values: tuple[Value, ...] = ()
    edges: tuple[float, ...] = ()
    missing: bool = False
    default: int = 0
    ordered: bool = False
    sub_bins: int = 0

    @classmethod
    def categorical(
        cls,
        name: str,
        values: Sequence[Value],
        *,
        missing: bool = False,
        default: Value | None = None,
        ordered: bool | None = None,
    ) -> Self:
        """Declare a column that holds one of several values.

        Args:
            name: the column's name.
            values: the possible values, text or numbers.
            missing: whether cells may be missing.
            default: the value that a record takes where nothing else decides; else the first.
            ordered: whether the values have the order in which they are listed; by default, more
                than two values that are all numbers do.
        """
        domain = tuple(_plain(value) for value in values)
        if not domain:
            raise SchemaError(f"attribute {name!r}: values is empty; expected at least one value")
        seen: set[str] = set()
        for value in domain:
            if not isinstance(value, str | int | float):
                raise SchemaError(f"attribute {name!r}: value {value!r} is not text or a number")
            if str(value) in seen:
                raise SchemaError(f"attribute {name!r}: value {value!r} is listed twice")
            seen.add(str(value))
        if ordered is None:
            ordered = len(domain) > 2 and all(
                isinstance(v, int | float) and not isinstance(v, bool) for v in domain
            )
        attribute = cls(name, values=domain, missing=missing, ordered=ordered)
        return attribute._with_default(default)

    @classmethod
    def numeric(
        cls,
        name: str,
        edges: Sequence[float],
        *,
        missing: bool = False,
        default: float | str | None = None,
        sub_bins: int | None = None,
    ) -> Self:
        """Declare a numeric column that is cut into bins [e0, e1), …, [e_last−1, e_last].

        Args:
            name: the column's name.
            edges: the edges of the bins, in rising order.
            missing: whether cells may be missing.
            default: a number in the bin that a record takes where nothing else decides, or
                "missing"; else the first bin.
            sub_bins: into how many parts each bin is cut where the column's own distribution is
                measured, 1 to 1,000; else a rule says it.
        """
        cuts = tuple(_plain(edge) for edge in edges)
        if len(cuts) < 2:
            raise SchemaError(
                f"attribute {name!r}: edges has {len(cuts)} entries; expected two or more"
            )
        for edge in cuts:
            if isinstance(edge, bool) or not isinstance(edge, int | float):
                raise SchemaError(f"attribute {name!r}: edge {edge!r} is not a number")
            if not math.isfinite(edge):
                raise SchemaError(f"attribute {name!r}: edge {edge!r} is not finite")
        for low, high in pairwise(cuts):
            if low == high:
                raise SchemaError(f"attribute {name!r}: bin [{low:g}, {high:g}) has zero width")
            if low > high:
                raise SchemaError(
                    f"attribute {name!r}: edges are not in rising order ({low:g} before {high:g})"
                )
        parts = 0 if sub_bins is None else _plain(sub_bins)
        if sub_bins is not None and (
            isinstance(parts, bool) or not isinstance(parts, int) or not 1 <= parts <= MOST_SUB_BINS
        ):
            raise SchemaError(
                f"attribute {name!r}: sub_bins = {sub_bins!r}; expected a whole number from 1 to "
                f"{MOST_SUB_BINS:,}"
            )
        made = cls(name, edges=cuts, missing=missing, ordered=True, sub_bins=parts)
        return made._with_default(default)

    @classmethod
    def binary(cls, name: str, *, missing: bool = False, default: Value | None = None) -> Self:
        """Declare a 0/1 column."""
        return cls(name, values=(0, 1), missing=missing)._with_default(default)

    def _with_default(self, default: Value | None) -> Self:
        if default is None:
            return self
        code = self.code_of(default)
        if code is None:
            raise SchemaError(
                f"attribute {self.name!r}: default {default!r} is not in its domain "
                f"({self.describe()})"
            )
        return replace(self, default=code)

    @property
    def is_numeric(self) -> bool:
        return bool(self.edges)

    @property
    def is_binary(self) -> bool:
        return self.values == (0, 1) and not self.missing

    @property
    def is_integral(self) -> bool:
        """Whether the edges were written as whole numbers, so that cells are too."""
        return bool(self.edges) and all(isinstance(edge, int) for edge in self.edges)

    @property
    def proper_size(self) -> int:
        """The number of codes without the missing bucket."""
        return len(self.edges) - 1 if self.edges else len(self.values)

    @property
    def size(self) -> int:
        """The number of codes."""
        return self.proper_size + self.missing

    @property
    def missing_code(self) -> int | None:
        return self.proper_size if self.missing else None

    def code_of(self, cell: Value) -> int | None:
        """The code of one cell; None if the cell is outside the domain."""
        if self.edges:
            if isinstance(cell, str):
                return self.missing_code if cell == "missing" else None
            if not self.edges[0] <= cell <= self.edges[-1]:
                return None
            code = int(np.searchsorted(np.asarray(self.edges, dtype=float), cell, "right")) - 1
            return min(code, self.proper_size - 1)
        for code, value in enumerate(self.values):
            if str(value) == str(cell):
                return code
        return self.missing_code if cell == "missing" else None

    def describe(self) -> str:
        """The domain in a few words, for messages."""
        if self.edges:
            text = f"numbers from {self.edges[0]:g} to {self.edges[-1]:g}"
        else:
            shown = ", ".join(str(value) for value in self.values[:6])
            text = shown if len(self.values) <= 6 else f"{shown}, … {len(self.values)} values"
        return f"{text}, or missing" if self.missing else text

    def to_dict(self) -> dict[str, Any]:
        """The attribute as it stands in a schema file."""
        entry: dict[str, Any]
        if self.edges:
            entry = {"edges": list(self.edges)}
        elif self.values == (0, 1) and not isinstance(self.values[0], bool):
            entry = {"binary": True}
        else:
            entry = {"values": list(self.values)}
            if self.ordered and not all(isinstance(v, int | float) for v in self.values):
                entry["ordered"] = True
        if self.sub_bins:
            entry["sub_bins"] = self.sub_bins
        if self.missing:
            entry["missing"] = True
        if self.default:
            entry["default"] = self._default_cell()
        return entry

    def _default_cell(self) -> Value:
        if self.default == self.missing_code:
            return "missing"
        return self.edges[self.default] if self.edges else self.values[self.default]

    @classmethod
    def from_dict(cls, name: str, entry: Mapping[str, Any]) -> Self:
        """Read one `[attributes.NAME]` table."""
        expected = {"values", "edges", "binary", "missing", "default", "ordered", "sub_bins"}
        unknown = set(entry) - expected
        if unknown:
            raise SchemaError(
                f"attribute {name!r}: unknown key {min(unknown)!r}; expected values, edges, "
                "binary, missing, default, ordered or sub_bins"
            )
        kinds = [kind for kind in ("values", "edges", "binary") if entry.get(kind)]
        if len(kinds) != 1:
            found = " and ".join(kinds) or "none of them"
            raise SchemaError(
                f"attribute {name!r}: expected one of values, edges or binary = true, found {found}"
            )
        missing = entry.get("missing", False)
        if not isinstance(missing, bool):
            raise SchemaError(f"attribute {name!r}: missing = {missing!r}; expected true or false")
        default = entry.get("default")
        kind = kinds[0]
        if kind != "edges" and "sub_bins" in entry:
            raise SchemaError(f"attribute {name!r}: sub_bins is for columns with edges only")
        if kind == "binary":
            return cls.binary(name, missing=missing, default=default)
        if not isinstance(entry[kind], list | tuple):
            raise SchemaError(f"attribute {name!r}: {kind} = {entry[kind]!r}; expected a list")
        if kind == "edges":
            return cls.numeric(
                name,
                entry["edges"],
                missing=missing,
                default=default,
                sub_bins=entry.get("sub_bins"),
            )
        return cls.categorical(
            name, entry["values"], missing=missing, default=default, ordered=entry.get("ordered")
        )


def _plain(value: Any) -> Any:
    """A NumPy scalar as a Python value, because files and queries are written with those."""
    return value.item() if isinstance(value, np.generic) else value


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
            from difflib import get_close_matches

            close = get_close_matches(name, self.names[:5000], n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise SchemaError(f"the schema has no attribute {name!r}{hint}") from None
