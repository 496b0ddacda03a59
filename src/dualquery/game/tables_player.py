"""The model that is fitted to measured tables: it says what to measure next, and answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from dualquery.domain.free import Filling, Free
from dualquery.game.moves import Move, TablesMove, expect
from dualquery.game.tables_shape import weighed_sets
from dualquery.game.tables_steps import Kind, Step, TablesPlan
from dualquery.game.transcript import Released, Transcript
from dualquery.model.again import (
    again_marginals,
    in_sub_bins,
    smoothed_bins,
    unsure_columns,
)
from dualquery.model.compiled import CompiledWorkload
from dualquery.model.dependence import Dependence
from dualquery.model.ensemble import Climb, climbed, published
from dualquery.model.forest.answers import shares_of
from dualquery.model.forest.pairs import Pairs
from dualquery.model.forest.trees import Trees
from dualquery.model.grouping import (
    estimated_shares,
    estimated_total,
    grouped,
    most_groups,
    shares_within,
)
from dualquery.model.measured import Measured
from dualquery.model.mixture import Mixture
from dualquery.model.prior import informed
from dualquery.model.stack import Stack
from dualquery.model.strengths import strengths, strongest
from dualquery.model.training import Ascent, Parameters
from dualquery.privacy.choosing import Against, Candidates, Choice
from dualquery.privacy.measuring import Measurement
from dualquery.privacy.rare import Charges, Rare
from dualquery.workloads.marginals import Groups, Marginals
from dualquery.workloads.workload import Workload

Floats = npt.NDArray[np.float64]

RATE, ROUND_RATE = 0.3, 0.2
"""The first rate of a whole fit, and of a fit between rounds; both fall to zero."""

DECAY_SQUARE = 0.95
"""The optimiser forgets the squares of slopes sooner than usual: they fall by orders of magnitude
while a fit settles."""

START_NOISE = 1.0
"""How far apart the components of a fit begin, in logits."""

WORTH = 0.5
"""A group of codes is expected to have at least this share of the larger tables' noise."""


MOST_NAMED = 3
"""Attributes of a named table."""


@dataclass(frozen=True, eq=False)
class Known:
    """What has been released so far, and where the fits stand.

    Attributes:
        measurements: in order; moved towards a public start, if there is one.
        named: sets of attributes that the last draws named, or chose, and that were not measured
            since.
        members: the logits of every mixture that is kept up to date; none before the first fit.
        trees: the forest of the fits; None without edges.
        heard: the measurements as they were released, in bins.
        fine: the one-way tables in sub-bins, as they were released.
        again: what was measured in sub-bins since.
        charges: what records are charged for rare cells.
        rare: the rare cells that were measured.
    """

    measurements: tuple[Measurement, ...] = ()
    named: tuple[tuple[int, ...], ...] = ()
    members: npt.NDArray[np.float32] | None = None
    trees: Trees | None = None
    heard: tuple[Measurement, ...] = ()
    fine: Measurement | None = None
    again: tuple[Measurement, ...] = ()
    charges: tuple[Charges, ...] = ()
    rare: tuple[Rare, ...] = ()


class TablesPlayer:
    """Fits several mixtures to all tables measured so far; their average is its strategy.

    What it computes is a function of draws, measurements and public settings.
    """

    def __init__(
        self,
        workload: Workload,
        plan: TablesPlan,
        *,
        weights: Floats | None = None,
        fine: bool = False,
        seed: int = 0,
        climb: Climb = climbed,
    ) -> None:
        """Make a player.

        Args:
            workload: the asked queries.
            plan: the steps.
            weights: how much each query counts when tables are measured; all alike if left out.
            fine: whether one-way tables are measured in sub-bins.
            seed: of the fits' starts, which is public.
            climb: what climbs the fits; where it does so changes no result.
        """
        self.workload = workload
        self.plan = plan
        self.weights = weights
        self.fine = fine
        self.seed = seed
        self.climb = climb
        # The stack of the last one-way tables: a memory of what could be computed again.
        self._stacks: tuple[Measurement, Stack, Floats] | None = None
        self._pairs: Pairs | None = None
        self._listed: dict[Kind, tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]] = {}

    @cached_property
    def used(self) -> npt.NDArray[np.int32]:
        """The attributes that the queries name."""
        return self.workload.used

    @cached_property
    def _compiled(self) -> CompiledWorkload:
        return CompiledWorkload.of(self.workload)

    def start(self) -> Known:
        return Known()

    def marginals(self, known: Known, step: Step) -> Marginals:
        """The tables that a step measures: a function of what was released before."""
        if step.kind is Kind.ONE_WAY:
            schema = self.workload.schema
            return Marginals(
                Groups.single(schema.fine if self.fine else schema), self.used[:, None]
            )
        if step.kind is Kind.AGAIN:
            return self._second_tables(known)
        groups = self.stack(known).groups
        if step.kind is Kind.NAMED:
            # The draws of one round may name sets of different sizes; the widest are measured.
            widest = max(len(one) for one in known.named)
            chosen = [one for one in known.named if len(one) == widest]
            return Marginals(groups, np.array(chosen, dtype=np.int32))
        sets, levels = self._sets(step.kind)
        # A plan made from a shape without levels measures all sets in one step.
        return Marginals(groups, sets if step.tables == len(sets) else sets[levels == step.level])

    def _second_tables(self, known: Known) -> Marginals:
        """Second tables of the columns whose means are unsure.

        If there are none, all one-way tables are measured once more, in groups: two measurements
        with a share each tell as much as one with both shares.
        """
        if known.fine is not None:
            schema, public = self.workload.schema, self.plan.budget.unit.size_is_public
            total = self.total(known)
            chosen = unsure_columns(schema, self.used, known.fine, total, public=public)
            if chosen:
                return again_marginals(schema, chosen)
        return Marginals(self.stack(known).groups, self.used[:, None])

    def may_be_second(self, marginals: Marginals) -> bool:
        """Whether these tables may be what a step of second tables measured."""
        if in_sub_bins(marginals, self.workload.schema):
            long = np.intersect1d(self.workload.schema.long, self.used)
            return marginals.arity == 1 and bool(np.isin(marginals.attributes, long).all())
        return np.array_equal(marginals.attributes, self.used[:, None])

    def answers(self, known: Known) -> Floats:
        """What the average of the fits answers to each query."""
        # Draws are made against these answers; the journal need not keep them, so nobody else
        # has to find the same last digit.
        return self.model(known).answers_to(self._compiled, single=True)

    def model(self, known: Known, free: Filling = Free.DEFAULT) -> Mixture:
        """The average of the fits."""
        return published(self._members(known), self._ascent(known), free)

    def _ascent(self, known: Known) -> Ascent:
        """What makes models of the fits."""
        return Ascent(self.stack(known), self.components(known), trees=known.trees)

    def candidates(self, known: Known) -> Candidates:
        """The tables that can be chosen: all pairs that are asked about together.

        Except those of determined attributes: what they depend on is seen in what determines them.
        """
        sets = self._sets(Kind.PAIRS)[0]
        if known.members is not None:
            pairs = self.pairs(known)
            leaves = pairs.stack.attributes[list(pairs.determined())]
            sets = sets[~np.isin(sets, leaves).any(axis=1)]
        return Candidates((Marginals(self.stack(known).groups, sets),))

    def against(self, known: Known, number: int) -> Against:
        """What candidates of a step are scored against: the fits, or before them independence.

        Args:
            known: what was released before.
            number: of the step; the next one measures what is chosen.
        """
        following = self.plan.steps[number + 1]
        noise = self.plan.purse.deviation(following.share, following.tables)
        if known.members is not None:
            shares = partial(shares_of, self.model(known))
        else:
            stack = self.stack(known)
            assert self._stacks is not None  # the stack was just made
            shares = partial(_independent_shares, stack, self._stacks[2])
        spread = self.plan.budget.unit.chance
        return Against(shares, self.total(known), noise, spread=spread)

    def found_trees(self, known: Known) -> Trees | None:
        """The forest that the measured pairs show; None for a model without edges.

        A column that another one determines has no edge: its codes follow when the rule is settled.
        """
        if self.plan.largest_tree == 1:
            return None
        pairs = self.pairs(known)
        settled = [target for _, target in self.workload.schema.dependences]
        return pairs.forest(self.plan.largest_tree, np.isin(pairs.stack.attributes, settled))

    def pairs(self, known: Known) -> Pairs:
        """What the measured pairs say."""
        stack = self.stack(known)
        assert self._stacks is not None  # the stack was just made
        if self._pairs is None or self._pairs.stack is not stack:
            self._pairs = Pairs(stack, self._stacks[2], self.total(known))
        return self._pairs.of(self._in_groups(known, stack))

    def components(self, known: Known) -> int:
        """Of each mixture, given what was measured."""
        return self.plan.components

    def member_count(self, known: Known) -> int:
        """How many mixtures are averaged, given what was measured."""
        return self.plan.members

    def dependence(self, known: Known) -> Dependence:
        """What the measured pairs say about it."""
        stack = self.stack(known)
        assert self._stacks is not None  # the stack was just made
        tables = [one for one in self._in_groups(known, stack) if one.parts is None]
        chance = self.plan.budget.unit.chance
        return Dependence.of(stack, tables, self._stacks[2], self.total(known), chance)

    def total(self, known: Known) -> float:
        """The number of parts, public or else estimated."""
        if self.plan.budget.unit.size_is_public:
            return float(self.plan.budget.rows)
        return estimated_total(known.measurements[0])

    def respond(self, known: Known, number: int, released: Released) -> TablesMove:
        """A fit where the next step needs one; nothing while more tables are to come."""
        after = self._with(known, released)
        steps = self.plan.steps
        last = number == len(steps) - 1
        if not last and steps[number + 1].kind not in (Kind.DRAWS, Kind.CHOICE):
            return TablesMove()
        if not last and not any(one.marginals.arity > 1 for one in after.measurements):
            return TablesMove()  # without larger tables there is nothing to fit
        if last:
            # It begins afresh, so that it hangs on what was measured and not on the way there.
            after = replace(after, members=None)
            rate, count = RATE, self.plan.first_steps + self.plan.last_steps
        elif after.members is None:
            rate, count = RATE, self.plan.first_steps
        else:
            rate, count = ROUND_RATE, self.plan.round_steps
        fits = self.member_count(after) if last else self.plan.round_members
        members = self._fitted(after, [rate * (1.0 - i / count) for i in range(count)], fits=fits)
        return TablesMove(members, count)

    def replay(self, known: Known, number: int, released: Released, move: Move) -> Known:
        """What is known after a step; also when a run is resumed.

        Args:
            known: before the step.
            number: of the step, from 0.
            released: what it released.
            move: the fits that followed, if there were any.
        """
        after = self._with(known, released)
        found = expect(TablesMove, move).members
        if found is None:
            return after
        return replace(after, members=found, trees=self.found_trees(after))

    def recall(self, transcript: Transcript) -> Known:
        """What is known at the end of a transcript."""
        known = self.start()
        for number, one in enumerate(transcript):
            released = Released(one.draws, one.measurement)
            known = self.replay(known, number, released, one.move)
        return known

    def holds(self, members: npt.NDArray[np.float32], known: Known) -> bool:
        """Whether these are the logits of all fits of this plan."""
        return len(members) == self.member_count(known) and self.could_hold(members, known)

    def could_hold(self, members: npt.NDArray[np.float32], known: Known) -> bool:
        """Whether these are the logits of fits of this plan; between rounds it has fewer."""
        length = (self.stack(known).rows + 1) * self.components(known)
        length += self._tied(known.trees, known)
        return members.shape[1] == length and 1 <= len(members) <= self.member_count(known)

    def fitted_anew(self, known: Known, steps: int, looser: float = 1.0) -> Known:
        """Fits from fresh starts to everything that was measured.

        Args:
            known: what was measured.
            steps: of each fit.
            looser: what shrinkage is divided by.
        """
        fresh = replace(known, members=None)
        rates = [RATE * (1.0 - i / steps) for i in range(steps)]
        fitted = self._fitted(fresh, rates, looser, fits=self.member_count(known))
        return replace(fresh, members=fitted, trees=self.found_trees(fresh))

    def member_answers(self, known: Known, compiled: CompiledWorkload) -> list[Floats]:
        """What each fit for itself answers to some queries."""
        return [one.answers_to(compiled) for one in self.fits(known)]

    def fits(self, known: Known) -> tuple[Mixture, ...]:
        """The fits one by one."""
        ascent = self._ascent(known)
        return tuple(ascent.mixture(one) for one in self._members(known))

    def _with(self, known: Known, released: Released) -> Known:
        if isinstance(released.measurement, Charges):
            return replace(known, charges=(*known.charges, released.measurement), named=())
        if isinstance(released.measurement, Rare):
            return replace(known, rare=(*known.rare, released.measurement), named=())
        if isinstance(released.measurement, Choice):
            return replace(known, named=released.measurement.sets)
        if released.measurement is not None:
            measured = released.measurement
            # A model is about bins; sub-bins are for the values inside them.
            if in_sub_bins(measured.marginals, self.workload.schema):
                known, measured = self._in_bins(known, measured)
            heard = (*known.heard, measured)
            found = replace(known, measurements=(*known.measurements, measured), heard=heard)
            if measured.expected is not None:
                moved = informed(measured, self.total(found), self.plan.budget.unit.chance)
                found = replace(found, measurements=(*known.measurements, *moved))
            return replace(found, named=())
        return replace(known, named=self._named(released.draws.queries))

    def _in_bins(self, known: Known, measured: Measurement) -> tuple[Known, Measurement]:
        """Tables of sub-bins as tables of bins; the first of them are kept as they are."""
        schema = self.workload.schema
        if known.fine is None:
            return replace(known, fine=measured), measured.in_codes(schema)
        again = (*known.again, measured)
        public = self.plan.budget.unit.size_is_public
        found = smoothed_bins(schema, known.fine, again, self.total(known), public=public)
        # What it says of bins takes the place of what fewer tables said: none may count twice.
        measurements, heard = (
            (*one[:1], *(other for other in one[1:] if other.parts is None))
            for one in (known.measurements, known.heard)
        )
        return replace(known, again=again, measurements=measurements, heard=heard), found

    def _named(self, queries: npt.NDArray[np.int64]) -> tuple[tuple[int, ...], ...]:
        """The sets of at most three attributes of some queries, in order, each once."""
        found = set()
        for query in np.unique(queries).tolist():
            terms = self.workload.terms[self.workload.start[query] : self.workload.start[query + 1]]
            attributes = np.unique(self.workload.literals.attribute[terms >> 1]).tolist()
            found.add(
                tuple(
                    sorted(attributes, key=lambda a: (-self.workload.schema.sizes[a], a))[
                        :MOST_NAMED
                    ]
                )
            )
        return tuple(sorted(tuple(sorted(one)) for one in found))

    def stack(self, known: Known) -> Stack:
        """The attributes in use, their codes grouped as the one-way tables say."""
        one_way = known.measurements[0]
        if self._stacks is None or self._stacks[0] is not one_way:
            schema, total = self.workload.schema, self.total(known)
            shares = estimated_shares(one_way, total, schema)
            larger = [one for one in known.measurements if one.marginals.arity > 1]
            if larger:  # what was measured says how it was grouped
                groups = larger[0].marginals.groups
            else:
                groups = self._grouped(shares, WORTH * self.plan.grouping_noise / total)
            within = shares_within(groups, shares)
            stack = Stack(schema, self.used.astype(np.int64), groups, within)
            rows = np.bincount(stack.row_of_code, shares[stack.codes], stack.rows)
            self._stacks = (one_way, stack, rows.astype(np.float64))
        return self._stacks[1]

    def _grouped(self, shares: Floats, least: float) -> Groups:
        """Groups that are seen through the noise, and whose tables can be counted and fitted."""
        schema = self.workload.schema
        groups = grouped(schema, self.used, shares, least)
        arity = min(MOST_NAMED, int(np.diff(self.workload.start).max(initial=1)))
        named = min(self.plan.draws, math.comb(len(self.used), arity))
        most = most_groups(groups.sizes[self.used], self._cells_of_listed, named, arity)
        return groups if most is None else grouped(schema, self.used, shares, least, most)

    def _cells_of_listed(self, sizes: npt.NDArray[np.integer]) -> int:
        """The cells of the tables that are measured before the first draw."""
        every = np.ones(len(self.workload.schema))
        every[self.used] = sizes
        cells = 0.0
        for step in self.plan.steps:
            if step.kind in (Kind.PAIRS, Kind.TRIPLES):
                sets, levels = self._sets(step.kind)
                cells += every[sets[levels == step.level]].prod(axis=1).sum()
        return int(cells)

    def _sets(self, kind: Kind) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """The pairs or triples of attributes that are asked about together, and their levels."""
        if kind not in self._listed:
            arity = 2 if kind is Kind.PAIRS else 3
            self._listed[kind] = weighed_sets(self.workload, arity, self.weights)
        return self._listed[kind]

    def _tied(self, trees: Trees | None, known: Known) -> int:
        """How many numbers tie children to their parents."""
        if trees is None:
            return 0
        return int(trees.tie_start(np.diff(self.stack(known).start))[-1])

    def _members(self, known: Known) -> tuple[Parameters, ...]:
        """The fits that are kept up to date; before the first one, where they would begin."""
        if known.members is None:
            return self._begun(known, self.plan.round_members)
        tied = self._tied(known.trees, known)
        return tuple(Parameters.at(flat, self.plan.components, tied) for flat in known.members)

    def _begun(self, known: Known, fits: int) -> tuple[Parameters, ...]:
        """Where fits begin: where they stand, or else near what one-way tables say."""
        if known.members is not None:
            return self._members(known)
        stack = self.stack(known)
        assert self._stacks is not None  # the stack was just made
        logits = np.log(np.maximum(self._stacks[2], 1e-6)).astype(np.float32)
        members = []
        for number in range(fits):
            begun = Parameters.start(stack, self.plan.components, START_NOISE, self.seed + number)
            begun.logits[:] += logits[:, None]
            members.append(begun)
        return tuple(members)

    def _fitted(
        self, known: Known, rates: Sequence[float], looser: float = 1.0, *, fits: int
    ) -> npt.NDArray[np.float32]:
        """Fits after one step at each rate, as rows of logits.

        Args:
            known: what was measured, and where fits stand.
            rates: of the steps.
            looser: what shrinkage is divided by.
            fits: how many, if none stand anywhere.
        """
        stack, total = self.stack(known), self.total(known)
        assert self._stacks is not None  # the stack was just made
        shares, in_groups = self._stacks[2], self._in_groups(known, stack)
        trees, ties = self.found_trees(known), None
        members = self._begun(known, fits)
        if trees is not None:
            ties = self.pairs(known).ties(trees)
            members = tuple(one.tied_by(ties) for one in members)
        term = Measured(stack, in_groups, total, trees)
        strength = np.full(len(stack.attributes), self.plan.shrinkage / looser)
        if not self.plan.shrinkage:
            # If chance is all that the tables show, no attribute departs from independence.
            chance = 0.0 if self.dependence(known).found else self.plan.budget.unit.chance
            strength = strengths(
                stack,
                known.measurements,
                shares,
                total,
                chance=chance,
                most=strongest(self.plan.noise_of_pairs, faint=self.plan.faint) / looser,
            )
        members = self.climb(
            members,
            # It may be sent to another machine, so it must not hold on to this player.
            partial(Ascent, stack, self.plan.components, strength, DECAY_SQUARE, trees, ties),
            [term],
            rates,
        )
        return np.stack([one.flat for one in members])

    def _in_groups(self, known: Known, stack: Stack) -> list[Measurement]:
        """The measurements; all except those about single codes get the grouping that they share.

        About single codes are the first tables, and those that were put together from sub-bins.
        Tables that draws named are in groups, even if they are about one attribute.
        """
        first, *rest = known.measurements
        return [
            first,
            *(
                one
                if one.parts is not None
                else replace(one, marginals=Marginals(stack.groups, one.marginals.attributes))
                for one in rest
            ),
        ]


def _independent_shares(stack: Stack, shares: Floats, marginals: Marginals) -> Floats:
    """The share of every cell of some tables if their attributes are independent."""
    first = stack.start[stack.positions(marginals.attributes)]
    found = []
    for begin, shape in zip(first, marginals.shapes, strict=True):
        cells = np.ones(1)
        for row, size in zip(begin, shape, strict=True):
            cells = np.outer(cells, shares[row : row + size]).reshape(-1)
        found.append(cells)
    return np.concatenate(found)
