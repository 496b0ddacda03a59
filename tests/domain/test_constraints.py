"""Public constraints: what they forbid, when they contradict, how records are mended."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.base.errors import SchemaError
from dualquery.domain.attributes import Attribute
from dualquery.domain.constraints import Constraints
from dualquery.domain.schema import Schema
from tests.oracles.problems import PEOPLE, RULES, problems

EVERYONE = np.array(list(itertools.product(*(range(n) for n in PEOPLE.sizes))), dtype=np.int32)


def test_rules_mean_what_they_say() -> None:
    sex, relationship, age, owner = (EVERYONE[:, i] for i in (0, 1, 2, 4))
    expected = ~(
        ((relationship == 0) & ((sex != 1) | (age < 1)))
        | ((relationship == 1) & ((sex != 0) | (age < 1)))
        | ((relationship == 2) & (age >= 2))
        | ((age < 1) & (owner == 1))
    )
    assert np.array_equal(RULES.holds(EVERYONE), expected)


def test_mended_records_obey_and_change_little() -> None:
    for generator in (None, np.random.default_rng(1)):
        mended = RULES.repair(EVERYONE, generator)
        assert RULES.holds(mended).all()
        changed = (mended != EVERYONE).sum(axis=1)
        assert np.array_equal(changed == 0, RULES.holds(EVERYONE))
        assert changed.max() <= 3
        assert np.array_equal(mended[:, 3], EVERYONE[:, 3])  # nobody asked about smoking


@given(problem=problems(), seed=st.integers(0, 1000))
def test_random_rules_can_be_mended(problem, seed: int) -> None:
    if problem.constraints is None:
        return
    sizes = problem.workload.schema.sizes
    records = np.random.default_rng(seed).integers(0, sizes, size=(5, len(sizes)))
    assert problem.constraints.conflict() == ()
    assert problem.constraints.holds(problem.constraints.repair(records)).all()


def test_a_contradiction_names_its_rules_and_no_others() -> None:
    entries = [
        {"forbid": "smoker=1 & owner=1"},
        {"if": "relationship=Husband", "then": "sex=Male"},
        {"forbid": "sex=Male"},
        {"forbid": "relationship in {Wife, Child, Other}"},
        {"forbid": "age<18 & owner=1"},
    ]
    with pytest.raises(SchemaError) as caught:
        Constraints.parse(entries, PEOPLE)
    assert str(caught.value) == (
        "no record can obey these constraints together: if relationship=Husband then sex=Male; "
        "forbid sex=Male; forbid relationship in {Wife, Child, Other}"
    )


def test_rules_that_say_nothing_are_none() -> None:
    assert Constraints.parse([], PEOPLE) is None
    assert Constraints.parse([{"if": "age>=50", "then": "age>=30"}], PEOPLE) is None


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            {"forbids": "sex=Male"},
            "constraint 1: expected `forbid`, `if` and `then`, `order` or `determines`",
        ),
        (
            {"if": "sex=Male"},
            "constraint 1: expected `forbid`, `if` and `then`, `order` or `determines`, found if",
        ),
        ({"forbid": "height=3"}, "constraint 1: .*height"),
        ({"forbid": 3}, "constraint 1: 3 is not a query in quotes"),
        ({"forbid": "parity(smoker, owner)"}, "constraint 1: .* is a parity"),
    ],
)
def test_bad_entries_are_named(entry: dict, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Constraints.parse([entry], PEOPLE)


def test_equal_rules_are_equal() -> None:
    schema = Schema((Attribute.binary("a"), Attribute.binary("b")))
    one = Constraints.parse([{"forbid": "a=1 & b=1"}], schema)
    two = Constraints.parse([{"forbid": "a=1 & b=1"}], schema)
    assert one == two
    assert hash(one) == hash(two)
    assert one != Constraints.parse([{"forbid": "a=1 & b=0"}], schema)
