"""From a problem to its core."""

from __future__ import annotations

import numpy as np

from dualquery.oracles.core import Core, Int64, WeightedQueries
from dualquery.oracles.problem import Problem
from dualquery.workloads.workload import Workload


def compile_core(problem: Problem) -> Core:
    """Bring a problem into its compact form, in time linear in its literals and codes."""
    return build_core(weighted_queries(problem))


def weighted_queries(problem: Problem) -> WeightedQueries:
    """The drawn queries, followed by what the constraints forbid, as penalised queries."""
    workload, literals = problem.workload, problem.workload.literals
    drawn = WeightedQueries(
        attribute=literals.attribute,
        literal_start=literals.start,
        codes=literals.codes,
        start=workload.start,
        terms=workload.terms,
        is_parity=workload.is_parity,
        weight=problem.weights,
        sizes=workload.schema.sizes,
        defaults=problem.defaults,
        constant=problem.constant,
        penalty=int(np.abs(problem.weights).sum()) + 1,
    )
    if problem.constraints is None or not len(problem.constraints):
        return drawn
    rules = Workload.of(problem.constraints.forbidden, workload.schema)
    return drawn._replace(
        attribute=np.concatenate([drawn.attribute, rules.literals.attribute]),
        literal_start=_append(drawn.literal_start, rules.literals.start),
        codes=np.concatenate([drawn.codes, rules.literals.codes]),
        start=_append(drawn.start, rules.start),
        terms=np.concatenate([drawn.terms, rules.terms + 2 * len(literals)]).astype(np.int32),
        is_parity=np.concatenate([drawn.is_parity, rules.is_parity]),
        weight=np.concatenate([drawn.weight, np.full(len(rules), -drawn.penalty, np.int64)]),
    )


def _append(start: Int64, more: Int64) -> Int64:
    """The offsets of two ragged arrays put one after the other."""
    return np.concatenate([start, start[-1] + more[1:]])


def build_core(queries: WeightedQueries) -> Core:
    """The core of weighted queries."""
    # numba takes long to import, so kernels are imported where they are first needed.
    from dualquery.oracles import _compile_kernels

    core: Core = _compile_kernels.build_core(queries)
    return core
