"""Independent attributes with noisy one-way marginals. Private side: it reads counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.baselines.baseline import FLOATING, Cost
from dualquery.baselines.product import product_answers
from dualquery.encoding import OutOfDomain
from dualquery.privacy.accountants.gaussian import mu_of
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.counting import count
from dualquery.queries.generators import all_marginals
from dualquery.queries.workload import Workload
from dualquery.records import Records
from dualquery.schema import Schema
from dualquery.table import Table

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Independent:
    """Every cell of every one-way table with Gaussian noise, then attributes as independent.

    Guarantee: replacing a record moves two cells of each of the d tables by one, an L2
    distance of √(2d); adding or removing one moves one cell of each, √d. Noise of standard
    deviation that distance over μ is μ-GDP.
    """

    shares: Floats
    first: npt.NDArray[np.int64]
    privacy: Cost
    name: str = "independent"

    @classmethod
    def fit(
        cls,
        table: Table,
        schema: Schema,
        *,
        epsilon: float,
        delta: float,
        neighbours: Neighbours,
        generator: np.random.Generator,
        out_of_domain: OutOfDomain = OutOfDomain.REFUSE,
    ) -> Independent:
        cells = all_marginals(schema, 1)
        counted = count(Records.pack(table, schema, cells.literals, out_of_domain), cells)
        moved = 2 if neighbours is Neighbours.REPLACE_ONE else 1
        scale = np.sqrt(moved * len(schema)) / mu_of(epsilon, delta)
        noisy = counted.counts + generator.normal(0.0, scale, len(cells))
        first = np.concatenate([[0], np.cumsum(schema.sizes)]).astype(np.int64)
        cost = Cost(epsilon, delta, neighbours, "Gaussian noise on one-way tables", FLOATING)
        return cls(_shares(noisy, first), first, cost)

    def answers(self, workload: Workload) -> Floats:
        literals = workload.literals
        owner = np.repeat(literals.attribute, np.diff(literals.start))
        held = self.shares[self.first[owner] + literals.codes]
        return product_answers(workload, np.add.reduceat(held, literals.start[:-1]))


def _shares(noisy: Floats, first: npt.NDArray[np.int64]) -> Floats:
    """Noisy counts as distributions: nothing below zero, each attribute summing to one."""
    held = np.maximum(noisy, 0.0)
    sizes = np.diff(first)
    totals = np.add.reduceat(held, first[:-1])
    empty = totals <= 0.0
    shares = held / np.repeat(np.where(empty, 1.0, totals), sizes)
    return np.where(np.repeat(empty, sizes), 1.0 / np.repeat(sizes, sizes), shares)
