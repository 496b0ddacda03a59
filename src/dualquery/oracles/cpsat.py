"""The oracles on OR-Tools' CP-SAT: the best solver for rounds that branch a lot."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from dualquery.oracles.exact import ExactOracle, PrintedOracle
from dualquery.oracles.program import Floats, Program
from dualquery.oracles.solver import Solution, Solver


def solve(
    program: Program, *, start: Floats, seconds: float, gap: float, workers: int = 1
) -> Solution:
    """Solve a program, as `Solver` describes, with all columns whole.

    The columns of terms take whole values in any optimum, so that changes nothing. The default
    search fails on these problems. It succeeds with every row in the relaxation (linearization
    level 2), exactly-one constraints, and the start as a hint.

    Args:
        program: what to solve.
        start: a known point, with NaN for the columns that are left to the solver.
        seconds: the time limit.
        gap: ignored; the search stops half a unit short of its bound.
        workers: the number of threads.
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    columns = [model.new_int_var(0, int(top), f"x{i}") for i, top in enumerate(program.top)]
    single = set(program.exactly_one)
    for number, row in enumerate(program.row_entries()):
        members = [columns[i] for i in row.columns]
        if number in single:
            model.add_exactly_one(members)
            continue
        expression = cp_model.LinearExpr.weighted_sum(members, row.coefficients)
        low, high = program.lower[number], program.upper[number]
        if np.isfinite(low):
            model.add(expression >= int(low))
        if np.isfinite(high):
            model.add(expression <= int(high))
    model.maximize(cp_model.LinearExpr.weighted_sum(columns, [int(w) for w in program.objective]))
    for column, value in zip(columns, start, strict=True):
        if not np.isnan(value):
            model.add_hint(column, int(value))
    solver = cp_model.CpSolver()
    solver.parameters.linearization_level = 2
    solver.parameters.num_workers = workers
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.relative_gap_limit = 0.0
    solver.parameters.absolute_gap_limit = 0.5
    status = solver.solve(model)
    words = f"cpsat: {solver.status_name(status).lower()}"
    bound = program.offset + solver.best_objective_bound
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        point = np.array([solver.value(column) for column in columns], dtype=float)
        return Solution(point, bound, words)
    # If it ran out of time without a point, what it has proved still holds.
    return Solution(None, bound if status == cp_model.UNKNOWN else None, words)


@dataclass(frozen=True)
class CpSat(ExactOracle):
    """The tight form on CP-SAT, with one worker by default, so that others can work too."""

    workers: int = 1
    label: ClassVar[str] = "cpsat"

    def solver(self) -> Solver:
        return partial(solve, workers=self.workers)


@dataclass(frozen=True)
class CpSatPaper(PrintedOracle):
    """The printed program on CP-SAT."""

    workers: int = 1
    label: ClassVar[str] = "cpsat-paper"

    def solver(self) -> Solver:
        return partial(solve, workers=self.workers)
