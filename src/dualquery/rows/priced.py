"""A schema with a price: edges and values found in the private table, and paid for.

Private side: it reads the rows. What leaves it are edges that follow from noisy counts, and values
whose noisy count is above a threshold, so the draft is safe to publish. Everything else in it was
declared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dualquery.base.errors import NoRowsError, SchemaError, TableError
from dualquery.base.similar import did_you_mean
from dualquery.base.stored import Document, Json
from dualquery.domain.attributes import Attribute
from dualquery.domain.declaration import Bounded, Declaration, Open
from dualquery.domain.schema import Schema
from dualquery.domain.types import Type, has_lost_digits, loose_text, number_of, text_of
from dualquery.privacy.discovery import discover
from dualquery.privacy.ledger import Ledger
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.quantiles import find_quantiles, steps_of
from dualquery.privacy.rounding import rounded_up
from dualquery.privacy.schema_plan import SchemaPlan, plan_schema
from dualquery.privacy.sources import RandomSource, source_for
from dualquery.privacy.statement import NOT_PRIVATE
from dualquery.privacy.unit import Persons, Unit, declared_persons
from dualquery.rows.arrow import ArrowTable
from dualquery.rows.cells import UNREADABLE, lost_digits, python_cells
from dualquery.rows.encoding import OutOfDomain, judge_column, plain_column
from dualquery.rows.opening import open_table
from dualquery.rows.persons import persons_of_rows, weigh_rows

BINS = 8
"""Bins of a column with bounds, unless the curator says otherwise."""

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PricedDraft:
    """A schema that was paid for, and what was paid.

    Attributes:
        schema: the attributes, in the order of the declaration.
        plan: what was released, and its price.
        found: per column that was paid for, what was found, in words.
        left_out: open columns of which no value was frequent enough.
        private: False for a seeded draft, which no release takes.
    """

    schema: Schema
    plan: SchemaPlan
    found: Mapping[str, str]
    left_out: tuple[str, ...]
    private: bool

    def header(self) -> list[str]:
        """The comments at the top of the file: what it cost, and what was found."""
        plan, unit = self.plan, self.plan.unit
        lines = [
            "Private schema, safe to publish. Names, types, bounds, closed domains were declared;",
            "edges follow from noisy counts; values were published if a noisy count was above a "
            "threshold.",
            f"Price: ε = {rounded_up(plan.epsilon, 4)} at δ = {rounded_up(plan.delta)}, "
            f"{unit.neighbours} neighbours, {_protected(unit)}.",
        ]
        if not self.private:
            lines.insert(0, f"{NOT_PRIVATE}. No release takes this draft.")
        if plan.discovered:
            lines += [
                f"Of that δ, {rounded_up(plan.slack, 4)} is for values: one that a single unit "
                "holds is published with at most this chance.",
                f"A value is published if its count, with noise of σ = {_in(plan.sigma, unit)}, "
                f"is {_in(plan.threshold, unit)} or more.",
                "Other values count as missing: release with --out-of-domain missing.",
            ]
        if plan.cut:
            lines.append(
                f"An edge is typically within {_in(plan.typical_error, unit)} of its quantile."
            )
        lines += ["", "Found:", *(f"  {name}: {what}" for name, what in self.found.items())]
        if self.left_out:
            lines += ["", "Left out, no value was frequent enough:"]
            lines += [f"  {name}" for name in self.left_out]
        return lines

    def save(self, path: str | Path) -> None:
        """Write the schema file."""
        self.schema.save(path, self.header())

    def to_dict(self) -> Json:
        """Plain values, ready for JSON."""
        plan = self.plan
        return {
            "attributes": len(self.schema),
            "epsilon": plan.epsilon,
            "delta": plan.delta,
            "slack": plan.slack,
            "neighbours": str(plan.unit.neighbours),
            "unit": None if plan.unit.persons is None else plan.unit.persons.to_dict(),
            "sigma": plan.sigma,
            "threshold": plan.threshold,
            "found": dict(self.found),
            "left_out": list(self.left_out),
            "private": self.private,
        }


def draft_with_price(
    source: object,
    declared: Declaration | Document | str | Path,
    *,
    epsilon: float,
    delta: float,
    bins: int | None = None,
    neighbours: str = "replace-one",
    unit: str | None = None,
    most_records: int | None = None,
    weigh: str = "record",
    ledger: str | Path | None = None,
    note: str = "",
    seed: int | None = None,
) -> PricedDraft:
    """Find edges and values of declared columns for a price.

    Guarantee: the draft is (ε, δ)-differentially private for the stated unit and neighbours.

    Args:
        source: a frame, or the path of a CSV or Parquet file.
        declared: the columns with what is publicly known of them; a value, a dictionary as in a
            schema file, or the path of such a file.
        epsilon: ε of the draft.
        delta: δ of the draft.
        bins: of a column with bounds; 8 if left out.
        neighbours: "replace-one" or "add-remove".
        unit: the column that names the person of a row.
        most_records: the most rows of one person that are counted.
        weigh: what counts once: "record" or "person".
        ledger: a budget ledger that the draft is charged to before anything is measured.
        note: what the ledger says of it.
        seed: makes it repeatable, for experiments, and therefore NOT PRIVATE.
    """
    declaration = _declaration(declared)
    bins = BINS if bins is None else bins
    persons = declared_persons(unit, most_records, weigh)
    protected = Unit(Neighbours.parse(neighbours), persons)
    free = _free(declaration, bins)
    cut = [c for c in declaration.columns if isinstance(c, Bounded) and c.name not in free]
    open_ = [c for c in declaration.columns if isinstance(c, Open)]
    plan = plan_schema(epsilon, delta, protected, cut=len(cut), discovered=len(open_), bins=bins)
    table = open_table(source)
    if not isinstance(table, ArrowTable):
        raise TableError(
            "a schema with a price needs a frame, a CSV or a Parquet file; declare the items of a "
            "long or sparse table with binary_columns"
        )
    _check_header(declaration, table.header)
    weights = None
    if persons is not None:
        weights = _weights(table, persons)
    random = source_for(seed)
    book = None if ledger is None else Ledger(ledger)
    entry = uuid4().hex
    counted = _count(table, cut, open_, weights)
    if book is not None:  # before anything is measured
        book.reserve(
            entry,
            plan.events,
            neighbours=protected.neighbours,
            unit="" if persons is None else persons.column,
            private=random.private,
            note=note or "schema",
            slack=plan.slack,
        )
    made = _found(declaration, free, counted, plan, random)
    if book is not None:
        book.spend(entry)
    return made


def _weights(table: ArrowTable, persons: Persons) -> Int64:
    """The parts of every row."""
    try:
        # As cells outside their bounds are: no cell decides whether anything is published.
        strata = weigh_rows(persons_of_rows(table, persons.column, refuses=False), persons)
    except NoRowsError:  # how many rows there are may be private
        return np.zeros(0, dtype=np.int64)
    return np.array([0, *strata.weights], dtype=np.int64)[strata.of_row]


def _declaration(declared: Declaration | Document | str | Path) -> Declaration:
    if isinstance(declared, Declaration):
        return declared
    if isinstance(declared, str | Path):
        return Declaration.load(declared)
    return Declaration.from_dict(declared)


def _free(declaration: Declaration, bins: int) -> dict[str, Attribute]:
    """Columns with bounds that hold few whole numbers: all of them are listed, for nothing."""
    found = {}
    for column in declaration.columns:
        listed = column.whole_values(2 * bins) if isinstance(column, Bounded) else None
        if listed is not None:
            found[listed.name] = listed
    return found


def _check_header(declaration: Declaration, header: Sequence[str]) -> None:
    present = set(header)
    for name in declaration.header:
        if name not in present:
            hint = did_you_mean(name, header)
            raise SchemaError(f"the table has no column {name!r}, which is declared{hint}")


@dataclass(frozen=True)
class _Counted:
    """Private counts, in parts: of the cells of columns to cut, and of the values of open ones."""

    cells: Mapping[str, Int64]
    values: Mapping[str, Counter[str]]


def _count(
    table: ArrowTable, cut: Sequence[Bounded], open_: Sequence[Open], weights: Int64 | None
) -> _Counted:
    cells = {column.name: np.zeros(column.cells.proper_size, dtype=np.int64) for column in cut}
    values: dict[str, Counter[str]] = {column.name: Counter() for column in open_}
    names = [*cells, *values]
    for batch, weight in _batches(table, names, weights):
        for bounded in cut:
            column = batch.column(batch.schema.get_field_index(bounded.name))
            # With a bucket for cells that are missing or cannot be read, which are not counted.
            cut_finely = replace(bounded.cells, missing=True)
            codes = judge_column(column, cut_finely, OutOfDomain.CLAMP).codes
            here = codes < bounded.cells.proper_size
            np.add.at(cells[bounded.name], codes[here], weight[here])
        for one in open_:
            column = batch.column(batch.schema.get_field_index(one.name))
            _add_values(values[one.name], column, one, weight)
    return _Counted(cells, values)


def _batches(
    table: ArrowTable, names: Sequence[str], weights: Int64 | None
) -> Iterator[tuple[pa.RecordBatch, Int64]]:
    """Batches of rows, with the parts of each row."""
    done = 0
    for batch in table.batches(names):
        rows = batch.num_rows
        every = np.ones(rows, dtype=np.int64) if weights is None else weights[done : done + rows]
        done += rows
        yield batch, every


def _add_values(found: Counter[str], column: pa.Array, one: Open, weight: Int64) -> None:
    """Add up the parts of every value of an open column."""
    coded = plain_column(column, one.name)
    if not pa.types.is_dictionary(coded.type):
        coded = coded.dictionary_encode()
    texts = [_text(cell, one) for cell in python_cells(coded.dictionary)]
    # Codes may be bytes, which the number for missing cells need not fit into.
    indices = coded.indices.cast(pa.int64()).fill_null(len(texts)).to_numpy(zero_copy_only=False)
    totals = np.zeros(len(texts) + 1, dtype=np.int64)
    np.add.at(totals, indices, weight)
    for text, total in zip(texts, totals.tolist(), strict=False):
        if text is not None and total:
            found[text] += total


def _text(cell: object, one: Open) -> str | None:
    """A cell as the text of a value; None if it is missing, or none of the type."""
    if cell is None or cell is UNREADABLE or cell == "" or cell != cell:
        return None
    if has_lost_digits(cell):
        raise lost_digits(one.name)
    text = text_of(cell)
    words = one.missing_words
    if text.strip() in words or loose_text(text) in words:
        return None
    if one.type is not Type.WHOLE:
        return text
    number = number_of(Type.WHOLE, cell)
    if number is None or number != int(number) or number in (number_of(one.type, w) for w in words):
        return None
    return str(int(number))


def _found(
    declaration: Declaration,
    free: Mapping[str, Attribute],
    counted: _Counted,
    plan: SchemaPlan,
    source: RandomSource,
) -> PricedDraft:
    """Everything that leaves: edges from noisy counts, and values above the threshold."""
    made: list[Attribute] = []
    found: dict[str, str] = {}
    left_out: list[str] = []
    for column in declaration.columns:
        if isinstance(column, Attribute):
            made.append(column)
        elif isinstance(column, Bounded) and column.name in free:
            made.append(free[column.name])
        elif isinstance(column, Bounded):
            counts = counted.cells[column.name]
            steps = find_quantiles(counts, plan.contrasts, plan.sigmas, source)
            attribute = column.cut(steps, steps_of(len(counts), max(plan.sigmas)))
            found[column.name] = (
                f"{attribute.proper_size} bins, from a grid of {len(counts):,} cells"
            )
            made.append(attribute)
        else:
            # In an order that the rows do not decide, so that noise meets values by their text.
            values = sorted(counted.values[column.name])
            counts = np.array([counted.values[column.name][v] for v in values], dtype=np.int64)
            kept = discover(counts, plan.sigma, plan.threshold, source)
            listed = [value for value, is_kept in zip(values, kept, strict=True) if is_kept]
            if listed:
                found[column.name] = f"{len(listed):,} values"
                made.append(column.with_values(listed))
            else:
                left_out.append(column.name)
    if not made:
        raise TableError(
            "no value of any open column was frequent enough, so there is no schema; the price was "
            "paid all the same. Raise epsilon, or declare values"
        )
    rules = declaration.rules
    schema = Schema(tuple(made), rules=rules, draft=not source.private)
    schema.constraints  # noqa: B018 - reading it refuses rules that do not fit the columns
    return PricedDraft(schema, plan, found, tuple(left_out), source.private)


def _protected(unit: Unit) -> str:
    if unit.persons is None:
        return "for single records"
    return (
        f"for all of one person's at most {unit.persons.most} records together (column "
        f"{unit.persons.column!r}, every {unit.persons.weigh} weighs the same)"
    )


def _in(parts: float, unit: Unit) -> str:
    """A number of parts as records, or as persons where they weigh the same."""
    who = "persons" if unit.parts > 1 else "records"
    return f"{parts / unit.parts:,.4g} {who}"
