"""Annealing, the relaxation with cuts, and an exact solver for a moment: the better of them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar

from dualquery.oracles.mip import ExactOracle, Solver


@dataclass(frozen=True)
class Portfolio(ExactOracle):
    """What to use to have a bound on every round without waiting for it.

    The search on parts that annealing and the relaxation leave open stops after
    `time_limit` seconds in all; CP-SAT does it where it is installed, else HiGHS.
    """

    time_limit: float = 1.0
    label: ClassVar[str] = "portfolio"

    def solver(self) -> Solver:
        if find_spec("ortools") is not None:
            from dualquery.oracles.cpsat import solve as cpsat

            return cpsat
        from dualquery.oracles.highs import solve as highs

        return highs
