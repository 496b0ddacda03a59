"""The exact oracles: annealing first, then the relaxation, then a solver for what is open."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from dualquery.errors import ParameterError
from dualquery.oracles.annealing import Annealing, anneal_parts
from dualquery.oracles.core import Core, Int32, decode
from dualquery.oracles.oracle import Record, Response, respond
from dualquery.oracles.problem import Problem
from dualquery.oracles.program import Floats, Program, paper_form, tight_form, whole
from dualquery.oracles.reduction.reduce import Part

SLACK = 1e-6
"""Values are whole numbers: a bound this much above one still proves it."""


@dataclass(frozen=True)
class Outcome:
    """What a solver found: a point if any, an upper bound if any (offset included), and words."""

    solution: Floats | None
    bound: float | None
    status: str


class Solver(Protocol):
    """The thin interface to a solver of mixed-integer programs.

    `start` holds a known solution, NaN where a column is open; a solver that cannot use
    it passes it over. A solver may raise: the caller records the failure and goes on.
    """

    def __call__(
        self, program: Program, *, start: Floats, seconds: float, gap: float
    ) -> Outcome: ...


def part_value(core: Core, part: Part, slots: Int32) -> int:
    """The value of a part's terms at an assignment."""
    from dualquery.oracles._kernels import load_state
    from dualquery.oracles.reduction.reduce import search_state

    return int(load_state(core, part.variables, part.terms, slots.copy(), *search_state(core)))


@dataclass(frozen=True)
class ExactOracle:
    """Annealing, then a bound on each part by its relaxation, then the solver.

    A part whose rounded bound meets the annealed value is proved and needs no search. The
    others have their relaxation tightened by cuts, and what is open even then goes to the
    solver, until `time_limit` seconds have passed in this call; `cuts` and `search` can be
    turned off. `gap` is the relative gap at which to stop (0: prove it).
    """

    time_limit: float = 20.0
    gap: float = 0.0
    cuts: bool = True
    search: bool = True
    annealing: Annealing = field(default_factory=Annealing)

    label: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if not self.time_limit >= 0:
            raise ParameterError(f"Expected time_limit={self.time_limit} >= 0")
        if not 0 <= self.gap < 1:
            raise ParameterError(f"Expected 0 <= gap={self.gap} < 1")

    @property
    def name(self) -> str:
        return self.label

    def solver(self) -> Solver:
        raise NotImplementedError

    def __call__(
        self,
        problem: Problem,
        *,
        warm_starts: Sequence[Record] = (),
        generator: np.random.Generator,
    ) -> Response:
        started = time.perf_counter()
        reduction = problem.reduction
        slots = anneal_parts(reduction, self.annealing, warm_starts, generator)
        bound: float = reduction.settled
        failure = None
        for part in reduction.parts:
            left = self.time_limit - (time.perf_counter() - started)
            part_bound, words = self.improve(reduction.rest, part, slots, left)
            bound += part_bound
            failure = failure or words
        record = decode(problem.core, reduction.expand(slots), problem.defaults)
        return respond(problem, [record], started, bound=bound, failure=failure)

    def improve(
        self, core: Core, part: Part, slots: Int32, seconds: float
    ) -> tuple[float, str | None]:
        """Better slots for one part, left in `slots`; its bound, and what failed if anything."""
        from dualquery.oracles.highs import relax

        began = time.perf_counter()
        value = part_value(core, part, slots)
        bound: float = part.most(core)

        def remaining() -> float:
            """Seconds that may still be spent: none once the part is close enough."""
            if bound <= value or (value > 0 and bound / value - 1 <= self.gap):
                return 0.0
            return seconds - (time.perf_counter() - began)

        try:
            program = tight_form(core, part)
            for cuts in (False, True) if self.cuts else (False,):
                if (left := remaining()) > 0:
                    # Cuts may take long on hard parts: half of the time is left to the search.
                    relaxed = relax(program, left / 2 if cuts and self.search else left, cuts=cuts)
                    bound, value = _merge(core, part, program, relaxed, slots, bound, value)
            # Values are whole numbers, so a search may stop half a unit short of its bound;
            # where the objective is too near 0 to say so relatively, it goes to the end.
            size = abs(value - program.offset)
            for short in (0.5 / size if size >= 2 else 0.0, 0.0):
                if not self.search or (left := remaining()) <= 0:
                    break
                outcome = self.solver()(
                    program,
                    start=program.start(core, part.variables, slots),
                    seconds=left,
                    gap=max(self.gap, short),
                )
                bound, value = _merge(core, part, program, outcome, slots, bound, value)
                if outcome.solution is None and outcome.bound is None:
                    return bound, outcome.status
        except Exception as error:  # a solver's failure must not stop a run
            return bound, f"{self.name} failed: {type(error).__name__}: {error}"
        return bound, None


def _merge(
    core: Core,
    part: Part,
    program: Program,
    outcome: Outcome,
    slots: Int32,
    bound: float,
    value: int,
) -> tuple[float, int]:
    """Take over what an outcome improves: the slots and the bound."""
    if outcome.bound is not None and np.isfinite(outcome.bound):
        bound = min(bound, float(np.floor(outcome.bound + SLACK)))
    if outcome.solution is not None:
        candidate = slots.copy()
        program.slots(core, part.variables, outcome.solution, candidate)
        found = part_value(core, part, candidate)
        if found > value:
            slots[part.variables] = candidate[part.variables]
            value = found
    return max(bound, value), value


def paper_response(
    problem: Problem, solve: Solver, seconds: float, gap: float, started: float
) -> Response:
    """The paper's program on the whole problem: no reduction, no annealing, no relaxation."""
    core = problem.core
    slots = core.home.copy()
    bound: float = core.constant + whole(core).most(core)
    failure = None
    if core.terms:
        part = whole(core)
        try:
            program = paper_form(core, part)
            nothing = np.full(program.columns, np.nan)
            outcome = solve(program, start=nothing, seconds=seconds, gap=gap)
            if outcome.solution is None:
                failure = outcome.status
            else:
                program.slots(core, part.variables, outcome.solution, slots)
            if outcome.bound is not None and np.isfinite(outcome.bound):
                bound = min(bound, core.constant + outcome.bound)
        except Exception as error:  # a solver's failure must not stop a run
            failure = f"{type(error).__name__}: {error}"
    record = decode(core, slots, problem.defaults)
    return respond(problem, [record], started, bound=bound, failure=failure)
