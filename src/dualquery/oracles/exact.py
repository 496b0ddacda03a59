"""The exact oracles: annealing first, then the relaxation, then a solver for what is open.

`PrintedOracle` is the other way, the paper's: its program of the whole problem, and a solver.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dualquery.base.checks import refusal
from dualquery.oracles import milp
from dualquery.oracles.annealing import Annealing, anneal_parts
from dualquery.oracles.compile import compile_core
from dualquery.oracles.core import Core, Int32, Part, Search, decode
from dualquery.oracles.oracle import Found, Record, TimedOracle
from dualquery.oracles.problem import Problem
from dualquery.oracles.program import Program, paper_form, tight_form
from dualquery.oracles.solver import Solution, Solver

SLACK = 1e-6
"""Values are whole numbers, so a bound this much above one still proves it."""


def check_limits(time_limit: float, gap: float) -> None:
    """Refuse limits that no solver can keep; a time limit may be infinite."""
    if not time_limit >= 0:
        raise refusal("time_limit", time_limit, "0 or more seconds")
    if not 0 <= gap < 1:
        raise refusal("gap", gap, "0 or more, and below 1")


@dataclass(frozen=True)
class ExactOracle(TimedOracle):
    """Annealing, then a bound on each part by its relaxation, then the solver.

    A part is proved if its bound, rounded down, equals the annealed value. Cuts tighten the
    relaxation of the others. The parts that are still open go to the solver, until a call has
    taken `time_limit` seconds. `cuts` and `search` turn these two steps off. `gap` is the
    relative gap at which to stop; 0 proves the optimum.
    """

    time_limit: float = 20.0
    gap: float = 0.0
    cuts: bool = True
    search: bool = True
    annealing: Annealing = field(default_factory=Annealing)

    def __post_init__(self) -> None:
        check_limits(self.time_limit, self.gap)

    def solver(self) -> Solver:
        """The solver for the parts that annealing and relaxation leave open."""
        raise NotImplementedError

    def find(
        self, problem: Problem, warm_starts: Sequence[Record], generator: np.random.Generator
    ) -> Found:
        started = time.perf_counter()
        reduction = self.annealing.reduce(problem)
        slots = anneal_parts(reduction, self.annealing, warm_starts, generator)
        bound: float = reduction.settled
        failure = None
        for part in reduction.parts:
            bracket = Bracket.of(reduction.rest, part, slots)
            words = self.close(bracket, started + self.time_limit)
            bound += bracket.bound
            failure = failure or words
        record = decode(reduction.core, reduction.expand(slots), problem.defaults)
        return Found(record, bound, failure)

    def close(self, bracket: Bracket, deadline: float) -> str | None:
        """Bring the value and the bound of a part together; say what failed, if anything did.

        Args:
            bracket: the part; it changes.
            deadline: when to stop, on the clock `time.perf_counter`.
        """

        def remaining() -> float:
            """The seconds that may still be spent: none once the part is close enough."""
            return 0.0 if bracket.within(self.gap) else deadline - time.perf_counter()

        try:
            program = tight_form(bracket.core, bracket.part)
            for cuts in (False, True) if self.cuts else (False,):
                if (left := remaining()) > 0:
                    # Cuts may take long on hard parts: half of the time is left to the solver.
                    seconds = left / 2 if cuts and self.search else left
                    bracket.take(program, milp.relax(program, seconds, cuts=cuts))
            # Values are whole numbers, so the solver may stop half a unit short of its bound.
            # Where the objective is too near 0 to say so relatively, it goes to the end.
            size = abs(bracket.value - program.offset)
            for short in (0.5 / size if size >= 2 else 0.0, 0.0):
                if not self.search or (left := remaining()) <= 0:
                    break
                solution = self.solver()(
                    program,
                    start=program.start(bracket.core, bracket.part.variables, bracket.slots),
                    seconds=left,
                    gap=max(self.gap, short),
                )
                bracket.take(program, solution)
                if solution.point is None and solution.bound is None:
                    return solution.status
        except Exception as error:  # a solver's failure must not stop a run
            return f"{self.name} failed: {describe_failure(error)}"
        return None


@dataclass(frozen=True)
class PrintedOracle(TimedOracle):
    """The paper's integer programs as they are printed, on a solver.

    The program is that of the whole problem: no reduction, no annealing, no relaxation. After
    `time_limit` seconds the best record so far is taken, as in the paper.
    """

    time_limit: float = 20.0
    gap: float = 0.0

    def __post_init__(self) -> None:
        check_limits(self.time_limit, self.gap)

    def solver(self) -> Solver:
        """What solves the program."""
        raise NotImplementedError

    def find(
        self, problem: Problem, warm_starts: Sequence[Record], generator: np.random.Generator
    ) -> Found:
        core = compile_core(problem)
        part = Part.whole(core)
        slots = core.home.copy()
        bound: float = core.constant + part.most(core)
        failure = None
        if core.terms:
            try:
                program = paper_form(core, part)
                nothing = np.full(program.columns, np.nan)
                solution = self.solver()(
                    program, start=nothing, seconds=self.time_limit, gap=self.gap
                )
                if solution.point is None:
                    failure = solution.status
                else:
                    program.slots(core, part.variables, solution.point, slots)
                if solution.bound is not None and np.isfinite(solution.bound):
                    bound = min(bound, core.constant + solution.bound)
            except Exception as error:  # a solver's failure must not stop a run
                failure = describe_failure(error)
        return Found(decode(core, slots, problem.defaults), bound, failure)


@dataclass
class Bracket:
    """One part: the best slots so far, their value, and a bound on the value of any slots.

    `slots` is the assignment of the whole core, shared by its parts and changed in place.
    """

    core: Core
    part: Part
    slots: Int32
    value: int
    bound: float

    @classmethod
    def of(cls, core: Core, part: Part, slots: Int32) -> Bracket:
        """The bracket of an assignment about which nothing is proved."""
        return cls(core, part, slots, part_value(core, part, slots), part.most(core))

    def within(self, gap: float) -> bool:
        """Whether the bound is above the value by no more than this share of it."""
        if self.bound <= self.value:
            return True
        return self.value > 0 and self.bound / self.value - 1 <= gap

    def take(self, program: Program, solution: Solution) -> None:
        """Take over what a solution improves: the bound, and the slots with their value."""
        if solution.bound is not None and np.isfinite(solution.bound):
            self.bound = min(self.bound, float(np.floor(solution.bound + SLACK)))
        if solution.point is not None:
            variables = self.part.variables
            candidate = self.slots.copy()
            program.slots(self.core, variables, solution.point, candidate)
            found = part_value(self.core, self.part, candidate)
            if found > self.value:
                self.slots[variables] = candidate[variables]
                self.value = found
        self.bound = max(self.bound, self.value)


def part_value(core: Core, part: Part, slots: Int32) -> int:
    """The value of a part's terms at an assignment."""
    from dualquery.oracles import _kernels

    return int(_kernels.load(core, part, Search.over(core, slots.copy())))


def describe_failure(error: Exception) -> str:
    """An exception in one line, for the status of a response."""
    return f"{type(error).__name__}: {error}"
