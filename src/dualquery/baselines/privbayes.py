"""PrivBayes (Zhang, Cormode, Procopiuc, Srivastava and Xiao 2014): a Bayesian network with noise.

Private side: it tabulates rows. The network is grown one attribute at a time. Each choice is an
exponential mechanism over pairs of an attribute and its parents. Pairs are scored by how far the
attribute and its parents are from independent, the published low-sensitivity stand-in for mutual
information. Then the table of every node is measured once, and rows are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import positive, probability, whole
from dualquery.base.errors import ParameterError
from dualquery.baselines.baseline import SEEDED, Cost, Floats
from dualquery.baselines.charging import charged
from dualquery.baselines.choosing import choose, weighed
from dualquery.baselines.limits import require_codes
from dualquery.baselines.network import Limits, Network, Node, Records
from dualquery.baselines.noise import rational_scale
from dualquery.domain.schema import Schema
from dualquery.privacy.accountants import get_accountant
from dualquery.privacy.accountants.gaussian import mu_of
from dualquery.privacy.events import Events, Noise
from dualquery.privacy.measuring import batch_event, measure
from dualquery.privacy.neighbours import Neighbours, rounding_charge
from dualquery.privacy.shards import Shard
from dualquery.privacy.sources import RandomSource
from dualquery.rows.counting import count_rows
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.table import DenseBlock, Table, blocks_of_codes
from dualquery.rows.tabulation import tabulate
from dualquery.workloads.marginals import Groups, Marginals
from dualquery.workloads.workload import Workload

Ints = npt.NDArray[np.int64]

_SHORT = 1.0 - 1e-10
"""Accountants round up, so a little less than the budget is planned."""

BATCH = 20_000
BATCHES = 10
"""Answers are those of so many sampled rows."""

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


def score_sensitivity(rows: int, neighbours: Neighbours) -> float:
    """By how much a record can change the score of a pair, which is counted in records.

    The score is ½·Σ|c(x,π) − c(x)·c(π)/n|. Replacing a record changes it by at most 3 + 2/n, adding
    or removing one by less than 2 (``docs/proofs/baselines.md``).

    Args:
        rows: n, if records are replaced.
        neighbours: which tables the promise compares.
    """
    return 3.0 + 2.0 / rows if neighbours is Neighbours.REPLACE_ONE else 2.0


def pair_scores(rows: EncodedRows, schema: Schema, pairs: Sequence[Node]) -> Floats:
    """½·Σ|c(x,π) − c(x)·c(π)/n| of each pair, in records. Private.

    The numerator Σ|n·c(x,π) − c(x)·c(π)| is a whole number, so that no rounding can add up.
    """
    scores = np.zeros(len(pairs))
    for place, counts in _tables(rows, schema, pairs):
        table = counts.reshape(-1, counts.shape[-1])
        apart = rows.rows * table - table.sum(axis=1)[:, None] * table.sum(axis=0)[None, :]
        scores[place] = int(np.abs(apart).sum()) / (2.0 * rows.rows)
    return scores


@dataclass(frozen=True)
class Prices:
    """What the choices and the tables cost.

    Guarantee: a choice with weights exp(`choice`·score) is one draw of bounded range
    2·`choice`·Δ plus the rounding charge, Δ the sensitivity of a score. The d tables are
    d marginals with noise of one scale.

    Attributes:
        choice: the factor of a score in the exponent; 0 if nothing is chosen.
        noise: Gaussian if δ > 0, else Laplace.
        scale: of the noise in a cell.
        events: the whole run, as accountants read it.
        neighbours: which tables the promise compares.
    """

    choice: float
    noise: Noise
    scale: float
    events: Events
    neighbours: Neighbours

    @classmethod
    def of(
        cls,
        epsilon: float,
        delta: float,
        *,
        rows: int,
        tables: int,
        choices: int,
        share: float,
        neighbours: Neighbours = Neighbours.REPLACE_ONE,
    ) -> Prices:
        """Spend (ε, δ) on so many choices and tables.

        Args:
            epsilon: the budget.
            delta: the budget's δ; 0 for pure ε.
            rows: the public n, or the reference n0.
            tables: how many are measured.
            choices: how many are made; if none, the tables take the whole budget.
            share: the part of the budget that the choices take.
            neighbours: which tables the promise compares.
        """
        share = share if choices else 0.0
        epsilon = positive("epsilon", epsilon) * _SHORT
        if delta == 0.0:
            wide = share * epsilon / max(choices, 1)
            noise = Noise.LAPLACE
            ideal = tables * neighbours.table_l1 / ((1.0 - share) * epsilon)
            scale = float(rational_scale(ideal))
        else:
            mu = mu_of(epsilon, delta)
            # One draw of range r has μ² = (1 + 1)·r²/4.
            wide = mu * math.sqrt(2.0 * share / max(choices, 1))
            noise = Noise.GAUSSIAN
            scale = math.sqrt(tables / (1.0 - share)) * neighbours.table_l2 / mu
        choice = 0.0
        if choices:
            reach = score_sensitivity(rows, neighbours)
            # A score is at most n, or what it is cut to.
            charge = float(rounding_charge(wide / (2.0 * reach) * score_limit(rows, neighbours)))
            choice = (wide - charge) / (2.0 * reach)
            if choice <= 0.0:
                raise ParameterError(f"epsilon={epsilon:g} is too small for {choices} choices")
        events = Events(np.ones(choices, dtype=np.int64), np.full(choices, wide)).then(
            Events.of_measurements(batch_event(noise, scale, tables, neighbours))
        )
        return cls(choice, noise, scale, events, neighbours)

    @property
    def noise_size(self) -> float:
        """The mean size of the noise in a cell."""
        return self.scale * (math.sqrt(2.0 / math.pi) if self.noise is Noise.GAUSSIAN else 1.0)

    def weigh(self, scores: Floats, rows: int) -> Shard:
        """The pairs to choose from, with their exponents."""
        return weighed(self.choice * np.minimum(scores, score_limit(rows, self.neighbours)))

    def cost(self, delta: float, private: bool) -> Cost:
        """The statement of a run at these prices."""
        accountant = "pure" if delta == 0.0 else "gaussian"
        return Cost(
            get_accountant(accountant).epsilon(self.events, delta),
            delta,
            self.neighbours,
            f"exponential mechanism and exact {self.noise} noise, {accountant} accountant",
            "" if private else SEEDED,
            self.events,
        )


def score_limit(rows: int, neighbours: Neighbours) -> float:
    """The largest score that counts: n, or twice the public reference where n is private."""
    return float(rows) if neighbours is Neighbours.REPLACE_ONE else 2.0 * rows


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

        def planned(choices: int) -> tuple[Prices, Limits]:
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

        prices, limits = planned(len(attributes) - 1)
        smallest = sorted(sizes[a] for a in attributes)[:2]
        if settings.parents == 0 or math.prod(smallest) > limits.cells:
            # No attribute can have a parent, so there is nothing to choose.
            prices, limits = planned(0)
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


@dataclass(frozen=True, eq=False)
class PrivBayes:
    """A network with noisy tables; its rows answer any query over the schema.

    Attributes:
        network: the network.
        schema: the attributes.
        privacy: what it cost.
        name: what comparisons call it.
    """

    network: Network
    schema: Schema
    privacy: Cost
    name: str = "privbayes"

    @classmethod
    def fit(
        cls,
        table: Table,
        workload: Workload,
        *,
        epsilon: float,
        delta: float,
        source: RandomSource,
        rows: int,
        settings: Settings | None = None,
        neighbours: Neighbours = Neighbours.REPLACE_ONE,
        out_of_domain: OutOfDomain = OutOfDomain.REFUSE,
        observer: Callable[[int, int], None] = lambda done, total: None,
        ledger: str | Path | None = None,
    ) -> PrivBayes:
        """Choose a network and measure its tables.

        Args:
            table: the private rows.
            workload: the queries; the network is over the attributes that they name.
            epsilon: the budget.
            delta: the budget's δ; 0 for pure ε.
            source: the random source of choices and noise.
            rows: the public number of rows; under add-remove neighbours a public reference.
            settings: how to run; None for the defaults.
            neighbours: which tables the promise compares.
            out_of_domain: what to do with a cell outside its domain.
            observer: told how many attributes are in the network, and of how many.
            ledger: a budget ledger that the run is charged to before its first draw.
        """
        shape = Shape.of(
            workload,
            epsilon,
            delta,
            rows=rows,
            settings=settings or Settings(),
            neighbours=neighbours,
        )
        shape.require_time(rows)
        schema, prices = workload.schema, shape.prices
        read = EncodedRows.read(table, schema, shape.attributes, out_of_domain)
        if neighbours is Neighbours.REPLACE_ONE and read.rows != rows:
            raise ParameterError(f"rows={rows}, but the table has {read.rows}; expected its number")
        with charged(
            ledger, prices.events, private=source.private, note=cls.name, neighbours=neighbours
        ):
            nodes = chosen_nodes(read, schema, shape, rows, source, observer)
            tables = measured_tables(read, schema, nodes, prices, source)
        network = Network(shape.limits.sizes, nodes, tables)
        return cls(network, schema, prices.cost(delta, source.private))

    def answers(self, workload: Workload) -> Floats:
        if workload.schema != self.schema:
            raise ParameterError(
                "the workload has another schema than the one PrivBayes was fitted on"
            )
        counts = np.zeros(len(workload))
        for number in range(BATCHES):
            records = self.sample(BATCH, np.random.default_rng([0, number]))  # public randomness
            counts += count_rows(Sampled(records), workload).counts
        return counts / (BATCH * BATCHES)

    def sample(self, rows: int, generator: np.random.Generator) -> Records:
        """Synthetic records, one row of codes each."""
        return self.network.sample(rows, generator)


def chosen_nodes(
    read: EncodedRows,
    schema: Schema,
    shape: Shape,
    rows: int,
    source: RandomSource,
    observer: Callable[[int, int], None],
) -> tuple[Node, ...]:
    """The network, one attribute at a time. The first one is chosen by public randomness.

    Args:
        read: the private rows.
        schema: the attributes.
        shape: the prices and the limits.
        rows: the public n, or the reference n0.
        source: the random source of the choices.
        observer: told how many attributes are in the network, and of how many.
    """
    if not shape.choosing:
        return tuple(Node(attribute) for attribute in shape.attributes)
    generator = np.random.default_rng(0)  # public randomness
    first = int(generator.choice(shape.attributes))
    nodes, left = [Node(first)], [a for a in shape.attributes if a != first]
    while left:
        pairs = shape.limits.choices([node.attribute for node in nodes], left, generator)
        here = source.for_round(len(nodes))
        scores = pair_scores(read, schema, pairs)
        nodes.append(pairs[choose(shape.prices.weigh(scores, rows), here)])
        left.remove(nodes[-1].attribute)
        observer(len(nodes), len(shape.attributes))
    return tuple(nodes)


def measured_tables(
    read: EncodedRows,
    schema: Schema,
    nodes: Sequence[Node],
    prices: Prices,
    source: RandomSource,
) -> tuple[Ints, ...]:
    """The noisy table of every node.

    Args:
        read: the private rows.
        schema: the attributes.
        nodes: the network.
        prices: the noise.
        source: the random source of the noise.
    """
    found: dict[int, Ints] = {}
    groups = Groups.single(schema)
    for places, marginals in _marginals(groups, nodes):
        noisy = measure(tabulate(read, marginals), marginals, prices.noise, prices.scale, source)
        for number, place in enumerate(places):
            part = noisy.counts[marginals.start[number] : marginals.start[number + 1]]
            found[place] = part.reshape(marginals.shapes[number])
    return tuple(found[place] for place in range(len(nodes)))


class Sampled:
    """Sampled records, in the form in which tables are counted."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def bind(self, schema: Schema) -> Schema:
        return schema

    def blocks(
        self, schema: Schema, attributes: Sequence[int], out_of_domain: OutOfDomain
    ) -> Iterator[DenseBlock]:
        return blocks_of_codes(self._records, attributes)


def _marginals(groups: Groups, nodes: Sequence[Node]) -> Iterator[tuple[list[int], Marginals]]:
    """The tables of some nodes, those with as many parents together, and their places."""
    for length in sorted({len(node.parents) for node in nodes}):
        places = [p for p, node in enumerate(nodes) if len(node.parents) == length]
        tables = np.array([nodes[p].attributes for p in places], dtype=np.int32)
        # Parents come earlier, so the newest attribute of a table tells whose it is: none is twice.
        yield places, Marginals(groups, tables)


def _tables(rows: EncodedRows, schema: Schema, pairs: Sequence[Node]) -> Iterator[tuple[int, Ints]]:
    """The private counts of each pair, one axis per parent and the last for the attribute."""
    for places, marginals in _marginals(Groups.single(schema), pairs):
        counts = tabulate(rows, marginals)
        for number, place in enumerate(places):
            part = counts[marginals.start[number] : marginals.start[number + 1]]
            yield place, part.reshape(marginals.shapes[number])
