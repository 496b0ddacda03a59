"""OR-Tools' CP-SAT: the solver for rounds that branch a lot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dualquery.oracles.mip import ExactOracle, Outcome, Solver
from dualquery.oracles.program import Floats, Program


def solve(
    program: Program, *, start: Floats, seconds: float, gap: float, workers: int = 1
) -> Outcome:
    """The program with whole columns throughout, which its terms' columns take anyway.

    Its default search fails on these problems; with every row in the relaxation
    (linearization level 2), exactly-one constraints and the start as a hint it does not.
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    columns = [model.new_int_var(0, int(top), f"x{i}") for i, top in enumerate(program.top)]
    members: list[list[tuple[Any, int]]] = [[] for _ in range(program.rows)]
    for row, entry, coefficient in zip(
        program.row, program.entry, program.coefficient, strict=True
    ):
        members[row].append((columns[entry], int(coefficient)))
    single = set(program.exactly_one)
    for row, terms in enumerate(members):
        if row in single:
            model.add_exactly_one([variable for variable, _ in terms])
            continue
        expression = cp_model.LinearExpr.weighted_sum(
            [variable for variable, _ in terms], [weight for _, weight in terms]
        )
        low, high = program.lower[row], program.upper[row]
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
        solution = np.array([solver.value(column) for column in columns], dtype=float)
        return Outcome(solution, bound, words)
    # Out of time without a solution: what it proved so far still holds.
    return Outcome(None, bound if status == cp_model.UNKNOWN else None, words)


@dataclass(frozen=True)
class CpSat(ExactOracle):
    """The tight form on CP-SAT; one worker, so that it shares a machine politely."""

    workers: int = 1
    label: ClassVar[str] = "cpsat"

    def solver(self) -> Solver:
        def run(program: Program, *, start: Floats, seconds: float, gap: float) -> Outcome:
            return solve(program, start=start, seconds=seconds, gap=gap, workers=self.workers)

        return run
