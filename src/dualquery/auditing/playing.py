"""Runs that end with their transcript: what is drawn and measured, without a fit. Private side.

A promise holds for every data player, so the audit plays against one whose answers are fixed, and
no fit is needed. All counts, noise and draws go the way they go in a release.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, logsumexp

from dualquery.auditing.worlds import Counter, Int64, Worlds
from dualquery.estimator.settings import Mechanism, Tuning
from dualquery.game.loop import Drawer
from dualquery.game.moves import TablesMove
from dualquery.game.plan import Plan
from dualquery.game.query_player import QueryPlayer
from dualquery.game.tables import play_tables
from dualquery.game.tables_player import Known, TablesPlayer
from dualquery.game.tables_shape import Shape
from dualquery.game.transcript import Released, Transcript
from dualquery.game.wide_player import WidePlayer
from dualquery.privacy.events import Events, Noise
from dualquery.privacy.measuring import Measurement
from dualquery.privacy.rare import Charges, Noisy, Rare
from dualquery.privacy.sampler import Draws
from dualquery.privacy.sources import RandomSource
from dualquery.workloads.actions import Actions
from dualquery.workloads.counts import Counted

Floats = npt.NDArray[np.float64]


class _Unfitted(TablesPlayer):
    """Says which tables are measured, and fits nothing to them."""

    def respond(self, known: Known, number: int, released: Released) -> TablesMove:
        return TablesMove()


class _UnfittedWide(WidePlayer):
    """The same for wide tables."""

    def respond(self, known: Known, number: int, released: Released) -> TablesMove:
        return TablesMove()


class _Watched:
    """The query player of one table; remembers how likely its draws are in both tables.

    The answers are the same in all rounds and runs, so chances are kept.
    """

    def __init__(
        self, counted: tuple[Counted, Counted], world: int, actions: Actions, rows: int
    ) -> None:
        self.ratio = 0.0
        self._kept: dict[tuple[float, int], Floats] = {}
        self._counted = counted
        self._prior = actions.log_prior
        self._rows = rows
        self._player = QueryPlayer(counted[world], rows, log_prior=actions.log_prior)

    def draw(
        self,
        temperature: float,
        played: Floats,
        samples: int,
        source: RandomSource,
        *,
        reference: int | None = None,
    ) -> Draws:
        drawn = self._player.draw(temperature, played, samples, source, reference=reference)
        key = (temperature, self._rows if reference is None else reference)
        if key not in self._kept:
            first, second = (log_chances(one, played, *key, self._prior) for one in self._counted)
            self._kept[key] = first - second
        self.ratio += float(np.sum(self._kept[key][drawn.queries + len(played) * drawn.negated]))
        return drawn


def log_chances(
    counted: Counted, played: Floats, temperature: float, reference: int, prior: Floats
) -> Floats:
    """The logarithm of each action's probability, in plain floating point, negations last.

    This is the formula of `docs/notation.md`, written a second time, so that it can disagree.
    """
    share = np.clip((2.0 * counted.counts - counted.rows) / (2.0 * reference), -1.0, 1.0) + 0.5
    exponent = temperature * (share - np.clip(played, 0.0, 1.0))
    both = np.concatenate([prior + exponent, prior - exponent])
    found: Floats = both - logsumexp(both)
    return found


@dataclass(frozen=True, eq=False)
class Taken:
    """One run.

    Attributes:
        measured: what was measured, in order.
        counts: per measurement, the exact counts of the first table and of the second.
        drawn: the log-likelihood ratio of all draws, the first table over the second.
        transcript: what was released; None for a run of draws alone, which releases its plan.
    """

    measured: tuple[Noisy, ...]
    counts: tuple[tuple[Int64, Int64], ...]
    drawn: float
    transcript: Transcript | None = None

    @property
    def ratio(self) -> float:
        """The log-likelihood ratio of the whole transcript."""
        pairs = zip(self.measured, self.counts, strict=True)
        return self.drawn + sum(_measured_ratio(one, *both) for one, both in pairs)


@dataclass(frozen=True, eq=False)
class Setting:
    """A plan, and the two tables that it is played on.

    Attributes:
        worlds: the tables.
        mechanism: what is promised.
    """

    worlds: Worlds
    mechanism: Mechanism

    @cached_property
    def actions(self) -> Actions:
        return Actions.plain(self.worlds.workload())

    @cached_property
    def counted(self) -> tuple[Counted, Counted]:
        return self.worlds.counted(self.actions.queries)

    @cached_property
    def plan(self) -> Plan:
        """What a release of the larger table would measure and draw."""
        workload = self.actions.queries
        budget = self.mechanism.budget(self.worlds.rows)
        named = len(np.unique(workload.literals.attribute))
        shape = Shape.of(workload, np.ones(len(workload)))
        return Tuning().plan(budget, self.worlds.schema, len(workload), shape, named)

    @cached_property
    def answers(self) -> Floats:
        """What the data player answers, in every round: half way between the two tables."""
        first, second = (one.counts / max(one.rows, 1) for one in self.counted)
        found: Floats = 0.5 * (first + second)
        return found

    @cached_property
    def _drawers(self) -> tuple[_Watched, _Watched]:
        rows = self.plan.budget.rows
        first, second = (_Watched(self.counted, one, self.actions, rows) for one in (0, 1))
        return first, second

    @cached_property
    def _player(self) -> TablesPlayer:
        """What it keeps between runs could be computed again."""
        tables = self.plan.tables
        assert tables is not None  # only a plan of tables is played by it
        kind = _UnfittedWide if tables.wide else _Unfitted
        return kind(self.actions.queries, tables, fine=not tables.faint)

    @cached_property
    def _counters(self) -> tuple[Counter, Counter]:
        return Counter(self.worlds, 0), Counter(self.worlds, 1)

    @property
    def stated(self) -> float:
        """μ of the plan, for neighbours."""
        return float(np.sqrt(self.plan.events.mu_squared))

    def take(self, world: int, source: RandomSource) -> Taken:
        """Play the plan on one of the tables.

        Args:
            world: which table, 0 or 1.
            source: where draws and noise come from.
        """
        plan = self.plan
        drawer, counter = self._drawers[world], self._counters[world]
        drawer.ratio = 0.0
        counter.begin()
        if plan.tables is None:
            return self._draws(drawer, source)
        _, transcript = play_tables(
            drawer,
            counter.tabulate,
            self._player,
            source,
            rare=counter,
            answers=lambda player, known: self.answers,
        )
        measured = tuple(
            one.measurement
            for one in transcript
            if isinstance(one.measurement, Measurement | Charges | Rare)
        )
        return Taken(measured, tuple(counter.both), drawer.ratio, transcript)

    def _draws(self, drawer: _Watched, source: RandomSource) -> Taken:
        plan = self.plan
        playing: Drawer = drawer
        for number, (temperature, samples) in enumerate(
            zip(plan.temperatures, plan.draws, strict=True)
        ):
            playing.draw(float(temperature), self.answers, int(samples), source.for_round(number))
        return Taken((), (), drawer.ratio)

    def events(self, taken: Taken) -> Events:
        """What a run released, as accountants read it."""
        budget = self.plan.budget
        if taken.transcript is None:
            return budget.events(self.plan.temperatures, self.plan.draws)
        return taken.transcript.events(budget.rows, budget.unit)


def deviations(one: Noisy) -> Floats:
    """The stated scale of the noise in each cell, before it is rounded."""
    if isinstance(one, Measurement | Charges):
        return np.full(len(one.counts), one.scale)
    return one.scale / np.sqrt(one.cells.weights)


def _measured_ratio(one: Noisy, first: Int64, second: Int64) -> float:
    """How much likelier the noisy counts are if the first counts are exact, as a logarithm."""
    moved = np.flatnonzero(first != second)
    noisy, scale = one.counts[moved], deviations(one)[moved]
    laplace = isinstance(one, Measurement) and one.noise is Noise.LAPLACE
    chance = _log_laplace if laplace else _log_rounded
    found = chance(noisy - first[moved], scale) - chance(noisy - second[moved], scale)
    return float(np.sum(found))


def _log_rounded(noise: Int64, sigma: Floats) -> Floats:
    """ln P(round(σN) = z)."""
    # By symmetry of the tails: both ends are taken on the side where they are small.
    z = -np.abs(noise).astype(np.float64)
    upper, lower = log_ndtr((z + 0.5) / sigma), log_ndtr((z - 0.5) / sigma)
    found: Floats = upper + np.log1p(-np.exp(lower - upper))
    return found


def _log_laplace(noise: Int64, scale: Floats) -> Floats:
    """ln P(Z = z) up to a constant."""
    return -np.abs(noise) / scale
