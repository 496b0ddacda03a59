"""A mixture of forests against the enumeration of all records."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from dualquery.domain.attributes import Attribute
from dualquery.domain.query import Literal, Query
from dualquery.domain.schema import Schema
from dualquery.model.compiled import CompiledWorkload
from dualquery.model.ensemble import merged
from dualquery.model.forest.answers import shares_by_component, table_of_sets
from dualquery.model.forest.trees import Trees
from dualquery.model.mixture import Mixture
from dualquery.model.stack import Stack
from dualquery.model.training import Ascent, Parameters
from dualquery.workloads.generators import parities, random_marginals
from dualquery.workloads.marginals import Groups
from tests.model.forest import enumerated
from tests.model.forest.test_fit import FORESTS, SCHEMA, SIZES


def fitted(name: str, seed: int, grouped: bool = False) -> tuple[Mixture, np.ndarray]:
    """A mixture of two fits with random parameters, and the probability of every record."""
    random, k = np.random.default_rng(seed), 3
    trees = Trees.of_edges(len(SIZES), FORESTS[name])
    groups, within = Groups.single(SCHEMA), None
    if grouped:  # the four codes of one attribute in two groups
        groups = groups.merged(3, np.array([0, 1, 1, 0], dtype=np.int32))
        within = np.ones(sum(SIZES))
        within[SCHEMA.code_start[3] : SCHEMA.code_start[4]] = [0.3, 0.6, 0.4, 0.7]
    stack = Stack(SCHEMA, np.arange(len(SIZES)), groups, within)
    members, wholes = [], []
    for number in range(2):
        ascent = Ascent(stack, k, trees=trees)
        here = Parameters.start(stack, k, 1.0, seed + number, tied=int(ascent.tie_start[-1]))
        here.ties[:] = random.standard_normal(here.tied)
        here.flat[-k:] = random.standard_normal(k)
        members.append(ascent.mixture(here))
        whole = enumerated.joint(trees, stack.start, here.logits, here.ties, here.weights)
        if grouped:
            spread = whole.take([0, 1, 1, 0], axis=3)
            whole = spread * np.array([0.3, 0.6, 0.4, 0.7])[:, None, None]
        wholes.append(whole)
    return merged(members), np.mean(wholes, axis=0)


def _holds(query: Query, record: np.ndarray) -> bool:
    held = [record[one.attribute] in one.allowed(SIZES[one.attribute]) for one in query.literals]
    return sum(held) % 2 == 0 if query.kind == "parity" else all(held)


CASES = [(name, grouped) for name in FORESTS for grouped in (False, True)]


@pytest.mark.parametrize(("name", "grouped"), CASES)
def test_every_table_is_the_enumerated_one(name: str, grouped: bool) -> None:
    model, whole = fitted(name, 4, grouped)
    assert whole.sum() == pytest.approx(1.0)
    for arity in (1, 2, 3, 4):
        for attributes in combinations(range(len(SIZES)), arity):
            expected = enumerated.table(whole, attributes)
            assert model.table(attributes) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(("name", "grouped"), CASES)
def test_answers_are_the_enumerated_ones(name: str, grouped: bool) -> None:
    model, whole = fitted(name, 9, grouped)
    every = np.array(list(np.ndindex(whole.shape)))
    for workload in (
        random_marginals(SCHEMA, 3, 300, seed=1),
        random_marginals(SCHEMA, 2, 40, seed=2),
        parities(SCHEMA, 3, 50, seed=3),
    ):
        holds = np.array(
            [[_holds(workload.query(q), row) for row in every] for q in range(len(workload))]
        )
        assert model.answers(workload) == pytest.approx(holds @ whole.reshape(-1), abs=1e-7)


@pytest.mark.parametrize("most", [1 << 25, 200, 1])
def test_answers_are_the_same_however_many_at_a_time(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    model, _ = fitted("two trees", 5)
    workload = random_marginals(SCHEMA, 3, 200, seed=4) + parities(SCHEMA, 3, 50, seed=3)
    expected = model.answers(workload)
    monkeypatch.setattr("dualquery.model.forest.answers.MOST_ENTRIES", most)
    assert model.answers(workload) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("name", "grouped"), CASES)
def test_many_literals_meet_one_after_the_other(name: str, grouped: bool) -> None:
    """What comes of two literals is moved on upwards and meets a third one, and a fourth."""
    model, _ = fitted(name, 9, grouped)
    for workload in (
        random_marginals(SCHEMA, 4, 60, seed=5) + random_marginals(SCHEMA, 2, 20, seed=6),
        random_marginals(SCHEMA, 6, 60, seed=7) + parities(SCHEMA, 5, 30, seed=8),
    ):
        for q in range(len(workload)):
            query = workload.query(q)
            codes = {
                one.attribute: np.isin(
                    np.arange(SCHEMA.sizes[one.attribute]),
                    sorted(one.allowed(int(SCHEMA.sizes[one.attribute]))),
                )
                for one in query.literals
            }
            parity = query.kind == "parity"
            sets = {a: (1.0 - 2.0 * one if parity else 1.0 * one) for a, one in codes.items()}
            expected = table_of_sets(model, {a: one[:, None] for a, one in sets.items()}).item()
            found = model.answers(workload.take(np.array([q])))[0]
            assert found == pytest.approx(0.5 + 0.5 * expected if parity else expected, abs=1e-12)


def test_single_precision_knows_of_edges() -> None:
    """Draws, workers and rehearsals ask in single precision."""
    model, _ = fitted("one tree", 6)
    workload = random_marginals(SCHEMA, 2, 40, seed=2)
    found = model.answers_to(CompiledWorkload.of(workload), single=True)
    assert found == pytest.approx(model.answers(workload), abs=1e-6)
    apart = replace(model, edges=None).answers(workload)
    assert np.abs(found - apart).max() > 0.01


@pytest.mark.parametrize(("name", "grouped"), CASES)
def test_a_condition_is_the_enumerated_one(name: str, grouped: bool) -> None:
    model, whole = fitted(name, 14, grouped)
    query = Query("conjunction", (Literal(1, (0, 2)), Literal(3, (1, 3)), Literal(5, (2,))))
    held = whole.copy()
    held[:, 1] = 0.0
    held[:, :, :, [0, 2]] = 0.0
    held[..., :2] = 0.0
    weights, _ = model.tilted({1: [1, 0, 1], 3: [0, 1, 0, 1], 5: [0, 0, 1]})
    assert weights.sum() == pytest.approx(held.sum(), abs=1e-9)
    given = model.given(query)
    for attributes in combinations(range(len(SIZES)), 2):
        expected = enumerated.table(held, attributes) / held.sum()
        assert given.table(attributes) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(("name", "grouped"), CASES)
def test_records_follow_the_model(name: str, grouped: bool) -> None:
    model, whole = fitted(name, 20, grouped)
    rows = 60_000
    codes = model.sample(rows, np.random.default_rng(1))
    for attributes in combinations(range(len(SIZES)), 3):
        expected = enumerated.table(whole, attributes)
        counts = np.zeros(expected.shape)
        np.add.at(counts, tuple(codes[:, list(attributes)].T), 1.0)
        spread = np.sqrt(expected * (1.0 - expected) / rows)
        assert (np.abs(counts / rows - expected) <= 5.0 * spread + 1e-5).all()


def test_a_table_of_a_tree_takes_no_more_than_its_cells() -> None:
    """Every attribute that is asked has one axis at a time, not one of groups and one of codes."""
    sizes = (60, 10, 8)
    schema = Schema(tuple(Attribute.categorical(f"x{a}", range(m)) for a, m in enumerate(sizes)))
    trees = Trees.of_edges(3, [(0, 1), (1, 2)])
    stack = Stack(schema, np.arange(3), Groups.single(schema))
    ascent = Ascent(stack, 4, trees=trees)
    fit = Parameters.start(stack, 4, 1.0, 1, tied=int(ascent.tie_start[-1]))
    model = ascent.mixture(fit)
    for order in ((0, 1, 2), (0, 2), (2, 0, 1)):
        asked = {a: np.eye(sizes[a]) for a in order}
        tracemalloc.start()
        found = shares_by_component(model, asked)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        cells = 4 * int(np.prod(sizes))
        assert found.shape == (4, *(sizes[a] for a in order))
        assert peak < 6 * 8 * cells
