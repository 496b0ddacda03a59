"""HiGHS through SciPy: the exact oracle that needs nothing installed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dualquery.oracles.mip import ExactOracle, Outcome, Solver, paper_response
from dualquery.oracles.oracle import Record, Response
from dualquery.oracles.problem import Problem
from dualquery.oracles.program import Floats, Program


def relax(program: Program, seconds: float, *, cuts: bool = False) -> Outcome:
    """The relaxation: a point that may be fractional, and an upper bound.

    With cuts it is tightened as far as HiGHS does before it branches.
    """
    if cuts:
        return _solve(program, {"time_limit": seconds, "node_limit": 1}, whole=True)
    return _solve(program, {"time_limit": seconds}, whole=False)


def solve(program: Program, *, start: Floats, seconds: float, gap: float) -> Outcome:
    """The integer program; SciPy's interface takes no starting point."""
    options = {"time_limit": seconds}
    return _solve(program, options | {"mip_rel_gap": gap} if gap > 0 else options, whole=True)


def _solve(program: Program, options: dict[str, float], *, whole: bool) -> Outcome:
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    matrix = csr_array(
        (program.coefficient, (program.row, program.entry)), shape=(program.rows, program.columns)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = milp(
            -program.objective,
            integrality=program.integer.astype(int) if whole else None,
            bounds=Bounds(np.zeros(program.columns), program.top),
            constraints=LinearConstraint(matrix, program.lower, program.upper)
            if program.rows
            else (),
            options=options,
        )
    bound = None
    if whole and result.mip_dual_bound is not None:
        bound = program.offset - float(result.mip_dual_bound)
    elif not whole and result.status == 0:
        bound = program.offset - float(result.fun)
    return Outcome(result.x, bound, str(result.message))


@dataclass(frozen=True)
class Highs(ExactOracle):
    """The tight form on HiGHS, relaxation first; proves most rounds without any branching."""

    label: ClassVar[str] = "highs"

    def solver(self) -> Solver:
        return solve


@dataclass(frozen=True)
class HighsPaper:
    """The paper's integer programs as they are written, for comparison."""

    time_limit: float = 20.0
    gap: float = 0.0

    @property
    def name(self) -> str:
        return "highs-paper"

    def __call__(
        self,
        problem: Problem,
        *,
        warm_starts: Sequence[Record] = (),
        generator: np.random.Generator,
    ) -> Response:
        started = time.perf_counter()
        return paper_response(problem, solve, self.time_limit, self.gap, started)
