"""Everything that reads a workload reads each part of it, whatever stands beside the part.

A workload mixes single codes, sets, negations, parities, whole tables and probes, and its parts
share literals. Each reader is held against a twin that knows the queries of each part as plain
Python and tries all records of a small universe.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualquery as dq
from dualquery.base.errors import QueryError
from dualquery.baselines.baseline import FREE
from dualquery.baselines.independent import Independent
from dualquery.baselines.product import Uniform
from dualquery.domain.query import Literal, Query
from dualquery.domain.schema import Schema
from dualquery.engines.local import LocalEngine
from dualquery.evaluation.figures import evaluate
from dualquery.model.compiled import CompiledWorkload
from dualquery.model.drawn import Buffers, Drawn, answers_of
from dualquery.model.glimpse import glimpse
from dualquery.model.likelihood import Likelihood
from dualquery.model.mixture import Mixture
from dualquery.model.training import Ascent, Parameters
from dualquery.oracles.exhaustive import Exhaustive
from dualquery.oracles.problem import Problem, satisfied
from dualquery.privacy.sampler import Draws
from dualquery.rows.counting import count_rows
from dualquery.rows.opening import open_table
from dualquery.workloads.actions import Actions
from dualquery.workloads.matching import add_matches, mean_answers, satisfying
from dualquery.workloads.probes import ONE_WAY, TWO_WAY, with_probes
from dualquery.workloads.workload import Literals, Workload
from tests.model.twins import Pull, likelihood_twin
from tests.plain import (
    STYLES,
    Part,
    Plain,
    Twin,
    categorical,
    joined,
    probed,
    random_rows,
    read,
    some_queries,
    values_of,
    whole_tables,
)

KINDS = [*STYLES, "whole"]
FEW = settings(max_examples=40)


@st.composite
def mixtures(draw: st.DrawFn, *, probes: bool | None = None) -> tuple[np.random.Generator, Part]:
    """Parts of all kinds in random order, sometimes with probes, and some of it in no order."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    schema = categorical(*draw(st.lists(st.integers(1, 5), min_size=2, max_size=4)))
    parts = [
        whole_tables(schema, int(random.integers(1, 3)))
        if kind == "whole"
        else some_queries(random, schema, kind, int(random.integers(1, 10)), most=4)
        for kind in draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=5))
    ]
    part = joined(parts)
    if draw(st.booleans()) if probes is None else probes:
        part = probed(part, int(random.integers(0, 10)))
        keep = random.permutation(len(part.plain))[:60]
        part = Part(part.workload.take(keep), [part.plain[i] for i in keep])
    return random, part


def universe(schema: Schema) -> np.ndarray:
    """All records, as codes."""
    return np.array(list(product(*(range(int(n)) for n in schema.sizes))), dtype=np.int32)


def twin_of(codes: np.ndarray, schema: Schema) -> Twin:
    return Twin(
        {a.name: [values_of(a)[c] for c in codes[:, i]] for i, a in enumerate(schema.attributes)}
    )


def hits(asked: list[Plain], codes: np.ndarray, schema: Schema) -> np.ndarray:
    """`hits[query, record]`."""
    twin = twin_of(codes, schema)
    return np.array([twin.satisfied(query) for query in asked])


# Workloads


@given(mixtures(), mixtures())
@FEW
def test_joining_and_taking_keep_every_query(one, other) -> None:
    random, first = one
    assert read(first.workload) == first.plain
    chosen = random.integers(0, len(first.plain), 12)
    taken = first.workload.take(chosen)
    assert read(taken) == [first.plain[i] for i in chosen]
    again = taken + first.workload + taken
    assert read(again) == [*read(taken), *first.plain, *read(taken)]
    assert len(again.literals) == len(set(_keys(again.literals)))
    if other[1].workload.schema == first.workload.schema:
        both = other[1].workload + first.workload
        assert read(both) == [*other[1].plain, *first.plain]
    shards = [first.workload.take(cut) for cut in np.array_split(np.arange(len(first.plain)), 3)]
    assert [query for shard in shards for query in read(shard)] == first.plain


def _keys(literals: Literals) -> list[tuple[int, tuple[int, ...]]]:
    return [
        (int(literals.attribute[i]), tuple(sorted(literals.codes_of(i).tolist())))
        for i in range(len(literals))
    ]


@given(mixtures(probes=False), st.integers(0, 5))
@FEW
def test_the_asked_queries_stand_before_their_probes(mixture, seed: int) -> None:
    _, part = mixture
    actions = with_probes(part.workload, seed)
    assert read(actions.workload) == part.plain
    assert read(actions.queries)[: len(part.plain)] == part.plain
    # Pairs share half of the weight; single half-sets a tenth, by the use of their attributes.
    weight = np.exp(actions.log_prior)
    weight /= weight.sum()
    probes = read(actions.queries)[len(part.plain) :]
    arity = np.array([len(query.terms) for query in probes])
    mass = {k: weight[len(part.plain) :][arity == k].sum() for k in (1, 2)}
    pairs = TWO_WAY if any(len(query.terms) > 1 for query in part.plain) else 0.0
    assert mass[1] == pytest.approx(ONE_WAY)
    assert mass[2] == pytest.approx(pairs)
    assert weight[: len(part.plain)] == pytest.approx((0.9 - pairs) / len(part.plain))
    named = [term.column for query in part.plain for term in query.terms]
    for column in set(named):
        own = [q.terms[0].column == column and len(q.terms) == 1 for q in probes]
        share = weight[len(part.plain) :][own].sum()
        assert share == pytest.approx(ONE_WAY * named.count(column) / len(named))


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        ((), "a literal on 'c0' has no code"),
        ((0, 3), "code 3 of 'c0'; expected 0 to 2"),
        ((-1,), "code -1 of 'c0'; expected 0 to 2"),
    ],
)
def test_literals_outside_the_domain_are_refused(codes: tuple[int, ...], words: str) -> None:
    with pytest.raises(QueryError, match=words):
        Workload.of([Query("conjunction", (Literal(0, codes),))], categorical(3, 4))


def test_a_code_that_is_named_twice_counts_once() -> None:
    schema = categorical(3, 4)
    twice = Workload.of([Query("conjunction", (Literal(0, (2, 1, 2)),))], schema)
    assert twice.literals.codes.tolist() == [1, 2]
    assert Uniform().answers(twice)[0] == pytest.approx(2 / 3)


# Records


@given(mixtures())
@FEW
def test_queries_on_records(mixture) -> None:
    random, part = mixture
    schema = part.workload.schema
    records = random.integers(0, schema.sizes, (7, len(schema)), np.int32)
    expected = hits(part.plain, records, schema)
    matches = np.zeros(len(part.plain), dtype=np.int32)
    for place, record in enumerate(records):
        add_matches(part.workload, record, matches)
        np.testing.assert_array_equal(satisfied(part.workload, record), expected[:, place])
    np.testing.assert_array_equal(matches, expected.sum(axis=1))
    np.testing.assert_allclose(mean_answers(part.workload, records), expected.mean(axis=1))
    for q in random.integers(0, len(part.plain), 5).tolist():
        found = satisfying(records, part.workload.query(q), schema)
        np.testing.assert_array_equal(found, expected[q])


@given(mixtures())
@FEW
def test_the_data_players_problem(mixture) -> None:
    random, part = mixture
    schema = part.workload.schema
    drawn = random.integers(0, len(part.plain), 25)
    signs = random.choice([-1, 1], 25)
    problem = Problem.of(part.workload, drawn, signs)
    every = universe(schema)
    held = hits([part.plain[q] for q in drawn], every, schema)
    scores = np.where(signs[:, None] > 0, held, ~held).sum(axis=0)
    assert [problem.value(record) for record in every] == scores.tolist()
    best = Exhaustive()(problem, generator=random)
    assert best.value == scores.max()


# Models


def random_model(random: np.random.Generator, schema: Schema, components: int) -> Mixture:
    tables = random.gamma(0.7, size=(int(schema.sizes.sum()), components)) + 1e-3
    first = 0
    for size in schema.sizes.tolist():
        tables[first : first + size] /= tables[first : first + size].sum(axis=0)
        first += size
    return Mixture(schema, random.dirichlet(np.ones(components)), tables)


def chances(model: Mixture, codes: np.ndarray) -> np.ndarray:
    """The probability of each record."""
    first = np.concatenate([[0], np.cumsum(model.schema.sizes)])[:-1]
    by_component = np.prod(model.tables[first[None, :] + codes], axis=1)
    return by_component @ model.weights


@given(mixtures())
@FEW
def test_a_model_answers_each_part(mixture) -> None:
    random, part = mixture
    schema = part.workload.schema
    model, every = random_model(random, schema, 3), universe(schema)
    expected = hits(part.plain, every, schema) @ chances(model, every)
    np.testing.assert_allclose(model.answers(part.workload), expected, atol=1e-12)


@given(mixtures())
@FEW
def test_a_part_of_the_arrangement_answers_like_the_whole(mixture) -> None:
    random, part = mixture
    compiled = CompiledWorkload.of(part.workload)
    ascent = Ascent(compiled.stack, 4)
    parameters = Parameters.start(compiled.stack, 4, 1.0, int(random.integers(0, 100)))
    tables, weights = ascent.tables(parameters), parameters.weights.astype(np.float32)
    buffers = Buffers(compiled, 4)
    whole = answers_of(compiled, tables, weights, buffers)
    model = ascent.mixture(parameters)
    every = universe(part.workload.schema)
    expected = hits(part.plain, every, part.workload.schema) @ chances(model, every)
    np.testing.assert_allclose(compiled.in_query_order(whole), expected, atol=2e-6)
    kept = np.flatnonzero(random.random(len(part.plain)) < 0.5)
    if not len(kept):
        return
    some = compiled.part(kept)
    np.testing.assert_allclose(answers_of(some, tables, weights, buffers), whole[kept], atol=1e-6)
    # The gradient of a part is that of the whole with nothing pulling at the others.
    slope = random.normal(size=len(part.plain)).astype(np.float32)
    alone = np.zeros_like(slope)
    alone[kept] = slope[kept]
    by_part = Drawn(some, Pull(slope[kept]), buffers).slopes(tables, weights)
    by_whole = Drawn(compiled, Pull(alone), buffers).slopes(tables, weights)
    np.testing.assert_allclose(by_part.by_table, by_whole.by_table, atol=2e-5)
    np.testing.assert_allclose(by_part.by_weight, by_whole.by_weight, atol=2e-5)


@given(mixtures(probes=False), st.sampled_from([3.0, 40.0]))
@FEW
def test_the_likelihood_of_draws_of_asked_queries_and_probes(mixture, heat: float) -> None:
    random, part = mixture
    actions = with_probes(part.workload)
    compiled = CompiledWorkload.of(actions.queries)
    likelihood = Likelihood(compiled, actions.log_prior, 3)
    rounds = []
    for t in range(3):
        draws = Draws(random.integers(0, len(actions), 9), random.random(9) < 0.5)
        against = random.random(len(actions)).astype(np.float32)
        rounds.append((heat * (t + 1), draws, against))
        likelihood.add(heat * (t + 1), draws, against[compiled.order])
    answers = random.random(len(actions)).astype(np.float32)
    value, _ = likelihood.slopes(answers[compiled.order])
    expected = likelihood_twin(answers.astype(float), rounds, actions.log_prior)
    assert value == pytest.approx(expected, rel=2e-4, abs=2e-3)
    # What is seen of it keeps every draw, and each draw its query.
    whole = Drawn(compiled, likelihood, Buffers(compiled, 2))
    seen = glimpse(whole, random, enough=len(actions) // 2)
    drawn = {int(q) for _, draws, _ in rounds for q in draws.queries}
    assert drawn <= set(seen.compiled.order.tolist())
    pulls = np.zeros(len(actions))
    for temperature, draws, _ in rounds:
        np.add.at(pulls, draws.queries, np.where(draws.negated, -temperature, temperature))
    np.testing.assert_allclose(
        seen.likelihood._pull, pulls[seen.compiled.order], rtol=1e-5, atol=1e-4
    )


# Baselines


@given(mixtures())
@FEW
def test_baselines_that_know_single_columns(mixture) -> None:
    random, part = mixture
    schema = part.workload.schema
    every = universe(schema)
    held = hits(part.plain, every, schema)
    np.testing.assert_allclose(Uniform().answers(part.workload), held.mean(axis=1), atol=1e-12)
    model = random_model(random, schema, 1)
    first = np.concatenate([[0], np.cumsum(schema.sizes)]).astype(np.int64)
    found = Independent(model.tables[:, 0], first, FREE).answers(part.workload)
    np.testing.assert_allclose(found, held @ chances(model, every), atol=1e-12)


# The whole job


def test_a_release_plays_against_the_true_counts_and_is_judged_by_them(monkeypatch) -> None:
    """All cells of a table together with the default player's probes, by the public names."""
    random = np.random.default_rng(0)
    schema = categorical(11, 10, 12)
    cells = random_rows(random, schema, 900)
    asked = joined([whole_tables(schema, 3), some_queries(random, schema, "parities", 20)])
    seen = []
    player = LocalEngine.query_player

    def spied(self, actions: Actions, answers, reference):
        seen.append((actions, answers))
        return player(self, actions, answers, reference)

    monkeypatch.setattr(LocalEngine, "query_player", spied)
    table = pa.table(cells)
    release = dq.DualQuery(epsilon=1.0, delta=1e-3, seed=1, rounds=2, samples=20, refit=False).fit(
        table, schema=schema, workload=asked.workload
    )
    ((actions, answers),) = seen
    assert len(actions) > len(asked.plain)
    twin = Twin(cells)
    expected = twin.count([*asked.plain, *read(actions.queries)[len(asked.plain) :]])
    np.testing.assert_array_equal(answers.counts, expected)
    judged = evaluate(release, table)
    np.testing.assert_array_equal(np.rint(900 * judged.truth), expected[: len(asked.plain)])


def test_the_default_workload_of_a_narrow_table() -> None:
    """Half a million random queries on few columns are whole tables too."""
    random = np.random.default_rng(0)
    schema = categorical(5, 4, 2, 6)
    asked = dq.random_marginals(schema, 3, 40_000)
    actions = with_probes(asked)
    cells = random_rows(random, schema, 300)
    found = count_rows(open_table(pa.table(cells)), actions.queries).counts
    chosen = random.permutation(len(actions))[:4000]
    expected = Twin(cells).count(read(actions.queries.take(chosen)))
    np.testing.assert_array_equal(found[chosen], expected)
