"""Arranged rows: every share is kept as well as whole rows allow, and the targets come nearer."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.model import _arranging_kernels as kernels
from dualquery.model import arranging
from dualquery.model.arranging import arranged, targets_of
from dualquery.model.mixture import Mixture
from dualquery.workloads.generators import all_marginals, random_marginals
from dualquery.workloads.workload import Workload


def mixture(seed: int, sizes: list[int], components: int) -> Mixture:
    random = np.random.default_rng(seed)
    schema = Schema(
        tuple(Attribute.categorical(f"a{i}", list(range(s))) for i, s in enumerate(sizes))
    )
    tables = [random.dirichlet(np.full(s, 0.5), components).T for s in sizes]
    return Mixture(schema, random.dirichlet(np.ones(components)), np.concatenate(tables))


def cells(model: Mixture, attributes: tuple[int, ...]) -> np.ndarray:
    """The model's marginal, from its definition."""
    start = model.schema.code_start
    joint = 0.0
    for k, weight in enumerate(model.weights):
        part = np.array(weight)
        for a in attributes:
            part = np.multiply.outer(part, model.tables[start[a] : start[a + 1], k])
        joint = joint + part
    return np.asarray(joint)


def seen(records: np.ndarray, attributes: tuple[int, ...], sizes: np.ndarray) -> np.ndarray:
    found = np.zeros([int(sizes[a]) for a in attributes])
    for record in records:
        found[tuple(record[list(attributes)])] += 1
    return found


@given(
    st.integers(0, 1000),
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
    st.integers(1, 5),
    st.integers(1, 300),
)
def test_every_code_has_its_share_of_the_rows(
    seed: int, sizes: list[int], components: int, rows: int
) -> None:
    model = mixture(seed, sizes, components)
    records = arranged(model, rows, np.random.default_rng(seed))
    assert records.shape == (rows, len(sizes))
    for attribute, size in enumerate(sizes):
        assert records[:, attribute].min() >= 0
        assert records[:, attribute].max() < size
        # Sizes of components are off by less than one row each, what is dealt by one or two.
        wanted = rows * cells(model, (attribute,))
        found = np.bincount(records[:, attribute], minlength=size)
        assert np.abs(found - wanted).max() <= components + 2


def test_codes_without_a_share_are_never_dealt() -> None:
    model = mixture(3, [4, 3], 2)
    tables = model.tables.copy()
    tables[[0, 5]] = 0.0
    for first, last in ((0, 4), (4, 7)):
        tables[first:last] /= tables[first:last].sum(axis=0)
    records = arranged(Mixture(model.schema, model.weights, tables), 977, np.random.default_rng(0))
    assert 0 not in records[:, 0]
    assert 1 not in records[:, 1]


def test_what_rounding_leaves_over_is_carried_on() -> None:
    """Thirty components of one row and a half each: alone, each would round the same way."""
    shares = np.full((2, 30), 0.5)
    codes = np.empty(45, dtype=np.int32)
    sizes = np.tile([1, 2], 15)
    kernels.deal(shares, sizes, codes, np.array([7], dtype=np.uint64))
    assert abs(int((codes == 0).sum()) - 22.5) <= 1


def test_exchanges_keep_components_and_bring_targets_nearer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = mixture(5, [3, 4, 2, 5], 6)
    targets = [*combinations(range(4), 2), *combinations(range(4), 3)]
    plain = arranged(model, 1500, np.random.default_rng(1))
    near = arranged(model, 1500, np.random.default_rng(1), targets)

    def distance(records: np.ndarray) -> float:
        return sum(
            float(((seen(records, t, model.schema.sizes) - 1500 * cells(model, t)) ** 2).sum())
            for t in targets
        )

    assert distance(near) < 0.1 * distance(plain)
    for attribute in range(4):  # exchanges move codes between rows, they never make any
        np.testing.assert_array_equal(np.sort(near[:, attribute]), np.sort(plain[:, attribute]))


def test_the_bookkeeping_of_exchanges_is_exact() -> None:
    model = mixture(9, [3, 2, 4], 3)
    random = np.random.default_rng(0)
    sizes = arranging.in_proportion(model.weights, 400, random)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    codes = arranging._dealt(model, sizes, random)
    before = codes.copy()
    targets = [(0, 1), (1, 2), (0, 1, 2)]
    uses = arranging._uses(model.schema, targets)
    excess = arranging._excess(model, codes, uses)
    start = float((excess.astype(float) ** 2).sum())
    component = np.repeat(np.arange(3), sizes)
    rules = arranging._Rules.of(model.schema)
    accepted = kernels.exchange(
        codes, bounds, component, uses.start, uses.use_first, uses.use_stride, uses.others,
        uses.other_strides, np.arange(3), excess, 20_000, rules.rule_start, rules.rules,
        rules.clause_start, rules.members, rules.rows_of, rules.forbidden,
        np.array([11], dtype=np.uint64),
    )  # fmt: skip
    assert accepted > 0
    again = arranging._excess(model, codes, uses)
    np.testing.assert_allclose(excess, again, atol=1e-3)
    assert float((again.astype(float) ** 2).sum()) < start
    wanted = np.concatenate(
        [(seen(codes, t, model.schema.sizes) - 400 * cells(model, t)).ravel() for t in targets]
    )
    np.testing.assert_allclose(again, wanted, atol=1e-3)
    for k in range(3):
        for attribute in range(3):
            part = slice(bounds[k], bounds[k + 1])
            np.testing.assert_array_equal(
                np.sort(codes[part, attribute]), np.sort(before[part, attribute])
            )


def test_fixed_attributes_are_not_exchanged() -> None:
    model = mixture(2, [3, 3, 3], 2)
    generator = np.random.default_rng(4)
    plain = arranged(model, 300, np.random.default_rng(4))
    near = arranged(model, 300, generator, [(0, 1), (1, 2)], fixed=(0, 2))
    # The last shuffle uses another stream, so rows are compared as a multiset of the fixed part.
    order = np.lexsort(plain[:, [0, 2]].T)
    other = np.lexsort(near[:, [0, 2]].T)
    np.testing.assert_array_equal(plain[order][:, [0, 2]], near[other][:, [0, 2]])


def test_targets_are_the_sets_that_queries_ask_about() -> None:
    schema = mixture(0, [3, 4, 2, 5, 2], 1).schema
    three = random_marginals(schema, 3, 200)
    assert sorted(targets_of(three)) == list(combinations(range(5), 3))
    assert targets_of(all_marginals(schema, 1)) == []
    four = all_marginals(schema, 4)
    assert sorted(targets_of(four)) == list(combinations(range(5), 3))
    few = targets_of(three, most_cells=60)
    assert few
    assert sum(int(np.prod(schema.sizes[list(t)])) for t in few) <= 60
    mixed: Workload = three + all_marginals(schema, 2)
    assert set(combinations(range(5), 2)) <= set(targets_of(mixed))


def test_arranged_rows_answer_as_the_model_does() -> None:
    """A fixed case with a known outcome: independent draws are more than six times as far off."""
    model = mixture(1, [4, 5, 3, 6, 2, 4], 8)
    workload = all_marginals(model.schema, 3)
    truth = model.answers(workload)
    random = np.random.default_rng(2)

    def distance(records: np.ndarray) -> float:
        found = np.concatenate(
            [seen(records, t, model.schema.sizes).ravel() for t in combinations(range(6), 3)]
        )
        return float(np.abs(found / len(records) - truth).mean())

    far = distance(model.sample(4000, random))
    near = distance(arranged(model, 4000, random, targets_of(workload)))
    assert near < far / 6
