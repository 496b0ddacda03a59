"""What a release should get right: whole marginals, focus, and what is refused."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import dualquery as dq
from dualquery.base.errors import ParameterError, SchemaError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.workloads.generators import random_marginals, whole_marginals
from dualquery.workloads.interest import FOCUS, Interest, names, numbers


def schema() -> Schema:
    return Schema(
        (
            Attribute.categorical("a", list("pqrs")),
            Attribute.binary("b"),
            Attribute.categorical("codes", [f"x{i}" for i in range(60)]),
            Attribute.numeric("d", [0, 10, 20, 30]),
        )
    )


def test_whole_marginals_are_all_cells_each_once() -> None:
    asked = whole_marginals(schema(), (2, 1))
    sizes = schema().sizes
    assert len(asked) == sizes.sum() + sum(int(a * b) for a, b in combinations(sizes, 2))
    assert len(asked.different[0]) == len(asked)
    assert set(np.diff(asked.start).tolist()) == {1, 2}
    assert not asked.has_parities


def test_the_papers_query_classes_and_any_mix_of_them() -> None:
    """Positive conjunctions are its definition, signs of both kinds its experiments."""
    signs = random_marginals(schema(), 2, 400).terms & 1
    assert 0.4 < signs.mean() < 0.6
    positive = random_marginals(schema(), 2, 400, positive=True)
    assert not (positive.terms & 1).any()
    assert not positive.has_parities
    even = random_marginals(schema(), 3, 400, parities=2)
    assert even.is_parity.all()
    assert set(np.diff(even.start).tolist()) == {2}
    mixed = Interest(queries=100, k=3, positive=True, parities=2, parity_share=0.25)
    asked = mixed.workload(schema())
    assert (len(asked), int(asked.is_parity.sum())) == (100, 25)
    assert not (asked.terms & 1).any()
    lengths = np.diff(asked.start)
    assert set(lengths[asked.is_parity].tolist()) == {2}
    assert set(lengths[~asked.is_parity].tolist()) == {3}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"parity_share": 0.5}, "say of how many bits"),
        ({"parities": 2, "parity_share": 1.5}, "parity_share = 1.5; expected a share"),
        ({"parities": 9}, "9; expected 1 to 4"),
        ({"marginals": (1,), "parities": 2}, "and parities random"),
        ({"marginals": (1,), "positive": True}, "and positive random"),
    ],
)
def test_query_classes_that_cannot_be_asked(settings: dict, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Interest(queries=None if "marginals" in settings else 50, **settings).workload(schema())


def test_marginals_beyond_the_limit_stand_there_with_a_part_of_their_cells() -> None:
    asked = whole_marginals(schema(), (2,), most=150)
    attributes = asked.literals.attribute[asked.terms >> 1].reshape(-1, 2)
    found, counts = np.unique(attributes, axis=0, return_counts=True)
    assert len(found) == 6, "no marginal is left out"
    assert len(asked) <= 150
    small = {tuple(pair): count for pair, count in zip(found.tolist(), counts, strict=True)}
    assert small[0, 1] == 8, "a small one is whole"
    with pytest.raises(ParameterError, match="6 tables; expected at most 5, or random"):
        whole_marginals(schema(), (2,), most=5)


def test_marginals_count_alike_and_focus_counts_ten_times() -> None:
    interest = Interest(marginals=(1, 2))
    asked = interest.workload(schema())
    weights = interest.weights(asked)
    totals: dict[tuple[int, ...], float] = {}
    for query, weight in zip(asked, weights, strict=True):
        key = tuple(literal.attribute for literal in query.literals)
        totals[key] = totals.get(key, 0.0) + weight
    assert len(totals) == 10
    np.testing.assert_allclose(list(totals.values()), next(iter(totals.values())))
    focused = Interest(marginals=(1, 2), focus=("d",)).weights(asked) / weights
    named = np.array([any(one.attribute == 3 for one in query.literals) for query in asked])
    np.testing.assert_allclose(focused, np.where(named, FOCUS, 1.0))


def test_what_says_two_things_is_refused() -> None:
    for bad, told in (
        (Interest(marginals=(1,), k=2), "whole marginals and k random"),
        (Interest(marginals=(1,), queries=5), "whole marginals and queries random"),
        (Interest(marginals=()), "names no number"),
        (Interest(marginals=(1, 1)), "marginals = 1,1; expected each number once"),
        (Interest(marginals=(0,)), "marginals = 0; expected 1 or more"),
    ):
        with pytest.raises(ParameterError, match=told):
            bad.check()
    with pytest.raises(ParameterError, match="marginals = 5; expected 1 to 4"):
        Interest(marginals=(5,)).workload(schema())
    for name in ("marginals", "queries", "k"):
        value = (1,) if name == "marginals" else 1
        with pytest.raises(ParameterError, match=f"lists the queries itself; leave {name} out"):
            Interest(**{name: value}).check_listed()
    with pytest.raises(SchemaError, match="no attribute 'code'; did you mean 'codes'"):
        Interest(focus=("code",)).weights(random_marginals(schema(), 2, 10))
    alone = dq.Workload.of([dq.parse("a=p", schema())], schema())
    with pytest.raises(ParameterError, match="focus on 'b', which no asked query names"):
        Interest(focus=("b",)).weights(alone)


def test_lists_as_the_command_line_writes_them() -> None:
    assert numbers("1,2") == (1, 2)
    assert names("age, sex") == ("age", "sex")
    assert names(["age"]) == ("age",)
    with pytest.raises(ParameterError, match="marginals = 'one'; expected numbers"):
        numbers("one")
    with pytest.raises(ParameterError, match="focus = 'a,,b'; expected names of attributes"):
        names("a,,b")
