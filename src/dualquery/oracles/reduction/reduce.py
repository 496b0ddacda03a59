"""The reduction of a core to the parts that need a search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dualquery.base.ragged import offsets
from dualquery.oracles.compile import build_core
from dualquery.oracles.core import Core, Int32, Part, Search

ENUMERATE = 4096
"""A component with at most this many combinations of slots is solved by trying them all."""


@dataclass(frozen=True)
class Reduction:
    """A core, what was settled of it, and the parts that were not.

    The parts live in the core `rest`. `slots` is an assignment of `rest` in which everything
    outside the parts is settled. `settled` is the value of all terms outside the parts, the
    constant included. An optimum of the parts completes an optimum of the whole.
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
        """The nearest slots of `rest` for slots of `core`; a slot struck out goes home."""
        for stage in self.stages:
            slots = stage.project(slots)
        return slots


@dataclass(frozen=True)
class Stage:
    """One pass: a core, the slots of it that live, and the smaller core `rest`.

    The living slots of variable v are `living[start[v]:start[v+1]]`, and `chosen[v]` is the
    one of them that stands for the default. `parities` left the problem, each with a variable
    of its own (`owners`).
    """

    core: Core
    living: Int32
    start: Int32
    chosen: Int32
    rest: Core
    owners: Int32
    parities: Int32

    def expand(self, slots: Int32) -> Int32:
        """Slots of `core` for slots of `rest`."""
        from dualquery.oracles.reduction import _kernels

        full = self.chosen.copy()
        owner = self.rest.attribute
        full[owner] = self.living[self.start[owner] + self.rest.code[slots]]
        if len(self.owners):
            _kernels.unpeel(self.core, self.owners, self.parities, full)
        return full

    def project(self, slots: Int32) -> Int32:
        """The nearest slots of `rest` for slots of `core`."""
        rank = np.full(len(self.core.code), -1, dtype=np.int32)
        rank[self.living] = np.arange(len(self.living))
        owner = self.rest.attribute
        at = rank[slots[owner]]
        at = np.where(at < 0, rank[self.chosen[owner]], at) - self.start[owner]
        projected: Int32 = self.rest.slot_of_code[self.rest.code_start[:-1] + at]
        return projected


def reduce_core(core: Core, *, fix: bool = True, enumerate_up_to: int = ENUMERATE) -> Reduction:
    """Fix by bounds until nothing more can be fixed, then split and solve the small parts.

    Both steps can be left out, to see what a solver does without them.
    """
    from dualquery.oracles import _enumerate_kernels
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
        search = Search.over(rest, slots)
        groups = _kernels.components(rest)
        log_widths = np.log(np.diff(rest.first))
        for c in range(len(groups.variable_start) - 1):
            part = Part(
                groups.variables[groups.variable_start[c] : groups.variable_start[c + 1]],
                groups.terms[groups.term_start[c] : groups.term_start[c + 1]],
            )
            if log_widths[part.variables].sum() <= np.log(enumerate_up_to + 0.5):
                settled += int(_enumerate_kernels.enumerate_slots(rest, part, search))
            else:
                parts.append(part)
    return Reduction(core, rest, slots, settled, tuple(parts), tuple(stages))


def _pass(core: Core) -> Stage | None:
    """Strike out slots; where no slot goes, peel parities; None where neither is possible."""
    from dualquery.oracles.reduction import _fixing_kernels, _kernels

    fixing = _fixing_kernels.persist(core)
    kept = _kernels.Kept(fixing.alive, fixing.is_open, fixing.term_open, fixing.odd)
    living = _kernels.living_slots(core, kept.alive)
    if not kept.alive.all():
        owners = parities = np.empty(0, np.int32)
        closed = int(_kernels.settled_value(core, living.chosen, kept.term_open))
    elif not core.parity.any():
        return None
    else:
        term_open, owners, parities = _kernels.peel(core)
        if not len(owners):
            return None
        kept = kept._replace(term_open=term_open)
        closed = int(np.maximum(core.weight[parities], 0).sum())
    return Stage(
        core=core,
        living=np.flatnonzero(kept.alive).astype(np.int32),
        start=offsets(living.sizes).astype(np.int32),
        chosen=living.chosen,
        rest=build_core(_kernels.open_queries(core, kept, living, core.constant + closed)),
        owners=owners,
        parities=parities,
    )
