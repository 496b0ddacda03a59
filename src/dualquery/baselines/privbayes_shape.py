"""What PrivBayes decides before any row is read: its prices, and which pairs may be chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dualquery.base.checks import positive, probability, whole
from dualquery.base.errors import ParameterError
from dualquery.baselines.limits import require_codes
from dualquery.baselines.network import Limits
from dualquery.baselines.privbayes_prices import Prices
from dualquery.privacy.neighbours import Neighbours
from dualquery.workloads.workload import Workload

MOST_VISITS = 2 * 10**12
"""Rows times tables beyond which choosing takes more than about an hour."""


@dataclass(frozen=True)
class Settings:
    """How PrivBayes runs; nothing here costs privacy.

    Attributes:
        share: the part of the budget that the choices take; published is 0.3.
        usefulness: how many times the mean size of the noise the mean count of a cell must be for
            a table to be worth measuring; published is 4.
        parents: the most parents of an attribute.
        candidates: about the most pairs that one choice compares.
    """

    share: float = 0.3
    usefulness: float = 4.0
    parents: int = 3
    candidates: int = 500

    def __post_init__(self) -> None:
        probability("share", self.share)
        positive("usefulness", self.usefulness)
        whole("parents", self.parents, least=0)
        whole("candidates", self.candidates)


@dataclass(frozen=True)
class Shape:
    """What is decided before any row is read: the prices, and which pairs may be chosen."""

    attributes: tuple[int, ...]
    prices: Prices
    limits: Limits

    @classmethod
    def of(
        cls,
        workload: Workload,
        epsilon: float,
        delta: float,
        *,
        rows: int,
        settings: Settings,
        neighbours: Neighbours = Neighbours.REPLACE_ONE,
    ) -> Shape:
        """Plan a run.

        Args:
            workload: the queries; attributes that none of them names are left out.
            epsilon: the budget.
            delta: the budget's δ; 0 for pure ε.
            rows: the public n, or the reference n0.
            settings: how to run.
            neighbours: which tables the promise compares.
        """
        attributes = tuple(np.unique(workload.literals.attribute).tolist())
        sizes = tuple(int(size) for size in workload.schema.sizes)

        def priced(choices: int) -> tuple[Prices, Limits]:
            prices = Prices.of(
                epsilon,
                delta,
                rows=rows,
                tables=len(attributes),
                choices=choices,
                share=settings.share,
                neighbours=neighbours,
            )
            cells = rows / (settings.usefulness * prices.noise_size)
            return prices, Limits(sizes, cells, settings.parents, settings.candidates)

        prices, limits = priced(len(attributes) - 1)
        smallest = sorted(sizes[a] for a in attributes)[:2]
        if settings.parents == 0 or math.prod(smallest) > limits.cells:
            # No attribute can have a parent, so there is nothing to choose.
            prices, limits = priced(0)
        return cls(attributes, prices, limits)

    @property
    def choosing(self) -> bool:
        return self.prices.choice > 0.0

    def require_time(self, rows: int) -> None:
        """Refuse what would take too long, or would not fit into memory; reads no data."""
        require_codes("PrivBayes", len(self.attributes), rows)
        if not self.choosing:
            return
        visits = rows * self.limits.compared(len(self.attributes))
        if visits > MOST_VISITS:
            raise ParameterError(
                f"PrivBayes would compare {visits // rows:,} tables of {rows} rows, which takes "
                f"about {visits // (MOST_VISITS // 60)} minutes; ask for fewer columns"
            )
