"""The best response as an integer program, in two forms.

Both forms have a 0/1 column per slot (one column for a variable with two slots), and rows
that give each variable one slot. They differ in the rows that tie a term's column to those
of its slots. The optimum is the same, but the relaxation of one form is much tighter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from dualquery.oracles.core import Core, Int32, Part

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = npt.NDArray[np.float64]

HULL = 4
"""Parities up to this length are described by their convex hull, longer ones by a counter."""


@dataclass(frozen=True)
class Program:
    """Maximise offset + objective·x subject to lower ≤ Ax ≤ upper, 0 ≤ x ≤ top.

    Entry i of A is `coefficient[i]`, in row `row[i]` and column `entry[i]`. All coefficients
    are whole numbers. `integer` marks the columns that must be whole. The rows in
    `exactly_one` say "one of these 0/1 columns". `column` leads from a slot to its column, or
    to −1 if it has none.
    """

    objective: Floats
    offset: int
    row: Int32
    entry: Int32
    coefficient: Floats
    lower: Floats
    upper: Floats
    top: Floats
    integer: npt.NDArray[np.bool_]
    exactly_one: tuple[int, ...]
    column: Int32

    @property
    def columns(self) -> int:
        """The number of columns."""
        return len(self.objective)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.lower)

    def matrix(self) -> csr_array:
        """A, as a sparse matrix."""
        # SciPy takes long to import, and most oracles never need it.
        from scipy.sparse import csr_array

        shape = (self.rows, self.columns)
        return csr_array((self.coefficient, (self.row, self.entry)), shape=shape)

    def row_entries(self) -> list[ProgramRow]:
        """A row by row, as whole numbers."""
        rows = [ProgramRow([], []) for _ in range(self.rows)]
        for row, column, coefficient in zip(
            self.row.tolist(), self.entry.tolist(), self.coefficient.tolist(), strict=True
        ):
            rows[row].columns.append(column)
            rows[row].coefficients.append(int(coefficient))
        return rows

    def slots(self, core: Core, variables: Int32, point: Floats, into: Int32) -> None:
        """Read the slots of some variables off a point: the fullest column wins.

        That reads a whole point exactly, forgives a solver that returns −4e−30 for 0, and
        rounds a fractional point.

        Args:
            core: the core that the program was made of.
            variables: the variables to read.
            point: a value per column.
            into: the assignment that changes.
        """
        for v in variables:
            first, last = int(core.first[v]), int(core.first[v + 1])
            if last - first == 2:
                into[v] = first + int(point[self.column[first + 1]] > 0.5)
            else:
                into[v] = first + int(np.argmax(point[self.column[first:last]]))

    def start(self, core: Core, variables: Int32, slots: Int32) -> Floats:
        """The 0/1 columns of an assignment; columns of terms are NaN (left to the solver)."""
        values = np.full(self.columns, np.nan)
        for v in variables:
            at = self.column[core.first[v] : core.first[v + 1]]
            values[at[at >= 0]] = 0.0
            if self.column[slots[v]] >= 0:
                values[self.column[slots[v]]] = 1.0
        return values


class ProgramRow(NamedTuple):
    """One row of a program."""

    columns: list[int]
    coefficients: list[int]


class Linear(NamedTuple):
    """A linear expression: Σ entries[c]·x_c + constant."""

    entries: dict[int, float]
    constant: int


@dataclass
class _Builder:
    """Collects the columns and rows of a program."""

    core: Core
    column: Int32
    objective: list[float] = field(default_factory=list)
    top: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    offset: int = 0
    row: list[int] = field(default_factory=list)
    entry: list[int] = field(default_factory=list)
    coefficient: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    exactly_one: list[int] = field(default_factory=list)

    @classmethod
    def over(cls, core: Core, variables: Int32) -> _Builder:
        """The columns of the slots, and a row per variable that gives it one slot."""
        made = cls(core, np.full(len(core.code), -1, dtype=np.int32))
        for v in variables:
            first, last = int(core.first[v]), int(core.first[v + 1])
            # With two slots every literal lists the second (see the core), so one column is
            # enough.
            columns = [
                made.add_column(0.0, 1.0, True) for _ in range(first + (last - first == 2), last)
            ]
            made.column[last - len(columns) : last] = columns
            if last - first > 2:
                made.exactly_one.append(len(made.lower))
                made.add_row(dict.fromkeys(columns, 1.0), 1.0, 1.0)
        return made

    def add_column(self, objective: float, top: float, integer: bool) -> int:
        self.objective.append(objective)
        self.top.append(top)
        self.integer.append(integer)
        return len(self.objective) - 1

    def add_row(self, entries: dict[int, float], lower: float, upper: float) -> None:
        self.row.extend([len(self.lower)] * len(entries))
        self.entry.extend(entries)
        self.coefficient.extend(entries.values())
        self.lower.append(lower)
        self.upper.append(upper)

    def truth(self, occurrence: int) -> Linear:
        """1 if an occurrence holds, else 0, as a linear expression."""
        core = self.core
        l = core.literal[occurrence]
        listed = core.literal_slot[core.literal_start[l] : core.literal_start[l + 1]]
        sign = -1.0 if core.flag[occurrence] else 1.0
        return Linear({int(self.column[i]): sign for i in listed}, int(core.flag[occurrence]))

    def truths(self, term: int) -> list[Linear]:
        """The truths of all occurrences of a term."""
        begin, end = int(self.core.term_start[term]), int(self.core.term_start[term + 1])
        return [self.truth(o) for o in range(begin, end)]

    def finish(self) -> Program:
        return Program(
            objective=np.array(self.objective),
            offset=self.offset,
            row=np.array(self.row, dtype=np.int32),
            entry=np.array(self.entry, dtype=np.int32),
            coefficient=np.array(self.coefficient),
            lower=np.array(self.lower),
            upper=np.array(self.upper),
            top=np.array(self.top),
            integer=np.array(self.integer, dtype=bool),
            exactly_one=tuple(self.exactly_one),
            column=self.column,
        )


def tight_form(core: Core, part: Part) -> Program:
    """The program with the tighter relaxation.

    The column of a term with a positive weight is at most the truth of each occurrence. That
    of a term with a negative weight is at least the sum of the k truths minus (k − 1). Only
    the columns of slots are integer. The relaxation of a single term is its convex hull. In
    most rounds of a game the relaxation of the whole program has a whole solution.
    """
    made = _Builder.over(core, part.variables)
    for j, w, truths in _terms(made, part):
        holding, k = _total(truths), len(truths)
        if core.parity[j]:
            _parity_hull(made, truths, w) if k <= HULL else _parity_counter(made, truths, w)
        elif w == -core.penalty:
            _forbid(made, truths)
        elif k == 1:
            for column, sign in holding.entries.items():
                made.objective[column] += w * sign
            made.offset += w * holding.constant
        elif w > 0:
            y = made.add_column(w, 1.0, False)
            for truth in truths:
                made.add_row({**_negative(truth.entries), y: 1.0}, -np.inf, truth.constant)
        else:
            z = made.add_column(w, 1.0, False)
            made.add_row({**holding.entries, z: -1.0}, -np.inf, k - 1 - holding.constant)
    return made.finish()


def paper_form(core: Core, part: Part) -> Program:
    """The paper's programs: one 0/1 column c per drawn query, and per negated one.

    Σ literals ≥ k·c for a query, Σ (1 − literal) ≥ c for a negated one. For a parity over
    S, Σ_{p∈S} x_p = 2d + c − 1, and 2d + c for a negated one. The counter d runs to ⌈k/2⌉, so
    that it fits any length.
    """
    made = _Builder.over(core, part.variables)
    for j, w, truths in _terms(made, part):
        holding, k = _total(truths), len(truths)
        if core.parity[j]:
            _parity_counter(made, truths, w)
        elif w == -core.penalty:
            _forbid(made, truths)
        elif w > 0:
            c = made.add_column(w, 1.0, True)
            made.add_row({**holding.entries, c: -float(k)}, -holding.constant, np.inf)
        else:
            c = made.add_column(-w, 1.0, True)
            made.offset += w
            made.add_row({**_negative(holding.entries), c: -1.0}, holding.constant - k, np.inf)
    return made.finish()


def _terms(made: _Builder, part: Part) -> Iterator[tuple[int, int, list[Linear]]]:
    """The terms of a part: position, weight, and the truths of the occurrences."""
    for j in part.terms.tolist():
        yield j, int(made.core.weight[j]), made.truths(j)


def _total(truths: list[Linear]) -> Linear:
    """How many occurrences of a term hold."""
    entries: dict[int, float] = {}
    for truth in truths:
        entries |= truth.entries  # no two share a variable, so none shares a column
    return Linear(entries, sum(truth.constant for truth in truths))


def _negative(entries: dict[int, float]) -> dict[int, float]:
    return {column: -value for column, value in entries.items()}


def _forbid(made: _Builder, truths: list[Linear]) -> None:
    """A constraint: not all occurrences hold."""
    holding = _total(truths)
    made.add_row(holding.entries, -np.inf, len(truths) - 1 - holding.constant)


def _parity_counter(made: _Builder, truths: list[Linear], w: int) -> None:
    """A parity as in the paper, with a counter of pairs."""
    holding = _total(truths)
    c = made.add_column(abs(w), 1.0, True)
    d = made.add_column(0.0, float((len(truths) + 1) // 2), True)
    if w < 0:
        made.offset += w
    bound = -holding.constant - (1 if w > 0 else 0)
    made.add_row({**holding.entries, d: -2.0, c: -1.0}, bound, bound)


def _parity_hull(made: _Builder, truths: list[Linear], w: int) -> None:
    """The convex hull of (literals, odd): a facet cuts off each vertex of wrong parity."""
    odd = made.add_column(-w, 1.0, False)
    made.offset += w
    for vertex in product((0, 1), repeat=len(truths) + 1):
        if sum(vertex) % 2 == 0:
            continue
        # Σ over ones of a − Σ over zeros of a ≤ (number of ones) − 1.
        entries: dict[int, float] = {odd: 1.0 if vertex[-1] else -1.0}
        bound = sum(vertex) - 1
        for truth, on in zip(truths, vertex[:-1], strict=True):
            sign = 1.0 if on else -1.0
            entries |= {column: sign * value for column, value in truth.entries.items()}
            bound -= int(sign) * truth.constant
        made.add_row(entries, -np.inf, bound)
