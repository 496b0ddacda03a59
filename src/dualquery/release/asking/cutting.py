"""Shares of conjunctions whose limit lies inside a bin, such as `age>=67` with edges 65 and 75.

The release knows whole bins. How numbers lie inside them is known from sub-bins, or supposed. So
the share lies between the shares at both edges of the bin, and the interval allows for what is not
known about the part between.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dualquery.domain.formulas import AllOf, Formula, parse_formula
from dualquery.domain.language import OffEdgeError
from dualquery.domain.query import Literal, Query
from dualquery.domain.schema import Schema
from dualquery.release.asking.figure import Figure
from dualquery.release.asking.probabilities import cells
from dualquery.release.asking.questions import Questions

Floats = npt.NDArray[np.float64]

UNKNOWN_PART = 12.0**-0.5
"""The standard deviation of a part of which nothing is known except that it lies in [0, 1]."""


@dataclass(frozen=True, eq=False)
class InsideBin:
    """A conjunction with one limit inside a bin.

    Attributes:
        query: the conjunction, in the codes of a schema that has the limit as an edge.
        attribute: the attribute that has the limit.
        code: the bin in which it lies; in that schema it is two bins, `code` and `code + 1`.
        number: the limit.
        codes: the codes of that schema that satisfy the literal on the attribute.
    """

    query: Query
    attribute: int
    code: int
    number: float
    codes: frozenset[int]

    @property
    def keeps_below(self) -> bool:
        """Whether the part of the bin below the limit satisfies the conjunction."""
        return self.code in self.codes


def read_question(text: str, schema: Schema) -> Formula | InsideBin:
    """Read a question. One limit of a plain conjunction may lie inside a bin.

    Args:
        text: the question.
        schema: the attributes that it names.
    """
    try:
        return parse_formula(text, schema)
    except OffEdgeError as off:
        place = schema.position(off.name)
        whole = schema.attributes[place]
        code = int(np.searchsorted(whole.edges, off.number)) - 1
        edges = (*whole.edges[: code + 1], off.number, *whole.edges[code + 1 :])
        attributes = list(schema.attributes)
        attributes[place] = replace(whole, edges=edges, decimals=None, reached=False)
        try:
            found = parse_formula(text, Schema(tuple(attributes)))
        except OffEdgeError:
            raise off from None  # two limits inside bins
        if not isinstance(found, Query) or found.kind != "conjunction":
            raise
        (own,) = (one for one in found.literals if one.attribute == place)
        codes = frozenset(own.allowed(int(schema.sizes[place]) + 1))
        made = InsideBin(found, place, code, off.number, codes)
        if (code in codes) != (code + 1 in codes):
            return made
        # Such as != elsewhere: the limit decides nothing.
        kept = {*beside(made), *({code} if code in codes else ())}
        others = tuple(one for one in found.literals if one.attribute != place)
        return Query("conjunction", (*others, Literal(place, tuple(sorted(kept)))))


def beside(asked: InsideBin) -> set[int]:
    """The codes that satisfy its literal whatever the limit decides, as the release has them."""
    cut = (asked.code, asked.code + 1)
    return {c if c < asked.code else c - 1 for c in asked.codes if c not in cut}


def share_inside(questions: Questions, asked: InsideBin, given: Formula | None) -> Figure:
    """The share of the records that satisfy such a conjunction, among all or those of a condition.

    Args:
        questions: what is asked.
        asked: the conjunction.
        given: the condition.
    """
    at, code = asked.attribute, asked.code
    others = tuple(one for one in asked.query.literals if one.attribute != at)
    without = beside(asked)

    def edge(codes: Collection[int]) -> Figure:
        if not codes:
            return Figure(0.0, 0.0, 0.0, 0.0)
        literals = (*others, Literal(at, tuple(sorted(codes))))
        return questions.share(Query("conjunction", literals), given)

    less, more = edge(without), edge(without | {code})
    below, blurred = part_below(questions, asked)
    part = below if asked.keeps_below else 1.0 - below
    between = max(float(more) - float(less), 0.0)
    value = float(less) + part * between
    if less.standard_error is None or more.standard_error is None:
        return Figure(value)
    outer = max(less.standard_error, more.standard_error)
    known = _error_of_part(questions, asked, others, given, below)
    inner = between * min(float(np.hypot(known, UNKNOWN_PART * blurred)), UNKNOWN_PART)
    low, high = less.low or 0.0, 1.0 if more.high is None else more.high
    return Figure.within(value, float(np.hypot(outer, inner)), low, high)


def part_below(questions: Questions, asked: InsideBin) -> tuple[float, float]:
    """Which part of the numbers of the bin lies below the limit; and which part lies in the sub-bin
    that the limit cuts, so that nothing was measured about its place beside the limit."""
    within = questions.within(questions.schema.names[asked.attribute])
    place = int(np.searchsorted(within.edges, asked.number, side="right")) - 1
    low, high = within.edges[place : place + 2]
    part = (asked.number - low) / (high - low)
    if not within.sub_bins.whole and part > 0.0:  # where values reach it, by steps of a thousandth
        steps = np.arange(1000) / 1000.0
        part = float(np.mean(within.values(np.full(1000, place), steps) < asked.number))
    shares = within.shares * (within.bin_of == asked.code)
    blurred = float(shares[place]) if 0.0 < part < 1.0 else 0.0
    return float(min(shares[:place].sum() + part * shares[place], 1.0)), blurred


def _error_of_part(
    questions: Questions,
    asked: InsideBin,
    others: tuple[Literal, ...],
    given: Formula | None,
    below: float,
) -> float:
    """How surely that part is known among the records of the bin that are asked about."""
    schema, at = questions.schema, asked.attribute
    rest = [Query("conjunction", others)] if others else []
    where = [*rest, *([] if given is None else [given])]
    condition = AllOf(tuple(where)) if where else None
    joint = cells(questions.components, [at], schema, condition)
    return error_of_part(questions, asked, joint, below)


def error_of_part(questions: Questions, asked: InsideBin, joint: Floats, below: float) -> float:
    """How surely the part of a bin below a limit is known for some records.

    Args:
        questions: what is asked.
        asked: the limit.
        joint: per code of the attribute, the share of all records that have it and are meant.
        below: the part.
    """
    from dualquery.release.asking.inside import Numbers

    schema, at = questions.schema, asked.attribute
    within = questions.within(schema.names[at])
    proper = schema.attributes[at].proper_size
    mine = joint[:proper]
    held = mine[asked.code] / max(float(mine.sum()), 1e-300)
    if within.surety is None or held <= 0.0:
        return UNKNOWN_PART
    every = cells(questions.components, [at], schema)[:proper]
    numbers = Numbers(within.bin_means, float(within.edges[0]), float(within.edges[-1]), within)
    wanted = float(mine[: asked.code].sum() / mine.sum()) + held * below
    return float(np.sqrt(numbers.variance_of_share(mine, every, wanted)) / held)
