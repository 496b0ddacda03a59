"""Simulated annealing over valid records: the default oracle.

Milliseconds where an exact solver needs seconds, and on drawn problems as good: the
records it finds equal the proved optimum in nearly every round that can be proved.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dualquery.errors import ParameterError
from dualquery.oracles.core import Core, Int32, decode, encode
from dualquery.oracles.oracle import Record, Response, respond
from dualquery.oracles.problem import Problem
from dualquery.oracles.reduction import Reduction
from dualquery.oracles.reduction.reduce import Part, search_state

ELIMINATION = 200_000_000
"""Word operations that an elimination over GF(2) may take: a fraction of a second."""


@dataclass(frozen=True)
class Annealing:
    """Several annealing runs on each part, each cooled from `hot` to `cold`, then descended.

    The budget is counted in sweeps, not in seconds, so that a seeded run repeats. Small
    parts do best with many short runs, large ones with few long ones: without `sweeps` a
    run has one sweep for every twelve slots of its part, within 18 and 100, and a part gets
    as many of its `runs` as fit into 2400 sweeps. It is done early when `agree` runs from
    random starts end at the same best value, or `unanimous` of them while no run at all has
    ended elsewhere.
    """

    runs: int = 32
    agree: int = 8
    unanimous: int = 4
    sweeps: int | None = None
    hot: float = 0.8
    cold: float = 0.1

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise ParameterError(f"Expected runs={self.runs} >= 1")
        if self.agree < 1:
            raise ParameterError(f"Expected agree={self.agree} >= 1")
        if self.unanimous < 1:
            raise ParameterError(f"Expected unanimous={self.unanimous} >= 1")
        if self.sweeps is not None and self.sweeps < 1:
            raise ParameterError(f"Expected sweeps={self.sweeps} >= 1")
        if not 0 < self.cold <= self.hot:
            raise ParameterError(f"Expected 0 < cold={self.cold} <= hot={self.hot}")

    def schedule(self, slots: int) -> tuple[int, int, float]:
        """How many runs of how many sweeps, from which heat, a part of that size gets."""
        # Few variables carry heavy scores, so small parts need more heat to come loose.
        heat = max(self.hot if slots < 600 else 0.6 * self.hot, self.cold)
        if self.sweeps is not None:
            return self.runs, self.sweeps, heat
        sweeps = min(max(slots // 12, 18), 100)
        return min(self.runs, 2400 // sweeps), sweeps, heat

    @property
    def name(self) -> str:
        return "annealing"

    def __call__(
        self,
        problem: Problem,
        *,
        warm_starts: Sequence[Record] = (),
        generator: np.random.Generator,
    ) -> Response:
        started = time.perf_counter()
        reduction = problem.reduction
        slots = anneal_parts(reduction, self, warm_starts, generator)
        record = decode(problem.core, reduction.expand(slots), problem.defaults)
        bound = reduction.settled + sum(part.most(reduction.rest) for part in reduction.parts)
        return respond(problem, [record], started, bound=bound)


def anneal_parts(
    reduction: Reduction,
    budget: Annealing,
    warm_starts: Sequence[Record],
    generator: np.random.Generator,
) -> Int32:
    """Slots of the reduced core, each part annealed by itself."""
    from dualquery.oracles import _kernels, _search_kernels

    slots = reduction.slots.copy()
    if reduction.parts:
        rest = reduction.rest
        recent = list(warm_starts)[::-1][:4]
        starts = np.empty((len(recent), rest.variables), dtype=np.int32)
        for row, full in enumerate(encode(reduction.core, recent)):
            starts[row] = reduction.project(full)
        state = search_state(rest)
        widths = np.diff(rest.first)
        for part in reduction.parts:
            runs, sweeps, heat = budget.schedule(int(widths[part.variables].sum()))
            if rest.parity[part.terms].any():
                start_parities(rest, part, slots)
            _search_kernels.anneal(
                rest,
                part.variables,
                part.terms,
                starts,
                runs,
                sweeps,
                heat,
                budget.cold,
                part.most(rest),
                budget.agree,
                budget.unanimous,
                int(generator.integers(2**62)),
                slots,
                *state,
            )
            _kernels.load_state(rest, part.variables, part.terms, slots, *state)
            _kernels.descend(rest, part.variables, slots, *state)
    return slots


def start_parities(core: Core, part: Part, slots: Int32) -> None:
    """Begin where elimination over GF(2) leads, heaviest terms first.

    With fewer draws than attributes this alone is nearly always an optimum.
    """
    from dualquery.oracles import _search_kernels

    words = 1 + len(part.variables) // 64
    if len(part.terms) * len(part.variables) * words > ELIMINATION:
        return
    heaviest = np.argsort(-np.abs(core.weight[part.terms]), kind="stable")
    _search_kernels.eliminate(core, part.variables, part.terms[heaviest], slots)
