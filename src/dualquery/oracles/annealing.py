"""Simulated annealing over valid records: the default oracle.

It takes milliseconds where an exact solver needs seconds. On drawn problems it is as good:
the records it finds equal the proved optimum in nearly every round that can be proved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dualquery.base.checks import refusal, whole
from dualquery.oracles.compile import compile_core
from dualquery.oracles.core import Cooling, Core, Int32, Part, Search, decode, encode
from dualquery.oracles.oracle import Found, Record, TimedOracle
from dualquery.oracles.problem import Problem
from dualquery.oracles.reduction import Reduction, reduce_core
from dualquery.oracles.reduction.reduce import ENUMERATE

ELIMINATION = 200_000_000
"""The most word operations that an elimination over GF(2) may take: a fraction of a second."""

WARM_STARTS = 4
"""How many of the last records offered are used as starts."""


@dataclass(frozen=True)
class Annealing(TimedOracle):
    """Several annealing runs on each part, each cooled from `hot` to `cold`, then descended.

    The budget is counted in sweeps, not in seconds, so that a seeded run repeats. Small parts
    do best with many short runs, large ones with few long ones. If `sweeps` is not given, a
    run has one sweep per twelve slots of its part, but at least 18 and at most 100, and a part
    gets as many of its `runs` as fit into 2400 sweeps. A part is done early once `agree` runs
    from random starts have ended at the same best value. It is done even earlier, after
    `unanimous` of them, while no run at all has ended elsewhere. `fix` and `enumerate_up_to`
    are those of `reduce_core`.
    """

    runs: int = 32
    agree: int = 8
    unanimous: int = 4
    sweeps: int | None = None
    hot: float = 0.8
    cold: float = 0.1
    fix: bool = True
    enumerate_up_to: int = ENUMERATE

    label: ClassVar[str] = "annealing"

    def __post_init__(self) -> None:
        for name in ("runs", "agree", "unanimous", "sweeps"):
            value = getattr(self, name)
            if value is not None:
                whole(name, value)
        if not 0 < self.cold <= self.hot:
            raise refusal("cold", self.cold, f"a number above 0 and up to hot = {self.hot:g}")

    def cooling(self, slots: int, enough: int) -> Cooling:
        """How a part with that many slots is annealed; a value of `enough` cannot be beaten."""
        # Few variables carry heavy scores, so small parts need more heat to come loose.
        hot = max(self.hot if slots < 600 else 0.6 * self.hot, self.cold)
        runs, sweeps = self.runs, self.sweeps
        if sweeps is None:
            sweeps = min(max(slots // 12, 18), 100)
            runs = min(runs, 2400 // sweeps)
        return Cooling(
            runs, sweeps, float(hot), float(self.cold), enough, self.agree, self.unanimous
        )

    def reduce(self, problem: Problem) -> Reduction:
        """The core of a problem, with everything settled that can be without a search."""
        core = compile_core(problem)
        return reduce_core(core, fix=self.fix, enumerate_up_to=self.enumerate_up_to)

    def find(
        self, problem: Problem, warm_starts: Sequence[Record], generator: np.random.Generator
    ) -> Found:
        reduction = self.reduce(problem)
        slots = anneal_parts(reduction, self, warm_starts, generator)
        record = decode(reduction.core, reduction.expand(slots), problem.defaults)
        bound = reduction.settled + sum(part.most(reduction.rest) for part in reduction.parts)
        return Found(record, bound)


def anneal_parts(
    reduction: Reduction,
    settings: Annealing,
    warm_starts: Sequence[Record],
    generator: np.random.Generator,
) -> Int32:
    """Anneal each part by itself.

    Args:
        reduction: the parts, and the core they live in.
        settings: how long to anneal, and how hot.
        warm_starts: records to start from, the most promising last.
        generator: public randomness.

    Returns:
        Slots of `reduction.rest`.
    """
    slots = reduction.slots.copy()
    if not reduction.parts:
        return slots
    from dualquery.oracles import _anneal_kernels, _kernels

    rest = reduction.rest
    recent = list(warm_starts)[::-1][:WARM_STARTS]
    starts = np.empty((len(recent), rest.variables), dtype=np.int32)
    for row, full in enumerate(encode(reduction.core, recent)):
        starts[row] = reduction.project(full)
    search = Search.over(rest, slots)
    widths = np.diff(rest.first)
    for part in reduction.parts:
        cooling = settings.cooling(int(widths[part.variables].sum()), part.most(rest))
        if rest.parity[part.terms].any():
            start_parities(rest, part, slots)
        seed = int(generator.integers(2**62))
        _anneal_kernels.anneal(rest, part, cooling, starts, seed, search)
        _kernels.load(rest, part, search)
        _kernels.descend(rest, part.variables, search)
    return slots


def start_parities(core: Core, part: Part, slots: Int32) -> None:
    """Change `slots` to where elimination over GF(2) leads, heaviest terms first.

    With fewer draws than attributes this alone is nearly always an optimum. A part for which
    it would take too long is left as it is.
    """
    from dualquery.oracles import _parity_kernels

    words = 1 + len(part.variables) // 64
    if len(part.terms) * len(part.variables) * words > ELIMINATION:
        return
    heaviest = np.argsort(-np.abs(core.weight[part.terms]), kind="stable")
    _parity_kernels.eliminate(core, Part(part.variables, part.terms[heaviest]), slots)
