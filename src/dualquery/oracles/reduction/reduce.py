"""The reduction of a core to the parts that need a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dualquery.oracles.core import Core, Int32, build

ENUMERATE = 4096
"""Components with at most this many combinations of slots are solved outright."""


@dataclass(frozen=True)
class Part:
    """A connected component that is left to search: its variables and its terms."""

    variables: Int32
    terms: Int32

    def most(self, core: Core) -> int:
        """Every positive term and no negative one: no assignment is worth more."""
        return int(np.maximum(core.weight[self.terms], 0).sum())


@dataclass(frozen=True)
class Reduction:
    """A core, what was settled of it, and the parts that were not.

    `rest` is the core in which the parts live, `slots` an assignment of it in which all
    but the parts is settled, and `settled` the value of all terms outside the parts
    (the constant included): an optimum of the parts completes an optimum of the whole.
    """

    core: Core
    rest: Core
    slots: Int32
    settled: int
    parts: tuple[Part, ...]
    stages: tuple[Stage, ...]

    def expand(self, slots: Int32) -> Int32:
        """Slots of `core` for slots of `rest`."""
        for stage in reversed(self.stages):
            slots = stage.expand(slots)
        return slots

    def project(self, slots: Int32) -> Int32:
        """The nearest slots of `rest` for slots of `core`: what was struck out goes home."""
        for stage in self.stages:
            slots = stage.project(slots)
        return slots


@dataclass(frozen=True)
class Stage:
    """One pass: a core, the slots that live, and the smaller core.

    `owners` and `peeled` are the parities that left with a variable of their own.
    """

    core: Core
    living: Int32
    start: Int32
    chosen: Int32
    rest: Core
    owners: Int32
    peeled: Int32

    def expand(self, slots: Int32) -> Int32:
        from dualquery.oracles.reduction import _kernels

        full = self.chosen.copy()
        owner = self.rest.attribute
        full[owner] = self.living[self.start[owner] + self.rest.code[slots]]
        if len(self.owners):
            _kernels.unpeel(self.core, self.owners, self.peeled, full)
        return full

    def project(self, slots: Int32) -> Int32:
        rank = np.full(len(self.core.code), -1, dtype=np.int32)
        rank[self.living] = np.arange(len(self.living))
        owner = self.rest.attribute
        at = rank[slots[owner]]
        at = np.where(at < 0, rank[self.chosen[owner]], at) - self.start[owner]
        projected: Int32 = self.rest.slot_of_code[self.rest.code_start[:-1] + at]
        return projected


def reduce_core(core: Core, *, fix: bool = True, enumerate_up_to: int = ENUMERATE) -> Reduction:
    """Fix by persistency until nothing more gives, then split and solve the small parts.

    Both steps can be left out, to see what a solver does without them.
    """
    from dualquery.oracles._search_kernels import enumerate_slots
    from dualquery.oracles.reduction import _kernels

    rest, stages = core, []
    while fix and rest.terms:
        stage = _pass(rest)
        if stage is None:
            break
        stages.append(stage)
        rest = stage.rest
    slots = rest.home.copy()
    settled = rest.constant
    parts = []
    if rest.terms:
        state = search_state(rest)
        variable_start, by_variable, term_start, by_term = _kernels.components(rest)
        widths = np.log(np.diff(rest.first))
        for c in range(len(variable_start) - 1):
            variables = by_variable[variable_start[c] : variable_start[c + 1]]
            terms = by_term[term_start[c] : term_start[c + 1]]
            if np.exp(widths[variables].sum()) <= enumerate_up_to + 0.5:
                settled += int(enumerate_slots(rest, variables, terms, slots, *state))
            else:
                parts.append(Part(variables, terms))
    return Reduction(core, rest, slots, settled, tuple(parts), tuple(stages))


def search_state(core: Core) -> tuple[Int32, Int32, npt.NDArray[np.int64]]:
    """Room for `miss`, `mark` and `score`."""
    return (
        np.zeros(core.terms, np.int32),
        np.zeros(core.terms, np.int32),
        np.zeros(len(core.code), np.int64),
    )


def _pass(core: Core) -> Stage | None:
    from dualquery.oracles.reduction import _kernels

    alive, is_open, term_open, odd = _kernels.persist(core)
    owners = peeled = np.empty(0, np.int32)
    constant = core.constant
    if alive.all():
        if not core.parity.any():
            return None
        term_open, owners, peeled = _kernels.peel(core)
        if not len(owners):
            return None
        constant += int(np.maximum(core.weight[peeled], 0).sum())
    arrays = _kernels.restrict(core, alive, is_open, term_open, odd)
    sizes, chosen = arrays[7], arrays[9]
    if not len(owners):
        constant += int(_kernels.settled_value(core, chosen, term_open))
    arguments: list[Any] = [*arrays[:9], constant, core.penalty]
    rest = build(*arguments)
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    living = np.flatnonzero(alive).astype(np.int32)
    return Stage(core, living, start, chosen, rest, owners, peeled)
