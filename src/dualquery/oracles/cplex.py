"""The oracles on CPLEX, where the user has it installed and licensed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dualquery.oracles.exact import ExactOracle, PrintedOracle
from dualquery.oracles.program import Floats, Program
from dualquery.oracles.solver import Solution, Solver


def solve(program: Program, *, start: Floats, seconds: float, gap: float) -> Solution:
    """Solve a program, as `Solver` describes. A licence that is too small raises and says so.

    Args:
        program: what to solve.
        start: a known point, with NaN for the columns that are left to the solver.
        seconds: the time limit.
        gap: the relative gap at which to stop; 0 proves the optimum.
    """
    import cplex

    with cplex.Cplex() as model:
        for stream in (
            model.set_log_stream,
            model.set_error_stream,
            model.set_warning_stream,
            model.set_results_stream,
        ):
            stream(None)
        model.objective.set_sense(model.objective.sense.maximize)
        model.variables.add(
            obj=program.objective.tolist(),
            lb=[0.0] * program.columns,
            ub=program.top.tolist(),
            types=["I" if whole else "C" for whole in program.integer],
        )
        rows = program.row_entries()
        for bound, sense in ((program.lower, "G"), (program.upper, "L")):
            used = np.flatnonzero(np.isfinite(bound))
            model.linear_constraints.add(
                lin_expr=[cplex.SparsePair(*rows[row]) for row in used],
                senses=sense * len(used),
                rhs=bound[used].tolist(),
            )
        known = np.flatnonzero(~np.isnan(start))
        if len(known):
            model.MIP_starts.add(
                cplex.SparsePair(known.tolist(), start[known].tolist()),
                model.MIP_starts.effort_level.solve_MIP,
            )
        model.parameters.timelimit.set(max(seconds, 0.01))
        model.parameters.mip.tolerances.mipgap.set(gap)
        model.parameters.threads.set(1)
        model.solve()
        words = f"cplex: {model.solution.get_status_string()}"
        if not model.solution.is_primal_feasible():
            return Solution(None, None, words)
        point = np.array(model.solution.get_values())
        return Solution(point, program.offset + model.solution.MIP.get_best_objective(), words)


@dataclass(frozen=True)
class Cplex(ExactOracle):
    """The tight form on CPLEX."""

    label: ClassVar[str] = "cplex"

    def solver(self) -> Solver:
        return solve


@dataclass(frozen=True)
class CplexPaper(PrintedOracle):
    """The printed program on CPLEX, as the paper had it."""

    label: ClassVar[str] = "cplex-paper"

    def solver(self) -> Solver:
        return solve
