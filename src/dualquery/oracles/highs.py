"""The exact oracles on HiGHS, which SciPy brings along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dualquery.oracles import milp
from dualquery.oracles.compile import compile_core
from dualquery.oracles.core import Part, decode
from dualquery.oracles.exact import ExactOracle, check_limits, describe_failure
from dualquery.oracles.oracle import Found, Record, TimedOracle
from dualquery.oracles.problem import Problem
from dualquery.oracles.program import paper_form
from dualquery.oracles.solver import Solver


@dataclass(frozen=True)
class Highs(ExactOracle):
    """The tight form on HiGHS, relaxation first; most rounds are proved without branching."""

    label: ClassVar[str] = "highs"

    def solver(self) -> Solver:
        return milp.solve


@dataclass(frozen=True)
class HighsPaper(TimedOracle):
    """The paper's integer programs as they are written, for comparison.

    The program is that of the whole problem: no reduction, no annealing, no relaxation.
    """

    time_limit: float = 20.0
    gap: float = 0.0

    label: ClassVar[str] = "highs-paper"

    def __post_init__(self) -> None:
        check_limits(self.time_limit, self.gap)

    def find(
        self, problem: Problem, warm_starts: Sequence[Record], generator: np.random.Generator
    ) -> Found:
        core = compile_core(problem)
        part = Part.whole(core)
        slots = core.home.copy()
        bound: float = core.constant + part.most(core)
        failure = None
        if core.terms:
            try:
                program = paper_form(core, part)
                nothing = np.full(program.columns, np.nan)
                solution = milp.solve(program, start=nothing, seconds=self.time_limit, gap=self.gap)
                if solution.point is None:
                    failure = solution.status
                else:
                    program.slots(core, part.variables, solution.point, slots)
                if solution.bound is not None and np.isfinite(solution.bound):
                    bound = min(bound, core.constant + solution.bound)
            except Exception as error:  # a solver's failure must not stop a run
                failure = describe_failure(error)
        return Found(decode(core, slots, problem.defaults), bound, failure)
