"""The term of measured marginals, against its definition cell by cell and against differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.model import measured as module
from dualquery.model._measured_kernels import LARGE
from dualquery.model.measured import Measured
from dualquery.model.stack import Stack
from dualquery.privacy.events import Noise
from dualquery.privacy.measuring import Measurement
from dualquery.workloads.marginals import Groups, Marginals

SIZES = (3, 2, 4, 2, 5)


def schema() -> Schema:
    return Schema(
        tuple(Attribute.categorical(f"a{i}", list(range(s))) for i, s in enumerate(SIZES))
    )


def measurement(seed: int, groups: Groups, attributes: list[tuple[int, ...]]) -> Measurement:
    random = np.random.default_rng(seed)
    marginals = Marginals(groups, np.array(attributes, dtype=np.int32))
    counts = random.integers(-20, 200, marginals.cells)
    return Measurement(marginals, Noise.GAUSSIAN, float(random.uniform(0.7, 2.0)), counts)


def twin(stack: Stack, one: Measurement, total: float, tables, weights) -> float:
    """The value from the definition, one cell at a time, in double precision."""
    value = 0.0
    own = one.marginals.groups is stack.groups
    for t, attributes in enumerate(one.marginals.attributes.tolist()):
        cells = one.counts[one.marginals.start[t] : one.marginals.start[t + 1]]
        if own:
            counted = [
                (cell, cells[i], 1) for i, cell in enumerate(np.ndindex(*one.marginals.shapes[t]))
            ]
        else:  # a one-way table of codes: groups add them up, and their noise
            group = stack.groups.of_attribute(attributes[0])
            counted = [
                ((g,), cells[group == g].sum(), int((group == g).sum())) for g in np.unique(group)
            ]
        for cell, count, members in counted:
            share = 0.0
            for k, weight in enumerate(weights):
                product = float(weight)
                for attribute, g in zip(attributes, cell, strict=True):
                    product *= float(tables[stack.start[stack.positions(attribute)] + g, k])
                share += product
            value -= (count - total * share) ** 2 / (2.0 * members * one.variance)
    return value


def random_point(seed: int, stack: Stack, components: int):
    random = np.random.default_rng(seed)
    sizes = np.diff(stack.start)
    tables = np.concatenate([random.dirichlet(np.ones(s), components).T for s in sizes])
    return tables.astype(np.float32), random.dirichlet(np.ones(components)).astype(np.float32)


@settings(max_examples=40)
@given(
    st.integers(0, 10_000),
    st.lists(
        st.integers(1, 3).flatmap(
            lambda arity: st.lists(
                st.permutations(range(5)).map(lambda order: tuple(order[:arity])),
                min_size=1,
                max_size=4,
                unique_by=lambda attributes: frozenset(attributes),
            )
        ),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
    st.booleans(),
)
def test_value_and_slopes_follow_the_definition(
    seed: int, batches: list[list[tuple[int, ...]]], dense: bool, grouped: bool
) -> None:
    declared = schema()
    groups = Groups.single(declared)
    coarse = groups.merged(4, np.array([1, 0, 0, 1, 2], np.int32)).merged(
        2, np.array([0, 0, 1, 0], np.int32)
    )
    own = coarse if grouped else groups
    measurements = [
        measurement(seed + i, groups if len(tables[0]) == 1 and i % 2 else own, tables)
        for i, tables in enumerate(batches)
    ]
    stack = Stack(declared, np.arange(5), own)
    tables, weights = random_point(seed, stack, 3)
    before, module.DENSE = module.DENSE, 0.0 if dense else 2.0
    try:
        term = Measured(stack, measurements, 150.0)
    finally:
        module.DENSE = before
    found = term.slopes(tables, weights)

    def value(tables, weights) -> float:
        return sum(twin(stack, one, 150.0, tables, weights) for one in measurements)

    # Repeated measurements of a cell are joined, which changes the value by a constant.
    other_tables, other_weights = random_point(seed + 1, stack, 3)
    gained = term.slopes(other_tables, other_weights).value - found.value
    wanted = value(other_tables, other_weights) - value(tables, weights)
    assert gained == pytest.approx(wanted, rel=1e-3, abs=0.1)
    exact_tables, exact_weights = tables.astype(float), weights.astype(float)
    random = np.random.default_rng(seed)
    for _ in range(3):
        row, k = random.integers(stack.rows), random.integers(3)
        slope = _difference(
            lambda h, at=(row, k): value(_moved(exact_tables, at, h), exact_weights)
        )
        assert found.by_table[row, k] == pytest.approx(slope, rel=2e-3, abs=0.5)
        slope = _difference(lambda h, at=k: value(exact_tables, _moved(exact_weights, at, h)))
        assert found.by_weight[k] == pytest.approx(slope, rel=2e-3, abs=0.5)


def _moved(array, place, by: float):
    moved = array.copy()
    moved[place] += by
    return moved


def _difference(function) -> float:
    return (function(1e-4) - function(-1e-4)) / 2e-4


def test_groups_expand_into_their_codes() -> None:
    declared = schema()
    groups = Groups.single(declared).merged(4, np.array([1, 0, 0, 1, 2], np.int32))
    within = np.ones(sum(SIZES))
    within[-5:] = [0.25, 0.5, 0.5, 0.75, 1.0]
    stack = Stack(declared, np.array([2, 4]), groups, within)
    assert stack.rows == 4 + 3
    tables = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.3, 0.2])[:, None]
    expanded = stack.expand(tables)[:, 0]
    np.testing.assert_allclose(expanded[:4], [0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(expanded[4:], [0.075, 0.25, 0.25, 0.225, 0.2])
    assert stack.codes.tolist() == [5, 6, 7, 8, 11, 12, 13, 14, 15]


def test_large_tables_are_weighed_as_small_ones_are() -> None:
    """Tables on both sides of the size from which matrix products take over, against NumPy."""
    sizes = (3, 7, 20, 4)
    start = np.concatenate([[0], np.cumsum(sizes)])
    random = np.random.default_rng(5)
    tables = random.dirichlet(np.ones(6), int(start[-1])).astype(np.float32)
    weights = random.dirichlet(np.ones(6)).astype(np.float32)
    declared = Schema(
        tuple(Attribute.categorical(f"a{i}", list(range(s))) for i, s in enumerate(sizes))
    )
    groups = Groups.single(declared)
    stack = Stack(declared, np.arange(4), groups)
    one = measurement(3, groups, [(0, 1, 2), (1, 2, 3), (0, 1, 3), (0, 2, 3)])
    assert np.any(np.diff(one.marginals.start) >= LARGE)
    assert np.any(np.diff(one.marginals.start) < LARGE)
    found = Measured(stack, [one], 150.0).slopes(tables, weights)
    value, by_table, by_weight = 0.0, np.zeros(tables.shape), np.zeros(6)
    exact, shares = tables.astype(float), weights.astype(float)
    for t, attributes in enumerate(one.marginals.attributes.tolist()):
        a, b, c = (exact[start[i] : start[i + 1]] for i in attributes)
        cells = one.counts[one.marginals.start[t] : one.marginals.start[t + 1]]
        away = 150.0 * np.einsum("k,ik,jk,lk->ijl", shares, a, b, c)
        away -= cells.reshape(away.shape)
        pull = -150.0 * away / one.variance
        value -= float((away**2).sum()) / (2.0 * one.variance)
        by_weight += np.einsum("ijl,ik,jk,lk->k", pull, a, b, c)
        for i, part in zip(
            attributes,
            (
                np.einsum("ijl,k,jk,lk->ik", pull, shares, b, c),
                np.einsum("ijl,k,ik,lk->jk", pull, shares, a, c),
                np.einsum("ijl,k,ik,jk->lk", pull, shares, a, b),
            ),
            strict=True,
        ):
            by_table[start[i] : start[i + 1]] += part
    assert found.value == pytest.approx(value, rel=1e-4)
    scale = np.abs(by_table).max()
    np.testing.assert_allclose(found.by_table, by_table, rtol=1e-3, atol=1e-4 * scale)
    np.testing.assert_allclose(found.by_weight, by_weight, rtol=1e-3)
