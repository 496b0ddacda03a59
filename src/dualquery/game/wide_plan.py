"""What is measured where pairs are so many that each of them is noisy.

A pair table of 0/1 attributes says as much about each of its attributes as a one-way table that
costs the same (`model.signs`), so pairs are measured whether or not anything depends on anything:
they lose nothing, and all of them together show dependence that no single one shows. The tables
themselves then say whether the model needs more than independent attributes. The reasons and the
measurements behind the rules are in docs/decisions/wide.md.
"""

from __future__ import annotations

import math

import numpy as np

from dualquery.base.errors import ParameterError
from dualquery.game.tables_plan import FEWEST_DRAWS, MOST_DRAWS, WIDEST
from dualquery.game.tables_shape import MOST_SETS, Shape
from dualquery.game.tables_steps import Kind, Step, TablesPlan, levelled, rounds_of_draws
from dualquery.privacy.calibration import Budget
from dualquery.privacy.events import Noise
from dualquery.privacy.purse import COVERED, Purse

MANY = 50
"""Fewer 0/1 attributes, in a table too small for their pairs, are left to draws."""

MOST_PAIRS = 1_500_000
"""The most pairs that are measured; of more, a public random part is."""

MOST_CELLS = 6_000_000
"""The most cells that they have together."""

MOST_NOISE = 0.1
"""The largest standard deviation of a share with which tables are worth measuring."""

SIGHT = 12.0
"""Draws at temperature β find errors of 12/β among a hundred thousand queries or a million."""

FARTHEST = 4.5
"""Standard deviations of the largest of so many errors."""

WORTH_SEEING = 0.01
"""Errors of this size may come from dependence that no pair shows."""

SMALL = 0.02
"""The largest standard deviation of a share of which rare cells are measured."""

FIRST_LOOK, CHARGES, RARE, RARE_PAIRS = 0.1, 0.02, 0.4, 0.24
"""Of the budget for rare cells: for one-way tables, for what records are charged, twice, for rare
codes, and for pairs of them. The rest is for codes again or for pairs again."""

ROUNDS = 3
"""Of draws."""

MEMBERS = 4
"""Mixtures that are averaged, if anything depends on anything."""

COMPONENTS, LEAST_COMPONENTS, MOST_ENTRIES = 16, 4, 2_000_000
"""Of each mixture: its components, the fewest of them, and the entries of its tables at most, if
that leaves so many components."""

ROUND_MEMBERS = 2
"""Mixtures that are fitted between rounds: few components each, so that one would not be enough."""

HUGE = 1_000_000
"""Entries of a mixture from which half as many mixtures are fitted, with half of the steps: a step
takes a twentieth of a second and more."""

FINER = 100_000.0
"""Resolution from which mixtures have twice as many components."""


def make_wide_plan(budget: Budget, shape: Shape) -> TablesPlan | None:
    """The plan for a workload; None where no table can serve it, or where draws serve it better.

    Args:
        budget: what the run may cost.
        shape: of the asked queries.
    """
    if budget.accountant not in COVERED or shape.parities or not _is_wide(shape):
        return None
    purse = Purse(budget)
    if _share_noise(purse, 1.0, shape) > MOST_NOISE:
        return None
    resolution = budget.rows * math.sqrt(2.0) / purse.deviation(1.0, 1)
    components = COMPONENTS if resolution < FINER else 2 * COMPONENTS
    while components > LEAST_COMPONENTS and components * shape.codes > MOST_ENTRIES:
        components //= 2
    huge = components * shape.codes > HUGE
    return TablesPlan(
        budget,
        _steps(purse, shape, resolution),
        resolution,
        components=components,
        members=MEMBERS // 2 if huge else MEMBERS,
        round_members=ROUND_MEMBERS,
        first_steps=150 if huge else 300,
        round_steps=50 if huge else 100,
        last_steps=100 if huge else 200,
        wide=True,
    )


def _is_wide(shape: Shape) -> bool:
    """Whether there are too many pairs, or so many 0/1 attributes that pairs pay for themselves."""
    few = MANY if shape.binary else WIDEST
    return shape.pairs > MOST_SETS or shape.attributes > few


def _steps(purse: Purse, shape: Shape, resolution: float) -> tuple[Step, ...]:
    # The price of Laplace noise grows with the number of tables, not with its root: pairs would
    # drown all else.
    if not shape.pairs or purse.noise is Noise.LAPLACE:
        return (Step(Kind.ONE_WAY, 1.0, shape.attributes),)
    codes = shape.codes / shape.attributes
    pairs = max(1, min(shape.pairs, MOST_PAIRS, int(MOST_CELLS / codes**2)))
    draws = int(np.clip(math.sqrt(resolution), FEWEST_DRAWS, MOST_DRAWS))
    rounds = rounds_of_draws(0.1, 0.1, ROUNDS, draws)
    left = 0.8
    noise = _share_noise(purse, left, shape)
    if _seen(purse, rounds[0].share, draws) > max(WORTH_SEEING, FARTHEST * noise):
        rounds, left = [], 1.0
    if _by_rare_cells(purse, shape):
        return *_rare_steps(left, shape.attributes, pairs), *rounds
    # Of attributes with m codes, pairs tell 2/m of what one-way tables tell for the same price.
    one_way = 0.05 if codes <= 2.0 else 0.5
    return (
        Step(Kind.ONE_WAY, left * one_way, shape.attributes),
        *levelled(
            Kind.PAIRS,
            left * (1.0 - one_way),
            pairs,
            shape.pair_levels if pairs == shape.pairs else (),
        ),
        *rounds,
    )


def _by_rare_cells(purse: Purse, shape: Shape) -> bool:
    """Whether rare cells are measured: of 0/1 attributes, where every record counts once.

    In a small table a few rare pairs show too little. There, all pairs are measured with most of
    the budget, so that intervals can allow for dependence that is too weak to be modelled.
    """
    unit = purse.budget.unit
    plain = unit.persons is None and unit.weight is None
    return plain and shape.binary and _share_noise(purse, 1.0, shape) <= SMALL


def _rare_steps(left: float, attributes: int, pairs: int) -> tuple[Step, ...]:
    """Rare cells: one-way tables say which codes are rare, pairs what the rest is spent on."""
    rest = 1.0 - FIRST_LOOK - 2.0 * CHARGES - RARE - RARE_PAIRS
    return (
        Step(Kind.ONE_WAY, FIRST_LOOK * left, attributes),
        Step(Kind.CHARGES, CHARGES * left),
        Step(Kind.RARE, RARE * left, attributes),
        Step(Kind.CHARGES_OF_PAIRS, CHARGES * left),
        Step(Kind.RARE_PAIRS, RARE_PAIRS * left, pairs),
        Step(Kind.RARE_AGAIN, rest * left, pairs),
    )


def _share_noise(purse: Purse, share: float, shape: Shape) -> float:
    """The standard deviation of the share of ones of a 0/1 attribute."""
    return purse.deviation(share, shape.attributes) / math.sqrt(2.0) / purse.budget.rows


def _seen(purse: Purse, share: float, draws: int) -> float:
    """The error that a round of draws can see."""
    try:
        return SIGHT / purse.temperature(share, draws)
    except ParameterError:  # the share is too small for any temperature
        return math.inf
