"""Declarations: what a curator knows of a table before a private schema is paid for.

A declaration is a schema file in which two more kinds of columns may stand: one with `bounds`,
whose edges are to be found, and one that is `open`, whose values are to be found. Everything else
is taken as it is, and costs nothing. Column names and types are declared, too: they are not read
off the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path

from dualquery.base.errors import SchemaError
from dualquery.base.stored import Document
from dualquery.domain import meaning as meanings
from dualquery.domain import spelling as spellings
from dualquery.domain.attributes import Attribute
from dualquery.domain.declared import Edge
from dualquery.domain.documents import read_document
from dualquery.domain.hierarchy import Hierarchy
from dualquery.domain.meaning import UNSAID, Meaning
from dualquery.domain.schema import Schema
from dualquery.domain.types import DAY, Number, Type

MOST_CELLS = 2**15
"""The most cells into which declared bounds are cut."""

_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, DAY)
_BOUNDED = ("bounds", "type", "missing", *spellings.KEYS, *meanings.KEYS)
_OPEN = ("open", "type", "missing", "group", *meanings.KEYS)

FILL_IN = "?"
"""Stands in a skeleton for a bound that the curator has to know."""


@dataclass(frozen=True)
class Bounded:
    """A column of numbers, dates or times whose edges are to be found.

    Attributes:
        ends: the column with its bounds as its only bin; it knows name, type and missing cells.
    """

    ends: Attribute

    @property
    def name(self) -> str:
        return self.ends.name

    @cached_property
    def step(self) -> Decimal:
        """The width of a cell: a round number, or a round time."""
        low, high = (_exact(edge) for edge in self.ends.edges)
        kind = self.ends.type
        if kind in (Type.TIMESTAMP, Type.TIME):
            for seconds in _SECONDS:
                if (high - low) / seconds <= MOST_CELLS:
                    return Decimal(seconds)
        step = Decimal(1)
        if not kind.is_counted:
            while (high - low) / step <= MOST_CELLS:
                step /= 10
        while True:
            for factor in (1, 2, 5):
                if (high - low) / (step * factor) <= MOST_CELLS:
                    return step * factor
            step *= 10

    @cached_property
    def cells(self) -> Attribute:
        """The same column, cut into all cells among whose borders edges are drawn.

        A cell that cannot be read counts as missing, so there is a bucket for those.
        """
        low, high = (_exact(edge) for edge in self.ends.edges)
        number = max(1, -int((low - high) // self.step))
        edges = [low + self.step * place for place in range(number)] + [high]
        counted = self.ends.type.is_counted
        plain = tuple(int(edge) if counted else float(edge) for edge in edges)
        return replace(self.ends, edges=plain, missing=True, sub_bins=1)

    def whole_values(self, most: int) -> Attribute | None:
        """Every value of a short range of whole numbers; None if there are more than `most`."""
        low, high = self.ends.edges
        if self.ends.type is not Type.WHOLE or high - low + 1 > most:
            return None
        values = range(int(low), int(high) + 1)
        made = Attribute.categorical(self.name, values, missing=self.ends.missing)
        made = replace(made, meaning=self.ends.meaning, spelling=self.ends.spelling)
        return made.missing_as(*self.ends.missing_words) if self.ends.missing_words else made

    def cut(self, steps: Sequence[int], per_cell: int) -> Attribute:
        """The column with edges where quantiles were drawn.

        A quantile inside a cell is the cell's lower border. If several fall into one cell, a
        value that many records share, or if it is the first cell, the upper border is an edge as
        well: then that value has a bin for itself.

        Args:
            steps: inner borders, in steps from the low bound, in rising order.
            per_cell: how many steps a cell has.
        """
        borders, last = self.cells.edges, 0
        chosen: list[int] = []
        for step in steps:
            cell = step // per_cell
            place = cell if cell > last else cell + 1
            if last < place < len(borders) - 1:
                chosen.append(place)
                last = place
        edges = (borders[0], *(borders[place] for place in chosen), borders[-1])
        return replace(self.ends, edges=edges)


@dataclass(frozen=True)
class Open:
    """A column whose values are to be found.

    Attributes:
        name: of the column.
        type: text, or whole numbers.
        missing_words: cells that stand for a missing one.
        group: the hierarchy of the values that are found, such as "prefix:1".
        meaning: what the column is called; labels of values wait until these are found.
    """

    name: str
    type: Type = Type.TEXT
    missing_words: tuple[str, ...] = ()
    group: str | None = None
    meaning: Meaning = UNSAID

    def with_values(self, values: Sequence[str]) -> Attribute:
        """The column with the values that were found; all others are missing cells."""
        typed = [int(v) for v in values] if self.type is Type.WHOLE else list(values)
        made = Attribute.categorical(
            self.name, sorted(typed), missing=True, type=self.type, group=self.group
        )
        made = replace(made, meaning=self.meaning)
        return made.missing_as(*self.missing_words) if self.missing_words else made


@dataclass(frozen=True)
class Declaration:
    """The columns of a table as far as they are publicly known, in order.

    Attributes:
        columns: attributes that are known, and those to be found.
        rules: the constraints of the schema.
    """

    columns: tuple[Attribute | Bounded | Open, ...]
    rules: tuple[Document, ...] = ()

    @property
    def header(self) -> tuple[str, ...]:
        """The columns of the table that it names, in order."""
        names = (c.column if isinstance(c, Attribute) else c.name for c in self.columns)
        return tuple(dict.fromkeys(names))

    @classmethod
    def load(cls, path: str | Path) -> Declaration:
        """Read a declaration file."""
        return cls.from_dict(read_document(Path(path)), f"declaration file {str(path)!r}")

    @classmethod
    def from_dict(cls, content: Document, where: str = "the declaration") -> Declaration:
        """Read the content of a declaration: that of a schema file, or its attributes alone."""
        if not isinstance(content, Mapping):
            raise SchemaError(f"{where}: expected columns by name, found {content!r}")
        if not set(content) & {"attributes", "binary_columns", "draft", "constraints"}:
            content = {"attributes": content}
        if content.get("draft"):
            raise SchemaError(
                f"{where} says draft = true: its types were guessed from the private table. Check "
                "them, fill in the bounds from public knowledge, then remove that line"
            )
        entries = content.get("attributes", {})
        if not isinstance(entries, Mapping):
            raise SchemaError(f"{where}: expected [attributes.NAME] tables")
        columns: list[Attribute | Bounded | Open] = []
        for name, entry in entries.items():
            if isinstance(entry, Mapping) and "bounds" in entry:
                columns.append(_bounded(name, entry))
            elif isinstance(entry, Mapping) and "open" in entry:
                columns.append(_open(name, entry))
            else:
                columns.extend(Schema.from_dict({"attributes": {name: entry}}).attributes)
        if "binary_columns" in content:
            rest = Schema.from_dict({"binary_columns": content["binary_columns"]})
            columns.extend(rest.require_resolved().attributes)
        if not columns:
            raise SchemaError(f"{where} declares no column")
        rules = content.get("constraints", [])
        if rules:  # before anything is paid for
            _check_rules(rules, columns)
        return cls(tuple(columns), tuple(rules))


def _check_rules(rules: object, columns: Sequence[Attribute | Bounded | Open]) -> None:
    """Refuse rules that name a column whose domain is yet to be found."""
    known = {a.name: a.to_dict() for a in columns if isinstance(a, Attribute)}
    try:
        Schema.from_dict({"attributes": known, "constraints": rules})
    except SchemaError as error:
        raise SchemaError(
            f"{error}. Before a schema is paid for, rules can only name columns whose domain is "
            "declared; add others to the schema that you get"
        ) from None


def _bounded(name: str, entry: Document) -> Bounded:
    _check_keys(name, entry, _BOUNDED)
    bounds = entry["bounds"]
    if not isinstance(bounds, list | tuple) or len(bounds) != 2 or FILL_IN in bounds:
        raise SchemaError(
            f"attribute {name!r}: bounds = {bounds!r}; expected two numbers or dates, such as "
            "[0, 120], that are known without the table"
        )
    edges: Sequence[Edge] = bounds
    document = {key: value for key, value in entry.items() if key != "bounds"}
    # Cells outside the bounds are clamped; a missing one needs a bucket, unless it is declared
    # that there is none.
    document = {"missing": True, **document, "edges": list(edges)}
    try:
        return Bounded(Attribute.from_dict(name, document))
    except SchemaError as error:  # it speaks of the edges of a schema file
        told = str(error).replace("edges", "bounds").replace("edge ", "bound ")
        raise SchemaError(told) from None


def _open(name: str, entry: Document) -> Open:
    _check_keys(name, entry, _OPEN)
    if entry["open"] is not True:
        raise SchemaError(f"attribute {name!r}: open = {entry['open']!r}; expected true")
    missing = entry.get("missing", True)
    if missing is False:
        raise SchemaError(
            f"attribute {name!r}: open with missing = false; values that are not found have to "
            "count as missing, so leave missing out"
        )
    kind = str(entry.get("type", Type.TEXT))
    if kind not in (Type.TEXT, Type.WHOLE):
        raise SchemaError(
            f'attribute {name!r}: open with type = "{kind}"; expected "text" or "whole"; for '
            "others declare bounds"
        )
    # An attribute reads and checks missing words, as in any schema file.
    tried = Attribute.from_dict(name, {"edges": [0, 1], "missing": missing})
    group = entry.get("group")
    if group is not None and not (isinstance(group, str) and group.startswith("prefix:")):
        raise SchemaError(
            f"attribute {name!r}: open with group = {group!r}; expected a prefix such as "
            '"prefix:1", because the values are not known yet'
        )
    if group is not None:
        Hierarchy.of(name, group, ["tried before anything is paid for"])
    if entry.get("labels"):
        raise SchemaError(
            f"attribute {name!r}: open with labels; its values are not known yet, so add their "
            "labels to the schema that you get"
        )
    meaning = Meaning.read(name, entry)
    return Open(name, Type(kind), tried.missing_words, group, meaning)


def _check_keys(name: str, entry: Document, known: tuple[str, ...]) -> None:
    unknown = set(entry) - set(known)
    if unknown:
        raise SchemaError(
            f"attribute {name!r}: unknown key {min(unknown)!r} beside {known[0]}; expected "
            f"{', '.join(known[1:-1])} or {known[-1]}"
        )


def _exact(edge: Number) -> Decimal:
    return Decimal(repr(edge))
