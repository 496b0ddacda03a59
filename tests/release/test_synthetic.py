"""Synthetic rows of a release: arranged by default, under conditions and constraints too."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import dualquery as dq
from dualquery.domain.attributes import Attribute
from dualquery.domain.language import parse
from dualquery.domain.schema import Schema
from dualquery.model.arranging import arranged, targets_of
from dualquery.model.mixture import Mixture
from dualquery.release.synthetic import rows_of_model, rows_of_records
from dualquery.workloads.generators import all_marginals
from dualquery.workloads.matching import mean_answers, satisfying

RULES = (
    {"forbid": "sex=Male & pregnant=1"},
    {"if": "ward=maternity", "then": "sex=Female"},
    {"forbid": "age>=65 & pregnant=1 & ward=maternity"},
)


@pytest.fixture(scope="module")
def ruled() -> Schema:
    return Schema(
        (
            Attribute.categorical("sex", ["Female", "Male"]),
            Attribute.binary("pregnant"),
            Attribute.categorical("ward", ["surgery", "maternity", "other"]),
            Attribute.numeric("age", [0, 18, 40, 65, 120]),
            Attribute.categorical("town", list("abcdef")),
        ),
        rules=RULES,
    )


def mixture(schema: Schema, components: int = 5, seed: int = 0) -> Mixture:
    random = np.random.default_rng(seed)
    tables = [random.dirichlet(np.full(s, 0.7), components).T for s in schema.sizes.tolist()]
    return Mixture(schema, random.dirichlet(np.ones(components)), np.concatenate(tables))


def distance(model: Mixture, codes: np.ndarray) -> float:
    workload = all_marginals(model.schema, 3)
    return float(np.abs(mean_answers(workload, codes) - model.answers(workload)).mean())


def test_no_rule_is_broken_and_rows_stay_near(ruled: Schema) -> None:
    model = mixture(ruled)
    assert ruled.constraints is not None
    targets = targets_of(all_marginals(ruled, 3))
    near = arranged(model, 3000, np.random.default_rng(1), targets)
    assert ruled.constraints.holds(near).all()
    far = model.sample(3000, np.random.default_rng(1))
    # The model itself breaks the rules, so no rows that obey them can answer quite as it does.
    assert distance(model, near) < distance(model, far)
    for a, size in enumerate(ruled.sizes.tolist()):
        share = model.tables[ruled.code_start[a] : ruled.code_start[a + 1]] @ model.weights
        if ruled.names[a] == "town":  # no rule is about it, so every share is kept
            found = np.bincount(near[:, a], minlength=size)
            assert np.abs(found - 3000 * share).max() <= 5 + 2


def test_rules_that_most_rows_would_break(ruled: Schema) -> None:
    """One component that is male and pregnant: rows must be drawn again, or mended."""
    model = mixture(ruled, 1)
    tables = model.tables.copy()
    tables[:7] = np.array([0.01, 0.99, 0.01, 0.99, 0.1, 0.8, 0.1])[:, None]
    forced = Mixture(ruled, model.weights, tables)
    codes = arranged(forced, 500, np.random.default_rng(0), [(0, 1, 2)])
    assert ruled.constraints is not None
    assert ruled.constraints.holds(codes).all()


def test_a_condition_holds_for_all_rows_and_so_do_the_rules(ruled: Schema) -> None:
    model = mixture(ruled)
    targets = targets_of(all_marginals(ruled, 3))
    condition = parse("age>=40 & ward!=other", ruled)
    codes = rows_of_model(model, 800, np.random.default_rng(3), targets, [condition])
    assert satisfying(codes, condition, ruled).all()
    assert ruled.constraints is not None
    assert ruled.constraints.holds(codes).all()
    given = model.given(condition)
    plain = rows_of_model(model, 800, np.random.default_rng(3), None, [condition])
    assert distance(given, codes) < distance(given, plain)


def test_parts_of_a_condition_have_their_shares(ruled: Schema) -> None:
    model = mixture(ruled)
    parts = [parse("age>=65", ruled), parse("age<65 & town=a", ruled)]
    workload = dq.Workload.of(parts, ruled)
    given = model.given_any(parts)
    shares = model.answers(workload)
    np.testing.assert_allclose(given.answers(workload), shares / shares.sum())
    codes = rows_of_model(model, 900, np.random.default_rng(0), [(3, 4)], parts)
    held = [satisfying(codes, part, ruled) for part in parts]
    assert (held[0] ^ held[1]).all()
    assert held[0].mean() == pytest.approx(shares[0] / shares.sum(), abs=0.02)


def test_a_condition_that_the_rules_exclude_is_refused(ruled: Schema) -> None:
    condition = parse("sex=Male & pregnant=1", ruled)
    for targets in (None, [(0, 1, 2)]):
        with pytest.raises(dq.ReleaseError, match="obeys the constraints and satisfies the cond"):
            rows_of_model(mixture(ruled), 50, np.random.default_rng(0), targets, [condition])


def test_records_occur_in_proportion() -> None:
    schema = Schema(tuple(Attribute.categorical(name, range(14)) for name in "ab"))
    records = np.arange(14, dtype=np.int32).reshape(7, 2)
    for rows in (3, 7, 100):
        random = np.random.default_rng(rows)
        drawn = rows_of_records(records, rows, random, schema, independent=False)
        often = Counter(drawn[:, 0].tolist())
        counts = [often[int(first)] for first in records[:, 0]]
        assert sum(counts) == rows
        assert max(counts) - min(counts) <= 1
    plain = rows_of_records(records, 700, random, schema, independent=True)
    counts = list(Counter(plain[:, 0].tolist()).values())
    assert max(counts) - min(counts) > 1
    condition = [parse("a<6 & b>1", schema), parse("a=10", schema)]
    some = rows_of_records(records, 90, random, schema, condition, independent=False)
    assert Counter(some[:, 0].tolist()) == {2: 30, 4: 30, 10: 30}


@pytest.fixture(scope="module")
def made(schema: Schema, rows: pa.Table) -> dq.Release:
    """A short game, and a model of its own: what is sampled needs no good fit."""
    settings = {"player": "record", "refit": False, "rounds": 4, "samples": 50}
    job = dq.DualQuery(epsilon=1.0, delta=1e-3, queries=2000, seed=3, **settings)
    return job.fit(rows, schema=schema).with_model(mixture(schema), None)


def test_sampled_rows_answer_nearly_as_the_model_does(made: dq.Release) -> None:
    def away(independent: bool) -> np.ndarray:
        codes = made.sample_codes(3000, np.random.default_rng(1), independent=independent)
        return np.abs(mean_answers(made.workload, codes) - made.answers())

    near, far = away(False), away(True)
    assert near.mean() < far.mean() / 6
    assert near.max() < far.max() / 4


def test_a_seed_repeats_a_sample_and_no_seed_does_not(made: dq.Release) -> None:
    for independent in (False, True):
        one, two = (made.sample(200, seed=5, independent=independent) for _ in range(2))
        assert one.equals(two)
        assert not made.sample(200, independent=independent).equals(
            made.sample(200, independent=independent)
        )
    assert not made.sample(200, seed=5).equals(made.sample(200, seed=5, independent=True))


def test_any_number_of_rows(made: dq.Release) -> None:
    for rows in (1, 2, 3, 17):
        assert made.sample(rows, seed=0).num_rows == rows
        assert made.sample(rows, seed=0, where="smoker=1").num_rows == rows


def test_values_inside_bins_are_in_proportion(made: dq.Release) -> None:
    """The mean of a sampled column is that of its bins, without the luck of independent draws."""
    rows = 4000
    codes = made.sample_codes(rows, np.random.default_rng(2))[:, 1]
    within = made.within("age")
    expected = within.bin_means[codes].mean()
    drawn = within.draw(codes, np.random.default_rng(3)).mean()
    plain = within.draw(codes, np.random.default_rng(3), independent=True).mean()
    assert abs(drawn - expected) < 0.02
    assert abs(drawn - expected) < abs(plain - expected)


def test_a_wide_table_is_arranged_too() -> None:
    width = 3000
    schema = Schema(tuple(Attribute.binary(f"c{i}") for i in range(width)))
    random = np.random.default_rng(0)
    ones = random.beta(0.3, 4.0, (width, 3))
    tables = np.stack([1.0 - ones, ones], axis=1).reshape(2 * width, 3)
    model = replace(mixture(schema, 3), own=tables)
    codes = arranged(model, 400, random, [(0, 1, 2), (5, 2999)])
    share = ones @ model.weights
    assert np.abs(codes.sum(axis=0) - 400 * share).max() <= 3 + 2
