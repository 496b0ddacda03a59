"""A model whose columns depend on one another as much as measured tables say.

Shrinkage draws components together, so a fitted model has lost a part of every dependence. As the
truth of a rehearsal it is easier to find again than the table was: what shrinkage lost once cannot
be lost a second time. The tables say publicly how much was there. Their squared distances from
independence add up to those of the private table and to the variance of the noise, which is known.

A fit with less shrinkage has kept more of it, and noise besides. A mixture of both models has any
distance in between, because distances of mixtures with the same margins are weighted means.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dualquery.model.ensemble import merged
from dualquery.model.mixture import Mixture
from dualquery.model.spread import independent
from dualquery.privacy.measuring import Measurement
from dualquery.workloads.marginals import Marginals

Floats = npt.NDArray[np.float64]

KEPT = 0.98
"""A model that has kept this part of the squares has lost a hundredth of its dependences. That is
not worth another fit."""


class Matching:
    """How far tables are from independence: those that were measured, and those of models."""

    def __init__(
        self,
        measurements: Sequence[Measurement],
        model: Mixture,
        total: float,
        chance: float = 0.0,
    ) -> None:
        """Compare a model with what was measured.

        Args:
            measurements: pairs count; where there are none, triples.
            model: the fitted model, whose shares of codes say what independent columns would have.
            total: the number of records, or of the parts that they are counted in.
            chance: the variance of a count, per part, that chance alone makes; 0 where it counts
                as dependence.
        """
        self.model = model
        self._listed = [one for one in measurements if one.marginals.arity == 2] or [
            one for one in measurements if one.marginals.arity == 3
        ]
        self._apart, self.seen = [], 0.0
        for one in self._listed:
            cells, product = _beside_independence(model, one.marginals)
            self._apart.append(cells - product)
            squares = ((one.counts / total - product) ** 2).sum()
            self.seen += float(squares - one.variances.sum() / total**2)
            if chance:
                self.seen -= chance / total * _scatter(one.marginals, product)

    @property
    def lost(self) -> bool:
        """Whether the model has lost some of what the tables show."""
        return self._square(self._apart) < KEPT * self.seen

    def with_part_of(self, looser: Mixture) -> Mixture:
        """The model, with as much of another one that the sums of squares agree.

        Args:
            looser: a model of the same tables that was fitted with less shrinkage.
        """
        part = self.part_of(looser)
        return merged([self.model, looser], [1.0 - part, part])

    def part_of(self, looser: Mixture) -> float:
        """How much of the other one that is; all of it, if even that is not enough."""
        both = [_beside_independence(looser, one.marginals) for one in self._listed]
        more = [c - p - mine for (c, p), mine in zip(both, self._apart, strict=True)]
        # |a + x·m|² = s is a·a + 2x·a·m + x²·m·m = s.
        short = self.seen - self._square(self._apart)
        if short <= 0.0:
            return 0.0
        across = sum(float(mine @ other) for mine, other in zip(self._apart, more, strict=True))
        square = self._square(more)
        if 2.0 * across + square <= short:
            return 1.0
        return float((np.sqrt(across**2 + square * short) - across) / square)

    @staticmethod
    def _square(tables: Sequence[Floats]) -> float:
        return sum(float(one @ one) for one in tables)


def _beside_independence(model: Mixture, marginals: Marginals) -> tuple[Floats, Floats]:
    """The shares of all cells by a model, and what they were if its columns were independent."""
    cells = model.answers(marginals.queries(model.schema))
    product = np.empty_like(cells)
    for first, last, shape in zip(
        marginals.start[:-1], marginals.start[1:], marginals.shapes, strict=True
    ):
        product[first:last] = independent(cells[first:last].reshape(shape)).reshape(-1)
    return cells, product


def _scatter(marginals: Marginals, product: Floats) -> float:
    """What one row adds to the squares by chance, beyond the shares of single columns.

    With a = Σp² of a column, that is (1 − a)(1 − b) for a pair; see `strengths.beyond_chance`.
    """
    found = 0.0
    for first, last, shape in zip(
        marginals.start[:-1], marginals.start[1:], marginals.shapes, strict=True
    ):
        cells = product[first:last].reshape(shape)
        axes = range(cells.ndim)
        each = [(cells.sum(axis=tuple({*axes} - {axis})) ** 2).sum() for axis in axes]
        alone = np.prod(each) * (1.0 + sum((1.0 - a) / a for a in each))
        found += max(0.0, 1.0 - float(alone))
    return found
