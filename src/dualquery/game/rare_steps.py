"""Steps about rare cells: what records are charged, what is counted, and what that costs."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from dualquery.game.tables_player import Known, TablesPlayer
from dualquery.game.tables_steps import RARE_KINDS, Kind, Step
from dualquery.game.wide_player import WidePlayer
from dualquery.privacy.rare import Charges, Rare, edges_of, measure_charges, measure_rare
from dualquery.privacy.sources import RandomSource
from dualquery.workloads.rare import RareCells

Int64 = npt.NDArray[np.int64]


class RareCounter(Protocol):
    """Counts rare cells over private rows. What it returns never leaves here without noise."""

    def histogram(self, cells: RareCells, edges: Int64) -> Int64:
        """How many rows are charged how much for being in these cells."""
        ...

    def counts(self, cells: RareCells, most: int) -> Int64:
        """The rows in each cell; none counts in more than it can pay for with `most`."""
        ...


def is_about_rare_cells(player: TablesPlayer, known: Known, step: Step) -> bool:
    """Whether a step is about rare cells, given what was released before."""
    if not isinstance(player, WidePlayer):
        return False
    return step.kind is Kind.CHARGES or (step.kind in RARE_KINDS and player.is_sparse(known))


def measure_rare_step(
    counter: RareCounter, player: TablesPlayer, known: Known, step: Step, source: RandomSource
) -> Charges | Rare:
    """Measure what records are charged, or rare cells.

    Args:
        counter: counts over the private rows.
        player: says which cells.
        known: what was released before.
        step: what it may cost.
        source: where noise comes from.
    """
    assert isinstance(player, WidePlayer)  # no other player measures rare cells
    purse, cells = player.plan.purse, player.rare_cells(known, step)
    if step.kind in (Kind.CHARGES, Kind.CHARGES_OF_PAIRS):
        edges = edges_of(player.expected_charge(known, cells)[0], cells.heaviest)
        scale = purse.scale(step.share, 1)
        return measure_charges(counter.histogram(cells, edges), cells, edges, scale, source)
    most = player.most_charged(known, cells)
    counts = counter.counts(cells, most)
    return measure_rare(counts, cells, most, purse.scale(step.share, most), source)


def is_rare_step(step: Step, one: Charges | Rare, player: TablesPlayer, known: Known) -> bool:
    """Whether a journal's charges or rare cells are those of this step, at its price."""
    if not is_about_rare_cells(player, known, step):
        return False
    assert isinstance(player, WidePlayer)  # no other player measures rare cells
    cells, purse = player.rare_cells(known, step), player.plan.purse
    if step.kind in (Kind.CHARGES, Kind.CHARGES_OF_PAIRS):
        edges = edges_of(player.expected_charge(known, cells)[0], cells.heaviest)
        paid = isinstance(one, Charges) and np.array_equal(one.edges, edges)
        paid = paid and one.scale == purse.scale(step.share, 1)
    else:
        most = player.most_charged(known, cells)
        paid = isinstance(one, Rare) and one.most == most
        paid = paid and one.scale == purse.scale(step.share, most)
    return (
        paid
        and np.array_equal(one.cells.attributes, cells.attributes)
        and np.array_equal(one.cells.codes, cells.codes)
        and np.array_equal(one.cells.weights, cells.weights)
    )
