"""PrivBayes (Zhang, Cormode, Procopiuc, Srivastava and Xiao 2014): a Bayesian network with noise.

Private side: it tabulates rows. The network is grown one attribute at a time. Each choice is an
exponential mechanism over pairs of an attribute and its parents. Pairs are scored by how far the
attribute and its parents are from independent, the published low-sensitivity stand-in for mutual
information. Then the table of every node is measured once, and rows are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import ParameterError
from dualquery.baselines.baseline import Cost, Floats
from dualquery.baselines.charging import charged
from dualquery.baselines.choosing import choose
from dualquery.baselines.network import Network, Node, Records
from dualquery.baselines.privbayes_prices import Prices
from dualquery.baselines.privbayes_shape import Settings, Shape
from dualquery.domain.schema import Schema
from dualquery.privacy.measuring import measure
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sources import RandomSource
from dualquery.rows.counting import count_rows
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.table import DenseBlock, Table, blocks_of_codes
from dualquery.rows.tabulation import tabulate
from dualquery.workloads.marginals import Groups, Marginals
from dualquery.workloads.workload import Workload

Ints = npt.NDArray[np.int64]

BATCH = 20_000
BATCHES = 10
"""Answers are those of so many sampled rows."""


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
