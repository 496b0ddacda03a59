"""What a release knows of relations: which pairs were measured, and how well its model fits them.

All of it follows from what was released, so it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from dualquery.base.stored import Json
from dualquery.model.pair_kinds import APART, WIDEST

if TYPE_CHECKING:
    from dualquery.release.published import Published

BEYOND = 4.0
"""A table is farther from the model than noise explains if its χ² lies so many standard deviations
above its number of cells."""


@dataclass(frozen=True)
class KnownPairs:
    """Which pairs of columns a table held together.

    Attributes:
        pairs: how many there are, of columns that were measured.
        measured: how many of them were measured together, or are joined by the model.
        left_out: per column those that it was never measured with.
    """

    pairs: int
    measured: int
    left_out: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, release: Published) -> KnownPairs | None:
        """None if no pair was measured, or the columns are too many to tell pairs apart."""
        kinds = release.pair_kinds
        if kinds.of_pair is None:
            return None
        used = np.flatnonzero(release.times_drawn > 0).tolist()
        names, left_out = release.schema.names, dict[str, list[str]]()
        for i, j in combinations(used, 2):
            if kinds.of_set((i, j)) == APART:
                left_out.setdefault(names[i], []).append(names[j])
                left_out.setdefault(names[j], []).append(names[i])
        pairs = len(used) * (len(used) - 1) // 2
        apart = sum(map(len, left_out.values())) // 2
        return cls(pairs, pairs - apart, {one: tuple(more) for one, more in left_out.items()})

    @property
    def told(self) -> str:
        """The same in words."""
        if self.measured == self.pairs:
            return f"all {self.pairs:,} pairs of columns were measured together"
        return (
            f"{self.measured:,} of {self.pairs:,} pairs of columns were measured together; weak "
            "relations between the others may be lost"
        )


@dataclass(frozen=True)
class FitDistance:
    """How far the model is from the tables that it was fitted to, in their own noise.

    Noise below one record counts as one: nobody looks for less.

    Attributes:
        tables: how many there are.
        beyond: how many of them are farther away than noise explains.
        farthest: the columns of the table that noise explains least.
        ratio: the distance of that table, root mean square over its cells: 1 is noise alone.
    """

    tables: int
    beyond: int
    farthest: tuple[str, ...]
    ratio: float

    @classmethod
    def of(cls, release: Published) -> FitDistance | None:
        """None if no table was measured, or the columns are too many."""
        from dualquery.model.forest.answers import shares_of
        from dualquery.model.grouping import estimated_total

        model, schema = release.model, release.schema
        measured = [one.in_codes(schema) for one in release.transcript.measurements]
        if model is None or not measured or len(schema) > WIDEST:
            return None
        budget = release.parameters.budget
        public = budget.unit.size_is_public
        total = float(budget.rows) if public else estimated_total(measured[0])
        squares, cells, columns = [], [], []
        for one in measured:
            away = one.counts - total * shares_of(model, one.marginals)
            start = one.marginals.start
            squares.append(np.add.reduceat(away**2 / np.maximum(one.variances, 1.0), start[:-1]))
            cells.append(np.diff(start).astype(float))
            columns.extend(one.marginals.attributes.tolist())
        square, size = np.concatenate(squares), np.concatenate(cells)
        above = (square - size) / np.sqrt(2.0 * size)
        worst = int(np.argmax(above))
        return cls(
            len(square),
            int((above > BEYOND).sum()),
            tuple(schema.names[a] for a in columns[worst]),
            float(np.sqrt(square[worst] / size[worst])),
        )

    @property
    def told(self) -> str:
        """The same in words."""
        if not self.beyond:
            return f"noise explains how far the model is from each of {self.tables:,} tables"
        return (
            f"{self.beyond:,} of {self.tables:,} measured tables are farther from the model than "
            f"noise explains; {' × '.join(self.farthest)} by {self.ratio:.1f} times its noise"
        )


def knowledge(release: Published) -> Json:
    """Both as plain data; None where there is nothing to say."""
    parts = {"pairs": KnownPairs.of(release), "fit": FitDistance.of(release)}
    return {name: None if one is None else asdict(one) for name, one in parts.items()}
