"""The oracles on HiGHS, which SciPy brings along."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dualquery.oracles import milp
from dualquery.oracles.exact import ExactOracle, PrintedOracle
from dualquery.oracles.solver import Solver


@dataclass(frozen=True)
class Highs(ExactOracle):
    """The tight form on HiGHS, relaxation first; most rounds are proved without branching."""

    label: ClassVar[str] = "highs"

    def solver(self) -> Solver:
        return milp.solve


@dataclass(frozen=True)
class HighsPaper(PrintedOracle):
    """The printed program on HiGHS."""

    label: ClassVar[str] = "highs-paper"

    def solver(self) -> Solver:
        return milp.solve
