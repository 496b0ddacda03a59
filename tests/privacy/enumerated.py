"""Outcomes of whole runs against what was claimed of them, for runs small enough to list."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.accountants import ACCOUNTANTS
from dualquery.privacy.events import Events
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.shards import BUCKETS, WeightedActions

Vector = NDArray[np.float64]
Table = tuple[int, ...]
"""The records of a table, as numbers of members of the universe."""

ORDERS = (1.01, 1.5, 2.0, 4.0, 16.0, 64.0)


def log_weights(actions: WeightedActions) -> Vector:
    """The exact weights a draw would use, as logarithms, in order of position."""
    totals = actions.tally(actions.largest())
    buckets = np.repeat(np.arange(BUCKETS), totals)
    positions, scaled = actions.locate(buckets, np.concatenate([np.arange(t) for t in totals]))
    result = np.empty(positions.size)
    result[positions] = np.log(scaled.astype(np.float64)) - (buckets + 53) * math.log(2.0)
    return result


def neighbouring(tables: Sequence[Table], unit: Neighbours) -> Iterator[tuple[int, int]]:
    """Ordered pairs of positions of tables that are neighbours."""
    universe = 1 + max(max(table) for table in tables)
    counts = [np.bincount(table, minlength=universe) for table in tables]
    for i, one in enumerate(counts):
        for j, other in enumerate(counts):
            apart = int(np.abs(other - one).sum())
            sizes = int(other.sum()) - int(one.sum())
            if unit is Neighbours.REPLACE_ONE and (apart, sizes) == (2, 0):
                yield i, j
            if unit is Neighbours.ADD_REMOVE and (apart, abs(sizes)) == (1, 1):
                yield i, j


@dataclass(frozen=True)
class Outcome:
    """What one table leads to.

    Attributes:
        chances: the log-probability of every transcript.
        weights: the log-weights met on the way, by round and by what the data player answered.
    """

    chances: Vector
    weights: Mapping[tuple[int, Hashable], Vector]


@dataclass(frozen=True)
class Findings:
    """How close the truth comes to each claim, as a fraction of it: above 1 the claim is false."""

    width: float
    pure: float
    divergence: float
    hockey_stick: dict[str, float]

    @property
    def least(self) -> float:
        """The fraction of the claim that is furthest from being exceeded; the range is left out."""
        return min(self.pure, self.divergence, *self.hockey_stick.values())


def compare(
    outcomes: Sequence[Outcome], pairs: Iterable[tuple[int, int]], claimed: Events
) -> Findings:
    """Every pair of neighbours, in both orders, against what the events claim."""
    pure_claim = ACCOUNTANTS["pure"].epsilon(claimed, 0.0)
    epsilons = np.linspace(0.0, 1.1 * pure_claim, 12)
    claims = {
        name: np.array([ACCOUNTANTS[name].delta(claimed, float(e)) for e in epsilons])
        for name in ("zcdp", "gaussian")
    }
    width = pure = divergence = 0.0
    hockey = dict.fromkeys(claims, 0.0)
    for i, j in pairs:
        p, q = outcomes[i].chances, outcomes[j].chances
        loss = p - q
        pure = max(pure, float(np.max(np.abs(loss))) / pure_claim)
        for alpha in ORDERS:
            renyi = _log_sum(p + (alpha - 1.0) * loss) / (alpha - 1.0)
            divergence = max(divergence, renyi / (alpha * claimed.rho))
        ratio = np.exp(-loss)
        sticks = np.array(
            [np.sum(np.exp(p) * np.maximum(0.0, 1.0 - math.exp(e) * ratio)) for e in epsilons]
        )
        for name, claim in claims.items():
            shown = sticks > 1e-12
            if np.any(shown):
                hockey[name] = max(hockey[name], float(np.max(sticks[shown] / claim[shown])))
        for key, weights in outcomes[i].weights.items():
            change = float(np.ptp(weights - outcomes[j].weights[key]))
            if claimed.ranges[key[0]] > 0.0:
                width = max(width, change / float(claimed.ranges[key[0]]))
            else:
                # A round that is claimed to be free must not depend on the table at all.
                width = max(width, math.inf if change > 0.0 else 0.0)
    return Findings(width, pure, divergence, hockey)


def _log_sum(values: Vector) -> float:
    top = float(np.max(values))
    return top + math.log(float(np.sum(np.exp(values - top))))
