"""The matrix mechanism for marginals, in the residual basis: least variance in closed form.

After Xiao, He, Zhang and Kifer (2023). Private side: it tabulates rows. It gives answers only.

A table over attributes A' splits into orthogonal parts, one per subset A: what A says beyond its
own subsets, its *residual*. A marginal query needs the residuals of all subsets of its attributes,
and each residual serves all queries that need it. So each residual is measured once, and how
precisely is a small problem with a solution in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import positive
from dualquery.base.errors import ParameterError
from dualquery.baselines.baseline import Cost, Floats, public_rows
from dualquery.baselines.charging import charged
from dualquery.baselines.spending import SHORT, stated
from dualquery.baselines.universe import AttributeSet, Group, groups_of
from dualquery.domain.schema import Schema
from dualquery.privacy.accountants.gaussian import mu_of
from dualquery.privacy.events import Events, MeasurementEvent, Noise
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.noise import rounded_gaussian
from dualquery.privacy.sources import RandomSource
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.table import Table
from dualquery.rows.tabulation import tabulate
from dualquery.workloads.marginals import Groups, Marginals
from dualquery.workloads.workload import Workload

Ints = npt.NDArray[np.int64]

MOST_COEFFICIENTS = 20_000_000
"""Coefficients beyond which a residual basis takes too long to measure."""


def require_few_coefficients(workload: Workload) -> None:
    """Refuse a workload whose residuals would take too long to measure; reads no data."""
    starts, terms = workload.start.tolist(), workload.terms >> 1
    named = workload.literals.attribute[terms].tolist()
    sizes = workload.schema.sizes.tolist()
    asked = {tuple(sorted(named[first:last])) for first, last in pairwise(starts)}
    measured = {
        chosen
        for one in asked
        for length in range(1, len(one) + 1)
        for chosen in combinations(one, length)
    }
    _refuse_many(sum(math.prod(sizes[a] - 1 for a in chosen) for chosen in measured))


def _refuse_many(coefficients: int) -> None:
    if coefficients > MOST_COEFFICIENTS:
        raise ParameterError(
            f"the matrix mechanism would measure {coefficients:,} coefficients, over its limit of "
            f"{MOST_COEFFICIENTS:,} (about {coefficients // 10**6} minutes); ask fewer queries or "
            "smaller marginals"
        )


def contrasts(size: int) -> Ints:
    """Whole-number vectors that are orthogonal to each other and to the vector of ones.

    Row k − 1 has k ones, then −k, then zeros. Its squared length is k·(k + 1). They are Helmert's
    contrasts without their scale, so that contrasts of counts are whole numbers.
    """
    rows = np.zeros((size - 1, size), dtype=np.int64)
    for k in range(1, size):
        rows[k - 1, :k] = 1
        rows[k - 1, k] = -k
    return rows


def squared_lengths(sizes: Sequence[int]) -> Ints:
    """Π k·(k + 1) for each coefficient of a residual, in the shape of the residual."""
    lengths = np.ones((), dtype=np.int64)
    for size in sizes:
        k = np.arange(1, size, dtype=np.int64)
        lengths = lengths[..., None] * (k * (k + 1))
    return lengths


def sensitivity(sizes: Sequence[int], neighbours: Neighbours = Neighbours.REPLACE_ONE) -> float:
    """p_A: the largest squared distance between the residuals of neighbours.

    The residual of one record has squared length Π (1 − 1/n), and to add or remove it moves the
    residual by that. The inner product of those of two records is a product too, with −1/n for each
    attribute in which they differ. It is smallest if they differ in the smallest attribute alone.
    So to replace a record moves it by p_A = 2·Π (1 − 1/n)·m/(m − 1), m the smallest n.

    Args:
        sizes: of the attributes in A, each 2 or more.
        neighbours: which tables are compared.
    """
    smallest = min(sizes)
    length = math.prod(1.0 - 1.0 / size for size in sizes)
    if neighbours is Neighbours.ADD_REMOVE:
        return length
    return 2.0 * length * smallest / (smallest - 1.0)


@dataclass(frozen=True)
class Strategy:
    """Which residuals are measured, and with which noise.

    Guarantee: residual A has L2 sensitivity √p_A in orthonormal coordinates. Noise of standard
    deviation σ_A on all of them is μ-GDP for μ² = Σ p_A/σ_A².

    Attributes:
        sizes: of all attributes.
        sigma: σ_A by attributes, in orthonormal coordinates.
        need: v_A, what one unit of σ_A² adds to the sum of the variances of all answers.
        mu: what the strategy spends.
        neighbours: which tables it protects.
    """

    sizes: tuple[int, ...]
    sigma: Mapping[AttributeSet, float]
    need: Mapping[AttributeSet, float]
    mu: float
    neighbours: Neighbours = Neighbours.REPLACE_ONE

    @classmethod
    def of(
        cls,
        groups: Sequence[Group],
        sizes: Sequence[int],
        mu: float,
        neighbours: Neighbours = Neighbours.REPLACE_ONE,
    ) -> Strategy:
        """The noise that makes the sum of all variances as small as μ allows.

        Minimise Σ v_A·σ_A² subject to Σ p_A/σ_A² = μ². By Lagrange,
        σ_A² = √(p_A/v_A)·Σ_B √(p_B·v_B)/μ².

        Args:
            groups: the queries, by their attributes.
            sizes: of all attributes.
            mu: what may be spent.
            neighbours: which tables it protects.
        """
        need: dict[AttributeSet, float] = {}
        for group in groups:
            for chosen, added in _needs(group, sizes):
                need[chosen] = need.get(chosen, 0.0) + added
        need = {chosen: added for chosen, added in need.items() if added > 0.0}
        price = {chosen: sensitivity([sizes[a] for a in chosen], neighbours) for chosen in need}
        total = math.fsum(math.sqrt(price[chosen] * need[chosen]) for chosen in need)
        sigma = {
            chosen: math.sqrt(math.sqrt(price[chosen] / need[chosen]) * total) / mu
            for chosen in need
        }
        return cls(tuple(sizes), sigma, need, mu, neighbours)

    @property
    def coefficients(self) -> int:
        """How many numbers are measured."""
        return sum(math.prod(self.sizes[a] - 1 for a in chosen) for chosen in self.sigma)

    @property
    def mu_squared(self) -> float:
        """Σ p_A/σ_A², from the noise itself."""
        return math.fsum(
            sensitivity([self.sizes[a] for a in chosen], self.neighbours) / sigma**2
            for chosen, sigma in self.sigma.items()
        )

    @property
    def total_variance(self) -> float:
        """The sum of the variances of all counts that are answered, apart from rounding."""
        return math.fsum(self.need[chosen] * sigma**2 for chosen, sigma in self.sigma.items())

    @property
    def event(self) -> MeasurementEvent:
        """The whole measurement, every coefficient in units of its own noise."""
        distance = math.sqrt(self.mu_squared)
        widest = math.sqrt(self.coefficients) * distance
        return MeasurementEvent(Noise.GAUSSIAN, 1.0, widest, distance)


def measured_residual(table: Ints, sigma: float, source: RandomSource) -> Floats:
    """A residual with exact noise of standard deviation σ per orthonormal coordinate.

    Contrast k of the counts is a whole number, √(length_k) times the orthonormal coordinate. It
    gets round(σ·√(length_k)·N), so it is a rounded Gaussian measurement and the rounding is
    post-processing, although the noise of the residual's cells is correlated.

    Args:
        table: the private counts, one axis per attribute.
        sigma: of each orthonormal coordinate.
        source: the random source.

    Returns:
        The noisy residual, in the shape of the table; it sums to zero along every axis.
    """
    lengths = squared_lengths(table.shape)
    found = _along(table, [contrasts(size) for size in table.shape])
    for length in np.unique(lengths):
        where = lengths == length
        scale = sigma * math.sqrt(float(length))
        found[where] += rounded_gaussian(scale, int(where.sum()), source)
    back = [contrasts(size).T.astype(np.float64) for size in table.shape]
    return _along(found / lengths, back)


@dataclass(frozen=True, eq=False)
class MatrixMechanism:
    """Noisy residuals; they answer every query on attributes whose residuals were measured.

    Attributes:
        schema: the attributes.
        rows: the public number of rows.
        residuals: the noisy residual of each set of attributes.
        strategy: how they were measured.
        privacy: what it cost.
        name: what comparisons call it.
    """

    schema: Schema
    rows: int
    residuals: Mapping[AttributeSet, Floats]
    strategy: Strategy
    privacy: Cost
    name: str = "matrix mechanism"

    @classmethod
    def fit(
        cls,
        table: Table,
        workload: Workload,
        *,
        epsilon: float,
        delta: float,
        source: RandomSource,
        neighbours: Neighbours = Neighbours.REPLACE_ONE,
        reference: int | None = None,
        out_of_domain: OutOfDomain = OutOfDomain.REFUSE,
        ledger: str | Path | None = None,
    ) -> MatrixMechanism:
        """Tabulate and measure all residuals that a workload needs.

        Args:
            table: the private rows.
            workload: the queries.
            epsilon: the budget.
            delta: the budget's δ, above 0.
            source: the random source of the noise.
            neighbours: which tables the promise compares.
            reference: the public number of rows under add-remove neighbours.
            out_of_domain: what to do with a cell outside its domain.
            ledger: a budget ledger that the run is charged to before its first draw.
        """
        schema = workload.schema
        sizes = tuple(int(size) for size in schema.sizes)
        if delta <= 0.0:
            raise ParameterError(
                "the matrix mechanism has Gaussian noise, which needs delta above 0"
            )
        budget = mu_of(positive("epsilon", epsilon), delta) * SHORT
        groups = groups_of(workload)
        strategy = Strategy.of(groups, sizes, budget, neighbours)
        _refuse_many(strategy.coefficients)
        named = sorted({a for chosen in strategy.sigma for a in chosen})
        rows = EncodedRows.read(table, schema, named, out_of_domain)
        public = public_rows(rows.rows, neighbours, reference)
        residuals: dict[AttributeSet, Floats] = {}
        events = Events.of_measurements(strategy.event)
        with charged(ledger, events, private=source.private, note=cls.name, neighbours=neighbours):
            for chosen, counts in _tables(rows, schema, list(strategy.sigma)):
                residuals[chosen] = measured_residual(counts, strategy.sigma[chosen], source)
        mechanism = "exact gaussian noise on residuals"
        cost = stated(events, delta, mechanism, private=source.private, neighbours=neighbours)
        return cls(schema, public, residuals, strategy, cost)

    def answers(self, workload: Workload) -> Floats:
        if workload.schema != self.schema:
            raise ParameterError("the workload has another schema than the measured one")
        found = np.empty(len(workload))
        for group in groups_of(workload):
            found[group.positions] = self._group(group)
        return np.clip(found / self.rows, 0.0, 1.0)

    def _group(self, group: Group) -> Floats:
        """The noisy counts of some queries on the same attributes."""
        means = [factor.mean(axis=1) for factor in group.factors]
        total = self.rows * np.prod(means, axis=0)
        for places in _places(group, self.strategy.sizes):
            chosen = tuple(group.attributes[place] for place in places)
            residual = self.residuals.get(chosen)
            weight = np.prod([m for p, m in enumerate(means) if p not in places], axis=0)
            if residual is None:
                if np.any(_centred(group, places) * weight * weight > 0.0):
                    raise ParameterError(
                        "the matrix mechanism answers only queries on marginals that its workload "
                        "asks for"
                    )
                continue
            folded: Floats = np.einsum("gi,i...->g...", group.factors[places[0]], residual)
            for place in places[1:]:
                folded = np.einsum("gi,gi...->g...", group.factors[place], folded)
            total = total + folded * weight
        found: Floats = np.where(group.parity, (self.rows + total) / 2.0, total)
        return found


def _places(group: Group, sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The subsets of a group's attributes that have a residual, as places among them."""
    varied = [place for place, a in enumerate(group.attributes) if sizes[a] > 1]
    for length in range(1, len(varied) + 1):
        yield from combinations(varied, length)


def _centred(group: Group, places: Sequence[int]) -> Floats:
    """Per query, Π Σ_c (f(c) − mean f)² over some of its attributes."""
    parts = [group.factors[place] for place in places]
    spread = [((part - part.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) for part in parts]
    product: Floats = np.prod(spread, axis=0)
    return product


def _needs(group: Group, sizes: Sequence[int]) -> Iterator[tuple[AttributeSet, float]]:
    """v_A of the queries of a group: what a unit of σ_A² adds to the sum of their variances."""
    means = [factor.mean(axis=1) for factor in group.factors]
    scale = np.where(group.parity, 0.25, 1.0)
    for places in _places(group, sizes):
        rest = np.prod([m * m for p, m in enumerate(means) if p not in places], axis=0)
        added = float((scale * _centred(group, places) * rest).sum())
        yield tuple(group.attributes[place] for place in places), added


Number = TypeVar("Number", np.int64, np.float64)


def _along(
    table: npt.NDArray[Number], matrices: Sequence[npt.NDArray[Number]]
) -> npt.NDArray[Number]:
    """The table with each axis multiplied by its matrix."""
    found = table
    for axis, matrix in enumerate(matrices):
        found = np.moveaxis(np.tensordot(matrix, found, axes=(1, axis)), 0, axis)
    return found


def _tables(
    rows: EncodedRows, schema: Schema, chosen: Sequence[AttributeSet]
) -> Iterator[tuple[AttributeSet, Ints]]:
    """The private counts of each set of attributes, one axis per attribute."""
    groups = Groups.single(schema)
    for length in sorted({len(one) for one in chosen}):
        some = [one for one in chosen if len(one) == length]
        marginals = Marginals(groups, np.array(some, dtype=np.int32))
        counts = tabulate(rows, marginals)
        for number, one in enumerate(some):
            part = counts[marginals.start[number] : marginals.start[number + 1]]
            yield one, part.reshape(marginals.shapes[number])
