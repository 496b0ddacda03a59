"""CPLEX, where the user has it installed and licensed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dualquery.oracles.mip import ExactOracle, Outcome, Solver
from dualquery.oracles.program import Floats, Program


def solve(program: Program, *, start: Floats, seconds: float, gap: float) -> Outcome:
    """The program row by row; a licence that is too small raises, and says so."""
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
        members: list[tuple[list[int], list[float]]] = [([], []) for _ in range(program.rows)]
        for row, entry, coefficient in zip(
            program.row.tolist(),
            program.entry.tolist(),
            program.coefficient.tolist(),
            strict=True,
        ):
            members[row][0].append(entry)
            members[row][1].append(coefficient)
        for bound, sense in ((program.lower, "G"), (program.upper, "L")):
            used = np.flatnonzero(np.isfinite(bound))
            model.linear_constraints.add(
                lin_expr=[cplex.SparsePair(*members[row]) for row in used],
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
            return Outcome(None, None, words)
        solution = np.array(model.solution.get_values())
        return Outcome(solution, program.offset + model.solution.MIP.get_best_objective(), words)


@dataclass(frozen=True)
class Cplex(ExactOracle):
    """The tight form on CPLEX."""

    label: ClassVar[str] = "cplex"

    def solver(self) -> Solver:
        return solve
