"""The compiled loops against plain twins."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.oracles import Problem, _compile_kernels, _kernels, _search_kernels
from dualquery.oracles.annealing import start_parities
from dualquery.oracles.core import decode, encode
from dualquery.oracles.problem import satisfied
from dualquery.oracles.program import whole
from dualquery.oracles.reduction.reduce import search_state
from tests.oracles.problems import binary, core_value, draw, of_kind, problems, random_queries

SEEDS = st.integers(0, 2**32 - 1)


def random_slots(core, generator: np.random.Generator) -> np.ndarray:
    return generator.integers(core.first[:-1], core.first[1:]).astype(np.int32)


@given(problem=problems(constrained=False), seed=SEEDS)
def test_the_core_has_the_value_of_the_problem(problem: Problem, seed: int) -> None:
    generator = np.random.default_rng(seed)
    core = problem.core
    for _ in range(5):
        record = generator.integers(0, problem.workload.schema.sizes).astype(np.int32)
        slots = encode(core, [record])[0]
        same = decode(core, slots, problem.defaults)
        assert core_value(core, slots) == problem.value(record) == problem.value(same)
        assert np.array_equal(encode(core, [same])[0], slots)


@given(draws=st.lists(st.tuples(st.integers(0, 6), st.sampled_from([-1, 1]))))
def test_repeats_are_summed_and_what_cancels_is_dropped(draws: list[tuple[int, int]]) -> None:
    signed = np.array(sorted(2 * query + (sign > 0) for query, sign in draws), dtype=np.int64)
    chosen, weights = _compile_kernels.collect(signed)
    sums: Counter[int] = Counter()
    for query, sign in draws:
        sums[query] += sign
    expected = {query: total for query, total in sorted(sums.items()) if total}
    assert list(zip(chosen, weights, strict=True)) == list(expected.items())


@given(problem=problems(constrained=False), seed=SEEDS)
def test_satisfied_is_the_definition_of_a_query(problem: Problem, seed: int) -> None:
    workload = problem.workload
    sizes = workload.schema.sizes
    record = np.random.default_rng(seed).integers(0, sizes)
    for query, found in zip(workload, satisfied(workload, record), strict=True):
        truths = [record[l.attribute] in l.allowed(int(sizes[l.attribute])) for l in query.literals]
        assert found == (sum(truths) % 2 == 0 if query.kind == "parity" else all(truths))


@given(problem=problems(), seed=SEEDS)
def test_incremental_gains_equal_recomputed_ones(problem: Problem, seed: int) -> None:
    generator = np.random.default_rng(seed)
    core = problem.core
    part = whole(core)
    state = search_state(core)
    slots = random_slots(core, generator)
    value = core.constant + _kernels.load_state(core, part.variables, part.terms, slots, *state)
    assert value == core_value(core, slots)
    for _ in range(12 if core.variables else 0):
        v = int(generator.integers(core.variables))
        to = int(generator.integers(core.first[v], core.first[v + 1]))
        if to == slots[v]:
            continue
        score = state[2]
        value += score[to] - score[slots[v]]
        _kernels.move(core, v, to, slots, *state)
        assert value == core_value(core, slots)
        fresh = search_state(core)
        _kernels.load_state(core, part.variables, part.terms, slots.copy(), *fresh)
        for mine, theirs in zip(state, fresh, strict=True):
            assert np.array_equal(mine, theirs)
        u = int(generator.integers(core.variables))
        for other in range(core.first[u], core.first[u + 1]):
            changed = slots.copy()
            changed[u] = other
            gain = score[other] - score[slots[u]]
            assert core_value(core, changed) - value == gain


@settings(max_examples=50)
@given(problem=problems())
def test_enumeration_finds_the_best_slots(problem: Problem) -> None:
    core = problem.core
    part = whole(core)
    slots = core.home.copy()
    found = core.constant
    found += _search_kernels.enumerate_slots(
        core, part.variables, part.terms, slots, *search_state(core)
    )
    ranges = [range(core.first[v], core.first[v + 1]) for v in range(core.variables)]
    everything = [np.array(each, dtype=np.int32) for each in itertools.product(*ranges)]
    values = [core_value(core, each) for each in everything]
    assert found == max(values) == core_value(core, slots)
    home = [(each == core.home).sum() for each in everything]
    best = max(h for h, value in zip(home, values, strict=True) if value == found)
    assert (slots == core.home).sum() == best


@given(problem=problems(), seed=SEEDS)
def test_descent_ends_where_no_single_change_gains(problem: Problem, seed: int) -> None:
    core = problem.core
    part = whole(core)
    state = search_state(core)
    slots = random_slots(core, np.random.default_rng(seed))
    _kernels.load_state(core, part.variables, part.terms, slots, *state)
    _kernels.descend(core, part.variables, slots, *state)
    value = core_value(core, slots)
    for v in range(core.variables):
        for other in range(core.first[v], core.first[v + 1]):
            changed = slots.copy()
            changed[v] = other
            assert core_value(core, changed) <= value
            if other == core.home[v] != slots[v]:
                assert core_value(core, changed) < value  # ties have gone home


@pytest.mark.parametrize("seed", range(5))
def test_elimination_sets_every_independent_parity_right(seed: int) -> None:
    generator = np.random.default_rng(seed)
    schema = binary(40)
    queries = random_queries(schema, generator, 20, parity=1.0)
    problem = draw(queries, schema, generator, 20)
    core = problem.core
    slots = core.home.copy()
    start_parities(core, whole(core), slots)
    # Twin: as many terms right as the rank of their matrix says can be chosen freely.
    matrix = np.zeros((core.terms, core.variables), dtype=int)
    for j in range(core.terms):
        for o in range(core.term_start[j], core.term_start[j + 1]):
            matrix[j, core.literal_variable[core.literal[o]]] = 1
    if rank(matrix) == core.terms:
        assert core_value(core, slots) == core.constant + np.maximum(core.weight, 0).sum()
    before = core_value(core, core.home)
    assert core_value(core, slots) >= before - 1


def rank(matrix: np.ndarray) -> int:
    """The rank over GF(2), by hand."""
    rows = [int("".join(map(str, row)), 2) for row in matrix]
    found = 0
    while rows:
        row = rows.pop()
        if row:
            found += 1
            low = row & -row
            rows = [other ^ row if other & low else other for other in rows]
    return found


def test_codes_that_no_literal_separates_share_a_slot() -> None:
    problem = of_kind("single-clause", 1)
    core = problem.core
    assert all(np.diff(core.first) <= 2)
    for v in range(core.variables):
        default = problem.defaults[core.attribute[v]]
        assert core.code[core.home[v]] == default
