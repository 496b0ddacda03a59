"""Everything that a release would refuse, all at once. Private side: for the curator's eyes only.

A release stops at the first cell that the schema does not allow. Whoever has forty columns does not
want to learn about them one by one. So this reads the whole table, judges every cell with the code
that a release uses, and says what the release would say, with counts. Cells are shown only where
the curator asks for them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dualquery.base.errors import DualQueryError, ParameterError, TableError, UnavailableError
from dualquery.base.stored import Json
from dualquery.domain.attributes import Attribute
from dualquery.domain.grid import Grid
from dualquery.domain.schema import Schema
from dualquery.domain.sub_bins import SubBins
from dualquery.domain.types import Type
from dualquery.privacy.unit import Weight
from dualquery.rows.arrow import ArrowTable
from dualquery.rows.encoding import OutOfDomain, judge_column
from dualquery.rows.long import LongTable
from dualquery.rows.opening import is_absent, open_table
from dualquery.rows.refusals import MISSING_CELL, refusal_text, shown
from dualquery.rows.table import Table
from dualquery.rows.weights import ByWeight

MOST_EXAMPLES = 3
"""How many refused cells of a column are shown, the most frequent ones."""

MOST_KEPT = 10_000
"""How many different refused cells of a column are told apart."""

EYES_ONLY = (
    "NOT PRIVATE, for the curator's eyes only: what follows was read off the private table, "
    "do not publish it"
)


@dataclass(frozen=True)
class Finding:
    """Something that a release would refuse.

    Attributes:
        column: the column it is about; empty if it is about the table or the schema.
        text: what the release says.
        count: how many cells are refused for this reason; 0 if it is not about cells.
        examples: some of these cells, the most frequent ones first, if they were asked for.
    """

    column: str
    text: str
    count: int = 0
    examples: tuple[str, ...] = ()

    def line(self) -> str:
        """The problem in one line."""
        if not self.count:
            return self.text
        told = f"{self.count:,} cell{'s' if self.count > 1 else ''}"
        return f"{self.text} [{told}{': ' + ', '.join(self.examples) if self.examples else ''}]"


@dataclass(frozen=True)
class Check:
    """What a release would refuse about a table, and what its curator may want to know.

    Attributes:
        rows: how many rows were read; 0 if none could be.
        problems: what a release would refuse.
        notes: what it would take, but perhaps was not meant.
    """

    rows: int
    problems: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether a release would take the table."""
        return not self.problems

    def text(self) -> str:
        """Everything, line by line, marked as private."""
        if self.ok:
            result = f"{self.rows:,} rows fit the schema"
        else:
            count = len(self.problems)
            result = f"{count} problem{'s' if count > 1 else ''}: a release would refuse the table"
        lines = [EYES_ONLY, *(f"problem: {problem.line()}" for problem in self.problems)]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes), result])

    def to_dict(self) -> Json:
        """The check as plain data."""
        return {
            "private": EYES_ONLY,
            "ok": self.ok,
            "rows": self.rows,
            "problems": [
                {"column": p.column, "text": p.text, "count": p.count, "examples": [*p.examples]}
                for p in self.problems
            ],
            "notes": list(self.notes),
        }


def check(
    table: object,
    schema: Schema,
    *,
    out_of_domain: str = "refuse",
    weight: str | None = None,
    weight_bound: float | None = None,
    show: bool = False,
) -> Check:
    """Compare a table with a schema, and say everything that a release would refuse.

    NOT PRIVATE: the result holds counts, so that the curator can mend the table or the schema.
    Nothing of it is stored.

    Args:
        table: whatever `DualQuery.fit` takes.
        schema: the declared domain of every column to be used.
        out_of_domain: what a release would do with cells outside their domain: refuse, clamp or
            missing.
        weight: the column that holds the weight of a row, if rows have weights.
        weight_bound: the most that one row may weigh.
        show: whether to show some of the refused cells too.
    """
    treatment = OutOfDomain.parse(out_of_domain)
    weights = _declared(weight, weight_bound)
    try:
        opened = open_table(table)
    except DualQueryError as error:
        if isinstance(error, UnavailableError) or is_absent(table):
            raise  # there is nothing to check
        return Check(0, (Finding("", str(error)),))
    if isinstance(opened, ArrowTable):
        found = _check_columns(opened, schema, treatment, weights, show)
    else:
        found = _check_ones(opened, schema, treatment, show)
    return found if weights is None else _with_weights(found, opened, weights, treatment)


def _declared(weight: str | None, bound: float | None) -> Weight | None:
    if (weight is None) != (bound is None):
        raise ParameterError("weight and weight_bound go together: a column, and its largest value")
    return None if weight is None or bound is None else Weight(weight, bound)


def _with_weights(found: Check, table: Table, weight: Weight, treatment: OutOfDomain) -> Check:
    """The check of a table, and of the column that weighs its rows."""
    weighed = ByWeight(table, weight, out_of_domain=treatment)
    try:
        _ = weighed.strata
    except TableError as error:
        return replace(found, problems=(*found.problems, Finding(weight.column, str(error))))
    return replace(found, notes=(*found.notes, *weighed.notices()))


def _check_ones(table: Table, schema: Schema, treatment: OutOfDomain, show: bool) -> Check:
    """A 0/1 table that has no columns to judge one by one: its first problem is the only one."""
    rows = 0
    try:
        bound = table.bind(schema)
        if isinstance(table, LongTable) and treatment is OutOfDomain.REFUSE:
            undeclared = table.undeclared(bound)
            named = tuple(repr(item) for item, _ in undeclared.most_common(MOST_EXAMPLES))
            text, count = LongTable.undeclared_text(table.item), undeclared.total()
            if undeclared:
                return Check(0, (Finding(table.item, text, count, named if show else ()),))
        for block in table.blocks(bound, range(len(bound)), treatment):
            rows = block.rows
    except DualQueryError as error:
        return Check(0, (Finding("", str(error)),))
    return Check(rows, ())


def _check_columns(
    table: ArrowTable,
    schema: Schema,
    treatment: OutOfDomain,
    weights: Weight | None,
    show: bool,
) -> Check:
    problems = []
    repeated = sorted({name for name in table.header if table.header.count(name) > 1})
    for name in repeated:
        problems.append(Finding(name, f"the table has two columns named {name!r}"))
    for name in schema.absent(table.header):
        problems.append(Finding(name, schema.absence(name, table.header)))
    if repeated:
        return Check(0, tuple(problems))
    present = set(table.header)
    held = Schema(tuple(a for a in schema.attributes if a.column in present), schema.patterns)
    try:
        bound = held.resolve(table.header)
    except DualQueryError as error:
        return Check(0, (*problems, Finding("", str(error))))
    rows, columns = _read(table, bound, treatment, show)
    for found in columns:
        problems.extend(found.problems())
    notes = [note for found in columns for note in found.notes()]
    if not rows:
        problems.append(Finding("", "the table has no rows"))
    declared = {*bound.columns, *(() if weights is None else (weights.column,))}
    unused = [name for name in table.header if name not in declared]
    if unused:
        named = ", ".join(repr(name) for name in unused[:6])
        more = f" and {len(unused) - 6} more" if len(unused) > 6 else ""
        notes.append(f"the schema does not declare {named}{more}: left out of the release")
    return Check(rows, tuple(problems), (*notes, *_broken_rules(table, schema, treatment)))


@dataclass
class _Column:
    """What was found in one column so far."""

    attribute: Attribute
    show: bool
    refused: Counter[int] = field(default_factory=Counter)
    cells: Counter[tuple[int, str]] = field(default_factory=Counter)
    unreadable: str = ""
    fractions: int = 0
    at_ends: tuple[bool, bool] = (False, False)

    def read(self, cells: pa.ChunkedArray, treatment: OutOfDomain) -> None:
        try:
            judged = judge_column(cells, self.attribute, treatment)
        except TableError as error:
            self.unreadable = self.unreadable or str(error)
            return
        marks, times = np.unique(judged.codes[judged.codes < 0], return_counts=True)
        self.refused.update(dict(zip(marks.tolist(), times.tolist(), strict=True)))
        if self.show:
            for row in np.flatnonzero((judged.codes < 0) & (judged.codes != MISSING_CELL)):
                key = (int(judged.codes[row]), shown(judged.cell(int(row)), self.attribute))
                if key in self.cells or len(self.cells) < MOST_KEPT:
                    self.cells[key] += 1
        if self.attribute.is_numeric and self.attribute.type is Type.WHOLE:
            self.fractions += _finer(cells, Grid(0))
        elif self.attribute.decimals is not None:
            self.fractions += _finer(cells, Grid(self.attribute.decimals))
        if self.attribute.reached:
            fine = Schema((self.attribute,)).fine.attributes[0]
            codes = judge_column(cells, fine, treatment).codes
            ends = (0, fine.proper_size - 1)
            first, last = (bool((codes == end).any()) for end in ends)
            self.at_ends = (self.at_ends[0] or first, self.at_ends[1] or last)

    def problems(self) -> list[Finding]:
        if self.unreadable:
            return [Finding(self.attribute.column, self.unreadable)]
        found = []
        for mark in sorted(self.refused, reverse=True):
            examples = [cell for (of, cell), _ in self.cells.most_common() if of == mark]
            found.append(
                Finding(
                    self.attribute.column,
                    refusal_text(mark, self.attribute),
                    self.refused[mark],
                    tuple(examples[:MOST_EXAMPLES]),
                )
            )
        return found

    def notes(self) -> list[str]:
        return [*self._notes_on_decimals(), *self._notes_on_ends()]

    def _notes_on_decimals(self) -> list[str]:
        if not self.fractions:
            return []
        has, wanted = "decimals", 'type = "decimal"'
        if self.attribute.decimals is not None:
            has, wanted = f"more than decimals = {self.attribute.decimals}", "more of them"
        return [
            f"column {self.attribute.name!r}: {self.fractions:,} cells have {has}, which "
            f"samples will not have; declare {wanted}"
        ]

    def _notes_on_ends(self) -> list[str]:
        """What is said if `reached` is declared, and the far end of a long tail is empty."""
        if not self.attribute.reached:
            return []
        edges = self.attribute.edges
        below, above = SubBins.of(self.attribute).long
        first, last = self.at_ends
        found = []
        if not below and not above:
            found.append("it has no long tail, for which alone that matters; leave reached out")
        if above and not last:
            found.append(f"no cell lies near {edges[-1]:g}; lower that edge, or leave reached out")
        if below and not first:
            found.append(f"no cell lies near {edges[0]:g}; raise that edge, or leave reached out")
        return [f"column {self.attribute.name!r}: reached = true, and {one}" for one in found]


def _finer(cells: pa.ChunkedArray, grid: Grid) -> int:
    """How many cells are numbers with more decimals than those of a grid."""
    if not pa.types.is_floating(cells.type):
        try:
            cells = pc.utf8_trim_whitespace(cells).cast(pa.float64())
        except (pa.ArrowException, TypeError):
            return 0
    numbers = cells.to_numpy()
    finite = numbers[np.isfinite(numbers)]
    return int((finite != grid.nearest(finite)).sum())


def _read(
    table: ArrowTable, bound: Schema, treatment: OutOfDomain, show: bool
) -> tuple[int, list[_Column]]:
    # All answers of a column are judged with the first one.
    columns = [_Column(a, show) for a in bound.attributes if a.answer is None or a.answer.is_first]
    rows = 0
    for block in table.blocks(bound, range(len(bound)), treatment):
        rows += block.rows
        for found in columns:
            found.read(block.table.column(found.attribute.column), treatment)
    return rows, columns


def _broken_rules(table: ArrowTable, schema: Schema, treatment: OutOfDomain) -> list[str]:
    """How many rows break each rule, if the schema has rules and the table its columns."""
    if not schema.rules or schema.absent(table.header) or schema.patterns:
        return []
    rules = schema.constraints
    if rules is None:
        return []
    broken = np.zeros(len(rules.entries), dtype=np.int64)
    for block in table.blocks(schema, [int(a) for a in rules.attributes], treatment):
        codes: npt.NDArray[np.int32] = np.zeros((block.rows, len(schema)), dtype=np.int32)
        usable = np.ones(block.rows, dtype=bool)
        for attribute in rules.attributes:
            declared = schema.attributes[attribute]
            found = judge_column(block.table.column(declared.column), declared, treatment).codes
            usable &= found >= 0
            codes[:, attribute] = np.maximum(found, 0)
        broken += (rules.broken(codes) & usable[:, None]).sum(axis=0)
    return [
        f"rule {number + 1} ({rules.describe(number)}) is broken by {count:,} rows; "
        "no synthetic row will break it"
        for number, count in enumerate(broken)
        if count
    ]
