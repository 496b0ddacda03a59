"""The thin interface to solvers of mixed-integer programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dualquery.oracles.program import Floats, Program


@dataclass(frozen=True)
class Solution:
    """What a solver found.

    `point` is the best point, or None. `bound` is a number that no point exceeds (the
    program's offset included), or None. `status` says in words how the solver ended.
    """

    point: Floats | None
    bound: float | None
    status: str


class Solver(Protocol):
    """A function that solves a program.

    `start` is a known point, with NaN for the columns that are left to the solver; a solver
    that cannot use it ignores it. The solver stops after `seconds`, or as soon as the relative
    gap between bound and point is at most `gap`. It may raise: the caller records the failure
    and goes on.
    """

    def __call__(
        self, program: Program, *, start: Floats, seconds: float, gap: float
    ) -> Solution: ...
