"""The player of wide tables: independent attributes, unless the measured pairs say otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from dualquery.game.tables_player import DECAY_SQUARE, Known, TablesPlayer
from dualquery.game.tables_shape import weighed_sets
from dualquery.game.tables_steps import Kind, TablesPlan
from dualquery.model.dependence import CLEAR, Dependence
from dualquery.model.ensemble import Climb, climbed
from dualquery.model.grouping import LEAST
from dualquery.model.measured import Measured
from dualquery.model.product import fitted_product, margins
from dualquery.model.signs import Signs, are_binary
from dualquery.model.strengths import strengths
from dualquery.model.terms import Term
from dualquery.model.training import Ascent, Parameters
from dualquery.privacy.measuring import Measurement
from dualquery.workloads.workload import Workload

Floats = npt.NDArray[np.float64]

START_NOISE = 0.3
"""How far apart the components of a fit begin, in logits."""

EASY = 20.0
"""The strongest shrinkage where all pairs together show dependence. What single pairs show says
nothing then: a factor that all attributes share is seen in none of them."""

PART_SEED = 17
"""Decides which pairs are measured where there are too many; it is public."""


def player_of(
    workload: Workload,
    plan: TablesPlan,
    *,
    weights: Floats | None = None,
    fine: bool = False,
    seed: int = 0,
    climb: Climb = climbed,
) -> TablesPlayer:
    """The player that a plan is for.

    Args:
        workload: the asked queries.
        plan: the steps.
        weights: how much each query counts; all of them alike where left out.
        fine: whether one-way tables are measured in sub-bins.
        seed: of the fits' own, public randomness.
        climb: what climbs the fits.
    """
    kind = WidePlayer if plan.wide else TablesPlayer
    return kind(workload, plan, weights=weights, fine=fine, seed=seed, climb=climb)


class WidePlayer(TablesPlayer):
    """Takes attributes as independent unless the pairs say clearly that they are not.

    Of many attributes, a mixture that is fitted to noise is worse than no dependence at all. The
    decision is a function of the first one-way tables and pairs, so it never changes in a run.
    """

    # What the last pairs said: a memory of what could be computed again.
    _said: tuple[Measurement, Dependence] | None = None

    def components(self, known: Known) -> int:
        return self.plan.components if self.dependence(known).found else 1

    def member_count(self, known: Known) -> int:
        return self.plan.members if self.dependence(known).found else 1

    def dependence(self, known: Known) -> Dependence:
        """What the pairs say about it; nothing before they are measured."""
        steps = sum(step.kind in (Kind.ONE_WAY, Kind.PAIRS) for step in self.plan.steps)
        if steps < 2 or len(known.measurements) < steps:
            return Dependence(0.0, 0.0)
        first = known.measurements[:steps]
        if self._said is None or self._said[0] is not first[-1]:
            stack, total = self._stack(known), self.total(known)
            chance = self.plan.budget.unit.chance
            said = Dependence.of(stack, first, self._row_shares(known), total, chance)
            self._said = (first[-1], said)
        return self._said[1]

    def is_product(self, known: Known) -> bool:
        """Whether the model is a product of 0/1 attributes, whose errors have a closed form."""
        return are_binary(self._stack(known)) and not self.dependence(known).found

    def literal_estimates(self, known: Known, asked: Workload) -> tuple[Floats, Floats]:
        """The share of every literal and its variance, if 0/1 attributes are independent."""
        stack, literals = self._stack(known), asked.literals
        row = stack.start[stack.positions(literals.attribute)][literals.owner] + literals.codes
        product = fitted_product(stack, known.measurements, self.total(known))
        share = np.add.reduceat(product.rows[row], literals.start[:-1])
        certain = np.diff(literals.start) > 1  # a literal of both codes
        each = product.variance[stack.positions(literals.attribute)]
        return share, np.where(certain, 0.0, each)

    def _row_shares(self, known: Known) -> Floats:
        """The share of every row of the stack, from the first one-way tables alone."""
        self._stack(known)
        assert self._stacks is not None  # the stack was just made
        return self._stacks[2]

    def _sets(self, kind: Kind) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """The pairs that are measured: those that are asked about together, or a part of them."""
        if kind not in self._listed:
            pairs, levels = weighed_sets(self.workload, 2, self.weights)
            most = sum(step.tables for step in self.plan.steps if step.kind is Kind.PAIRS)
            if len(pairs) > most:
                generator = np.random.default_rng(PART_SEED)
                pairs = pairs[np.sort(generator.choice(len(pairs), most, replace=False))]
                levels = np.zeros(most, dtype=np.int64)
            self._listed[kind] = pairs, levels
        return self._listed[kind]

    def _members(self, known: Known) -> tuple[Parameters, ...]:
        stack, components = self._stack(known), self.components(known)
        if known.members is not None:
            return tuple(Parameters.at(flat, components) for flat in known.members)
        shares = self._row_shares(known)
        if are_binary(stack):
            shares = margins(stack, known.measurements, self.total(known)).rows
        logits = np.log(np.maximum(shares, LEAST)).astype(np.float32)
        noise = START_NOISE if components > 1 else 0.0
        members = []
        for number in range(self.member_count(known)):
            begun = Parameters.start(stack, components, noise, self.seed + number)
            begun.logits[:] += logits[:, None]
            members.append(begun)
        return tuple(members)

    def _fitted(self, known: Known, rates: Sequence[float]) -> npt.NDArray[np.float32]:
        """All members after one step at each rate, as rows of logits.

        The product of independent 0/1 attributes is fitted directly and needs no steps.
        """
        stack, total = self._stack(known), self.total(known)
        if self.is_product(known):
            rows = fitted_product(stack, known.measurements, total).rows
            return np.append(np.log(rows), 0.0).astype(np.float32)[None, :]
        term: Term
        if are_binary(stack):
            term = Signs(stack, known.measurements, total)
        else:
            term = Measured(stack, self._in_groups(known, stack), total)
        strength = strengths(stack, known.measurements, self._row_shares(known), total)
        if self.dependence(known).overall > CLEAR:
            strength = np.minimum(strength, EASY)
        components = self.components(known)
        members = self.climb(
            self._members(known),
            partial(Ascent, stack, components, strength, DECAY_SQUARE),
            [term],
            rates,
        )
        return np.stack([one.flat for one in members])
