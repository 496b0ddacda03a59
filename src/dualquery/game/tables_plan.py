"""Which tables are measured and how the budget is split, from public quantities only.

One-way tables are always measured. Pairs are measured while their noise stays small beside the
number of records, and so are triples of narrow domains. What is left goes into a few rounds in
which draws name the queries that are answered worst, and their tables are measured: draws say
where, tables say what. The reasons are in docs/decisions/tables.md.
"""

from __future__ import annotations

import math

import numpy as np

from dualquery.game.tables_shape import MOST_SETS, Shape
from dualquery.game.tables_steps import Kind, Step, TablesPlan, levelled, rounds_of_draws
from dualquery.privacy.calibration import Budget
from dualquery.privacy.events import Noise
from dualquery.privacy.purse import COVERED, Purse

FINE = 0.015
"""Tables are affordable if the noise of a cell is at most this share of the records."""

FINE_STARTED = 0.05
"""The same where a public start says what they may look like: noisy tables then tell how far it
can be trusted."""

NARROW = 3.0
"""Attributes with so few codes on average have triples worth measuring outright: a step from k-way
to (k+1)-way tables multiplies the precision of the k-way ones by (k + 1)/m, m codes each."""

ROUNDS, FINER_ROUNDS = 3, 6
"""Rounds of draws; more, of half as many draws, where the budget is large: few tables are then
wrong enough to be named, and it takes several rounds until all of them were."""

FEWEST_DRAWS, MOST_DRAWS = 10, 500
"""Per round."""

PURE_DRAWS = 5
"""Per round, where a pure budget is too small for all pairs."""

WIDEST = 2_000
"""Attributes beyond which pairs are far too many to be measured one and all."""

MEMBERS, COSTLY_MEMBERS = 8, 4
"""Mixtures that are averaged; fewer where a step of each is costly."""

COSTLY = 10_000_000
"""Steps are costly from this number of pairs of codes times components on."""

ROUND_MEMBERS = 2
"""Of them, so many are fitted between rounds, to say where the next tables are measured."""

FINER = 30_000.0
"""Resolution from which fits get more components and more steps."""

MOST_ENTRIES = 1_000_000
"""Entries of one mixture's tables."""


def make_tables_plan(budget: Budget, shape: Shape, *, started: bool = False) -> TablesPlan | None:
    """The plan for a workload; None where whole tables are too noisy, or cannot serve it.

    Args:
        budget: what the run may cost.
        shape: of the asked queries.
        started: whether a public start says what tables may look like.
    """
    if budget.accountant not in COVERED or shape.parities or shape.attributes > WIDEST:
        return None
    purse = Purse(budget)
    resolution = budget.rows * math.sqrt(2.0) / purse.deviation(1.0, 1)
    fine = (FINE_STARTED if started else FINE) * budget.rows
    steps = _steps(purse, shape, resolution, fine)
    if steps is None:
        return None
    finer = resolution >= FINER
    components = _components(resolution, shape.codes)
    return TablesPlan(
        budget,
        steps,
        resolution,
        components=components,
        members=MEMBERS if components * shape.codes**2 <= COSTLY else COSTLY_MEMBERS,
        round_members=ROUND_MEMBERS,
        first_steps=500 if finer else 300,
        round_steps=200,
        last_steps=400 if finer else 300,
    )


def _components(resolution: float, codes: int) -> int:
    """More where more can be told apart, fewer where tables would grow too large."""
    components = 128 if resolution >= FINER else 64
    while components > 8 and components * codes > MOST_ENTRIES:
        components //= 2
    return components


def _steps(purse: Purse, shape: Shape, resolution: float, fine: float) -> tuple[Step, ...] | None:
    """What is measured, for which shares.

    Args:
        purse: the budget.
        shape: of the asked queries.
        resolution: of the whole run.
        fine: the most noise of a cell that is still worth measuring.
    """
    if not shape.pairs:
        return (Step(Kind.ONE_WAY, 1.0, shape.attributes),)
    if shape.pairs > MOST_SETS or purse.deviation(0.6, shape.pairs) > fine:
        return _few_tables(purse, shape, fine)
    narrow = shape.codes <= NARROW * shape.attributes
    rounds = FINER_ROUNDS if resolution >= FINER else ROUNDS
    draws = int(np.clip(0.6 * math.sqrt(resolution) / rounds, FEWEST_DRAWS, MOST_DRAWS))
    if narrow and 0 < shape.triples <= MOST_SETS and purse.deviation(0.6, shape.triples) <= fine:
        return (
            Step(Kind.ONE_WAY, 0.05, shape.attributes),
            *levelled(Kind.PAIRS, 0.15, shape.pairs, shape.pair_levels),
            *levelled(Kind.TRIPLES, 0.6, shape.triples, shape.triple_levels),
            *rounds_of_draws(0.05, 0.15, rounds, draws),
        )
    return (
        Step(Kind.ONE_WAY, 0.1, shape.attributes),
        *levelled(Kind.PAIRS, 0.6, shape.pairs, shape.pair_levels),
        *rounds_of_draws(0.1, 0.2, rounds, draws),
    )


def _few_tables(purse: Purse, shape: Shape, fine: float) -> tuple[Step, ...] | None:
    """One-way tables, and the few that draws name, under a pure budget.

    There T tables cost T times as much as one, not √T times. So all pairs are soon too many, while
    a few tables are still worth more than draws alone, whose costs add up in the same way.
    """
    if purse.noise is not Noise.LAPLACE:
        return None
    coarsest = max(
        purse.deviation(0.4, shape.attributes), purse.deviation(0.4 / ROUNDS, PURE_DRAWS)
    )
    if coarsest > fine:
        return None
    return (
        Step(Kind.ONE_WAY, 0.4, shape.attributes),
        *rounds_of_draws(0.2, 0.4, ROUNDS, PURE_DRAWS),
    )
