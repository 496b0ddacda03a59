"""Steps that measure rare cells: what is counted, what a record may be charged, what it costs."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from dualquery.game.tables_player import Known, TablesPlayer
from dualquery.game.tables_steps import RARE_KINDS, Step
from dualquery.game.wide_player import WidePlayer
from dualquery.privacy.rare import Rare, edges_of, measure_charges, measure_rare
from dualquery.privacy.sources import RandomSource
from dualquery.workloads.rare import RareCells

Int64 = npt.NDArray[np.int64]

ENDS = 2.5
"""Standard deviations above the mean where the charges of independent attributes end."""


class RareCounter(Protocol):
    """Counts rare cells over private rows. What it returns never leaves here without noise."""

    def histogram(self, cells: RareCells, edges: Int64) -> Int64:
        """How many rows are charged how much for being in these cells."""
        ...

    def counts(self, cells: RareCells, most: int) -> Int64:
        """The rows in each cell; none counts in more than it can pay for with `most`."""
        ...


def measure_rare_step(
    counter: RareCounter, player: TablesPlayer, known: Known, step: Step, source: RandomSource
) -> Rare:
    """Measure what records are charged, unless that is known, and then the cells.

    Args:
        counter: counts over the private rows.
        player: says which cells.
        known: what was released before.
        step: what it may cost.
        source: where noise comes from.
    """
    assert isinstance(player, WidePlayer)  # no other plan has such steps
    purse, cells = player.plan.purse, player.rare_cells(known, step)
    most, charges = player.most_charged(known, step), None
    if most is None:
        expected, spread = player.expected_charge(known, cells)
        edges = edges_of(expected, cells.heaviest)
        scale = purse.scale(step.charged, 1)
        charges = measure_charges(counter.histogram(cells, edges), edges, scale, source)
        most = charges.most(player.total(known), expected + ENDS * spread)
    counts = counter.counts(cells, most)
    return measure_rare(counts, cells, most, purse.scale(step.counted, most), source, charges)


def is_rare_step(step: Step, one: Rare, player: TablesPlayer, known: Known) -> bool:
    """Whether a journal's rare cells are those of this step, at its price."""
    if step.kind not in RARE_KINDS or not isinstance(player, WidePlayer):
        return False
    cells, most = player.rare_cells(known, step), player.most_charged(known, step)
    purse = player.plan.purse
    if most is None:
        paid = one.charges is not None and one.charges.scale == purse.scale(step.charged, 1)
    else:
        paid = one.charges is None and one.most == most
    return (
        paid
        and np.array_equal(one.cells.attributes, cells.attributes)
        and np.array_equal(one.cells.codes, cells.codes)
        and np.array_equal(one.cells.weights, cells.weights)
        and one.scale == purse.scale(step.counted, one.most)
    )
