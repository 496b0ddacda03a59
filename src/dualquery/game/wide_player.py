"""The player of wide tables: independent attributes, unless the measured pairs say otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from dualquery.game.tables_player import DECAY_SQUARE, Known, TablesPlayer
from dualquery.game.tables_shape import weighed_sets
from dualquery.game.tables_steps import RARE_KINDS, Kind, Step, TablesPlan
from dualquery.model.dependence import CLEAR, Dependence
from dualquery.model.ensemble import Climb, climbed
from dualquery.model.grouping import LEAST
from dualquery.model.measured import Measured
from dualquery.model.product import Product, fitted_product, margins
from dualquery.model.rare import (
    Departures,
    RareTerm,
    charges_of_independent,
    departures_of_pairs,
)
from dualquery.model.signs import Signs, are_binary
from dualquery.model.strengths import PER_ATTRIBUTE, strengths, strengths_of_pairs
from dualquery.model.terms import Term
from dualquery.model.training import Ascent, Parameters
from dualquery.privacy.measuring import Measurement
from dualquery.privacy.rare import Rare
from dualquery.workloads.marginals import Marginals
from dualquery.workloads.rare import RareCells
from dualquery.workloads.workload import Workload

Floats = npt.NDArray[np.float64]

START_NOISE = 0.3
"""How far apart the components of a fit begin, in logits."""

EASY = 20.0
"""The strongest shrinkage where all pairs together show dependence. What single pairs show says
nothing then: a factor that all attributes share is seen in none of them."""

LIGHTEST, HEAVIEST = 4, 64
"""The weights of rare codes: of a code that half of the records have, and at most."""

ENDS = 2.5
"""Standard deviations above the mean where the charges of independent attributes end."""

WORTH_RARE = 1.75
"""How much more precise than one-way tables rare codes must be, for the same price. Rare cells of
single attributes and of pairs share the budget, while pair tables speak of both."""

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
    decision is a function of the first pairs and of what was measured before them, so it never
    changes in a run.

    Where all attributes have two codes, rare cells are measured if what records are charged for
    them shows that codes are rare enough. What remains once the pairs have spoken goes to single
    codes if attributes are independent, and to pairs if they are not.
    """

    # What the first pairs said: a memory of what could be computed again.
    _said: tuple[Measurement | Rare, Dependence] | None = None

    def components(self, known: Known) -> int:
        return self.plan.components if self.dependence(known).found else 1

    def member_count(self, known: Known) -> int:
        return self.plan.members if self.dependence(known).found else 1

    def dependence(self, known: Known) -> Dependence:
        """What the pairs say about it; nothing before they are measured."""
        if known.rare:
            return self._rare_dependence(known)
        listed = (Kind.ONE_WAY, Kind.PAIRS, *RARE_KINDS)
        steps = sum(step.kind in listed for step in self.plan.steps)
        if steps < 2 or len(known.measurements) < steps:
            return Dependence(0.0, 0.0)
        first = known.measurements[:steps]
        if self._said is None or self._said[0] is not first[-1]:
            stack, total = self.stack(known), self.total(known)
            chance = self.plan.budget.unit.chance
            said = Dependence.of(stack, first, self._row_shares(known), total, chance)
            self._said = (first[-1], said)
        return self._said[1]

    def _rare_dependence(self, known: Known) -> Dependence:
        """What the rare cells of pairs say."""
        place = next((i for i, one in enumerate(known.rare) if one.cells.arity == 2), None)
        if place is None:
            return Dependence(0.0, 0.0)
        first = known.rare[: place + 1]
        if self._said is None or self._said[0] is not first[-1]:
            # Tables that draws named later must not change what was said.
            one_way = replace(known, measurements=known.measurements[:1], rare=first)
            found = self._departures(one_way)
            overall = max(found.overall, found.shared)
            said = Dependence(overall, float(found.away.max()), found.square)
            self._said = (first[-1], said)
        return self._said[1]

    def _departures(self, known: Known) -> Departures:
        """How far the rare cells of pairs are from independence."""
        total = self.total(known)
        share, variance = self._rare_shares(known)
        return departures_of_pairs(
            self.stack(known), known.rare, share, variance, total, self.plan.budget.unit.chance
        )

    def _rare_shares(self, known: Known) -> tuple[Floats, Floats]:
        """The share of every attribute's rare code, and the variance of its noise."""
        alone = self.alone(known)
        ones = known.rare[0].cells.codes[self.used] == 1
        return np.where(ones, alone.share, 1.0 - alone.share), alone.variance

    def alone(self, known: Known) -> Product:
        """What was measured about each 0/1 attribute alone."""
        return margins(self.stack(known), known.measurements, self.total(known), known.rare)

    def is_sparse(self, known: Known) -> bool:
        """Whether rare cells are worth more than pair tables, as the first charges say.

        With tables of U attributes the variance of a share is in proportion to U, and with rare
        codes to twice what a record may be charged, over the weight of each.
        """
        cells = known.charges[0].cells
        charged = 2.0 * self.most_charged(known, cells) * float((1.0 / cells.weights).mean())
        return len(cells) > WORTH_RARE * charged

    def marginals(self, known: Known, step: Step) -> Marginals:
        """The tables that a step measures; pairs in the place of rare cells that are not worth it.

        Every such step measures a part of the pairs, as large as its share; all of them if they
        are so few that its part would be none.
        """
        if step.kind not in RARE_KINDS:
            return super().marginals(known, step)
        sets = self._sets(Kind.PAIRS)[0]
        rare = [one for one in self.plan.steps if one.kind in RARE_KINDS]
        ends = np.cumsum([0.0, *(one.share for one in rare)])
        cuts = np.rint(len(sets) * ends / ends[-1]).astype(np.int64)
        place = rare.index(step)
        order = np.random.default_rng(PART_SEED).permutation(len(sets))
        part = np.sort(order[cuts[place] : cuts[place + 1]])
        if not len(part):
            part = np.arange(len(sets))
        return Marginals(self.stack(known).groups, sets[part])

    def rare_cells(self, known: Known, step: Step) -> RareCells:
        """The rare cells that a step is about: a function of what was released before."""
        if step.kind is Kind.CHARGES:
            return self._rare_codes(known)
        if step.kind is Kind.RARE:
            return known.charges[0].cells
        if step.kind is Kind.CHARGES_OF_PAIRS:
            sets, codes = self._sets(Kind.PAIRS)[0], known.charges[0].cells.codes
            return RareCells(sets, codes, np.ones(len(sets), dtype=np.int64))
        if step.kind is Kind.RARE_PAIRS or self.dependence(known).found:
            return known.charges[1].cells
        return known.charges[0].cells

    def _rare_codes(self, known: Known) -> RareCells:
        """The rare code of every attribute, as one-way tables say."""
        share = self.alone(known)
        codes = np.zeros(len(self.workload.schema), dtype=np.uint8)
        codes[self.used] = share.share < 0.5
        # A share that drowns in its noise is not taken for smaller than the noise.
        rare = np.maximum(np.minimum(share.share, 1.0 - share.share), np.sqrt(share.variance))
        weights = np.rint(LIGHTEST * np.sqrt(0.5 / rare)).astype(np.int64)
        weights = np.clip(weights, LIGHTEST, HEAVIEST)
        return RareCells(self.used[:, None].astype(np.int32), codes, weights)

    def most_charged(self, known: Known, cells: RareCells) -> int:
        """What a record may be charged for some cells, as the charges say."""
        found = next(one for one in known.charges if one.cells is cells)
        first = Known(known.measurements[:1])
        mean, spread = self.expected_charge(first, cells)
        return found.most(self.total(first), mean + ENDS * spread)

    def expected_charge(self, known: Known, cells: RareCells) -> tuple[float, float]:
        """What a record is charged if attributes are independent: mean and standard deviation."""
        share = self.alone(known).share
        rare = np.where(cells.codes[self.used] == 1, share, 1.0 - share)
        place = self.stack(known).positions(cells.attributes)
        return charges_of_independent(rare, place, cells.weights)

    def is_product(self, known: Known) -> bool:
        """Whether the model is a product of 0/1 attributes, whose errors have a closed form."""
        return are_binary(self.stack(known)) and not self.dependence(known).found

    def literal_estimates(self, known: Known, asked: Workload) -> tuple[Floats, Floats]:
        """The share of every literal and its variance, if 0/1 attributes are independent."""
        stack, literals = self.stack(known), asked.literals
        row = stack.start[stack.positions(literals.attribute)][literals.owner] + literals.codes
        product = fitted_product(stack, known.measurements, self.total(known), known.rare)
        share = np.add.reduceat(product.rows[row], literals.start[:-1])
        certain = np.diff(literals.start) > 1  # a literal of both codes
        each = product.variance[stack.positions(literals.attribute)]
        return share, np.where(certain, 0.0, each)

    def _row_shares(self, known: Known) -> Floats:
        """The share of every row of the stack, from the first one-way tables alone."""
        self.stack(known)
        assert self._stacks is not None  # the stack was just made
        return self._stacks[2]

    def _sets(self, kind: Kind) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """The pairs that are measured: those that are asked about together, or a part of them."""
        if kind not in self._listed:
            pairs, levels = weighed_sets(self.workload, 2, self.weights)
            listed = (Kind.PAIRS, Kind.RARE_PAIRS)
            most = sum(step.tables for step in self.plan.steps if step.kind in listed)
            if len(pairs) > most:
                generator = np.random.default_rng(PART_SEED)
                pairs = pairs[np.sort(generator.choice(len(pairs), most, replace=False))]
                levels = np.zeros(most, dtype=np.int64)
            self._listed[kind] = pairs, levels
        return self._listed[kind]

    def _members(self, known: Known) -> tuple[Parameters, ...]:
        if known.members is None:
            return self._begun(known, self.plan.round_members)
        components = self.components(known)
        return tuple(Parameters.at(flat, components) for flat in known.members)

    def _begun(self, known: Known, fits: int) -> tuple[Parameters, ...]:
        if known.members is not None:
            return self._members(known)
        stack, components = self.stack(known), self.components(known)
        shares = self._row_shares(known)
        if are_binary(stack):
            shares = self.alone(known).rows
        logits = np.log(np.maximum(shares, LEAST)).astype(np.float32)
        noise = START_NOISE if components > 1 else 0.0
        members = []
        for number in range(fits):
            begun = Parameters.start(stack, components, noise, self.seed + number)
            begun.logits[:] += logits[:, None]
            members.append(begun)
        return tuple(members)

    def _fitted(
        self, known: Known, rates: Sequence[float], looser: float = 1.0, *, fits: int
    ) -> npt.NDArray[np.float32]:
        """All members after one step at each rate, as rows of logits.

        The product of independent 0/1 attributes is fitted directly and needs no steps.
        """
        stack, total = self.stack(known), self.total(known)
        if self.is_product(known):
            rows = fitted_product(stack, known.measurements, total, known.rare).rows
            return np.append(np.log(rows), 0.0).astype(np.float32)[None, :]
        terms: list[Term]
        if are_binary(stack):
            terms = [Signs(stack, known.measurements, total)]
        else:
            terms = [Measured(stack, self._in_groups(known, stack), total)]
        if known.rare:
            terms.append(RareTerm(stack, known.rare, total))
            found = self._departures(known)
            strength = strengths_of_pairs(len(stack.attributes), found.sets, found.away) / looser
        else:
            strength = strengths(
                stack,
                known.measurements,
                self._row_shares(known),
                total,
                most=PER_ATTRIBUTE / looser,
            )
        if self.dependence(known).overall > CLEAR:
            strength = np.minimum(strength, EASY)
        components = self.components(known)
        members = self.climb(
            self._begun(known, fits),
            partial(Ascent, stack, components, strength, DECAY_SQUARE),
            terms,
            rates,
        )
        return np.stack([one.flat for one in members])
