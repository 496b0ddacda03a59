"""What every baseline has: a name, answers to a workload, and a stated cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import whole
from dualquery.base.errors import ParameterError
from dualquery.base.stored import Json
from dualquery.privacy.accountants import ACCOUNTANTS, epsilon_by_accountant
from dualquery.privacy.events import Events
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.rounding import rounded_up
from dualquery.privacy.statement import four_digits
from dualquery.workloads.workload import Workload

Floats = npt.NDArray[np.float64]

FLOATING = "noise in floating point: for comparison, not for publication"
SEEDED = "seeded: NOT PRIVATE"


@dataclass(frozen=True)
class Cost:
    """The privacy statement of a baseline.

    Attributes:
        epsilon: the ε that was spent.
        delta: its δ.
        neighbours: which tables the promise compares.
        mechanism: the theorem behind ε and δ, in words.
        caveat: why the answers must not be published as they are; empty if they could be. The noise
            may come from a seed. Or it may be in floating point, whose low bits can tell neighbours
            apart although the ideal mechanism could not.
        events: what was released, as the accountants read it; None if ε has another proof.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours
    mechanism: str
    caveat: str = ""
    events: Events | None = None

    @property
    def by_accountant(self) -> dict[str, float]:
        """ε at δ by every accountant; infinite where its theorem does not cover the method."""
        if self.events is None:
            return dict.fromkeys(ACCOUNTANTS, math.inf)
        if self.delta == 0.0:
            pure = ACCOUNTANTS["pure"].epsilon(self.events, 0.0)
            return {**dict.fromkeys(ACCOUNTANTS, math.inf), "pure": pure}
        return epsilon_by_accountant(self.events, self.delta)

    @property
    def private(self) -> bool:
        return not self.caveat

    def text(self) -> str:
        """The statement in one line."""
        if self.epsilon == 0.0:
            return f"reads no data ({self.mechanism})"
        stated = (
            f"ε = {four_digits(self.epsilon)} at δ = {rounded_up(self.delta)}, "
            f"{self.neighbours} neighbours, {self.mechanism}"
        )
        return f"{stated}; {self.caveat}" if self.caveat else stated

    def to_dict(self) -> Json:
        """Plain values, ready for JSON."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbours": str(self.neighbours),
            "mechanism": self.mechanism,
            "private": self.private,
            "caveat": self.caveat,
        }


FREE = Cost(0.0, 0.0, Neighbours.REPLACE_ONE, "fixed before any row is read")
"""The cost of answers that do not depend on the table."""


def public_rows(rows: int, neighbours: Neighbours, reference: int | None) -> int:
    """The number of rows that answers may be divided by.

    Args:
        rows: of the table; public if neighbours replace a record.
        neighbours: which tables the promise compares.
        reference: a public number, needed if one of two neighbours has a record more.
    """
    if neighbours is Neighbours.REPLACE_ONE:
        return rows
    if reference is None:
        raise ParameterError(
            "reference is missing; under add-remove neighbours the number of rows is private, and "
            "answers are shares of a public one"
        )
    return whole("reference", reference)


class Statement(Protocol):
    """What the privacy statement of a release and the `Cost` of a baseline have in common."""

    @property
    def epsilon(self) -> float: ...

    @property
    def delta(self) -> float: ...

    @property
    def neighbours(self) -> Neighbours: ...

    @property
    def private(self) -> bool: ...

    def text(self) -> str: ...

    def to_dict(self) -> Json: ...


class Answering(Protocol):
    """What gives answers to a workload at a stated cost: a release, and every baseline."""

    @property
    def privacy(self) -> Statement: ...

    def answers(self, workload: Workload) -> Floats:
        """The answer to each query, in [0, 1]."""
        ...


class Baseline(Answering, Protocol):
    """What a release is measured against."""

    @property
    def name(self) -> str: ...
