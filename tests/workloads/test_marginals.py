"""Marginals: their cells partition the records, and the same cells as queries agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.base.errors import ParameterError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.workloads.marginals import Groups, Marginals
from dualquery.workloads.matching import mean_answers


@st.composite
def grouped_marginals(draw: st.DrawFn) -> tuple[Schema, Marginals]:
    """A small schema, and some marginals of its attributes with random groups of codes."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    schema = Schema(
        tuple(Attribute.categorical(f"a{i}", list(range(size))) for i, size in enumerate(sizes))
    )
    groups = Groups.single(schema)
    for attribute, size in enumerate(sizes):
        raw = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
        groups = groups.merged(attribute, np.unique(raw, return_inverse=True)[1].astype(np.int32))
    arity = draw(st.integers(1, min(3, len(sizes))))
    count = draw(st.integers(1, 4))
    orders = st.permutations(range(len(sizes))).map(lambda order: tuple(order[:arity]))
    chosen = draw(st.lists(orders, min_size=1, max_size=count, unique_by=lambda t: frozenset(t)))
    return schema, Marginals(groups, np.array(chosen, dtype=np.int32))


@given(grouped_marginals(), st.integers(0, 2**32 - 1))
def test_every_record_lies_in_the_one_cell_whose_query_it_satisfies(
    made: tuple[Schema, Marginals], seed: int
) -> None:
    schema, marginals = made
    records = np.random.default_rng(seed).integers(0, schema.sizes, (20, len(schema)))
    records = records.astype(np.int32)
    queries = marginals.queries(schema)
    assert len(queries) == marginals.cells
    for number in range(len(marginals)):
        cells = marginals.cell_of(number, records)
        part = slice(marginals.start[number], marginals.start[number + 1])
        for record, cell in zip(records, cells, strict=True):
            satisfied = mean_answers(queries, record[None])[part]
            assert satisfied.sum() == 1.0
            assert satisfied[cell] == 1.0


def test_single_groups_are_the_codes_themselves() -> None:
    schema = Schema((Attribute.binary("a"), Attribute.categorical("b", ["x", "y", "z"])))
    groups = Groups.single(schema)
    assert groups.of_code.tolist() == [0, 1, 0, 1, 2]
    assert groups.sizes.tolist() == [2, 3]
    assert groups.is_single(1)
    merged = groups.merged(1, np.array([0, 1, 1], np.int32))
    assert not merged.is_single(1)
    assert merged.is_single(0)
    assert merged.of_attribute(1).tolist() == [0, 1, 1]
    assert merged.start.tolist() == [0, 2, 4]
    assert groups.of_attribute(1).tolist() == [0, 1, 2]
    turned = groups.merged(1, np.array([2, 0, 1], np.int32))
    assert not turned.is_single(1), "as many groups as codes, under other numbers"


@pytest.mark.parametrize("numbers", [[], [1, 2, 3], [0, 2, 2], [-1, 0, 1], [0, 1]])
def test_groups_are_numbered_without_gaps(numbers: list[int]) -> None:
    groups = Groups.single(Schema((Attribute.categorical("b", ["x", "y", "z"]),)))
    with pytest.raises(ParameterError, match="without gaps"):
        groups.merged(0, np.array(numbers, np.int32))


def test_a_marginal_needs_different_attributes() -> None:
    groups = Groups.single(Schema((Attribute.binary("a"), Attribute.binary("b"))))
    with pytest.raises(ParameterError, match="different attributes"):
        Marginals(groups, np.array([[1, 0], [1, 1]], np.int32))
    with pytest.raises(ParameterError, match="listed twice"):
        Marginals(groups, np.array([[1, 0], [0, 1]], np.int32))
    with pytest.raises(ParameterError, match="a row of attributes"):
        Marginals(groups, np.array([0, 1], np.int32))
