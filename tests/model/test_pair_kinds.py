"""How two columns are known together."""

from __future__ import annotations

import numpy as np

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.model.forest.trees import Trees
from dualquery.model.pair_kinds import APART, JOINED, TOGETHER, WIDEST, PairKinds
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.marginals import Groups, Marginals

SCHEMA = Schema(tuple(Attribute.binary(f"x{i}") for i in range(6)))


def kinds() -> PairKinds:
    """A measured pair, a measured triple, and an edge."""
    groups = Groups.single(SCHEMA)
    measured = [
        Marginals(groups, np.array(sets, dtype=np.int32))
        for sets in ([[0], [1], [2], [3], [4], [5]], [[0, 1]], [[1, 2, 3]])
    ]
    return PairKinds.of(6, measured, Trees.of_edges(6, [(0, 4)]))


def test_a_pair_is_joined_or_measured_or_apart() -> None:
    found = kinds()
    together = {(0, 1), (1, 2), (1, 3), (2, 3)}
    for i in range(6):
        for j in range(i + 1, 6):
            expected = JOINED if (i, j) == (0, 4) else TOGETHER if (i, j) in together else APART
            assert found.of_set((i, j)) == found.of_set((j, i)) == expected
    assert found.of_set((5,)) == APART


def test_three_columns_are_never_apart_and_an_edge_counts_most() -> None:
    found = kinds()
    assert found.of_set((0, 3, 5)) == TOGETHER
    assert found.of_set((0, 4, 5)) == JOINED


def test_queries_have_the_kind_of_their_columns() -> None:
    found = kinds()
    for k in (1, 2, 3):
        asked = random_marginals(SCHEMA, k, 60)
        expected = [
            found.of_set([one.attribute for one in asked.query(number).literals])
            for number in range(len(asked))
        ]
        np.testing.assert_array_equal(found.of_queries(asked), expected)


def test_the_kinds_among_some_columns_are_those_of_their_pairs_in_order() -> None:
    found, chosen = kinds(), [4, 0, 1]
    expected = [found.of_set((4, 0)), found.of_set((4, 1)), found.of_set((0, 1))]
    assert found.among(chosen).tolist() == expected


def test_nothing_is_told_apart_where_nothing_is_known_of_pairs_or_there_are_too_many() -> None:
    groups = Groups.single(SCHEMA)
    ones = Marginals(groups, np.arange(6, dtype=np.int32)[:, None])
    for found in (PairKinds.of(6, [ones], None), PairKinds.of(WIDEST + 1, [], None)):
        assert found.of_pair is None
        assert found.of_set((0, 1, 2)) == APART
        assert not len(found.among([0, 1]))
