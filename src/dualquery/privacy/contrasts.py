"""Contrasts of a column's parts: what is measured so that all its quantiles are known alike.

The edges of b bins cut a column into b parts. How far edge i is from its quantile is a contrast of
the parts' counts: the count below it minus i/b of the whole. Measuring these b − 1 contrasts as
they are would be dear, because a record that moves from the first part to the last changes all of
them. Other contrasts, from which these follow, are cheaper. They are found by a small convex
programme. Nothing here reads data, and no promise depends on how well it is solved: the
sensitivity is computed from the whole numbers that it is rounded to.
Proof: ``docs/proofs/quantiles.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dualquery.base.checks import whole
from dualquery.base.errors import ParameterError
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.unit import Unit

Floats = NDArray[np.float64]
Int64 = NDArray[np.int64]

MOST_BINS = 64

SCALE = 64
"""Contrasts are rounded to this many steps of their sensitivity; it costs less than one percent."""

SHARE_OF_TOTAL = 1.0 / 16.0
"""Of the squared sensitivity to an added record, for the number of records in all parts."""

_ITERATIONS = 100


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Whole-number contrasts of the counts of b parts; the last one adds them all up.

    Attributes:
        rows: one contrast per row, one part per column.
    """

    rows: Int64

    @property
    def bins(self) -> int:
        """b, how many parts there are."""
        return int(self.rows.shape[1])

    def squared_distance(self, neighbours: Neighbours) -> int:
        """The squared L2 distance that one part of a unit can move the contrasts by.

        A record that is added moves them by one of the columns. One that is replaced moves them
        from a column to another, or from or to nothing, because its cell may be missing.
        """
        if neighbours is Neighbours.ADD_REMOVE:
            return int((self.rows**2).sum(axis=0).max())
        ends = np.column_stack([np.zeros(len(self.rows), dtype=np.int64), self.rows])
        return int(((ends[:, :, None] - ends[:, None, :]) ** 2).sum(axis=0).max())

    def distance(self, unit: Unit, columns: int = 1) -> float:
        """How far one unit moves the contrasts of so many columns in L2, rounded up.

        Theorem. Counts of parts are sums over records, each of which lies in one part, is spread
        over several, or counts nowhere. So a unit of g parts moves them by g times the distance of
        two ends at most. Proof: ``docs/proofs/quantiles.md``.
        """
        squared = columns * unit.influence**2 * self.squared_distance(unit.neighbours)
        found = math.sqrt(squared)
        while Fraction(found) ** 2 < squared:
            found = math.nextafter(found, math.inf)
        return found

    def distance_l1(self, unit: Unit, columns: int = 1) -> float:
        """The same in L1, of which two ends can be as far apart as both are from nothing."""
        longest = int(np.abs(self.rows).sum(axis=0).max())
        return float(columns * unit.influence * unit.neighbours.table_l1 * longest)

    def of(self, counts: Int64) -> Int64:
        """The contrasts of the counts of all parts."""
        found: Int64 = self.rows @ counts
        return found

    def deviations(self, unit: Unit) -> Floats:
        """Standard deviations of the b − 1 edges' ranks, if μ = 1 and one part is one."""
        unmixed = np.linalg.pinv(self.rows.astype(np.float64))
        mixed = _wanted(self.bins) @ unmixed
        found: Floats = np.sqrt((mixed**2).sum(axis=1)) * self.distance(unit)
        return found


@cache
def contrasts_for(bins: int, neighbours: Neighbours) -> Contrasts:
    """The contrasts whose measurement leaves the ranks of all edges about equally sure.

    Args:
        bins: b.
        neighbours: what the sensitivity is measured by.
    """
    bins = whole("bins", bins, least=2)
    if bins > MOST_BINS:
        raise ParameterError(f"bins = {bins}; expected at most {MOST_BINS} for private edges")
    gram = _gram(bins, neighbours)
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-9 * values.max()
    rows = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    longest = float((rows**2).sum(axis=0).max())
    if neighbours is Neighbours.REPLACE_ONE:
        # A record between two parts moves only contrasts; the total is moved by one that goes
        # missing, and that has room left.
        widest = float(_distances(gram).max())
        rows, total = rows / math.sqrt(widest), math.sqrt(max(1.0 - longest / widest, 0.0))
    else:
        rows, total = rows / math.sqrt(longest), math.sqrt(SHARE_OF_TOTAL)
    scaled = np.rint(SCALE * np.vstack([rows, np.full(bins, total)])).astype(np.int64)
    scaled.flags.writeable = False
    return Contrasts(scaled)


def _wanted(bins: int) -> Floats:
    """The contrasts that say how far every edge is from its quantile."""
    edge, part = np.arange(1, bins)[:, None], np.arange(bins)[None, :]
    found: Floats = (part < edge) - edge / bins
    return found


def _gram(bins: int, neighbours: Neighbours) -> Floats:
    """The products of the columns of the best contrasts, before they are scaled.

    For weights p of the edges and q of the pairs of neighbours, the contrasts that minimise the
    weighted variances times the weighted squared distances are known in closed form. The weights
    are raised where variances and distances are largest, until all are about equal.
    """
    wanted, one = _wanted(bins), np.eye(bins)
    # Contrasts do not see what is added to all parts: an orthonormal basis of what they see.
    basis = np.linalg.svd(one - 1.0 / bins)[0][:, : bins - 1]
    seen = wanted @ basis
    replaced = neighbours is Neighbours.REPLACE_ONE
    edges = np.full(bins - 1, 1.0 / (bins - 1))
    pairs = 1.0 - one if replaced else one
    for _ in range(_ITERATIONS):
        pairs /= pairs.sum()
        moved = 2.0 * (np.diag(pairs.sum(axis=1)) - pairs) if replaced else pairs
        values, vectors = np.linalg.eigh(basis.T @ moved @ basis)
        root, inverse = (
            (vectors * powers) @ vectors.T for powers in (np.sqrt(values), 1.0 / np.sqrt(values))
        )
        values, vectors = np.linalg.eigh(root @ (seen.T * edges) @ seen @ root)
        middle = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        best = inverse @ middle @ inverse
        variances = np.einsum("ij,jk,ik->i", seen, np.linalg.inv(best), seen)
        gram: Floats = basis @ best @ basis.T
        edges = edges * np.sqrt(variances)
        edges /= edges.sum()
        sizes = _distances(gram) if replaced else np.diag(np.diag(gram))
        pairs = pairs * np.sqrt(np.maximum(sizes, 0.0))
    return gram


def _distances(gram: Floats) -> Floats:
    """Squared distances of all pairs of columns."""
    length = np.diag(gram)
    found: Floats = length[:, None] + length[None, :] - 2.0 * gram
    return found
