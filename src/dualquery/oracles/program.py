"""The best response as an integer program, in two forms.

Both have a 0/1 column per slot (one less for variables with two slots) and say that each
variable has one slot. They differ in how a term's column hangs on them, which leaves the
optimum alone and decides how much the relaxation is worth.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np
import numpy.typing as npt

from dualquery.oracles.core import Core, Int32
from dualquery.oracles.reduction.reduce import Part

Floats = npt.NDArray[np.float64]

HULL = 4
"""Parities up to this length are described by their convex hull, longer ones by a counter."""


@dataclass(frozen=True)
class Program:
    """Maximise offset + objective·x subject to lower ≤ Ax ≤ upper, 0 ≤ x ≤ top.

    A is given by its entries; `integer` marks the columns that must be whole. Rows in
    `exactly_one` are "one of these 0/1 columns". All coefficients are whole numbers.
    `column` leads from a slot to its column (−1 where it has none).
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
        return len(self.objective)

    @property
    def rows(self) -> int:
        return len(self.lower)

    def slots(self, core: Core, variables: Int32, solution: Floats, into: Int32) -> None:
        """Read the slots of some variables off a solution: the fullest column wins.

        That is the exact reading of a whole solution, forgives a solver that returns
        −4e−30 for 0, and rounds a fractional one.
        """
        for v in variables:
            first, last = int(core.first[v]), int(core.first[v + 1])
            if last - first == 2:
                into[v] = first + int(solution[self.column[first + 1]] > 0.5)
            else:
                into[v] = first + int(np.argmax(solution[self.column[first:last]]))

    def start(self, core: Core, variables: Int32, slots: Int32) -> Floats:
        """The 0/1 columns of an assignment; columns of terms are NaN (left to the solver)."""
        values = np.full(self.columns, np.nan)
        for v in variables:
            at = self.column[core.first[v] : core.first[v + 1]]
            values[at[at >= 0]] = 0.0
            if self.column[slots[v]] >= 0:
                values[self.column[slots[v]]] = 1.0
        return values


@dataclass
class _Builder:
    """Collects columns and rows."""

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
        made = cls(core, np.full(len(core.code), -1, dtype=np.int32))
        for v in variables:
            first, last = int(core.first[v]), int(core.first[v + 1])
            # With two slots every literal lists the second (see the core), so one is enough.
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

    def truth(self, occurrence: int) -> tuple[dict[int, float], int]:
        """Whether an occurrence holds, as a linear expression: entries and constant."""
        core = self.core
        l = core.literal[occurrence]
        listed = core.literal_slot[core.literal_start[l] : core.literal_start[l + 1]]
        sign = -1.0 if core.flag[occurrence] else 1.0
        return {int(self.column[i]): sign for i in listed}, int(core.flag[occurrence])

    def total(self, term: int) -> tuple[dict[int, float], int, int]:
        """How many occurrences of a term hold: entries, constant, and the number of all."""
        begin, end = int(self.core.term_start[term]), int(self.core.term_start[term + 1])
        entries: dict[int, float] = {}
        constant = 0
        for o in range(begin, end):
            part, one = self.truth(o)
            entries |= part  # variables differ, so columns do
            constant += one
        return entries, constant, end - begin

    def finish(self) -> Program:
        return Program(
            np.array(self.objective),
            self.offset,
            np.array(self.row, dtype=np.int32),
            np.array(self.entry, dtype=np.int32),
            np.array(self.coefficient),
            np.array(self.lower),
            np.array(self.upper),
            np.array(self.top),
            np.array(self.integer, dtype=bool),
            tuple(self.exactly_one),
            self.column,
        )


def whole(core: Core) -> Part:
    """The core as a single part."""
    return Part(np.arange(core.variables, dtype=np.int32), np.arange(core.terms, dtype=np.int32))


def tight_form(core: Core, part: Part) -> Program:
    """A satisfied term is at most each of its literals; a violated one at least their excess.

    Only the slots are integer. The relaxation of a term is its convex hull, and in most
    rounds of a game the relaxation of the whole has a whole solution.
    """
    made = _Builder.over(core, part.variables)
    for j in part.terms:
        w = int(core.weight[j])
        entries, constant, k = made.total(j)
        if core.parity[j]:
            _parity_hull(made, j, w) if k <= HULL else _parity_counter(made, j, w)
        elif w == -core.penalty:
            made.add_row(entries, -np.inf, k - 1 - constant)
        elif k == 1:
            for column, sign in entries.items():
                made.objective[column] += w * sign
            made.offset += w * constant
        elif w > 0:
            y = made.add_column(w, 1.0, False)
            for o in range(core.term_start[j], core.term_start[j + 1]):
                part_entries, one = made.truth(o)
                made.add_row({**_negative(part_entries), y: 1.0}, -np.inf, one)
        else:
            z = made.add_column(w, 1.0, False)
            made.add_row({**entries, z: -1.0}, -np.inf, k - 1 - constant)
    return made.finish()


def paper_form(core: Core, part: Part) -> Program:
    """The paper's programs: one 0/1 column c per drawn query, also for negated ones.

    Σ literals ≥ k·c for a query, Σ (1 − literal) ≥ c for a negated one. For a parity over
    S, Σ_{p∈S} x_p = 2d + c − 1, and 2d + c for a negated one, where the counter d runs to
    ⌈k/2⌉ so that it fits any length.
    """
    made = _Builder.over(core, part.variables)
    for j in part.terms:
        w = int(core.weight[j])
        entries, constant, k = made.total(j)
        if core.parity[j]:
            _parity_counter(made, j, w)
        elif w == -core.penalty:
            made.add_row(entries, -np.inf, k - 1 - constant)
        elif w > 0:
            c = made.add_column(w, 1.0, True)
            made.add_row({**entries, c: -float(k)}, -constant, np.inf)
        else:
            c = made.add_column(-w, 1.0, True)
            made.offset += w
            made.add_row({**_negative(entries), c: -1.0}, constant - k, np.inf)
    return made.finish()


def _parity_counter(made: _Builder, term: int, w: int) -> None:
    entries, constant, k = made.total(term)
    c = made.add_column(abs(w), 1.0, True)
    d = made.add_column(0.0, float((k + 1) // 2), True)
    if w < 0:
        made.offset += w
    bound = -constant - (1 if w > 0 else 0)
    made.add_row({**entries, d: -2.0, c: -1.0}, bound, bound)


def _parity_hull(made: _Builder, term: int, w: int) -> None:
    """The convex hull of (literals, odd): a facet cuts off each vertex of wrong parity."""
    core = made.core
    truths = [made.truth(o) for o in range(core.term_start[term], core.term_start[term + 1])]
    odd = made.add_column(-w, 1.0, False)
    made.offset += w
    for vertex in product((0, 1), repeat=len(truths) + 1):
        if sum(vertex) % 2 == 0:
            continue
        # Σ over ones of a − Σ over zeros of a ≤ (number of ones) − 1.
        entries: dict[int, float] = {odd: 1.0 if vertex[-1] else -1.0}
        bound = sum(vertex) - 1
        for (part, one), on in zip(truths, vertex, strict=False):
            sign = 1.0 if on else -1.0
            entries |= {column: sign * value for column, value in part.items()}
            bound -= int(sign) * one
        made.add_row(entries, -np.inf, bound)


def _negative(entries: dict[int, float]) -> dict[int, float]:
    return {column: -value for column, value in entries.items()}
