"""Errors of parities, and of conjunctions of more columns than were asked about."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dualquery as dq
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.model.mixture import Mixture
from dualquery.model.standard_errors import KINDS, MOST_COUNTED, ErrorTable
from dualquery.model.unasked import EACH, Unasked
from dualquery.release.frames import decode
from dualquery.rows.counting import count_rows
from dualquery.rows.opening import open_table
from dualquery.workloads.generators import all_marginals, parities, random_marginals
from dualquery.workloads.matching import shares_holding
from dualquery.workloads.workload import Workload

SIZES = (2, 3, 2, 4, 2)
SCHEMA = Schema(tuple(Attribute.categorical(f"a{i}", list(range(s))) for i, s in enumerate(SIZES)))


def unasked(asked: Workload) -> Unasked:
    return Unasked(asked, np.random.default_rng(2))


def test_kinds_that_are_asked_are_left_out() -> None:
    three = random_marginals(SCHEMA, 3, 500)
    assert unasked(three).kinds == [(False, 4), (True, 2), (True, 3), (True, 4)]
    assert unasked(random_marginals(SCHEMA, 4, 500)).kinds == [(True, 2), (True, 3), (True, 4)]
    assert unasked(three + parities(SCHEMA, 2, 20)).kinds == [(False, 4)]
    assert unasked(parities(SCHEMA, 4, 20)).kinds == []


def test_only_columns_that_are_asked_about_are_named() -> None:
    asked = Workload.of(
        [q for q in all_marginals(SCHEMA, 2) if q.literals[0].attribute > 0], SCHEMA
    )
    found = unasked(asked).queries
    assert set(found.used.tolist()) == {1, 2, 3, 4}
    for start, end in zip(found.start[:-1], found.start[1:], strict=True):
        named = found.literals.attribute[found.terms[start:end] >> 1]
        assert len(set(named.tolist())) == end - start


def test_chance_is_what_no_smaller_table_explains() -> None:
    """Of independent columns: the scatter of many tables around what all smaller tables say."""
    random, rows = np.random.default_rng(0), 400
    shares = [np.array([0.3, 0.7]), np.array([0.6, 0.4]), np.array([0.2, 0.8])]
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(3)))
    model = Mixture(schema, np.ones(1), np.concatenate(shares)[:, None])
    one = Unasked(random_marginals(schema, 2, 50), random)
    found = one.chance(model, rows, measured=2)
    lengths = np.diff(one.queries.start)
    assert np.all(found[lengths == 2] == 0.0)
    # The product of the three centred columns is what is left of a triple.
    left = []
    for _ in range(4000):
        records = model.sample(rows, random)
        left.append(np.prod(records - [0.7, 0.4, 0.8], axis=1).mean())
    expected = 16.0 * np.var(left)
    np.testing.assert_allclose(found[(lengths == 3) & one.queries.is_parity], expected, rtol=0.1)


def test_factors_say_by_how_much_errors_are_larger() -> None:
    one = unasked(random_marginals(SCHEMA, 3, 500))
    table = ErrorTable(np.full((1, 3, 9), 0.01))
    answers = np.full(len(one.queries), 0.3)
    errors = np.repeat([0.02, 0.005, 0.03, 0.07], EACH)
    found = one.factors(table, [answers, answers], [errors**2, errors**2])
    np.testing.assert_allclose(found, [[1.0, 1.0, 1.0, 2.0], [1.0, 1.0, 3.0, 7.0]])
    told = replace(table, unasked=found)
    for query, expected in (
        (parities(SCHEMA, 3, 5), 0.03),
        (parities(SCHEMA, 5, 5), 0.07),
        (random_marginals(SCHEMA, 3, 5), 0.01),
        (random_marginals(SCHEMA, 5, 5), 0.02),
    ):
        np.testing.assert_allclose(told.of_answers(query, np.full(len(query), 0.4)), expected)


def test_records_are_counted_by_parities_too() -> None:
    records = np.random.default_rng(1).integers(0, SIZES, (133, len(SIZES))).astype(np.int32)
    workload = random_marginals(SCHEMA, 2, 50) + parities(SCHEMA, 3, 30) + parities(SCHEMA, 2, 30)
    counted = count_rows(open_table(decode(records, SCHEMA)), workload).counts / 133
    np.testing.assert_allclose(shares_holding(workload, records), counted, atol=1e-12)


@pytest.fixture(scope="module")
def bits() -> tuple[np.ndarray, Schema, dq.Release]:
    """Dependent bits, and a release that was asked for triples."""
    random, rows, width = np.random.default_rng(5), 6000, 12
    hidden, slopes = random.normal(size=(rows, 3)), random.normal(size=(3, width))
    place = hidden @ slopes + 0.7 * random.normal(size=width) + random.normal(size=(rows, width))
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(width)))
    codes = (place > 0).astype(np.int32)
    job = dq.DualQuery(epsilon=5.0, delta=1e-5, queries=10_000, seed=3)
    return codes, schema, job.fit(decode(codes, schema), schema=schema)


@pytest.mark.parametrize("k", [3, 4])
def test_intervals_of_parities_that_nobody_asked_for_hold(
    bits: tuple[np.ndarray, Schema, dq.Release], k: int
) -> None:
    codes, schema, release = bits
    asked = parities(schema, k, 200, seed=8)
    off = np.abs(release.answers(asked) - shares_holding(asked, codes))
    assert release.errors is not None
    before = replace(release.errors, unasked=np.ones((KINDS, MOST_COUNTED)))
    narrow = before.of_answers(asked, release.answers(asked))
    assert np.mean(off <= 1.96 * release.standard_errors(asked)) > 0.9
    assert np.mean(off <= 1.96 * narrow) < 0.8
    query = asked.query(0)
    assert release.answer_with_error(query)[1] == pytest.approx(release.standard_errors(asked)[0])


def test_factors_are_kept_in_the_directory(
    bits: tuple[np.ndarray, Schema, dq.Release], tmp_path
) -> None:
    release = bits[2]
    release.save(tmp_path / "out")
    again = dq.load(tmp_path / "out")
    assert release.errors is not None
    assert again.errors is not None
    assert release.errors.unasked.max() > 2.0
    np.testing.assert_array_equal(again.errors.unasked, release.errors.unasked)
