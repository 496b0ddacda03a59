"""Independent attributes with noisy one-way marginals. Private side: it reads counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.baselines.baseline import FLOATING, Cost
from dualquery.baselines.product import product_answers
from dualquery.domain.schema import Schema
from dualquery.privacy.accountants.gaussian import mu_of
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.unit import Unit
from dualquery.rows.counting import count_rows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.table import Table
from dualquery.workloads.generators import every_code
from dualquery.workloads.workload import Workload

Floats = npt.NDArray[np.float64]

CELLS = 8192
"""Cells that one pass over the rows counts."""


@dataclass(frozen=True)
class Independent:
    """Gaussian noise on every cell of every one-way table; attributes are taken as independent.

    Guarantee: replacing a record moves two cells of each of the d tables by one, which is an L2
    distance of √(2d). Adding or removing a record moves one cell of each, which is √d. Noise whose
    standard deviation is that distance divided by μ makes the tables μ-GDP.

    Attributes:
        shares: the estimated share of each code, those of the first attribute first.
        first: where the codes of each attribute begin in `shares`.
        privacy: what it cost.
        name: what comparisons call it.
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
        neighbours: Neighbours | Unit,
        generator: np.random.Generator,
        out_of_domain: OutOfDomain = OutOfDomain.REFUSE,
    ) -> Independent:
        """Count all one-way tables and add noise.

        Args:
            table: the private rows.
            schema: their attributes.
            epsilon: the budget, which is spent as a whole.
            delta: the budget's δ.
            neighbours: which tables the promise compares.
            generator: the source of the noise.
            out_of_domain: what to do with a cell outside its domain.
        """
        counts = one_way_counts(table, schema, out_of_domain)
        unit = Unit(neighbours) if isinstance(neighbours, Neighbours) else neighbours
        scale = unit.table_l2 * np.sqrt(len(schema)) / mu_of(epsilon, delta)
        noisy = counts + generator.normal(0.0, scale, len(counts))
        first = schema.code_start
        cost = Cost(epsilon, delta, unit.neighbours, "Gaussian noise on one-way tables", FLOATING)
        return cls(_shares(noisy, first), first, cost)

    def answers(self, workload: Workload) -> Floats:
        literals = workload.literals
        owner = literals.attribute[literals.owner]
        held = self.shares[self.first[owner] + literals.codes]
        return product_answers(workload, np.add.reduceat(held, literals.start[:-1]))


def one_way_counts(
    table: Table, schema: Schema, out_of_domain: OutOfDomain, cells: int = CELLS
) -> npt.NDArray[np.int64]:
    """How many rows have each code of each attribute.

    A pass over the rows packs one column per cell, and all cells of a wide table would not fit
    into memory. So each pass counts the cells of some attributes.

    Args:
        table: the private rows.
        schema: their attributes.
        out_of_domain: what to do with a cell outside its domain.
        cells: cells per pass.
    """
    sizes = schema.sizes.astype(np.int64)
    part = np.cumsum(sizes) // cells
    counts = []
    for number in np.unique(part):
        chosen = np.flatnonzero(part == number)
        literals = every_code(schema, chosen)
        asked = Workload.conjunctions(schema, literals, 2 * np.arange(len(literals))[:, None])
        counts.append(count_rows(table, asked, out_of_domain).counts)
    return np.concatenate(counts)


def _shares(noisy: Floats, first: npt.NDArray[np.int64]) -> Floats:
    """Noisy counts as distributions: no share is negative, and those of an attribute sum to one."""
    held = np.maximum(noisy, 0.0)
    sizes = np.diff(first)
    totals = np.add.reduceat(held, first[:-1])
    empty = totals <= 0.0
    shares = held / np.repeat(np.where(empty, 1.0, totals), sizes)
    return np.where(np.repeat(empty, sizes), 1.0 / np.repeat(sizes, sizes), shares)
