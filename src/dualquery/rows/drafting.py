"""Drafting a schema from a table, for the curator to review. Private side: it reads the rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from dualquery.base.checks import whole
from dualquery.base.errors import ParameterError, TableError
from dualquery.base.similar import brief, did_you_mean
from dualquery.base.stored import Document, Json
from dualquery.domain.answers import split
from dualquery.domain.attributes import Attribute
from dualquery.domain.declaration import FILL_IN, Declaration
from dualquery.domain.grid import MOST_DECIMALS, Grid
from dualquery.domain.meaning import Meaning
from dualquery.domain.schema import Schema
from dualquery.domain.spelling import PLAIN
from dualquery.domain.sub_bins import SubBins
from dualquery.domain.types import Type, spelled
from dualquery.rows.arrow import ArrowTable
from dualquery.rows.documented import Documented
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.long import LongTable
from dualquery.rows.opening import open_table
from dualquery.rows.priced import draft_with_price
from dualquery.rows.profiles import Profile, read_profiles
from dualquery.rows.readable import readable_edges
from dualquery.rows.sparse import OnesTable
from dualquery.rows.spelt import month_first

MOST_VALUES = 50
"""A column with more different numbers than this is cut into bins."""

MOST_LISTED = 5_000
"""A column with more different texts than this is left out."""

FEWEST_REPEATS = 5.0
"""If a text occurs fewer times than this on average, it may be an identifier or free text."""

FEWEST_ROWS = 20
"""In a table with fewer rows than this, every column may have different cells by chance."""

MOST_WRITTEN = 6
"""Numbers with more decimals than this are computed, not written: no decimals are drafted."""

SEVERAL = 0.1
"""If at least this share of the cells has a separator, they may hold several answers."""

MOST_COMPARED = 40
"""How many columns of values are compared in pairs, to see which one determines another."""

COLUMNS_AT_ONCE = 512
"""How many columns are read in one pass over the table."""

HEADER = (
    "DRAFT made by reading the private table. It is not safe to use as it is:",
    "every domain below was seen in the data. Replace values and edges by what is",
    "publicly known about each column (code books, questionnaires, physical limits),",
    "add values that could occur but did not, and remove the line `draft = true` when that is",
    "done. Until then no release takes this schema.",
    "label, description and unit are for readers; what stays empty is left out.",
)

_ID_NAME = re.compile(
    r"(^|[_\W])(id|key|uuid|guid|nr|ssn|iban|e?mail|phone|tel|url|name)($|[_\W\d])|[a-z]I[dD]$",
    re.IGNORECASE,
)
_WEIGHT_NAME = re.compile(
    r"(^|[_\W])(p|f|hh|survey|sampl(e|ing)|final|person)?_?(weights?|wgt|wt)($|[_\W\d])",
    re.IGNORECASE,
)
_PERSON_NAME = re.compile(
    r"(^|[_\W])(patient|person|subject|respondent|participant|pupil|student|customer|client|user"
    r"|member|employee|household|case|p(atient)?id|pnr|kunde|versicherte)s?($|[_\W\d]|id|nr|no)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Draft:
    """A schema for review, with what its curator should look at.

    Attributes:
        schema: the attributes, marked as a draft.
        left_out: columns without an attribute, each with the reason.
        review: attributes to look at, each with the reason.
    """

    schema: Schema
    left_out: dict[str, str]
    review: dict[str, str]

    def header(self) -> list[str]:
        """The comments at the top of the file: what this is, and what to review and why."""
        lines = list(HEADER)
        if self.review:
            lines += ["", "Review first:"]
            lines += [f"  {name}: {reason}" for name, reason in self.review.items()]
        if self.left_out:
            lines += ["", "Left out; to use one, declare it below, and look at the reason first:"]
            lines += [f"  {name}: {reason}" for name, reason in self.left_out.items()]
        return lines

    def save(self, path: str | Path) -> None:
        """Write the draft as a schema file."""
        self.schema.save(path, self.header())


def draft_schema(
    source: object,
    bins: int | None = None,
    *,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    declared: Declaration | Document | str | Path | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    ledger: str | Path | None = None,
    note: str = "",
    neighbours: str = "replace-one",
    unit: str | None = None,
    most_records: int | None = None,
    weigh: str = "record",
    seed: int | None = None,
) -> Schema:
    """Draft a schema: for nothing, to be reviewed; or for a price, safe to publish.

    Without `epsilon`, an attribute is guessed for every column. No release takes that draft
    unreviewed. Columns that look like identifiers or free text are left out, and constant and
    empty ones. `dualquery schema` writes down why.

    With `epsilon`, `delta` and `declared`, edges and values of the declared columns are found
    privately, and the result is (ε, δ)-differentially private.

    Args:
        source: whatever `DualQuery.fit` takes; with a price, a frame, a CSV or a Parquet file.
        bins: of a column of numbers or dates: about 10, with a price 8 or another power of two.
        columns: only these columns, in this order; without a price.
        exclude: all columns except these; without a price.
        declared: what is publicly known, as in a schema file: columns with `values`, `binary` or
            `edges` are taken as they are, `bounds = [low, high]` asks for edges, `open = true`
            for values.
        epsilon: ε of the draft.
        delta: δ of the draft.
        ledger: a budget ledger that the draft is charged to before its first draw.
        note: what the ledger says of it.
        neighbours: "replace-one" or "add-remove".
        unit: the column that names the person of a row.
        most_records: the most rows of one person that are counted.
        weigh: what counts once: "record" or "person".
        seed: makes a draft with a price repeatable, for experiments: NOT PRIVATE.
    """
    if epsilon is None:
        beside = {"declared": declared, "delta": delta, "ledger": ledger, "unit": unit,
                  "most_records": most_records, "seed": seed}  # fmt: skip
        for name, value in beside.items():
            if value is not None:
                raise ParameterError(f"{name} is for a schema with a price; give epsilon as well")
        return draft(source, 10 if bins is None else bins, columns=columns, exclude=exclude).schema
    if delta is None or declared is None:
        name = "delta" if delta is None else "declared"
        raise ParameterError(f"a schema with a price needs {name} beside epsilon")
    if columns is not None or exclude:
        raise ParameterError("columns and exclude: with a price, `declared` says which columns")
    return draft_with_price(
        source, declared, epsilon=epsilon, delta=delta, bins=bins, neighbours=neighbours,
        unit=unit, most_records=most_records, weigh=weigh, ledger=ledger, note=note, seed=seed,
    ).schema  # fmt: skip


def draft(
    source: object,
    bins: int = 10,
    *,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
) -> Draft:
    """The same as `draft_schema`, with the reasons.

    Args:
        source: whatever `DualQuery.fit` takes.
        bins: about how many bins a column of numbers or dates gets.
        columns: only these columns, in this order.
        exclude: all columns except these.
    """
    bins = whole("bins", bins)
    table = open_table(source)
    if isinstance(table, LongTable):
        return _draft_items(table)
    if isinstance(table, OnesTable):
        attributes = tuple(Attribute.binary(f"x{i}") for i in range(table.width))
        return Draft(Schema(attributes, draft=True), {}, {})
    if not isinstance(table, ArrowTable):
        raise TableError(f"cannot draft a schema for {type(table).__name__}")
    names = _chosen(table.header, columns, exclude)
    made: list[Attribute] = []
    left_out: dict[str, str] = {}
    review: dict[str, str] = {}
    persons: list[str] = []
    for profile in _profiles(table, names):
        separator, answers = _answers(profile)
        if answers:
            words = profile.words or True
            made.extend(
                Attribute.answers(profile.name, answers, separator=separator, missing=words)
            )
            review[profile.name] = (
                f"cells hold several answers with {separator!r} between them; an answer that "
                "holds it itself has to be put together in values"
            )
            continue
        reason = _reason_to_leave_out(profile)
        if reason:
            if _may_be_person(profile, reason):
                persons.append(profile.name)
                reason += (
                    f"; persons with several rows? Then release with --unit {profile.name} "
                    "--most-records N, so that all rows of a person are protected together"
                )
            left_out[profile.name] = reason
            continue
        attribute, note = _attribute(profile, bins)
        made.append(attribute)
        if note:
            review[profile.name] = note
    if not made:
        told = "; ".join(f"column {name!r} {reason}" for name, reason in left_out.items())
        raise TableError(f"no column of the table can be drafted: {brief(told)}")
    schema = Schema(_binaries_last(made), draft=True, persons=persons[0] if persons else "")
    for name, told in _fixed_columns(table, schema).items():
        review[name] = "; ".join(filter(None, [review.get(name, ""), told]))
    return Draft(schema, left_out, review)


SKELETON = (
    "SKELETON of a declaration, for a schema with a price. It was made by reading the private",
    "table: column names and types were seen in it. Nothing else was taken over. Check them, and",
    "fill in from public knowledge (code books, questionnaires, physical limits):",
    "  bounds = [0, 120]       the lowest and the highest number that can occur; edges are found",
    "  open = true             values are found; or, free of charge, values = [...] that are known",
    "Then remove the line `draft = true`.",
)


def skeleton(
    source: object, *, columns: Sequence[str] | None = None, exclude: Sequence[str] = ()
) -> tuple[Json, list[str]]:
    """A declaration to be filled in, as the content of a file and its comments.

    Args:
        source: whatever `DualQuery.fit` takes.
        columns: only these columns, in this order.
        exclude: all columns except these.
    """
    made = draft(source, columns=columns, exclude=exclude)
    left_out = dict.fromkeys(made.left_out)  # the reasons would quote cells
    entries: Json = {}
    for attribute in made.schema.attributes:
        if attribute.answer is not None:
            left_out[attribute.column] = None
        elif attribute.values == (0, 1):
            entries[attribute.name] = attribute.to_dict()
        elif attribute.type is Type.TEXT:
            entries[attribute.name] = {"open": True}
        else:
            unknown = {"bounds": [FILL_IN, FILL_IN], "type": attribute.type.value}
            entries[attribute.name] = unknown
    header = list(SKELETON)
    if left_out:
        header += ["", f"Left out; to use one, declare it below: {', '.join(left_out)}"]
    return {"draft": True, "attributes": entries}, header


def _chosen(
    header: Sequence[str], columns: Sequence[str] | None, exclude: Sequence[str]
) -> list[str]:
    for name in header:
        if header.count(name) > 1:
            raise TableError(f"the table has two columns named {name!r}")
    for option, named in (("columns", columns or ()), ("exclude", exclude)):
        for name in named:
            if name not in header:
                hint = did_you_mean(name, header)
                raise ParameterError(f"{option}: the table has no column {name!r}{hint}")
    wanted = list(header) if columns is None else list(columns)
    names = [name for name in wanted if name not in set(exclude)]
    if not names:
        raise ParameterError("no column is left to draft a schema for")
    return names


def _profiles(table: ArrowTable, names: Sequence[str]) -> Iterator[Profile]:
    for first in range(0, len(names), COLUMNS_AT_ONCE):
        part = names[first : first + COLUMNS_AT_ONCE]
        profiles, rows = read_profiles(table.batches(part), part, table.documented)
        if not rows:
            raise TableError("the table has no rows; a draft needs some")
        yield from profiles.values()


def _reason_to_leave_out(profile: Profile) -> str:
    """Why a column should not be in the schema; empty if it should."""
    if profile.problem:
        return profile.problem
    if not profile.different:
        return "is empty: every cell is missing"
    if profile.different == 1 and not profile.has_missing:
        return "is constant: every cell is the same"
    repeats = profile.present / profile.different
    told = f"{_count(profile)} different cells in {profile.present:,}"
    if profile.kind is Type.WHOLE:
        unique = repeats == 1.0 and profile.present >= FEWEST_ROWS
        named = bool(_ID_NAME.search(profile.name))
        running = unique and profile.rising
        many = profile.different > MOST_VALUES
        if running or (named and repeats < FEWEST_REPEATS and many):
            return f"looks like an identifier: {told}"
        if many and repeats > 1.0 and _PERSON_NAME.search(profile.name):
            return f"looks like an identifier: {told}"
        return ""
    if profile.kind is not Type.TEXT or profile.categories:
        return ""
    unique = repeats == 1.0 and profile.present >= FEWEST_ROWS
    many = profile.different > MOST_VALUES and repeats < FEWEST_REPEATS
    if unique or many:
        words = sum(len(str(cell).split()) for cell in profile.cells) / profile.different
        what = "free text" if words >= 3.0 else "an identifier"
        return f"looks like {what}: {told}"
    if profile.different > MOST_LISTED:
        return f"has too many different values to list: {told}"
    return ""


def _answers(profile: Profile) -> tuple[str, list[str]]:
    """What stands between several answers of a cell, and all answers; none if it is not so."""
    if profile.problem or profile.categories or profile.kind is not Type.TEXT:
        return "", []
    for separator in (";", "|", ",", "/"):
        held = sum(n for cell, n in profile.cells.items() if separator in str(cell))
        if held < SEVERAL * profile.present:
            continue
        parts = {part for cell in profile.cells for part in split(cell, separator)}
        alone = parts & {str(cell).strip() for cell in profile.cells}
        if separator in (",", "/") and 2 * len(alone) < len(parts):
            continue  # such as a town and its country: neither stands alone
        if len(parts) <= MOST_VALUES and len(parts) < profile.different:
            return separator, sorted(parts)
    return "", []


def _count(profile: Profile) -> str:
    return f"{'at least ' if profile.uncounted else ''}{profile.different:,}"


def _may_be_person(profile: Profile, reason: str) -> bool:
    """Whether a column that is left out may tell persons apart, some of whom have several rows."""
    repeats = profile.present / profile.different if profile.different else 1.0
    named = _PERSON_NAME.search(profile.name) or _ID_NAME.search(profile.name)
    if repeats < 1.05 or profile.uncounted:
        return False
    return "identifier" in reason or ("too many" in reason and bool(named))


def _fixed_columns(table: ArrowTable, schema: Schema) -> dict[str, str]:
    """What is said about columns that another column determines, by the column that does.

    Only the first rows are looked at, and columns of values that are neither few nor too many.
    """
    places = [
        place for place, one in enumerate(schema.attributes)
        if one.answer is None and not one.edges and 2 < one.size <= MOST_LISTED
    ][:MOST_COMPARED]  # fmt: skip
    if len(places) < 2:
        return {}
    block = next(iter(table.blocks(schema, places, OutOfDomain.MISSING)))
    codes = {place: block.codes(place).astype(np.int64) for place in places}
    found: dict[str, list[str]] = {}
    for first in places:
        seen = len(np.unique(codes[first]))
        for second in places:
            few = len(np.unique(codes[second]))
            if second == first or not 1 < few <= seen or 2 * seen > block.rows:
                continue
            pairs = codes[first] * schema.attributes[second].size + codes[second]
            if len(np.unique(pairs)) == seen and (few < seen or first < second):
                named = schema.attributes[first].name
                found.setdefault(named, []).append(schema.attributes[second].name)
    return {
        name: f"each value goes with one value of {', '.join(others)}: leave those out, or, if it "
        "is so by definition, declare determines"
        for name, others in found.items()
    }


def _attribute(profile: Profile, bins: int) -> tuple[Attribute, str]:
    """An attribute for a column, and what to review about it."""
    attribute, note = _domain(profile, bins)
    if profile.spelling != PLAIN:
        attribute = replace(attribute, spelling=profile.spelling)
        note = "; ".join(filter(None, [_how_it_is_written(profile), note]))
    if profile.words:
        attribute = attribute.missing_as(*profile.words)
        said = ", ".join(repr(word) for word in profile.words)
        note = "; ".join(filter(None, [note, f"these cells count as missing ones: {said}"]))
    if _may_weigh(profile):
        said = f"a survey weight? Then leave it out, and release with --weight {profile.name}"
        note = "; ".join(filter(None, [said, note]))
    if profile.documented is not None:
        attribute = _with_words(attribute, profile.documented)
    return attribute, note


def _with_words(attribute: Attribute, told: Documented) -> Attribute:
    """The attribute with the label of its column, and those of its values and missing cells."""
    words = attribute.missing_words
    known = [
        (value, text)
        for value, text in told.labels
        if value in words or (attribute.values and attribute.code_of_value(value) is not None)
    ]
    return attribute.meaning_of(Meaning(label=told.label, labels=tuple(known)))


def _how_it_is_written(profile: Profile) -> str:
    """What is said about cells that are not written as the package does it."""
    way = profile.spelling
    said = ", ".join(f"{key} = {value!r}" for key, value in way.to_dict().items())
    other = month_first(way)
    texts = [cell for cell in profile.cells if isinstance(cell, str)]
    if other is not None and all(other.number(profile.kind, t) is not None for t in texts):
        return f"read with {said}; or does the month stand first?"
    if way.thousands == "," and not any("." in text for text in texts):
        return f"read with {said}; or is the comma a decimal one?"
    return f"read with {said}"


def _may_weigh(profile: Profile) -> bool:
    """Whether a column may say how much each row counts: by its name, and never below zero."""
    if profile.kind not in (Type.WHOLE, Type.DECIMAL) or not _WEIGHT_NAME.search(profile.name):
        return False
    return bool((profile.numbers >= 0.0).all())


def _domain(profile: Profile, bins: int) -> tuple[Attribute, str]:
    name, kind, missing = profile.name, profile.kind, profile.has_missing
    if kind is Type.YES_NO:
        return Attribute.binary(name, missing=missing, type=kind), ""
    labelled = _labelled(profile, bins)
    if labelled is not None:
        return labelled, ""
    if kind is Type.TEXT:
        texts = profile.texts()
        group = _prefix(texts)
        made = Attribute.categorical(
            name, texts, missing=missing, ordered=profile.ordered, type=kind, group=group
        )
        alike = _alike(texts)
        if len(texts) <= MOST_VALUES:
            return made, alike
        note = f"{len(texts):,} values were seen; add those that could occur"
        note = "; ".join(filter(None, [alike, note]))
        if group is not None:
            note += "; is the beginning of a code what belongs together (group)?"
        return made, note
    numbers = profile.numbers
    if kind is Type.WHOLE and set(numbers) <= {0.0, 1.0}:
        return Attribute.binary(name, missing=missing), ""
    different = len(set(numbers))
    if kind is Type.WHOLE and different <= min(MOST_VALUES, 2 * bins):
        values = profile.whole_values()
        first, last = int(values[0]), int(values[-1])
        gaps = last - first + 1 - different
        if 0 < gaps <= different / 4:  # such as the one score that nobody has
            filled = range(first, last + 1)
            return (
                Attribute.categorical(name, filled, missing=missing),
                f"{gaps} value{'s' if gaps > 1 else ''} between the others did not occur",
            )
        return Attribute.categorical(name, values, missing=missing), ""
    if different == 1:  # some other cells are missing
        cell = spelled(kind, profile.numbers[0]) if kind.is_temporal else float(numbers[0])
        return Attribute.categorical(name, [cell], missing=missing, type=kind), ""
    edges, crowded = readable_edges(kind, numbers, bins)
    spelt = [spelled(kind, edge) if kind.is_temporal else edge for edge in edges]
    note = "the edges follow quantiles of the table; replace them by public ones" if crowded else ""
    decimals = _decimals(profile, [float(edge) for edge in edges])
    made = Attribute.numeric(name, spelt, missing=missing, decimals=decimals, type=kind)
    if decimals is not None:
        seen = f"no cell has more than {decimals} decimal{'' if decimals == 1 else 's'}"
        note = "; ".join(filter(None, [note, f"{seen}; is that so by design (decimals)?"]))
    if crowded and any(SubBins.of(made).long):
        made = replace(made, reached=True)
        told = "the far end is where the table ends; may everybody know that (reached)?"
        note = "; ".join(filter(None, [note, told]))
    return made, note


def _labelled(profile: Profile, bins: int) -> Attribute | None:
    """A column of codes, as a statistical file documents them; None if it is not one."""
    told = profile.documented
    if told is None:
        return None
    words = set(profile.words)
    codes = [value for value, _ in told.labels if value not in words]
    seen = profile.texts()
    many = profile.different > max(MOST_VALUES, 2 * bins)
    if not codes or told.level == "scale" or (many and not set(seen) <= set(codes)):
        return None
    whole = profile.kind is Type.WHOLE and all(re.fullmatch(r"-?\d+", code) for code in codes)
    every = list(dict.fromkeys([*codes, *seen]))
    if not whole and profile.kind is not Type.TEXT:
        return None
    values = sorted(map(int, every)) if whole else every
    if set(values) == {0, 1}:
        return Attribute.binary(profile.name, missing=profile.has_missing)
    ordered = {"nominal": False, "ordinal": True}.get(told.level)
    return Attribute.categorical(profile.name, values, missing=profile.has_missing, ordered=ordered)


def _decimals(profile: Profile, edges: Sequence[float]) -> int | None:
    """How many decimals cells have; None if they are not written with a few of them.

    Narrow bins may need more, because each must hold such a number.
    """
    if profile.kind is not Type.DECIMAL or profile.decimals > MOST_WRITTEN:
        return None
    for decimals in range(profile.decimals, MOST_DECIMALS + 1):
        grid = Grid(decimals)
        low, high = grid.in_bins(edges)
        if bool((low <= high).all()):
            return decimals if grid.holds(edges) else None
    return None


def _alike(texts: Sequence[str]) -> str:
    """What is said about values that mean one thing and are spelt in several ways."""
    spellings: dict[str, list[str]] = {}
    for text in texts:
        spellings.setdefault(" ".join(text.split()).casefold(), []).append(text)
    several = [same for same in spellings.values() if len(same) > 1]
    if not several:
        return ""
    shown = ", ".join(repr(text) for text in several[0])
    more = f", and {len(several) - 1} more" if len(several) > 1 else ""
    return f"values that differ in blanks or capitals alone ({shown}{more}) are different values"


def _prefix(texts: Sequence[str]) -> str | None:
    """The beginning of many codes that may be their chapter, such as the letter of a diagnosis."""
    if len(texts) <= MOST_VALUES or any(" " in text for text in texts):
        return None
    for length in (1, 2, 3):
        parents = {text[:length] for text in texts}
        if 2 <= len(parents) <= len(texts) / 4 and all(len(text) > length for text in texts):
            return f"prefix:{length}"
    return None


def _binaries_last(made: Sequence[Attribute]) -> tuple[Attribute, ...]:
    """The attributes; thousands of plain 0/1 columns go last, where a file lists their names."""
    plain = [a for a in made if a == Attribute.binary(a.name)]
    if len(plain) <= MOST_VALUES:
        return tuple(made)
    return (*(a for a in made if a != Attribute.binary(a.name)), *plain)


def _draft_items(table: LongTable) -> Draft:
    """A 0/1 attribute for every item of a table in long format."""
    items: set[str] = set()
    for batch in table.table.batches([table.item]):
        found = pc.unique(batch.column(0)).to_pylist()
        items.update(table.named(item) for item in found if item is not None)
    if not items:
        raise TableError("the table has no rows; a draft needs some")
    prefix = table.prefix
    numbers = [name.removeprefix(prefix) for name in items]
    if all(number.isdecimal() and str(int(number)) == number for number in numbers):
        last = max(int(number) for number in numbers)
        if last + 1 <= 2 * len(items) + MOST_VALUES:
            attributes = [Attribute.binary(f"{prefix}{i}") for i in range(last + 1)]
            return _drafted_items(attributes, table)
        ordered = sorted(items, key=lambda name: int(name.removeprefix(prefix)))
    else:
        ordered = sorted(items)
    return _drafted_items([Attribute.binary(name) for name in ordered], table)


def _drafted_items(attributes: Sequence[Attribute], table: LongTable) -> Draft:
    note = "items that occur in no pair are not in the list; declare the whole catalogue"
    return Draft(Schema(tuple(attributes), draft=True), {}, {table.item: note})
