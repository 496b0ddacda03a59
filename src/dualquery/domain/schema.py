"""Schemas: what the curator declares, never what the table shows.

A domain that is read off private rows would leak them. So a schema is written by hand, or drafted
and then reviewed, and every cell is checked against it.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import eq
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import ParameterError, SchemaError
from dualquery.base.html import html_table
from dualquery.base.similar import did_you_mean
from dualquery.base.stored import Document, Json
from dualquery.domain import meaning as meanings
from dualquery.domain.about import NOTHING, About
from dualquery.domain.attributes import Attribute
from dualquery.domain.constraints import Constraints
from dualquery.domain.dependences import Pairs, fixing_clauses, in_sequence, read_dependences
from dualquery.domain.documents import MOST_DECLARED, read_document, write_document
from dualquery.domain.meaning import UNSAID, Meaning
from dualquery.domain.ordered import Attributes
from dualquery.domain.orders import Order, extended, joined, read_order
from dualquery.domain.orders import Pairs as Ordered
from dualquery.domain.printing import format_query
from dualquery.domain.query import Query
from dualquery.domain.spelling import PLAIN
from dualquery.domain.sub_bins import SubBins
from dualquery.domain.types import Type

FEWEST_LISTED = 50
"""If at least this many plain 0/1 columns end a schema, only their names are listed."""


_TABLES = {"draft", "persons", "about", "attributes", "binary_columns", "constraints"}

MOST_SHOWN = 60
"""The most attributes that a notebook shows."""


@dataclass(frozen=True)
class Schema(Attributes):
    """The ordered attributes of a table, and the public rules that its rows obey.

    Attributes:
        attributes: the attributes, in order.
        patterns: patterns such as `movie_*` for 0/1 columns whose names are known only from a
            table's header; `resolve` turns them into attributes.
        rules: the public constraints as they stand in the schema file; `constraints` is the form
            that is worked with.
        draft: whether the schema was made by reading the table and nobody has reviewed it yet.
            No release takes a draft.
        about: who publishes what is made of the table. It says nothing about the columns, so
            schemas that differ in it alone are the same.
        persons: the column that may tell persons apart, if they may have several rows: a reminder
            for the curator, which no release holds.
    """

    patterns: tuple[str, ...] = ()
    rules: tuple[Document, ...] = ()
    draft: bool = False
    about: About = field(default=NOTHING, compare=False)
    persons: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not self.attributes and not self.patterns:
            raise SchemaError("the schema declares no attribute")
        super().__post_init__()

    @cached_property
    def constraints(self) -> Constraints | None:
        """The combinations of values that no record may have; None if nothing is forbidden."""
        return Constraints.parse(self.rules, self) if self.rules else None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table: several attributes may be answers of one column."""
        return tuple(dict.fromkeys(attribute.column for attribute in self.attributes))

    @cached_property
    def orders(self) -> tuple[Order, ...]:
        """The columns that `order` rules put in order; those that hang together are one order."""
        pairs: Ordered = frozenset()
        rules = []
        for number, rule in enumerate(self.rules, start=1):
            if "order" in rule:
                rules.append(read_order(rule["order"], number, self))
                pairs = extended(pairs, rules[-1], number, self)
        return joined(pairs, rules)

    @cached_property
    def dependences(self) -> Pairs:
        """The pairs of columns of `determines` rules, in an order in which they can be settled."""
        pairs = [
            pair
            for number, rule in enumerate(self.rules, start=1)
            if "determines" in rule
            for pair in read_dependences(rule["determines"], number, self)
        ]
        return in_sequence(pairs, self)

    def settled(self, maps: Sequence[npt.NDArray[np.integer]]) -> Schema:
        """The same schema, once it is known what fixes what.

        Args:
            maps: per pair of `dependences`, the code of the second column for each code of the
                first.
        """
        clauses = fixing_clauses(self.dependences, maps, self)
        fixed = ({"forbid": format_query(Query("conjunction", c), self)} for c in clauses)
        others = (rule for rule in self.rules if "determines" not in rule)
        return replace(self, rules=(*others, *fixed))

    @cached_property
    def fine(self) -> Schema:
        """The same attributes with their bins cut into sub-bins; the schema itself if none is.

        A column's own distribution is measured in these codes. Everything else uses the bins.
        """
        return self._finer[0]

    @cached_property
    def long(self) -> tuple[int, ...]:
        """The positions of columns with a long tail: they have logarithmic sub-bins."""
        return tuple(
            position
            for position, attribute in enumerate(self.attributes)
            if attribute.is_numeric and SubBins.of(attribute).logarithmic.any()
        )

    @cached_property
    def code_of_fine(self) -> npt.NDArray[np.int64]:
        """Per code of `fine`, all laid end to end, the code of this schema that it is a part of."""
        return self._finer[1]

    @cached_property
    def _finer(self) -> tuple[Schema, npt.NDArray[np.int64]]:
        every = np.arange(int(self.code_start[-1]))
        cut = [
            (position, SubBins.of(attribute))
            for position, attribute in enumerate(self.attributes)
            if attribute.is_numeric
        ]
        cut = [(at, found) for at, found in cut if len(found) > self.attributes[at].proper_size]
        if not cut:
            return self, every
        attributes, codes, done = list(self.attributes), [], 0
        for at, found in cut:
            attribute, first = self.attributes[at], int(self.code_start[at])
            is_missing = attribute.default == attribute.missing_code
            default = len(found) if is_missing else int(found.start[attribute.default])
            attributes[at] = replace(
                attribute,
                edges=tuple(found.edges.tolist()),
                default=default,
                sub_bins=1,
                decimals=None,  # a sub-bin may be too narrow to hold a multiple
                reached=False,
                group=None,
            )
            codes += [every[done:first], first + found.bin_of]
            done = first + attribute.proper_size
        return Schema(tuple(attributes)), np.concatenate([*codes, every[done:]])

    def resolve(self, columns: Iterable[str]) -> Schema:
        """Check that a table's header has every declared column, and expand the patterns.

        Declared columns keep the order of the schema, whatever the order of the table. Columns that
        match a pattern follow, in the order of the header; nothing else is read off the header.
        Columns that the schema does not declare are left out.
        """
        matchers = [re.compile(fnmatch.translate(pattern)) for pattern in self.patterns]
        header = list(columns)
        present = set(header)
        if len(present) != len(header):
            repeated = next(name for name in header if header.count(name) > 1)
            raise SchemaError(f"the table has two columns named {repeated!r}")
        for name in self.absent(header):
            raise SchemaError(self.absence(name, header))
        matched = tuple(
            Attribute.binary(name)
            for name in header
            if name not in self.index and any(matcher.match(name) for matcher in matchers)
        )
        if matchers and not matched:
            raise SchemaError(
                f"no column of the table matches binary_columns pattern {self.patterns[0]!r}"
            )
        return replace(self, attributes=(*self.attributes, *matched), patterns=())

    def absent(self, header: Iterable[str]) -> list[str]:
        """The declared columns that a table with this header does not have."""
        present = set(header)
        return [name for name in self.columns if name not in present]

    def absence(self, name: str, header: Iterable[str]) -> str:
        """What is said about a declared column that a table does not have."""
        declared = set(self.columns)
        hint = did_you_mean(name, [one for one in header if one not in declared])
        return f"the table has no column {name!r}, which the schema declares{hint}"

    def reviewed(self) -> Schema:
        """The same schema, no longer a draft: the curator has checked every domain in it."""
        return replace(self, draft=False)

    def require_reviewed(self, file: str | Path | None = None) -> Schema:
        """The schema itself, unless it is a draft that nobody has reviewed."""
        if not self.draft:
            return self
        where = "the schema" if file is None else f"schema file {str(file)!r}"
        how = "call reviewed()" if file is None else "remove that line"
        raise SchemaError(
            f"{where} says draft = true: its domains were seen in the private table. Replace them "
            f"by what is publicly known, then {how}"
        )

    def require_resolved(self) -> Schema:
        """The schema itself, if every column is known by name."""
        if self.patterns:
            raise SchemaError(
                f"binary_columns pattern {self.patterns[0]!r} needs a table's header; "
                "give `names` or `prefix` and `count` instead"
            )
        return self

    def _repr_html_(self) -> str:
        """The schema as notebooks show it; of a wide table the first attributes."""
        shown = self.attributes[:MOST_SHOWN]
        more = len(self.attributes) - len(shown)
        rest = f"; the first {len(shown):,} are shown" if more else ""
        draft = "a draft that nobody has reviewed: " if self.draft else ""
        return html_table(
            f"Schema, {draft}{len(self.attributes):,} attributes{rest}",
            ["attribute", "type", "domain"],
            [[one.name, one.type, one.describe()] for one in shown],
        )

    # Plain data and files

    @classmethod
    def from_dict(cls, content: Document) -> Schema:
        """Read the content of a schema file."""
        unknown = set(content) - _TABLES
        if unknown:
            raise SchemaError(
                f"unknown table [{min(unknown)}] in the schema; expected attributes, "
                "binary_columns, constraints or about"
            )
        persons = content.get("persons", "")
        if not isinstance(persons, str):
            raise SchemaError(f"persons = {persons!r}; expected the name of a column")
        try:
            about = About.of(content.get("about"))
        except ParameterError as error:
            raise SchemaError(str(error)) from None
        draft = content.get("draft", False)
        if not isinstance(draft, bool):
            raise SchemaError(f"draft = {draft!r}; expected true or false")
        attributes: list[Attribute] = []
        declared = content.get("attributes", {})
        if not isinstance(declared, Mapping):
            raise SchemaError("attributes: expected a table [attributes.NAME] per column")
        for name, entry in declared.items():
            if not isinstance(entry, Mapping):
                raise SchemaError(f"attribute {name!r}: expected a table, found {entry!r}")
            if "separator" in entry:
                attributes.extend(_answers(name, entry))
            else:
                attributes.append(Attribute.from_dict(name, entry))
        names, patterns = _binary_columns(content.get("binary_columns", {}))
        attributes.extend(Attribute.binary(name) for name in names)
        rules = content.get("constraints", [])
        if not isinstance(rules, list) or not all(isinstance(rule, Mapping) for rule in rules):
            raise SchemaError("constraints: expected [[constraints]] tables")
        listed = tuple(dict(rule) for rule in rules)
        schema = cls(tuple(attributes), patterns, listed, draft, about, persons)
        if not patterns:  # a rule about a column that is not known yet is checked with the table
            schema.constraints  # noqa: B018 - reading it refuses rules that contradict one another
            schema.orders, schema.dependences  # noqa: B018 - likewise
        return schema

    def to_dict(self) -> Json:
        """The attributes and rules as plain data, as `from_dict` reads them.

        Plain 0/1 columns at the end of a wide table are listed by name alone.
        """
        named, binaries = self._listed()
        content: Json = {"draft": True} if self.draft else {}
        if named:
            content["attributes"] = {a.column: _entry(a) for a in named}
        columns: Json = {}
        if binaries:
            names = [attribute.name for attribute in binaries]
            run = _run_at_the_end(names)
            if run >= FEWEST_LISTED:
                columns |= {"prefix": names[-run].removesuffix("0"), "count": run}
            if len(names) > run or run < FEWEST_LISTED:
                columns["names"] = names if run < FEWEST_LISTED else names[:-run]
        if self.patterns:
            columns["pattern"] = list(self.patterns)
        if columns:
            content["binary_columns"] = columns
        if self.rules:
            content["constraints"] = [dict(rule) for rule in self.rules]
        return content

    def _listed(self) -> tuple[tuple[Attribute, ...], tuple[Attribute, ...]]:
        """The attributes that are written out, and the plain 0/1 columns after them."""
        end = len(self.attributes)
        while end and _is_plain(self.attributes[end - 1]):
            end -= 1
        if len(self.attributes) - end < FEWEST_LISTED:  # few enough to be read one by one
            end = len(self.attributes)
        return self.attributes[:end], self.attributes[end:]

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema file: TOML, or an mbi domain JSON (`{"sex": 2, "age": 85}`)."""
        return cls.from_dict(read_document(Path(path)))

    def save(self, path: str | Path, header: Iterable[str] = ()) -> None:
        """Write the schema as TOML, with `header` as comment lines at the top."""
        beside: Json = {"about": self.about.to_dict()} if self.about.to_dict() else {}
        if self.persons:
            beside["persons"] = self.persons
        write_document({**self.to_dict(), **beside}, Path(path), header)


def _is_plain(attribute: Attribute) -> bool:
    """Whether its name says everything about a 0/1 column."""
    return (
        attribute.is_binary
        and attribute.type is Type.WHOLE
        and not attribute.default
        and attribute.answer is None
        and attribute.meaning == UNSAID
        and attribute.spelling == PLAIN
    )


def _entry(attribute: Attribute) -> Json:
    """The attribute as it stands in a schema file; one with several answers, whole."""
    answer = attribute.answer
    if answer is None:
        return attribute.to_dict()
    entry: Json = {"values": list(answer.values), "separator": answer.separator}
    if answer.missing_words:
        entry["missing"] = list(answer.missing_words)
    return {**entry, **attribute.meaning.to_dict()}


def _answers(name: str, entry: Document) -> tuple[Attribute, ...]:
    unknown = set(entry) - {"values", "separator", "missing", *meanings.KEYS}
    if unknown or not isinstance(entry.get("values"), list | tuple):
        found = f"unknown key {min(unknown)!r}" if unknown else "no list of values"
        raise SchemaError(
            f"attribute {name!r}: {found}; a column with a separator has values, separator, "
            f"missing, {', '.join(meanings.KEYS[:-1])} and labels (a cell without any answer is "
            "missing)"
        )
    parts = Attribute.answers(
        name, entry["values"], separator=entry["separator"], missing=entry.get("missing", True)
    )
    meaning = Meaning.read(name, entry)
    return tuple(part.meaning_of(meaning) for part in parts)


def _run_at_the_end(names: Sequence[str]) -> int:
    """How many of the last names are a prefix followed by 0, 1, 2, …"""
    found = re.fullmatch(r"(.*?)(0|[1-9][0-9]*)", names[-1], re.DOTALL)
    if found is None:
        return 0
    prefix, run = found[1], int(found[2]) + 1
    if run > len(names):
        return 0
    expected = (f"{prefix}{number}" for number in range(run))
    return run if all(map(eq, names[-run:], expected)) else 0


def _binary_columns(entry: object) -> tuple[list[str], tuple[str, ...]]:
    if not isinstance(entry, Mapping):
        raise SchemaError("binary_columns: expected a table")
    unknown = set(entry) - {"pattern", "names", "prefix", "count"}
    if unknown:
        raise SchemaError(
            f"binary_columns: unknown key {min(unknown)!r}; expected pattern, names, "
            "or prefix and count"
        )
    names = list(entry.get("names", []))
    if "prefix" in entry or "count" in entry:
        prefix, count = entry.get("prefix"), entry.get("count")
        if (
            not isinstance(prefix, str)
            or not isinstance(count, int)
            or isinstance(count, bool)
            or not 1 <= count <= MOST_DECLARED
        ):
            raise SchemaError(
                f"binary_columns: prefix = {prefix!r}, count = {count!r}; "
                f"expected text and a whole number from 1 to {MOST_DECLARED:,}"
            )
        names.extend(f"{prefix}{position}" for position in range(count))
    pattern = entry.get("pattern", [])
    patterns = [pattern] if isinstance(pattern, str) else pattern
    if not isinstance(patterns, list | tuple):
        raise SchemaError(f"binary_columns: pattern = {pattern!r}; expected text or a list of it")
    return names, tuple(patterns)
