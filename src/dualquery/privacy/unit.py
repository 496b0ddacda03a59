"""Whose influence is bounded: one record, or all records of one person.

Counts are whole numbers of *parts*. Usually a record counts as one part. If every person is to
weigh the same, a person's weight is cut into parts, and their records share them. A survey weight
is a number of parts, too. What one person can move is then a number of parts, and every price
follows from it. Proofs: ``docs/proofs/neighbours.md``, Persons and Weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualquery.base.checks import choice, positive, whole
from dualquery.base.errors import ParameterError
from dualquery.base.stored import Document, Json
from dualquery.privacy.neighbours import Neighbours

MOST_PARTS = 720_720
"""lcm(1, …, 16): a person of up to 16 records is cut into equal parts exactly."""

MOST_RECORDS = 10_000

BOUND_PARTS = 1_000
"""About how many parts the largest weight has: a weight is rounded to a thousandth of the bound."""

LEAST_BOUND, MOST_BOUND = 1e-6, 1e6
"""Bounds of weights outside this range are refused: a weight of 1 must be a number of parts."""


class Weigh(StrEnum):
    """What counts once when a person has several records."""

    RECORD = "record"
    """Every record that is kept. A person can move as many counts as they have records."""
    PERSON = "person"
    """Every person, shared by their records: no factor for the number of records."""


@dataclass(frozen=True)
class Persons:
    """Who the records belong to, and how many of them one person may have.

    Attributes:
        column: the column that names the person of a record.
        most: the most records of one person that are counted; the others are left out.
        weigh: what counts once.
    """

    column: str
    most: int
    weigh: Weigh = Weigh.RECORD

    def __post_init__(self) -> None:
        if not self.column:
            raise ParameterError("unit = ''; expected the column that names the person of a row")
        most = whole("most_records", self.most)
        if most > MOST_RECORDS:
            raise ParameterError(f"most_records = {most}; expected at most {MOST_RECORDS:,}")
        object.__setattr__(self, "most", most)
        object.__setattr__(self, "weigh", choice("weigh", self.weigh, Weigh))

    @property
    def parts(self) -> int:
        """The parts that stand for one: 1 record, or the weight of one person cut up."""
        if self.weigh is Weigh.RECORD:
            return 1
        return min(math.lcm(*range(1, min(self.most, 16) + 1)), MOST_PARTS)

    @property
    def influence(self) -> int:
        """The most parts that one person has."""
        return self.most if self.weigh is Weigh.RECORD else self.parts

    def to_dict(self) -> Json:
        """Plain values, ready for JSON."""
        return {"column": self.column, "most_records": self.most, "weigh": str(self.weigh)}

    @classmethod
    def from_dict(cls, values: Document) -> Persons:
        """The inverse of `to_dict`."""
        return cls(str(values["column"]), int(values["most_records"]), Weigh(values["weigh"]))


def declared_persons(unit: str | None, most_records: int | None, weigh: str) -> Persons | None:
    """Who the rows belong to, from three settings of a user; None if each row is a unit.

    Args:
        unit: the column that names the person of a row.
        most_records: the most rows of one person that are counted.
        weigh: what counts once: a record, or a person.
    """
    weighed = choice("weigh", weigh, Weigh)
    if unit is None:
        if most_records is not None or weighed is not Weigh.RECORD:
            name = "most_records" if most_records is not None else "weigh"
            raise ParameterError(f"{name} speaks of persons; name their column with unit")
        return None
    if most_records is None:
        raise ParameterError(
            f"unit = {unit!r} needs most_records: the most rows of one person that count"
        )
    return Persons(unit, most_records, weighed)


@dataclass(frozen=True)
class Weight:
    """How much each record counts, and the most that one may count.

    A weight is rounded to a whole number of parts. Which parts stand for a weight of 1 is set by
    the bound alone, which is public. Whole weights up to a thousand are exact.

    Attributes:
        column: the column that holds the weight of a record.
        bound: a record never counts more than this; a larger weight is cut.
    """

    column: str
    bound: float

    def __post_init__(self) -> None:
        if not self.column:
            raise ParameterError("weight = ''; expected the column that holds the weight of a row")
        bound = positive("weight_bound", self.bound)
        if not LEAST_BOUND <= bound <= MOST_BOUND:
            raise ParameterError(
                f"weight_bound = {bound:g}; expected between {LEAST_BOUND:g} and {MOST_BOUND:,.0f}:"
                " multiply all weights by the same number, shares stay the same"
            )
        object.__setattr__(self, "bound", bound)

    @property
    def parts(self) -> int:
        """The parts that stand for a weight of 1."""
        return max(1, round(BOUND_PARTS / self.bound))

    @property
    def influence(self) -> int:
        """The most parts that one record has."""
        return max(1, math.floor(self.bound * self.parts + 0.5))

    def in_parts(self, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """Weights as parts, cut at the bound. They must be finite and not negative."""
        cut = np.minimum(weights, self.bound)
        rounded = np.floor(cut * self.parts + 0.5).astype(np.int64)
        found: NDArray[np.int64] = np.minimum(rounded, self.influence)
        return found

    @property
    def text(self) -> str:
        """The weight in a few words."""
        return f"weights of column {self.column!r}, at most {self.bound:g} each"

    def to_dict(self) -> Json:
        """Plain values, ready for JSON."""
        return {"column": self.column, "bound": self.bound}

    @classmethod
    def from_dict(cls, values: Document) -> Weight:
        """The inverse of `to_dict`."""
        return cls(str(values["column"]), float(values["bound"]))


@dataclass(frozen=True)
class Unit:
    """Neighbours, and how far they can be apart.

    Attributes:
        neighbours: whether a unit is replaced, or added or removed.
        persons: who the units are; None if each record is one.
        weight: how much each record counts; None if all count the same.
    """

    neighbours: Neighbours
    persons: Persons | None = None
    weight: Weight | None = None

    def __post_init__(self) -> None:
        if self.weight and self.persons and self.persons.weigh is Weigh.PERSON:
            raise ParameterError(
                "weigh = person makes all persons weigh the same, so there is nothing for "
                f"weight = {self.weight.column!r} to say: use weigh = record, or leave out weight"
            )

    @property
    def influence(self) -> int:
        """The most parts that one unit has."""
        records = 1 if self.persons is None else self.persons.influence
        return records * (1 if self.weight is None else self.weight.influence)

    @property
    def parts(self) -> int:
        """The parts that stand for one: a record, a weight of 1, or a person who weighs 1."""
        if self.weight is not None:
            return self.weight.parts
        return 1 if self.persons is None else self.persons.parts

    @property
    def chance(self) -> int:
        """The variance of a count, per part, that chance alone makes: what one draw counts."""
        return self.parts if self.weight is None else self.weight.influence

    @property
    def size_is_public(self) -> bool:
        """Whether the number of parts is the same in all neighbours.

        A replaced person may have more or fewer records, so the number of records is private
        unless every person weighs the same. A replaced record may have another weight, so the sum
        of weights is private.
        """
        by_record = self.persons is not None and self.persons.weigh is Weigh.RECORD
        same = not by_record and self.weight is None
        return self.neighbours is Neighbours.REPLACE_ONE and same

    @property
    def table_l1(self) -> float:
        """The largest L1 distance between neighbours' counts of a marginal."""
        return self.influence * self.neighbours.table_l1

    @property
    def table_l2(self) -> float:
        """The same in L2, rounded up."""
        l2 = self.influence * self.neighbours.table_l2
        return l2 if self.influence == 1 else math.nextafter(l2, math.inf)

    def ideal_range(self, temperatures: ArrayLike, rows: int) -> NDArray[np.float64]:
        """The bounded range of one draw from exact weights; `rows` is a number of parts."""
        return self.neighbours.ideal_range(temperatures, rows, self.influence)

    def draw_range(self, temperatures: ArrayLike, rows: int) -> NDArray[np.float64]:
        """The range of one draw as it is computed; `rows` is a number of parts."""
        return self.neighbours.draw_range(temperatures, rows, self.influence)

    def rescaled(self, temperature: float, rows: int, reference: int) -> float:
        """The temperature that has no larger range with another divisor than it was charged for.

        Args:
            temperature: the temperature that is charged.
            rows: the divisor that it is charged for, in parts.
            reference: the divisor that scores really have, in parts; a public number.
        """
        return self.neighbours.rescaled(temperature, rows, reference, self.influence)
