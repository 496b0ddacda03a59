"""Tables of 0/1 attributes by their signs: the same fit as by cells, at a fraction of the cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.model import moments as module
from dualquery.model.dependence import Dependence
from dualquery.model.measured import Measured
from dualquery.model.product import fitted_product, margins
from dualquery.model.signs import Signs, are_binary, pooled_sums
from dualquery.model.stack import Stack
from dualquery.model.strengths import (
    CLEAR_NOISE,
    FAINT,
    PER_ATTRIBUTE,
    departures,
    strengths,
    strongest,
)
from dualquery.model.training import Ascent, Parameters
from dualquery.privacy.events import Noise
from dualquery.privacy.measuring import Measurement
from dualquery.workloads.marginals import Groups, Marginals

WIDTH, ROWS = 12, 5000
SCHEMA = Schema(tuple(Attribute.binary(f"x{i}") for i in range(WIDTH)))
SETS = {
    1: np.arange(WIDTH)[:, None],
    2: np.array([(i, j) for i in range(WIDTH) for j in range(i) if (i + j) % 3]),
    3: np.array([(7, 2, 5), (1, 11, 4), (2, 5, 9)]),
}


def rows_of(random: np.random.Generator, dependent: bool = False) -> np.ndarray:
    shares = random.uniform(0.2, 0.8, WIDTH)
    rows = (random.random((ROWS, WIDTH)) < shares).astype(np.int32)
    if dependent:
        rows[:, 1::2] = np.where(random.random((ROWS, 6)) < 0.5, rows[:, :1], rows[:, 1::2])
    return rows


def measured(rows: np.ndarray, random: np.random.Generator, noise: float = 40.0):
    found = []
    for sets in SETS.values():
        marginals = Marginals(Groups.single(SCHEMA), sets.astype(np.int32))
        counts = np.concatenate(
            [np.bincount(marginals.cell_of(t, rows), minlength=2 ** sets.shape[1])
             for t in range(len(marginals))]
        )  # fmt: skip
        noisy = np.rint(counts + noise * random.standard_normal(len(counts))).astype(np.int64)
        found.append(Measurement(marginals, Noise.GAUSSIAN, max(noise, 1.0), noisy))
    return found


def test_pooled_sums_of_exact_counts_are_sums_of_products_of_signs() -> None:
    random = np.random.default_rng(1)
    rows = rows_of(random)
    stack, tables = Stack.of(SCHEMA, np.arange(WIDTH)), measured(rows, random, 0.0)
    sign = 2 * rows.astype(np.int64) - 1
    for size in (1, 2, 3):
        found = pooled_sums(stack, tables, size)
        expected = [np.prod(sign[:, list(one)], axis=1).sum() for one in found.sets]
        np.testing.assert_allclose(found.sums, expected)
    pairs = pooled_sums(stack, tables, 2)
    assert {(2, 5), (4, 11), (2, 9)} <= {tuple(one) for one in pairs.sets.tolist()}
    both = pairs.precision[(pairs.sets == (2, 5)).all(axis=1)]
    variance = tables[1].variance
    expected_precision = 0.25 / variance + 2 * 0.125 / variance  # one pair or none, two triples
    assert both[0] == pytest.approx(expected_precision)


@pytest.mark.parametrize("dense", [0.0, 2.0])
def test_signs_climb_the_same_hill_as_cells(dense: float, monkeypatch) -> None:
    monkeypatch.setattr(module, "DENSE", dense)
    random = np.random.default_rng(2)
    tables = measured(rows_of(random), random)
    stack = Stack(SCHEMA, np.arange(WIDTH), tables[0].marginals.groups)
    terms = (
        Measured(stack, [tables[0], *_regrouped(stack, tables[1:])], ROWS),
        Signs(stack, tables, ROWS),
    )
    ascent = Ascent(stack, 3)
    values, slopes = [[], []], [[], []]
    for seed in (1, 2):
        at = Parameters.start(stack, 3, 1.0, seed)
        at.flat[-3:] = [0.3, -0.2, 0.1]
        for number, term in enumerate(terms):
            shares = ascent.tables(at).copy()
            found = term.slopes(shares, at.weights.astype(np.float32))
            values[number].append(found.value)
            slopes[number].append(ascent.gradient(at, shares, found, at.weights))
    # Up to a constant: the total of a table is no function of the model.
    assert np.diff(values[0]) == pytest.approx(np.diff(values[1]), rel=1e-3)
    for plain, ours in zip(*slopes, strict=True):
        np.testing.assert_allclose(ours, plain, rtol=2e-3, atol=2e-3 * np.abs(plain).max())


def _regrouped(stack: Stack, tables):
    from dataclasses import replace

    return [
        replace(one, marginals=Marginals(stack.groups, one.marginals.attributes)) for one in tables
    ]


def test_a_product_finds_its_shares_and_their_variance() -> None:
    random = np.random.default_rng(3)
    rows = rows_of(random)
    stack = Stack.of(SCHEMA, np.arange(WIDTH))
    truth, squares, plain = rows.mean(axis=0), [], []
    for _ in range(60):
        tables = measured(rows, random, 150.0)
        found = fitted_product(stack, tables, ROWS)
        squares.append((found.share - truth) ** 2 / found.variance)
        plain.append((margins(stack, tables, ROWS).share - truth) ** 2 / found.variance)
    assert 0.75 < np.mean(squares) < 1.3
    assert np.mean(plain) > 1.05 * np.mean(squares), "pairs tell more than their margins"


def test_dependence_is_seen_where_it_is_and_not_elsewhere() -> None:
    stack = Stack.of(SCHEMA, np.arange(WIDTH))
    for seed in range(4):
        random = np.random.default_rng(seed)
        for dependent in (False, True):
            rows = rows_of(random, dependent)
            tables = measured(rows, random)
            means = rows.mean(axis=0)
            shares = np.column_stack([1 - means, means]).reshape(-1)
            assert Dependence.of(stack, tables[:2], shares, ROWS).found == dependent
    assert not Dependence.of(stack, tables[:1], shares, ROWS).found


@pytest.mark.parametrize("codes", [2, 3])
def test_triples_show_dependence_where_no_pairs_were_measured(codes: int) -> None:
    """Chance is none of it, though tables with little noise show it clearly."""
    schema = Schema(tuple(Attribute.categorical(f"x{i}", list(range(codes))) for i in range(8)))
    stack = Stack.of(schema, np.arange(8))
    sets = np.array([(i, j, k) for i in range(8) for j in range(i) for k in range(j)], np.int32)
    marginals = Marginals(Groups.single(schema), sets)
    shares, clear = np.full(8 * codes, 1.0 / codes), []
    for seed in range(12):
        random = np.random.default_rng(seed)
        rows = random.integers(0, codes, (ROWS, 8)).astype(np.int32)
        if dependent := seed % 4 == 3:
            rows[:, 1] = np.where(random.random(ROWS) < 0.5, rows[:, 0], rows[:, 1])
        exact = np.concatenate(
            [np.bincount(marginals.cell_of(t, rows), minlength=codes**3) for t in range(len(sets))]
        )
        noise = random.choice([2.0, 60.0])
        noisy = np.rint(exact + noise * random.standard_normal(len(exact))).astype(np.int64)
        ones = Marginals(Groups.single(schema), np.arange(8, dtype=np.int32)[:, None])
        single = np.concatenate([np.bincount(rows[:, a], minlength=codes) for a in range(8)])
        tables = [
            Measurement(ones, Noise.GAUSSIAN, noise, single.astype(np.int64)),
            Measurement(marginals, Noise.GAUSSIAN, noise, noisy),
        ]
        means = single / ROWS if codes > 2 else shares
        found = Dependence.of(stack, tables, means, ROWS)
        clear.append((seed, noise, dependent, found))
    assert all(found.found == dependent for _, _, dependent, found in clear), clear


def test_departures_agree_with_a_plain_loop() -> None:
    random = np.random.default_rng(5)
    rows = rows_of(random, True)
    stack = Stack.of(SCHEMA, np.arange(WIDTH))
    means = rows.mean(axis=0)
    shares = np.column_stack([1 - means, means]).reshape(-1)
    for one in measured(rows, random)[1:]:
        found = departures(stack, one, shares, ROWS)
        for t, sets in enumerate(one.marginals.attributes):
            expected = np.ones(1)
            for attribute in sets:
                part = shares[2 * attribute : 2 * attribute + 2]
                expected = np.multiply.outer(expected, part).reshape(-1)
            counts = one.counts[one.marginals.start[t] : one.marginals.start[t + 1]]
            squares = ((counts - ROWS * expected) ** 2).sum() / one.variance
            assert found[t] == pytest.approx((squares - len(counts)) / np.sqrt(2 * len(counts)))


def test_chance_alone_leaves_shrinkage_strong_and_dependence_weakens_it() -> None:
    """Tables with little noise show chance clearly; a fit to it is worse than none."""
    stack = Stack.of(SCHEMA, np.arange(WIDTH))
    random = np.random.default_rng(4)
    for dependent in (False, True):
        rows = rows_of(random, dependent)
        tables = measured(rows, random, 2.0)[:2]
        means = rows.mean(axis=0)
        shares = np.column_stack([1 - means, means]).reshape(-1)
        plain = strengths(stack, tables, shares, ROWS)
        told = strengths(stack, tables, shares, ROWS, chance=1.0)
        assert np.all(told >= plain)
        if dependent:
            assert told[1] < 0.2 * PER_ATTRIBUTE * WIDTH
        else:
            assert np.all(told > 5.0 * plain)
            assert np.median(told) > 0.5 * PER_ATTRIBUTE * WIDTH


def test_noise_does_not_strengthen_shrinkage_as_it_hides_departures() -> None:
    assert strongest(0.0) == strongest(CLEAR_NOISE) == PER_ATTRIBUTE
    assert strongest(2.0 * CLEAR_NOISE) == pytest.approx(0.5 * PER_ATTRIBUTE)
    assert strongest(2.0 * CLEAR_NOISE, faint=True) == FAINT
    stack, random = Stack.of(SCHEMA, np.arange(WIDTH)), np.random.default_rng(4)
    rows = rows_of(random, dependent=True)
    means = rows.mean(axis=0)
    shares = np.column_stack([1 - means, means]).reshape(-1)
    tables = measured(rows, random, 80.0)
    half = strengths(stack, tables, shares, ROWS, most=0.5 * PER_ATTRIBUTE)
    np.testing.assert_allclose(half, 0.5 * strengths(stack, tables, shares, ROWS))


def test_three_codes_in_two_groups_are_not_signs() -> None:
    """The first tables are about single codes, so their cells are no sums of signs."""
    schema = Schema((Attribute.categorical("a", list("xyz")), Attribute.categorical("b", [0, 1])))
    stack = Stack.of(schema, [0, 1])
    assert not are_binary(stack)
    grouped = replace(stack, groups=stack.groups.merged(0, np.array([0, 0, 1], dtype=np.int32)))
    assert np.diff(grouped.start).tolist() == [2, 2]
    assert not are_binary(grouped)
    assert are_binary(Stack.of(schema, [1]))
