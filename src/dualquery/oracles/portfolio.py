"""Annealing, the relaxation with cuts, and an exact solver for a moment: the best of them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar

from dualquery.oracles import cpsat, milp
from dualquery.oracles.exact import ExactOracle
from dualquery.oracles.solver import Solver


@dataclass(frozen=True)
class Portfolio(ExactOracle):
    """The oracle to use for a bound on every round without waiting long for it.

    The whole call takes about `time_limit` seconds at most. The solver is CP-SAT if it is
    installed, else HiGHS.
    """

    time_limit: float = 1.0
    label: ClassVar[str] = "portfolio"

    def solver(self) -> Solver:
        return milp.solve if find_spec("ortools") is None else cpsat.solve
