"""Questions about the records of a condition whose limit lies inside a bin, such as `age>=67`.

With the edges 65 and 75 the condition holds for all records of later bins, and for a part of those
of one bin. How large that part is, `cutting` says for all of them, and how surely for the records
of each cell. So a figure lies between those for the conditions without and with the bin. Its
interval allows for what is not known about the part, cell by cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import QueryError
from dualquery.domain.formulas import AllOf, Formula
from dualquery.domain.query import Literal, Query
from dualquery.release.asking.cutting import (
    UNKNOWN_PART,
    InsideBin,
    beside,
    error_of_part,
    part_below,
)
from dualquery.release.asking.figure import WITHIN, Figure
from dualquery.release.asking.probabilities import cells
from dualquery.release.asking.questions import CrossTable, Questions

if TYPE_CHECKING:
    from dualquery.release.asking.inside import Numbers

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Partly:
    """The questions of a release, about the records of such a condition.

    Attributes:
        questions: those about all records.
        asked: the condition.
    """

    questions: Questions
    asked: InsideBin

    def share(self, formula: Formula, given: Formula | None = None) -> Figure:
        """As `Questions.share`, among these records."""
        every = self._joint([], given)
        mine = cells(
            self.questions.components,
            [self.asked.attribute],
            self.questions.schema,
            self._rest(given, formula),
        )
        joint = np.stack([mine, every - mine], axis=1)
        shares = self._shares(joint)
        figures = [(w, self.questions.share(formula, end)) for w, end in self._ends(every, given)]
        inner = float(self._errors_of_ratios(joint)[0])
        return _figure(float(shares[0] / shares.sum()), figures, inner, 0.0, 1.0)

    def table(self, columns: Sequence[int], where: Formula | None = None) -> CrossTable:
        """As `Questions.table`, among these records."""
        joint = self._joint(columns, where)
        shape, flat = joint.shape[1:], joint.reshape(len(joint), -1)
        ratio = (self._shares(flat) / self._shares(flat).sum()).reshape(shape)
        outer = np.zeros(shape)
        for weight, end in self._ends(flat.sum(axis=1), where):
            found = self.questions.table(columns, end)
            outer += weight * np.maximum(found.high - found.share, found.share - found.low)
        reach = np.hypot(outer, WITHIN * self._errors_of_ratios(flat).reshape(shape))
        low, high = np.maximum(ratio - reach, 0.0), np.minimum(ratio + reach, 1.0)
        return CrossTable(tuple(columns), ratio, low, high)

    def mean(self, column: int, where: Formula | None = None) -> Figure:
        """As `Questions.mean`, among these records."""
        numbers, joint = self._numbers(column, where)
        shares = self._shares(joint)
        value = float(shares @ numbers.mean / shares.sum())
        moves = joint[self.asked.code] * (numbers.mean - value) / shares.sum()
        # The part may be off in all cells together, and in each by itself.
        together = float(self._errors(joint.sum(axis=1, keepdims=True))[0] * moves.sum())
        inner = float(np.hypot(np.linalg.norm(self._errors(joint) * moves), together))
        ends = self._ends(joint.sum(axis=1), where)
        figures = [(weight, self.questions.mean(column, end)) for weight, end in ends]
        return _figure(value, figures, inner, numbers.least, numbers.most)

    def quantiles(
        self, column: int, wanted_shares: Sequence[float], where: Formula | None = None
    ) -> list[Figure]:
        """As `Questions.quantiles`, among these records."""
        numbers, joint = self._numbers(column, where)
        shares = self._shares(joint)
        every = cells(self.questions.components, [column], self.questions.schema)[: joint.shape[1]]
        order = np.argsort(numbers.mean, kind="stable")
        below = np.cumsum(shares[order]) / shares.sum()
        found = []
        for wanted in wanted_shares:
            place = int(np.searchsorted(below, min(wanted, below[-1])))
            parts = (order[:place], order[: place + 1])
            outer = max(self._error_of_codes(column, codes, where) for codes in parts)
            inner = numbers.variance_of_share(shares, every, wanted)
            reach = WITHIN * float(np.hypot(outer, np.sqrt(inner)))
            value = numbers.quantile(shares, wanted)
            if np.isnan(reach):
                found.append(Figure(value))
                continue
            low, high = (numbers.quantile(shares, wanted + sign * reach) for sign in (-1.0, 1.0))
            found.append(Figure(value, None, low, high))
        return found

    def refuse_impossible(self, where: Formula | None = None) -> None:
        """As `Questions.refuse_impossible`."""
        codes = {*beside(self.asked), self.asked.code}
        self.questions.refuse_impossible(_both(self._holding(codes), where))

    def has_numbers(self, column: int, where: Formula | None = None) -> bool:
        """As `Questions.has_numbers`."""
        return float(self._shares(self._numbers(column, where)[1]).sum()) > 0.0

    # The condition

    @cached_property
    def _part(self) -> tuple[float, float]:
        """The part of the bin that satisfies the condition; and how much of it nothing measured."""
        below, blurred = part_below(self.questions, self.asked)
        return (below if self.asked.keeps_below else 1.0 - below), blurred

    @cached_property
    def _others(self) -> tuple[Literal, ...]:
        at = self.asked.attribute
        return tuple(one for one in self.asked.query.literals if one.attribute != at)

    def _rest(self, *more: Formula | None) -> Formula | None:
        """The condition without its literal on the bin, and more conditions."""
        own = [Query("conjunction", self._others)] if self._others else []
        every = (*own, *(one for one in more if one is not None))
        return AllOf(every) if every else None

    def _holding(self, codes: Iterable[int]) -> Formula:
        """The condition, with these codes in the place of its limit."""
        own = Literal(self.asked.attribute, tuple(sorted(codes)))
        return Query("conjunction", (*self._others, own))

    def _ends(self, joint: Floats, where: Formula | None) -> list[tuple[float, Formula]]:
        """The conditions without and with the bin, each with its weight in a figure.

        Args:
            joint: per code of the bin's attribute, the share of all records that count.
            where: what they also satisfy.
        """
        part, code = self._part[0], self.asked.code
        kept = beside(self.asked)
        less = float(joint[sorted(kept)].sum())
        more = less + float(joint[code])
        whole = (1.0 - part) * less + part * more
        if whole <= 0.0:
            raise QueryError("the release holds the condition for impossible")
        found = [((1.0 - part) * less / whole, kept), (part * more / whole, {*kept, code})]
        return [(w, _both(self._holding(codes), where)) for w, codes in found if w > 0.0]

    # Cells, with the codes of the bin's attribute along the first axis

    def _joint(self, columns: Sequence[int], where: Formula | None) -> Floats:
        """The share of all records per code of the bin's attribute, and per cell of columns."""
        at, schema = self.asked.attribute, self.questions.schema
        others = [column for column in columns if column != at]
        found = cells(self.questions.components, [at, *others], schema, self._rest(where))
        if at not in columns:
            return found
        size, place = len(found), list(columns).index(at)
        apart = np.zeros((size, size, *found.shape[1:]))
        apart[np.arange(size), np.arange(size)] = found
        return np.moveaxis(apart, 1, 1 + place)

    def _shares(self, joint: Floats) -> Floats:
        """Per cell, the share of all records that are in it and satisfy the condition."""
        weights = np.zeros(len(joint))
        weights[sorted(beside(self.asked))] = 1.0
        weights[self.asked.code] = self._part[0]
        found: Floats = weights @ joint
        return found

    def _errors(self, joint: Floats) -> Floats:
        """Per cell, how surely the part of the bin is known among its records."""
        part, blurred = self._part
        below = part if self.asked.keeps_below else 1.0 - part
        known = [error_of_part(self.questions, self.asked, one, below) for one in joint.T]
        found: Floats = np.minimum(np.hypot(known, UNKNOWN_PART * blurred), UNKNOWN_PART)
        return found

    def _errors_of_ratios(self, joint: Floats) -> Floats:
        """Per cell, how far its share is off because the part is, in the cell and elsewhere."""
        shares, total = self._shares(joint), float(self._shares(joint).sum())
        rest = joint.sum(axis=1, keepdims=True) - joint
        mine = self._errors(joint) * joint[self.asked.code] * (total - shares)
        others = self._errors(rest) * rest[self.asked.code] * shares
        found: Floats = np.hypot(mine, others) / total**2
        return found

    def _numbers(self, column: int, where: Formula | None) -> tuple[Numbers, Floats]:
        """The numbers of a column, and the cells that hold one."""
        from dualquery.release.asking.inside import Numbers

        attribute = self.questions.schema.attributes[column]
        if column == self.asked.attribute:
            raise QueryError(
                f"{self.asked.number:g} is not a bin edge of {attribute.name!r}; figures of this "
                "column take conditions on it at its edges only"
            )
        within = self.questions.within(attribute.name) if attribute.is_numeric else None
        numbers = Numbers.of(attribute, within, "a mean or a quantile")
        return numbers, self._joint([column], where)[:, : len(numbers.mean)]

    def _error_of_codes(
        self, column: int, codes: npt.NDArray[np.int64], where: Formula | None
    ) -> float:
        """The standard error of the share of some codes; NaN if it is unknown."""
        if not 0 < len(codes) < int(self.questions.schema.sizes[column]):
            return 0.0
        literal = Literal(column, tuple(sorted(int(code) for code in codes)))
        error = self.share(Query("conjunction", (literal,)), where).standard_error
        return float("nan") if error is None else error


def _both(first: Formula, second: Formula | None) -> Formula:
    return first if second is None else AllOf((first, second))


def _figure(
    value: float, ends: Sequence[tuple[float, Figure]], inner: float, least: float, most: float
) -> Figure:
    """A figure that lies between those of both ends, which may be off in the same direction."""
    errors = [(weight, figure.standard_error) for weight, figure in ends]
    if any(error is None for _, error in errors):
        return Figure(value)
    outer = sum(weight * (error or 0.0) for weight, error in errors)
    return Figure.within(value, float(np.hypot(outer, inner)), least, most)
