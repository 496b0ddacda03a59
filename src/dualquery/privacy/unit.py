"""Whose influence is bounded: one record, or all records of one person.

Counts are whole numbers of *parts*. Usually a record counts as one part. If every person is to
weigh the same, a person's weight is cut into parts, and their records share them. What one person
can move is then a number of parts, and every price follows from it. Proofs:
``docs/proofs/neighbours.md``, Persons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualquery.base.checks import choice, whole
from dualquery.base.errors import ParameterError
from dualquery.base.stored import Document, Json
from dualquery.privacy.neighbours import Neighbours

MOST_PARTS = 720_720
"""lcm(1, …, 16): a person of up to 16 records is cut into equal parts exactly."""

MOST_RECORDS = 10_000


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


@dataclass(frozen=True)
class Unit:
    """Neighbours, and how far they can be apart.

    Attributes:
        neighbours: whether a unit is replaced, or added or removed.
        persons: who the units are; None if each record is one.
    """

    neighbours: Neighbours
    persons: Persons | None = None

    @property
    def influence(self) -> int:
        """The most parts that one unit has."""
        return 1 if self.persons is None else self.persons.influence

    @property
    def parts(self) -> int:
        """The parts that stand for one record, or for one person where persons weigh the same."""
        return 1 if self.persons is None else self.persons.parts

    @property
    def size_is_public(self) -> bool:
        """Whether the number of parts is the same in all neighbours.

        A replaced person may have more or fewer records, so the number of records is private
        unless every person weighs the same.
        """
        by_record = self.persons is not None and self.persons.weigh is Weigh.RECORD
        return self.neighbours is Neighbours.REPLACE_ONE and not by_record

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
