"""Which tables are measured and how the budget is split, from public quantities only.

One-way tables are always measured, and columns with long tails once or twice more while their
means are unsure. All pairs are measured while their noise stays small beside the number of records,
and so are triples of narrow domains. Beyond that, draws choose the pairs that the model explains
worst. Where noise is small, a part of the budget is left for a few rounds in which draws name the
queries that are answered worst: draws say where, tables say what. The reasons are in
docs/decisions/tables.md and docs/decisions/forest.md.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dualquery.game.tables_shape import MOST_SETS, Shape
from dualquery.game.tables_steps import (
    Kind,
    Step,
    TablesPlan,
    levelled,
    rounds_of_choices,
    rounds_of_draws,
)
from dualquery.privacy.calibration import Budget
from dualquery.privacy.events import Noise
from dualquery.privacy.purse import COVERED, Purse

FINE = 0.015
"""Tables are affordable if the noise of a cell is at most this share of the records."""

FINE_STARTED = 0.05
"""The same where a public start says what they may look like: noisy tables then tell how far it
can be trusted."""

PAYING = 0.0053
"""Rounds of draws pay while the noise of pairs is at most this share of the records. Beyond it,
what they cost is worth more in the pairs."""

NOISY = 0.0035
"""Pairs are chosen if the noise of all of them is above this share of the records: few tables with
little noise tell more than many with much."""

CHOICES = 5
"""Rounds in which tables are chosen."""

CHOSEN = 200
"""The most tables that are chosen, of at most half of the pairs."""

CHOSEN_LEAST = 50
"""The fewest tables that are worth choosing; fewer pairs are measured one and all."""

CHOOSING = 0.08
"""The share of the budget that choices cost. A score adds up a whole table, so it is cheap."""

TREE, TREE_OF_CHOSEN = 5, 8
"""The most attributes that edges join, if all pairs are measured and if they are chosen. A step
takes longer for every table inside a tree, and all pairs are many tables."""

FAINT_SHARE, FAINTER_SHARE = 0.15, 0.7
"""Of one-way tables where pairs are noisier than that: while the noise of a cell is at most the
share that cells have on average, and beyond."""

MOST_NOISE = 0.1
"""The largest noise of a one-way table, as a share of the records, with which it says anything."""

AGAIN, ONCE_MORE = 0.06, 0.12
"""The shares for second tables of columns whose means are unsure, and for third ones. They are
taken from pairs, or from triples, and go back to them if all means are sure."""

NARROW = 3.0
"""Attributes with so few codes on average have triples worth measuring outright: a step from k-way
to (k+1)-way tables multiplies the precision of the k-way ones by (k + 1)/m, m codes each."""

ROUNDS, FINER_ROUNDS = 3, 3
"""Rounds of draws; more, of half as many draws, where the budget is large: few tables are then
wrong enough to be named, and it takes several rounds until all of them were."""

FEWEST_DRAWS, MOST_DRAWS = 10, 500
"""Per round."""

FEW_TRIPLES = 500
"""If the budget is large and so few triples are asked, rounds make twice as many draws, up to the
number of triples: nearly every one that is wrong can then be named."""

PURE_DRAWS = 5
"""Per round, where a pure budget is too small for all pairs."""

WIDEST = 2_000
"""Attributes beyond which pairs are far too many to be measured one and all."""

COMPONENTS, FINER_COMPONENTS = 32, 64
"""Of each mixture, if its tables do not grow too large: edges hold what is strong."""

MEMBERS, ROUND_MEMBERS = 4, 1
"""Mixtures that are averaged; between rounds one is enough to say where tables come next."""

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
    resolution = _resolution(purse)
    fine = (FINE_STARTED if started else FINE) * budget.rows
    # A start says much of what pairs would say; rounds find where it is wrong. Of Laplace noise,
    # few tables get much less than all pairs do.
    always = started or purse.noise is Noise.LAPLACE
    paying = math.inf if always else PAYING * budget.rows
    steps = _steps(purse, shape, resolution, fine, paying)
    return None if steps is None else _plan(budget, shape, resolution, steps)


def make_faint_plan(budget: Budget, shape: Shape) -> TablesPlan | None:
    """The plan where pairs are noisier than `make_tables_plan` takes them; None where it is no use.

    No round of draws follows: so little budget tells more where all of it goes into tables. The
    one-way tables are about bins. In sub-bins each bin would have the noise of all its sub-bins,
    and pairs are too noisy to make up for that.

    Args:
        budget: what the run may cost.
        shape: of the asked queries.
    """
    if budget.accountant not in COVERED or shape.parities or shape.attributes > WIDEST:
        return None
    purse = Purse(budget)
    if purse.noise is not Noise.GAUSSIAN or not 0 < shape.pairs <= MOST_SETS:
        return None
    share_of_cell = (shape.attributes / shape.codes) ** 2
    seen = purse.deviation(0.6, shape.pairs) <= share_of_cell * budget.rows
    one_way = FAINT_SHARE if seen else FAINTER_SHARE
    if purse.deviation(one_way, shape.attributes) > MOST_NOISE * budget.rows:
        return None
    steps = (
        Step(Kind.ONE_WAY, one_way, shape.attributes),
        *levelled(Kind.PAIRS, 1.0 - one_way, shape.pairs, shape.pair_levels),
    )
    return replace(_plan(budget, shape, _resolution(purse), steps), faint=True)


def _resolution(purse: Purse) -> float:
    return purse.budget.rows * math.sqrt(2.0) / purse.deviation(1.0, 1)


def _plan(budget: Budget, shape: Shape, resolution: float, steps: tuple[Step, ...]) -> TablesPlan:
    """The steps, and how mixtures are fitted to what they measure.

    Args:
        budget: what the run may cost.
        shape: of the asked queries.
        resolution: of the whole run.
        steps: what is measured.
    """
    return TablesPlan(
        budget,
        steps,
        resolution,
        components=_components(resolution, shape.codes),
        members=MEMBERS,
        round_members=ROUND_MEMBERS,
        first_steps=300,
        round_steps=200,
        last_steps=300,
        largest_tree=TREE_OF_CHOSEN if any(step.kind is Kind.CHOICE for step in steps) else TREE,
    )


def _components(resolution: float, codes: int) -> int:
    """More where more can be told apart, fewer where tables would grow too large."""
    components = FINER_COMPONENTS if resolution >= FINER else COMPONENTS
    while components > 8 and components * codes > MOST_ENTRIES:
        components //= 2
    return components


def _steps(
    purse: Purse, shape: Shape, resolution: float, fine: float, paying: float
) -> tuple[Step, ...] | None:
    """What is measured, for which shares.

    Args:
        purse: the budget.
        shape: of the asked queries.
        resolution: of the whole run.
        fine: the most noise of a cell that is still worth measuring.
        paying: the most noise of a cell with which rounds of draws are worth their price.
    """
    if not shape.pairs:
        return (Step(Kind.ONE_WAY, 1.0, shape.attributes),)
    again = (AGAIN, ONCE_MORE) if shape.long else ()
    second = [Step(Kind.AGAIN, share, shape.long) for share in again]
    kept = sum(step.share for step in second)
    if shape.pairs > MOST_SETS:
        return None
    if purse.noise is Noise.GAUSSIAN and math.isfinite(paying) and not shape.binary:
        chosen = _chosen(purse, shape, fine)
        if chosen and purse.deviation(0.6, shape.pairs) > NOISY * purse.budget.rows:
            return (
                Step(Kind.ONE_WAY, 0.1, shape.attributes),
                *second,
                *rounds_of_choices(CHOOSING, 0.9 - kept - CHOOSING, CHOICES, chosen // CHOICES),
            )
    if purse.deviation(0.6, shape.pairs) > fine:
        return _few_tables(purse, shape, fine)
    narrow = shape.codes <= NARROW * shape.attributes
    rounds = FINER_ROUNDS if resolution >= FINER else ROUNDS
    drawn = 0.6 * math.sqrt(resolution)
    if resolution >= FINER and shape.triples <= FEW_TRIPLES:
        drawn = max(drawn, min(2.0 * drawn, shape.triples))
    draws = int(np.clip(drawn / rounds, FEWEST_DRAWS, MOST_DRAWS))
    if narrow and 0 < shape.triples <= MOST_SETS and purse.deviation(0.6, shape.triples) <= fine:
        if math.isfinite(paying):
            # Triples tell at least as much about their pairs as pair tables would (`NARROW`), and
            # the tables that draws would name are measured already.
            free = 0.95 - kept
            pairs = free * shape.lone / (shape.lone + shape.triples)
            return (
                Step(Kind.ONE_WAY, 0.05, shape.attributes),
                *(levelled(Kind.PAIRS, pairs, shape.pairs, shape.pair_levels) if pairs else ()),
                *second,
                *levelled(Kind.TRIPLES, free - pairs, shape.triples, shape.triple_levels),
            )
        return (
            Step(Kind.ONE_WAY, 0.05, shape.attributes),
            *levelled(Kind.PAIRS, 0.15, shape.pairs, shape.pair_levels),
            *second,
            *levelled(Kind.TRIPLES, 0.6 - kept, shape.triples, shape.triple_levels),
            *rounds_of_draws(0.05, 0.15, rounds, draws),
        )
    if purse.deviation(0.6, shape.pairs) > paying:
        return (
            Step(Kind.ONE_WAY, 0.05, shape.attributes),
            *second,
            *levelled(Kind.PAIRS, 0.95 - kept, shape.pairs, shape.pair_levels),
        )
    return (
        Step(Kind.ONE_WAY, 0.1, shape.attributes),
        *second,
        *levelled(Kind.PAIRS, 0.6 - kept, shape.pairs, shape.pair_levels),
        *rounds_of_draws(0.1, 0.2, rounds, draws),
    )


def _chosen(purse: Purse, shape: Shape, fine: float) -> int:
    """How many pairs are chosen; 0 where even few of them would be too noisy."""
    chosen = min(CHOSEN, shape.pairs // 2)
    while chosen >= CHOSEN_LEAST and purse.deviation(0.6, chosen) > fine:
        chosen //= 2
    return chosen if chosen >= CHOSEN_LEAST else 0


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
