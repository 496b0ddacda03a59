"""PrivBayes: its promise by enumeration, its scores and rows against plain twins, its refusals."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.baselines.network import Limits, Network, Node, conditional
from dualquery.baselines.privbayes import PrivBayes, Sampled, measured_tables, pair_scores
from dualquery.baselines.privbayes_prices import Prices, score_sensitivity
from dualquery.baselines.privbayes_shape import Settings, Shape
from dualquery.baselines.product import Uniform
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.privacy.accountants import get_accountant
from dualquery.privacy.events import Noise
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sources import SeededSource, SystemSource
from dualquery.rows.encoded import EncodedRows
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.matching import mean_answers
from tests.baselines.exact import hockey_stick, log_laplace, log_rounded_gaussian
from tests.privacy.test_enumeration import log_weights

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE
SMALL = Schema((Attribute.binary("a"), Attribute.categorical("b", ["x", "y", "z"])))
RECORDS = list(product(range(2), range(3)))
PAIRS = [Node(1, (0,)), Node(1)]
"""What a choice could be between, once `a` is in the network."""


def rows_of(records: list[tuple[int, ...]], width: int = 2) -> EncodedRows:
    codes = np.array(records, dtype=np.uint8).reshape(-1, width)
    return EncodedRows(len(codes), dict(enumerate(codes.T)))


def tables(rows: int) -> list[list[tuple[int, ...]]]:
    """Every table of so many rows, up to their order."""
    found = {tuple(sorted(some)) for some in product(RECORDS, repeat=rows)}
    return [list(one) for one in sorted(found)]


def twin_score(records: list[tuple[int, ...]], node: Node) -> float:
    """½·Σ|c(x,π) − c(x)·c(π)/n|, by the definition."""
    n, total = len(records), 0.0
    xs = {r[node.attribute] for r in records}
    ps = {tuple(r[p] for p in node.parents) for r in records}
    for x, p in product(xs, ps):
        both = sum(
            r[node.attribute] == x and tuple(r[a] for a in node.parents) == p for r in records
        )
        one = sum(r[node.attribute] == x for r in records)
        other = sum(tuple(r[a] for a in node.parents) == p for r in records)
        total += abs(both - one * other / n)
    return total / 2.0


def pairs_of_neighbours(neighbours: Neighbours) -> list[tuple[EncodedRows, EncodedRows]]:
    small = tables(3)
    if neighbours is ADD:
        return [(rows_of(t), rows_of([*t, r])) for t in tables(2) for r in RECORDS]
    return [(rows_of(t), rows_of([*t[1:], r])) for t in small for r in RECORDS]


@pytest.mark.parametrize("neighbours", [REPLACE, ADD])
def test_no_record_moves_a_score_by_more_than_stated(neighbours: Neighbours) -> None:
    found = 0.0
    for one, other in pairs_of_neighbours(neighbours)[::5]:
        first, second = (pair_scores(rows, SMALL, PAIRS[:1])[0] for rows in (one, other))
        found = max(found, abs(first - second))
    assert 0.25 * score_sensitivity(3, neighbours) <= found <= score_sensitivity(3, neighbours)


@pytest.mark.parametrize("neighbours", [REPLACE, ADD])
def test_a_record_alone_in_its_corner_moves_a_score_by_almost_two(neighbours: Neighbours) -> None:
    crowd, alone = [(0, 0)] * 999, (1, 1)
    before = crowd if neighbours is ADD else [*crowd, (0, 0)]
    first, second = (
        pair_scores(rows_of(rows), SMALL, PAIRS[:1])[0] for rows in (before, [*crowd, alone])
    )
    assert 1.99 < second - first <= score_sensitivity(1000, neighbours)


def worst_loss(one: EncodedRows, other: EncodedRows, prices: Prices) -> float:
    """The largest loss of any choice together with any noisy tables of the chosen network.

    Cells have noise of their own, so the worst tables are the worst in each cell.
    """
    law = log_laplace if prices.noise is Noise.LAPLACE else log_rounded_gaussian
    seen = np.arange(-20, 24)

    def cells(rows: EncodedRows, node: Node) -> np.ndarray:
        a, b = rows.columns[0].astype(int), rows.columns[1].astype(int)
        second = (
            np.bincount(3 * a + b, minlength=6) if node.parents else np.bincount(b, minlength=3)
        )
        return np.concatenate([np.bincount(a, minlength=2), second])

    chances = [
        log_weights(prices.weigh(pair_scores(rows, SMALL, PAIRS), 3))[::2] for rows in (one, other)
    ]
    first, second = (logs - np.logaddexp.reduce(logs) for logs in chances)
    return max(
        float(first[place] - second[place])
        + sum(
            float(np.max(law(seen - c, prices.scale) - law(seen - d, prices.scale)))
            for c, d in zip(cells(one, node), cells(other, node), strict=True)
        )
        for place, node in enumerate(PAIRS)
    )


def log_outcomes(rows: EncodedRows, prices: Prices, public: int) -> np.ndarray:
    """Log-probability of every choice with every noisy one-way table; a table with parents would
    have too many outcomes, so there the table of `a` is enumerated alone."""
    logs = log_weights(prices.weigh(pair_scores(rows, SMALL, PAIRS), public))[::2]
    logs = logs - np.logaddexp.reduce(logs)
    law = log_laplace if prices.noise is Noise.LAPLACE else log_rounded_gaussian
    seen = np.arange(-REACH, REACH + 4)
    counts_a = np.bincount(rows.columns[0], minlength=2)
    counts_b = np.bincount(rows.columns[1], minlength=3)
    found = []
    for node, chance in zip(PAIRS, logs, strict=True):
        total = np.array(chance)
        for count in (*counts_a, *counts_b) if not node.parents else counts_a:
            total = total[..., None] + law(seen - count, prices.scale)
        found.append(total.ravel())
    return np.concatenate(found)


REACH = 5


@pytest.mark.parametrize("neighbours", [REPLACE, ADD])
def test_no_outcome_tells_neighbours_apart_by_more_than_the_pure_epsilon(
    neighbours: Neighbours,
) -> None:
    prices = Prices.of(
        3.0, 0.0, rows=3, tables=2, choices=1, share=0.5, neighbours=neighbours
    )  # fmt: skip
    stated = prices.cost(0.0, private=True).epsilon
    assert 3.0 - 1e-5 <= stated <= 3.0

    def worst(prices: Prices) -> float:
        return max(
            worst_loss(*pair, prices)
            for one, other in pairs_of_neighbours(neighbours)[::11]
            for pair in ((one, other), (other, one))
        )

    assert 0.5 * stated <= worst(prices) <= stated
    assert worst(replace(prices, scale=prices.scale / 2.0)) > stated
    assert worst(replace(prices, choice=prices.choice * 8.0)) > stated


def test_the_divergence_of_neighbours_is_below_the_delta_of_the_accountant() -> None:
    prices = Prices.of(1.0, 1e-2, rows=3, tables=2, choices=1, share=0.3)
    for one, other in pairs_of_neighbours(REPLACE)[::31]:
        first, second = (log_outcomes(rows, prices, 3) for rows in (one, other))
        for epsilon in (0.3, 1.0):
            allowed = get_accountant("gaussian").delta(prices.events, epsilon)
            assert hockey_stick(first, second, epsilon) <= allowed * (1 + 1e-9)


def test_the_events_are_choices_and_one_batch_of_tables() -> None:
    prices = Prices.of(1.0, 1e-6, rows=10_000, tables=8, choices=7, share=0.3)
    assert prices.events.draws.tolist() == [1] * 7
    (tables,) = prices.events.measurements
    assert tables.l2 == pytest.approx(np.sqrt(16.0))
    reach = 2.0 * prices.choice * score_sensitivity(10_000, REPLACE)
    assert reach < prices.events.ranges[0] < reach * 1.0001
    assert 1.0 - 1e-6 <= prices.cost(1e-6, private=True).epsilon <= 1.0


def test_scores_are_those_of_the_plain_twin() -> None:
    generator = np.random.default_rng(1)
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(4)))
    records = [tuple(row) for row in generator.integers(0, 2, (40, 4)).tolist()]
    pairs = [Node(0, (1, 2)), Node(0, (3,)), Node(2, (0, 1, 3)), Node(1)]
    found = pair_scores(rows_of(records, 4), schema, pairs)
    np.testing.assert_allclose(found, [twin_score(records, node) for node in pairs])


def test_tables_have_the_stated_noise() -> None:
    rows = rows_of([(0, 0)] * 10 + [(1, 2)] * 20)
    prices = Prices.of(1.0, 1e-6, rows=30, tables=2, choices=1, share=0.3)
    truth = [np.array([10, 20]), np.array([[10, 0, 0], [0, 0, 20]])]
    nodes = (Node(0), Node(1, (0,)))
    away = [
        (found - true).ravel()
        for seed in range(150)
        for found, true in zip(
            measured_tables(rows, SMALL, nodes, prices, SeededSource(seed)), truth, strict=True
        )
    ]
    assert np.concatenate(away).std() == pytest.approx(prices.scale, rel=0.1)


def test_a_network_without_noise_gives_the_rows_of_the_twin() -> None:
    """Rows follow P(a)·P(b|a)·P(c|a,b), which with all parents is the table itself."""
    generator = np.random.default_rng(2)
    table = generator.integers(1, 20, (2, 3, 2))
    nodes = (Node(0), Node(1, (0,)), Node(2, (0, 1)))
    network = Network((2, 3, 2), nodes, (table.sum(axis=(1, 2)), table.sum(axis=2), table))
    rows = network.sample(200_000, np.random.default_rng(3))
    found = np.zeros((2, 3, 2))
    np.add.at(found, tuple(rows.T), 1.0 / len(rows))
    np.testing.assert_allclose(found, table / table.sum(), atol=0.004)


def test_what_noise_leaves_nothing_of_is_filled_in() -> None:
    found = conditional(np.array([[3, -1, 1], [-2, 0, -5]]))
    np.testing.assert_allclose(found, [[0.75, 0.0, 0.25], [0.75, 0.0, 0.25]])
    np.testing.assert_allclose(conditional(np.array([-1, -2])), [0.5, 0.5])


def test_candidates_are_all_largest_ones_or_some_of_them() -> None:
    limits = Limits((2, 2, 2, 5, 2), cells=8, parents=3, candidates=500)
    every = limits.choices([0, 1, 3], [2, 4], np.random.default_rng(0))
    assert every == [Node(a, parents) for a in (2, 4) for parents in ((0, 1),)]
    wide = replace(limits, sizes=(2,) * 40, candidates=10)
    some = wide.choices(range(30), range(30, 40), np.random.default_rng(0))
    assert 5 < len(some) <= 10
    assert all(wide.fits(node) and len(node.parents) == 2 for node in some)


def chain(width: int, rows: int) -> np.ndarray:
    """Each bit repeats the one before it nine times out of ten."""
    generator = np.random.default_rng(7)
    flips = generator.random((rows, width)) < 0.1
    flips[:, 0] = generator.random(rows) < 0.4
    return np.cumsum(flips, axis=1).astype(np.int32) % 2


def test_it_learns_a_chain() -> None:
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(8)))
    codes = chain(8, 4000)
    workload = random_marginals(schema, 3, 150)
    made = PrivBayes.fit(
        Sampled(codes), workload,
        epsilon=2.0, delta=1e-6, source=SeededSource(1), rows=4000,
    )  # fmt: skip
    truth = mean_answers(workload, codes)
    error = np.abs(made.answers(workload) - truth).mean()
    assert error < 0.3 * np.abs(Uniform().answers(workload) - truth).mean()
    near = [any(abs(p - n.attribute) == 1 for p in n.parents) for n in made.network.nodes[1:]]
    assert np.mean(near) > 0.7
    assert "NOT PRIVATE" in made.privacy.text()
    with pytest.raises(ParameterError, match="expected its number"):
        PrivBayes.fit(
            Sampled(codes), workload, epsilon=1.0, delta=0.0, source=SystemSource(), rows=3999
        )


def test_a_small_budget_measures_one_way_tables_alone() -> None:
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(6)))
    workload = random_marginals(schema, 3, 50)
    shape = Shape.of(workload, 0.05, 0.0, rows=500, settings=Settings())
    assert not shape.choosing
    assert len(shape.prices.events.draws) == 0
    assert shape.prices.cost(0.0, private=True).epsilon <= 0.05


def test_what_is_too_wide_is_refused_with_its_time_and_memory() -> None:
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(3000)))
    workload = random_marginals(schema, 3, 6000)
    shape = Shape.of(workload, 10.0, 1e-6, rows=1_000_000, settings=Settings())
    with pytest.raises(ParameterError, match=r"columns of 100000000 rows, \d+ bytes"):
        shape.require_time(100_000_000)
    with pytest.raises(ParameterError, match=r"takes about \d+ minutes; ask for fewer columns"):
        replace(shape, limits=replace(shape.limits, candidates=10_000)).require_time(1_000_000)
