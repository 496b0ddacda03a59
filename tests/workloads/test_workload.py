from __future__ import annotations

from itertools import combinations
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.base.errors import ParameterError, QueryError
from dualquery.domain.attributes import Attribute
from dualquery.domain.language import parse
from dualquery.domain.query import Query
from dualquery.domain.schema import Schema
from dualquery.workloads.generators import (
    all_marginals,
    parities,
    random_marginals,
    ranges,
    read_workload,
    thresholds,
)
from dualquery.workloads.matching import add_matches, mean_answers
from dualquery.workloads.workload import Workload
from tests.strategies import code_matrices, queries, schemas


def holds(query: Query, record: np.ndarray, schema: Schema) -> bool:
    """The definition, word for word."""
    hits = [
        int(record[literal.attribute]) in literal.allowed(int(schema.sizes[literal.attribute]))
        for literal in query.literals
    ]
    return sum(hits) % 2 == 0 if query.kind == "parity" else all(hits)


@given(st.data())
def test_objects_to_arrays_and_back(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    asked = data.draw(st.lists(queries(schema), min_size=1, max_size=8))
    workload = Workload.of(asked, schema)
    assert list(workload) == asked
    chosen = np.array(data.draw(st.lists(st.integers(0, len(asked) - 1), min_size=1, max_size=5)))
    taken = workload.take(chosen)
    assert list(taken) == [asked[i] for i in chosen]
    assert len(taken.literals) <= len(workload.literals)
    joined = workload + taken
    assert list(joined) == [*asked, *taken]
    assert len(joined.literals) == len(workload.literals)


@given(st.data())
def test_matches_follow_the_definition(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    workload = Workload.of(data.draw(st.lists(queries(schema), min_size=1, max_size=6)), schema)
    records = data.draw(code_matrices(schema, most=4))
    matches = np.zeros(len(workload), dtype=np.int32)
    for record in records:
        add_matches(workload, record, matches)
    expected = [sum(holds(q, r, schema) for r in records) for q in workload]
    assert matches.tolist() == expected
    np.testing.assert_allclose(mean_answers(workload, records), matches / len(records))


def test_random_marginals_are_on_different_attributes(schema: Schema) -> None:
    workload = random_marginals(schema, k=3, count=2000, seed=1)
    assert workload.arity == 3
    used = workload.literals.attribute[workload.terms.reshape(-1, 3) >> 1]
    assert all(len(set(row)) == 3 for row in used.tolist())
    assert workload.fingerprint == random_marginals(schema, 3, 2000, seed=1).fingerprint
    assert workload.fingerprint != random_marginals(schema, 3, 2000, seed=2).fingerprint


def test_random_marginals_are_uniform(schema: Schema) -> None:
    count = 60_000
    workload = random_marginals(schema, k=2, count=count)
    attribute = workload.literals.attribute[workload.terms >> 1]
    share = np.bincount(attribute, minlength=len(schema)) / count
    np.testing.assert_allclose(share, 2 / len(schema), atol=0.01)
    assert abs((workload.terms & 1).mean() - 0.5) < 0.01
    age = workload.terms[attribute == 1] >> 1
    codes = workload.literals.codes[workload.literals.start[age]]
    np.testing.assert_allclose(np.bincount(codes) / len(codes), 1 / 5, atol=0.02)
    smoker = workload.literals.codes_of(int(np.flatnonzero(workload.literals.attribute == 2)[0]))
    assert smoker.tolist() == [1], "the bit of a 0/1 column is its 1"


def test_a_narrow_schema_still_gets_distinct_attributes() -> None:
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(3)))
    workload = random_marginals(schema, k=3, count=200)
    used = np.sort(workload.literals.attribute[workload.terms.reshape(-1, 3) >> 1], axis=1)
    assert (used == [0, 1, 2]).all()


def test_all_marginals_have_every_cell_once(schema: Schema) -> None:
    for k in (1, 2, 3):
        workload = all_marginals(schema, k)
        expected = sum(
            prod(int(schema.sizes[a]) for a in chosen) for chosen in combinations(range(6), k)
        )
        assert len(workload) == len(set(workload)) == expected


def test_all_marginals_sum_to_one(schema: Schema) -> None:
    records = np.random.default_rng(0).integers(0, schema.sizes, (20, len(schema)), np.int32)
    answers = mean_answers(all_marginals(schema, 2), records)
    assert answers.sum() == pytest.approx(15)


def test_parities(schema: Schema) -> None:
    every = parities(schema, 2)
    assert every.is_parity.all()
    assert len(every) == len(set(every))
    some = parities(schema, 3, count=100)
    assert len(some) == 100
    assert not (some.terms & 1).any()


def test_thresholds_and_ranges(schema: Schema) -> None:
    asked = thresholds(schema, ["age"])
    assert [len(q.literals[0].codes) for q in asked] == [4, 3, 2, 1]
    assert len(ranges(schema, ["age"])) == 5 * 6 // 2 - 1
    assert len(thresholds(schema)) == 4 + 1 + 2
    with pytest.raises(QueryError, match="'sex' is not ordered"):
        thresholds(schema, ["sex"])


def test_a_workload_from_a_file(tmp_path, schema: Schema) -> None:
    path = tmp_path / "queries.txt"
    path.write_text("# mine\nsmoker & sex=Male\nparity(smoker, sex=Male)\n")
    workload = read_workload(path, schema)
    assert list(workload) == [parse("smoker & sex=Male", schema), workload.query(1)]
    assert workload.is_parity.tolist() == [False, True]
    path.write_text("smoker\nage>=26\n")
    with pytest.raises(QueryError, match=r"queries\.txt', line 2: 26 is not a bin edge"):
        read_workload(path, schema)
    path.write_text("")
    with pytest.raises(QueryError, match="holds no query"):
        read_workload(path, schema)
    with pytest.raises(QueryError, match="nowhere"):
        read_workload(tmp_path / "nowhere", schema)


def test_bad_sizes(schema: Schema) -> None:
    with pytest.raises(ParameterError, match="k = 7; expected 1 to 6"):
        random_marginals(schema, 7)
    with pytest.raises(ParameterError, match="queries = 0"):
        random_marginals(schema, 2, 0)
    wide = Schema(tuple(Attribute.binary(f"x{i}") for i in range(1000)))
    with pytest.raises(ParameterError, match="all 3-way marginals"):
        all_marginals(wide, 3)


@given(st.data())
def test_different_queries_are_those_with_different_terms(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    asked = data.draw(st.lists(queries(schema), min_size=1, max_size=5))
    asked = [
        Query(query.kind, tuple(data.draw(st.permutations(query.literals))))
        for query in data.draw(st.lists(st.sampled_from(asked), min_size=1, max_size=12))
    ]
    workload = Workload.of(asked, schema)
    first, which = workload.different
    names = [(q.kind, frozenset(q.literals), len(q.literals)) for q in workload]
    assert len(first) == len(set(names))
    assert [names[i] for i in first[which]] == names
