"""Attributes: columns with a declared, finite domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np

from dualquery.base.errors import SchemaError
from dualquery.base.similar import did_you_mean
from dualquery.base.stored import Document, Json
from dualquery.domain import meaning as meanings
from dualquery.domain import spelling as spellings
from dualquery.domain.answers import Answer, split
from dualquery.domain.declared import (
    Edge,
    Value,
    declared_decimals,
    declared_edge,
    declared_reached,
    declared_value,
    plain,
    type_named,
    type_of_cells,
    type_of_edges,
    words_for_missing,
)
from dualquery.domain.hierarchy import Hierarchy
from dualquery.domain.meaning import UNSAID, Meaning
from dualquery.domain.spelling import PLAIN, Spelling
from dualquery.domain.types import Key, Number, Type, key_of, loose_text, number_of, spelled

MOST_SUB_BINS = 1000
"""The most parts into which a schema may cut each bin of a column."""

_KEYS = (
    "values", "edges", "binary", "type", "missing", "default", "ordered", "sub_bins", "decimals",
    "reached", "group", *spellings.KEYS, *meanings.KEYS,
)  # fmt: skip
"""What a schema file may say of a column."""


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
        decimals: how many decimals the cells of a column of decimal numbers have; None leaves it to
            the rule in `domain.decimals`.
        reached: whether it is public that the smallest and the largest number lie at the ends.
        type: what a cell is. Left out, it follows from how values or edges are written. The edges
            of dates and times are numbers here: days since 1970-01-01, seconds since then, or
            seconds since midnight; their values are text.
        missing_words: cells that stand for a missing one, such as "NA" or "-9", as text.
        group: a declared hierarchy of the values, used where single values are too rare.
        answer: which answer this is, of a column that may have several in a cell.
        meaning: what the column and its values are called, for readers.
        spelling: how its cells are written, where that is not the package's own way.
    """

    name: str
    values: tuple[Value, ...] = ()
    edges: tuple[float, ...] = ()
    missing: bool = False
    default: int = 0
    ordered: bool = False
    sub_bins: int = 0
    decimals: int | None = None
    reached: bool = False
    type: Type = Type.TEXT
    missing_words: tuple[str, ...] = ()
    group: Hierarchy | None = None
    answer: Answer | None = None
    meaning: Meaning = UNSAID
    spelling: Spelling = PLAIN

    @classmethod
    def categorical(
        cls,
        name: str,
        values: Sequence[Value],
        *,
        missing: bool = False,
        default: Value | None = None,
        ordered: bool | None = None,
        type: str | None = None,  # noqa: A002 - the word of the schema file
        group: str | Mapping[str, Sequence[object]] | None = None,
    ) -> Self:
        """Declare a column that holds one of several values.

        Args:
            name: the column's name.
            values: the possible values: text, numbers or dates.
            missing: whether cells may be missing.
            default: the value that a record takes where nothing else decides; else the first.
            ordered: whether the values have the order in which they are listed; by default, more
                than two values that are all numbers or all dates do.
            type: what a cell is: "text", "whole", "decimal", "yes/no", "date", "timestamp" or
                "time"; by default as the values are written.
            group: which values belong together where single ones are too rare: "prefix:N" for
                the first N letters, or the values of every parent.
        """
        given = [plain(value) for value in values]
        if not given:
            raise SchemaError(f"attribute {name!r}: values is empty; expected at least one value")
        kind = type_of_cells(given) if type is None else type_named(name, type)
        domain = tuple(declared_value(name, kind, value) for value in given)
        seen: set[str] = set()
        for value in domain:
            if str(value) in seen:
                raise SchemaError(f"attribute {name!r}: value {value!r} is listed twice")
            seen.add(str(value))
        if kind is Type.YES_NO and seen == {"False", "True"}:
            return cls.binary(name, missing=missing, default=default, type=kind)
        if ordered is None:
            ordered = _is_ordered(kind, domain)
        if kind.is_temporal:  # as text they sort by time
            domain = tuple(sorted(domain, key=str))
        hierarchy = None if group is None else Hierarchy.of(name, group, domain)
        attribute = cls(
            name, values=domain, missing=missing, ordered=ordered, type=kind, group=hierarchy
        )
        return attribute._with_default(default)

    @classmethod
    def numeric(
        cls,
        name: str,
        edges: Sequence[Edge],
        *,
        missing: bool = False,
        default: Edge | None = None,
        sub_bins: int | None = None,
        decimals: int | None = None,
        reached: bool = False,
        type: str | None = None,  # noqa: A002 - the word of the schema file
    ) -> Self:
        """Declare a column that is cut into bins [e0, e1), …, [e_last−1, e_last].

        Args:
            name: the column's name.
            edges: the edges of the bins, in rising order: numbers, dates, timestamps or times.
            missing: whether cells may be missing.
            default: a cell in the bin that a record takes where nothing else decides, or
                "missing"; else the first bin.
            sub_bins: into how many parts each bin is cut where the column's own distribution is
                measured, 1 to 1,000; else a rule says it.
            decimals: how many decimals its cells have, 0 to 15, for a column of decimal numbers;
                else a rule says it.
            reached: whether it is public that the smallest and the largest number lie at the ends
                of the edges, or just inside; the mean of a long tail is then known better.
            type: what a cell is: "whole", "decimal", "date", "timestamp" or "time"; by default
                as the edges are written, whole numbers if all of them are.
        """
        given = [plain(edge) for edge in edges]
        if len(given) < 2:
            raise SchemaError(
                f"attribute {name!r}: edges has {len(given)} entries; expected two or more"
            )
        kind = type_of_edges(name, given) if type is None else type_named(name, type)
        cuts = tuple(declared_edge(name, kind, edge) for edge in given)
        for low, high in pairwise(cuts):
            if low == high:
                shown = f"[{spelled(kind, low)}, {spelled(kind, high)})"
                raise SchemaError(f"attribute {name!r}: bin {shown} has zero width")
            if low > high:
                raise SchemaError(
                    f"attribute {name!r}: edges are not in rising order "
                    f"({spelled(kind, low)} before {spelled(kind, high)})"
                )
        parts = 0
        if sub_bins is not None:
            asked = plain(sub_bins)
            if (
                isinstance(asked, bool)
                or not isinstance(asked, int)
                or not 1 <= asked <= MOST_SUB_BINS
            ):
                raise SchemaError(
                    f"attribute {name!r}: sub_bins = {sub_bins!r}; expected a whole number from 1 "
                    f"to {MOST_SUB_BINS:,}"
                )
            parts = asked
        places = None if decimals is None else declared_decimals(name, kind, cuts, decimals)
        made = cls(
            name,
            edges=cuts,
            missing=missing,
            ordered=True,
            sub_bins=parts,
            decimals=places,
            reached=declared_reached(name, kind, reached),
            type=kind,
        )
        return made._with_default(default)

    @classmethod
    def binary(
        cls,
        name: str,
        *,
        missing: bool = False,
        default: Value | None = None,
        type: str | None = None,  # noqa: A002 - the word of the schema file
    ) -> Self:
        """Declare a 0/1 column.

        Args:
            name: of the column.
            missing: whether cells may be missing.
            default: what the column takes in records that nothing says more about.
            type: "yes/no" for cells that come out as true and false; left out, 0 and 1.
        """
        kind = Type.WHOLE if type is None else type_named(name, type)
        if kind not in (Type.WHOLE, Type.YES_NO):
            raise SchemaError(
                f'attribute {name!r}: type = "{kind}" with binary = true; expected "yes/no", or '
                '"whole" for 0 and 1'
            )
        return cls(name, values=(0, 1), missing=missing, type=kind)._with_default(default)

    def _with_default(self, default: Edge | Value | None) -> Self:
        if default is None:
            return self
        code = self.code_of(default)
        if code is None:
            raise SchemaError(
                f"attribute {self.name!r}: default {default!r} is not in its domain "
                f"({self.describe()})"
            )
        return replace(self, default=code)

    @classmethod
    def answers(
        cls,
        name: str,
        values: Sequence[str],
        *,
        separator: str = ";",
        missing: bool | Sequence[str | float] = True,
    ) -> tuple[Self, ...]:
        """Declare a column with several answers in a cell: one 0/1 attribute per answer.

        Args:
            name: the column's name; the attribute of the answer en is NAME:en.
            values: the answers that can be given.
            separator: what stands between them.
            missing: cells that stand for a missing one, in which no answer is given.
        """
        if not isinstance(separator, str) or not separator.strip():
            raise SchemaError(
                f"attribute {name!r}: separator = {separator!r}; expected a sign such as ;"
            )
        texts = cls.categorical(name, values, type=Type.TEXT).values
        every = tuple(str(value) for value in texts)
        for value in every:
            parts = split(value, separator)
            if not parts or value != value.strip() or (len(parts) > 1 and set(parts) <= set(every)):
                raise SchemaError(
                    f"attribute {name!r}: value {value!r} cannot be one of several answers; "
                    f"expected text without spaces around it, and not other answers with "
                    f"{separator!r} between them"
                )
        words = words_for_missing(name, missing)
        answers = (Answer(name, value, every, separator, words) for value in every)
        return tuple(replace(cls.binary(one.name), answer=one) for one in answers)

    @property
    def column(self) -> str:
        """The column of the table that holds its cells."""
        return self.name if self.answer is None else self.answer.column

    @property
    def is_numeric(self) -> bool:
        return bool(self.edges)

    @property
    def is_binary(self) -> bool:
        return self.values == (0, 1) and not self.missing

    @property
    def cell_type(self) -> Type:
        """The type that cells are read as: a 0/1 column takes yes, true and 1 alike."""
        return Type.YES_NO if self.values == (0, 1) else self.type

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

    def code_of(self, cell: Edge | Value) -> int | None:
        """The code of one cell; None if the cell is outside the domain."""
        found = self._proper_code(cell)
        return self.missing_code if found is None and cell == "missing" else found

    def _proper_code(self, cell: Edge | Value) -> int | None:
        if not self.edges:
            return self.code_of_value(cell)
        number = number_of(self.type, cell)
        if number is None or not self.edges[0] <= number <= self.edges[-1]:
            return None
        code = int(np.searchsorted(np.asarray(self.edges, dtype=float), number, "right")) - 1
        return min(code, self.proper_size - 1)

    def code_of_value(self, cell: object) -> int | None:
        """The code of one of the values, however it is written; None if it is not one of them."""
        for code, value in enumerate(self.values):
            if str(value) == str(cell):
                return code
        key = key_of(self.cell_type, cell)
        return None if key is None else self.value_keys().get(key)

    def value_keys(self) -> dict[Key, int]:
        """The code of every value, by what equal cells have in common (`types.key_of`).

        A text is looked up as it is, then with yes/no cells as 1 and 0 (`types.loose_text`).
        """
        keys: dict[Key, int] = {}
        for code, value in enumerate(self.values):
            key = key_of(self.cell_type, value)
            if key is not None:
                keys.setdefault(key, code)
        if self.cell_type is Type.TEXT:
            for code, value in enumerate(self.values):
                keys.setdefault(loose_text(value), code)
        return keys

    def spell(self, edge: Number) -> str:
        """An edge as the query language and schema files write it."""
        return spelled(self.type, edge)

    def describe(self) -> str:
        """The domain in a few words, for messages."""
        if self.edges:
            low, high = (
                self.spell(edge) if self.type.is_temporal else f"{edge:g}"
                for edge in (self.edges[0], self.edges[-1])
            )
            text = f"{self.type.plural} from {low} to {high}"
            if self.decimals is not None:
                text += f", with {self.decimals} decimal{'' if self.decimals == 1 else 's'}"
        elif self.type is Type.YES_NO:
            text = self.type.plural
        else:
            shown = ", ".join(str(value) for value in self.values[:6])
            text = shown if len(self.values) <= 6 else f"{shown}, … {len(self.values)} values"
        return f"{text}, or missing" if self.missing else text

    def to_dict(self) -> Json:
        """The attribute as it stands in a schema file."""
        entry: Json
        if self.edges:
            entry = {"edges": [self._spelled_edge(edge) for edge in self.edges]}
            usual = type_of_cells(self.edges)
        elif self.values == (0, 1):
            entry = {"binary": True}
            usual = Type.WHOLE
        else:
            entry = {"values": list(self.values)}
            usual = type_of_cells(self.values)
            if self.ordered != _is_ordered(self.type, self.values):
                entry["ordered"] = self.ordered
        if self.type is not usual:
            entry["type"] = self.type.value
        if self.sub_bins:
            entry["sub_bins"] = self.sub_bins
        if self.decimals is not None:
            entry["decimals"] = self.decimals
        if self.reached:
            entry["reached"] = True
        if self.group is not None:
            entry["group"] = self.group.declared(self.values)
        if self.missing:
            entry["missing"] = list(self.missing_words) or True
        if self.default:
            entry["default"] = self._default_cell()
        return {**entry, **self.spelling.to_dict(), **self.meaning.to_dict()}

    def _default_cell(self) -> Value:
        if self.default == self.missing_code:
            return "missing"
        if self.edges:
            return self._spelled_edge(self.edges[self.default])
        return self.values[self.default]

    def _spelled_edge(self, edge: Number) -> str | Number:
        return self.spell(edge) if self.type.is_temporal else edge

    @classmethod
    def from_dict(cls, name: str, entry: Document) -> Self:
        """Read one `[attributes.NAME]` table."""
        unknown = set(entry) - set(_KEYS)
        if unknown:
            raise SchemaError(
                f"attribute {name!r}: unknown key {min(unknown)!r}; expected "
                f"{', '.join(_KEYS[:-1])} or {_KEYS[-1]}"
            )
        words = words_for_missing(name, entry.get("missing", False))
        made = cls._from_entry(name, entry, bool(words) or entry.get("missing", False))
        made = made.missing_as(*words) if words else made
        made = replace(made, spelling=Spelling.read(name, made.cell_type, entry))
        return made.meaning_of(Meaning.read(name, entry))

    def meaning_of(self, meaning: Meaning) -> Self:
        """The same attribute, with words for readers; labels must be those of its values."""
        known = None if self.answer is None else self.answer.values
        for value, _ in meaning.labels:
            named = self.code_of_value(value) is not None if known is None else value in known
            words = self.missing_words if self.answer is None else self.answer.missing_words
            if not named and value not in words:
                listed = self.values if known is None else known
                values = [*map(str, listed), *words]
                hint = did_you_mean(value, values)
                raise SchemaError(
                    f"attribute {self.name!r}: labels names {value!r}, which is none of its "
                    f"values{hint}"
                )
        return replace(self, meaning=meaning)

    @property
    def heading(self) -> str:
        """What the column is called: its label, or its name."""
        if self.answer is None:
            return self.meaning.label or self.name
        given = dict(self.meaning.labels).get(self.answer.value, self.answer.value)
        return f"{self.meaning.label or self.answer.column}: {given}"

    def words_for(self, code: int) -> str:
        """What a value is called: its label; empty if it has none."""
        if self.answer is not None or not code < len(self.values):
            return ""
        for value, text in self.meaning.labels:
            if self.code_of_value(value) == code:
                return text
        return ""

    def missing_as(self, *words: str | float) -> Self:
        """The same attribute, with cells that stand for a missing one, such as "NA" or -9."""
        read = words_for_missing(self.name, list(words))
        for word in read:
            if self.values and self.code_of_value(word) is not None:
                raise SchemaError(
                    f"attribute {self.name!r}: {word!r} is one of its values and cannot stand for "
                    "a missing cell; remove it from missing, or from values"
                )
        return replace(self, missing=True, missing_words=read)

    @classmethod
    def _from_entry(cls, name: str, entry: Document, missing: bool) -> Self:
        kinds = [kind for kind in ("values", "edges", "binary") if entry.get(kind)]
        if len(kinds) != 1:
            found = " and ".join(kinds) or "none of them"
            raise SchemaError(
                f"attribute {name!r}: expected one of values, edges or binary = true, found {found}"
            )
        default, cell_type = entry.get("default"), entry.get("type")
        kind = kinds[0]
        if kind != "edges" and "sub_bins" in entry:
            raise SchemaError(f"attribute {name!r}: sub_bins is for columns with edges only")
        if kind != "edges" and "decimals" in entry:
            raise SchemaError(
                f"attribute {name!r}: decimals is for columns of decimal numbers with edges only"
            )
        if kind != "edges" and "reached" in entry:
            raise SchemaError(
                f"attribute {name!r}: reached is for columns of numbers with edges only"
            )
        if kind != "values" and "group" in entry:
            raise SchemaError(f"attribute {name!r}: group is for columns with values only")
        if kind == "binary":
            return cls.binary(name, missing=missing, default=default, type=cell_type)
        if not isinstance(entry[kind], list | tuple):
            raise SchemaError(f"attribute {name!r}: {kind} = {entry[kind]!r}; expected a list")
        if kind == "edges":
            return cls.numeric(
                name,
                entry["edges"],
                missing=missing,
                default=default,
                sub_bins=entry.get("sub_bins"),
                decimals=entry.get("decimals"),
                reached=entry.get("reached", False),
                type=cell_type,
            )
        return cls.categorical(
            name,
            entry["values"],
            missing=missing,
            default=default,
            ordered=entry.get("ordered"),
            type=cell_type,
            group=entry.get("group"),
        )


def _is_ordered(kind: Type, values: Sequence[Value]) -> bool:
    """Whether values count as ordered if nothing is said."""
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    return len(values) > 2 and (kind.is_temporal or numbers)
