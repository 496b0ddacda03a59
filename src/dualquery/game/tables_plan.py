"""Which tables are measured and how the budget is split, from public quantities only.

All pairs are measured while their noise stays small beside the number of records, and so are all
triples where theirs does. Where all pairs would be noisy, draws choose the pairs that the model
explains worst. Every table gets the same noise, one-way tables too. The reasons are in
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

NOISY = 0.0027
"""Pairs are chosen if the noise of all of them is above this share of the records: few tables with
little noise tell more than many with much."""

CHOICES, CHOOSING = 5, 0.08
"""Rounds in which tables are chosen, and the share of the budget that choices cost. A score adds up
a whole table, so it is cheap."""

CHOSEN, CHOSEN_LEAST = 150, 50
"""The most tables that are chosen, of at most half of the pairs, and the fewest that are worth
choosing; fewer pairs are measured one and all."""

PAYING = 0.0015
"""Rounds of draws pay while the noise of pairs is at most this share of the records. Beyond it,
what they cost is worth more in the pairs."""

ROUNDS, DRAWN, NAMED = 3, 0.03, 0.07
"""Rounds of draws, and the shares of the budget for all draws and for the tables that they name."""

FEWEST_DRAWS, MOST_DRAWS = 10, 500
"""Per round."""

PURE_DRAWS = 5
"""Per round, where a pure budget is too small for all pairs."""

AGAIN = 0.06
"""The share for second tables of columns with long tails; if all their means are sure, for one-way
tables once more."""

TRIPLE_NOISE = 0.2
"""Triples are measured while their noise, added up over the cells of a pair, is at most this share
of the records."""

MOST_CELLS = 2_000_000
"""Cells of all triples that are measured, or named: a fit goes through them in every step."""

TREE, TREE_OF_CHOSEN = 5, 8
"""The most attributes that edges join, if all pairs are measured and if they are chosen. A step
takes longer for every table inside a tree, and all pairs are many tables."""

FAINT_SHARE, FAINTER_SHARE = 0.15, 0.7
"""Of one-way tables where pairs are noisier than that: while the noise of a cell is at most the
share that cells have on average, and beyond."""

MOST_NOISE = 0.1
"""The largest noise of a one-way table, as a share of the records, with which it says anything."""

WIDEST = 2_000
"""Attributes beyond which pairs are far too many to be measured one and all."""

COMPONENTS, FINER_COMPONENTS, FINEST_COMPONENTS = 32, 64, 192
"""Of each mixture, if its tables do not grow too large: edges hold what is strong. The most where
triples show what fewer cannot hold."""

MEMBERS, ROUND_MEMBERS = 4, 1
"""Mixtures that are averaged; between rounds one is enough to say where tables come next."""

FINER, FINEST = 30_000.0, 1_000_000.0
"""Resolutions from which fits get more components. The finest are half as many: they hardly differ
from one another."""

MOST_ENTRIES, MOST_OF_EDGE = 1_000_000, 200_000
"""Entries of one mixture's tables, and of the edge to its widest attribute: tables inside a tree
are products of edges."""


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
    fine = (FINE_STARTED if started else FINE) * budget.rows
    steps = _steps(purse, shape, fine, started or purse.noise is Noise.LAPLACE)
    return None if steps is None else _plan(budget, shape, _resolution(purse), steps)


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
    kinds = {step.kind for step in steps}
    most = FINER_COMPONENTS if resolution >= FINER else COMPONENTS
    if resolution >= FINEST and Kind.TRIPLES in kinds:
        most = FINEST_COMPONENTS
    return TablesPlan(
        budget,
        steps,
        resolution,
        components=_components(most, shape),
        members=MEMBERS // 2 if most == FINEST_COMPONENTS else MEMBERS,
        round_members=ROUND_MEMBERS,
        first_steps=300,
        round_steps=200,
        last_steps=300,
        largest_tree=TREE_OF_CHOSEN if Kind.CHOICE in kinds else TREE,
    )


def _components(most: int, shape: Shape) -> int:
    """Fewer where tables, or edges, would grow too large."""
    others = (shape.codes - shape.widest) / max(1, shape.attributes - 1)
    edge = shape.widest * max(1.0, others)
    while most > 8 and (most * shape.codes > MOST_ENTRIES or most * edge > MOST_OF_EDGE):
        most //= 2
    return most


def _steps(purse: Purse, shape: Shape, fine: float, always: bool) -> tuple[Step, ...] | None:
    """What is measured, for which shares: every table gets the same noise.

    Args:
        purse: the budget.
        shape: of the asked queries.
        fine: the most noise of a cell that is still worth measuring.
        always: whether rounds of draws pay however noisy pairs are. A start says much of what pairs
            would say; rounds find where it is wrong. Of Laplace noise, few tables get much less
            than all pairs do.
    """
    one_way, pairs = shape.attributes, shape.pairs
    if not pairs:
        return (Step(Kind.ONE_WAY, 1.0, one_way),)
    if pairs > MOST_SETS:
        return None
    again = AGAIN if shape.long else 0.0
    second = [Step(Kind.AGAIN, again, shape.long)] if again else []
    free = 1.0 - DRAWN - NAMED if always else 1.0
    noise = purse.deviation(free, one_way + pairs)
    if not always and not shape.binary and noise > NOISY * purse.budget.rows:
        chosen = _chosen(purse, shape, fine)
        if chosen:
            named = (1.0 - CHOOSING - again) * chosen / (one_way + chosen)
            return (
                Step(Kind.ONE_WAY, 1.0 - CHOOSING - again - named, one_way),
                *second,
                *rounds_of_choices(CHOOSING, named, CHOICES, chosen // CHOICES),
            )
    if noise > fine:
        return _few_tables(purse, shape, fine)
    triples = _triples(purse, shape, free, fine)
    if triples and shape.narrow:
        pairs = shape.lone  # triples tell at least as much about their pairs as pair tables would
    rounds: list[Step] = []
    draws, codes = _draws(purse), shape.codes / one_way
    pays = always or (not triples and noise <= PAYING * purse.budget.rows)
    if pays and ROUNDS * draws * codes**3 <= MOST_CELLS:
        rounds = rounds_of_draws(DRAWN, NAMED, ROUNDS, draws)
    left = 1.0 - again - sum(step.share for step in rounds)
    each = left / (one_way + pairs + triples)
    return (
        Step(Kind.ONE_WAY, each * one_way, one_way),
        *second,
        *(levelled(Kind.PAIRS, each * pairs, shape.pairs, shape.pair_levels) if pairs else ()),
        *(levelled(Kind.TRIPLES, each * triples, triples, shape.triple_levels) if triples else ()),
        *rounds,
    )


def _chosen(purse: Purse, shape: Shape, fine: float) -> int:
    """How many pairs are chosen; 0 where so few are affordable that choosing does not pay."""
    affordable = int((fine / purse.deviation(1.0, 1)) ** 2) - shape.attributes
    chosen = min(CHOSEN, shape.pairs // 2, affordable)
    return chosen if chosen >= CHOSEN_LEAST else 0


def _triples(purse: Purse, shape: Shape, share: float, fine: float) -> int:
    """How many triples are measured: all of them, or none.

    Their noise has to be small beside what is known of pairs: it is added up over a pair's cells.

    Args:
        purse: the budget.
        shape: of the asked queries.
        share: of the budget, for all tables.
        fine: the most noise of a cell that is still worth measuring.
    """
    codes = shape.codes / shape.attributes
    if not 0 < shape.triples <= min(MOST_SETS, MOST_CELLS / codes**3):
        return 0
    noise = purse.deviation(share, shape.attributes + shape.pairs + shape.triples)
    small = noise <= fine and noise * codes**2 <= TRIPLE_NOISE * purse.budget.rows
    return shape.triples if small else 0


def _draws(purse: Purse) -> int:
    """Per round."""
    return int(np.clip(0.6 * math.sqrt(_resolution(purse)) / ROUNDS, FEWEST_DRAWS, MOST_DRAWS))


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
