"""Gurobi, where the user has it installed and licensed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dualquery.oracles.mip import ExactOracle, Outcome, Solver
from dualquery.oracles.program import Floats, Program


def solve(program: Program, *, start: Floats, seconds: float, gap: float) -> Outcome:
    """The program as a matrix model; a licence that is too small raises, and says so."""
    import gurobipy
    from scipy.sparse import csr_array

    matrix = csr_array(
        (program.coefficient, (program.row, program.entry)), shape=(program.rows, program.columns)
    )
    with (
        gurobipy.Env(params={"OutputFlag": 0}) as environment,
        gurobipy.Model(env=environment) as model,
    ):
        kinds = np.where(program.integer, "I", "C")
        x = model.addMVar(program.columns, lb=0.0, ub=program.top, vtype=kinds)
        for bound, sign in ((program.lower, 1.0), (program.upper, -1.0)):
            used = np.flatnonzero(np.isfinite(bound))
            if len(used):
                model.addConstr(sign * (matrix[used] @ x) >= sign * bound[used])
        model.setObjective(program.objective @ x, gurobipy.GRB.MAXIMIZE)
        x.Start = np.where(np.isnan(start), gurobipy.GRB.UNDEFINED, start)
        model.Params.TimeLimit = seconds
        model.Params.MIPGap = gap
        model.Params.Threads = 1
        model.optimize()
        words = f"gurobi: status {model.Status}"
        solution = np.array(x.X) if model.SolCount else None
        bound_found = program.offset + float(model.ObjBound) if model.SolCount else None
        return Outcome(solution, bound_found, words)


@dataclass(frozen=True)
class Gurobi(ExactOracle):
    """The tight form on Gurobi."""

    label: ClassVar[str] = "gurobi"

    def solver(self) -> Solver:
        return solve
