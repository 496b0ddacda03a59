"""HiGHS through SciPy's `milp`: the solver that needs nothing else installed."""

from __future__ import annotations

import warnings

import numpy as np

from dualquery.oracles.program import Floats, Program
from dualquery.oracles.solver import Solution


def relax(program: Program, seconds: float, *, cuts: bool = False) -> Solution:
    """The relaxation: a point that may be fractional, and an upper bound.

    With `cuts` the relaxation is tightened as far as HiGHS does before it branches.
    """
    if cuts:
        return _solve(program, {"time_limit": seconds, "node_limit": 1}, whole=True)
    return _solve(program, {"time_limit": seconds}, whole=False)


def solve(program: Program, *, start: Floats, seconds: float, gap: float) -> Solution:
    """The integer program, as `Solver` describes; SciPy's interface takes no starting point.

    Args:
        program: what to solve.
        start: ignored.
        seconds: the time limit.
        gap: the relative gap at which to stop; 0 proves the optimum.
    """
    options = {"time_limit": seconds}
    return _solve(program, options | {"mip_rel_gap": gap} if gap > 0 else options, whole=True)


def _solve(program: Program, options: dict[str, float], *, whole: bool) -> Solution:
    # SciPy takes long to import, and most oracles never need it.
    from scipy.optimize import Bounds, LinearConstraint, milp

    rows = LinearConstraint(program.matrix(), program.lower, program.upper) if program.rows else ()
    with warnings.catch_warnings():
        # HiGHS warns about limits that were reached; the status says so too.
        warnings.simplefilter("ignore")
        result = milp(
            -program.objective,
            integrality=program.integer.astype(int) if whole else None,
            bounds=Bounds(np.zeros(program.columns), program.top),
            constraints=rows,
            options=options,
        )
    bound = None
    if whole and result.mip_dual_bound is not None:
        bound = program.offset - float(result.mip_dual_bound)
    elif not whole and result.status == 0:
        bound = program.offset - float(result.fun)
    return Solution(result.x, bound, str(result.message))
