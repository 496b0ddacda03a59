"""The oracles on Gurobi, where the user has it installed and licensed."""

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
    import gurobipy

    matrix = program.matrix()
    with (
        gurobipy.Env(params={"OutputFlag": 0}) as environment,
        gurobipy.Model(env=environment) as model,
    ):
        kinds = np.where(program.integer, "I", "C")
        x = model.addMVar(program.columns, lb=0.0, ub=program.top, vtype=kinds)
        for limit, sign in ((program.lower, 1.0), (program.upper, -1.0)):
            used = np.flatnonzero(np.isfinite(limit))
            if len(used):
                model.addConstr(sign * (matrix[used] @ x) >= sign * limit[used])
        model.setObjective(program.objective @ x, gurobipy.GRB.MAXIMIZE)
        x.Start = np.where(np.isnan(start), gurobipy.GRB.UNDEFINED, start)
        model.Params.TimeLimit = seconds
        model.Params.MIPGap = gap
        model.Params.Threads = 1
        model.optimize()
        words = f"gurobi: status {model.Status}"
        if not model.SolCount:
            return Solution(None, None, words)
        return Solution(np.array(x.X), program.offset + float(model.ObjBound), words)


@dataclass(frozen=True)
class Gurobi(ExactOracle):
    """The tight form on Gurobi."""

    label: ClassVar[str] = "gurobi"

    def solver(self) -> Solver:
        return solve


@dataclass(frozen=True)
class GurobiPaper(PrintedOracle):
    """The printed program on Gurobi."""

    label: ClassVar[str] = "gurobi-paper"

    def solver(self) -> Solver:
        return solve
