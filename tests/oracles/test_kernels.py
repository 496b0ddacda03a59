"""The compiled loops against plain twins."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.oracles import (
    Problem,
    _anneal_kernels,
    _compile_kernels,
    _enumerate_kernels,
    _kernels,
)
from dualquery.oracles.annealing import Annealing, start_parities
from dualquery.oracles.compile import compile_core
from dualquery.oracles.core import Part, Search, decode, encode
from dualquery.oracles.problem import satisfied
from tests.oracles.problems import binary, core_value, draw, of_kind, problems, random_queries

SEEDS = st.integers(0, 2**32 - 1)


def random_slots(core, generator: np.random.Generator) -> np.ndarray:
    return generator.integers(core.first[:-1], core.first[1:]).astype(np.int32)


@given(problem=problems(constrained=False), seed=SEEDS)
def test_the_core_has_the_value_of_the_problem(problem: Problem, seed: int) -> None:
    generator = np.random.default_rng(seed)
    core = compile_core(problem)
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
    core = compile_core(problem)
    part = Part.whole(core)
    slots = random_slots(core, generator)
    search = Search.over(core, slots)
    value = core.constant + _kernels.load(core, part, search)
    assert value == core_value(core, slots)
    for _ in range(12 if core.variables else 0):
        v = int(generator.integers(core.variables))
        to = int(generator.integers(core.first[v], core.first[v + 1]))
        if to == slots[v]:
            continue
        score = search.score
        value += score[to] - score[slots[v]]
        _kernels.move(core, search, v, to)
        assert value == core_value(core, slots)
        fresh = Search.over(core, slots.copy())
        _kernels.load(core, part, fresh)
        for mine, theirs in zip(search, fresh, strict=True):
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
    core = compile_core(problem)
    part = Part.whole(core)
    slots = core.home.copy()
    search = Search.over(core, slots)
    found = core.constant + _enumerate_kernels.enumerate_slots(core, part, search)
    ranges = [range(core.first[v], core.first[v + 1]) for v in range(core.variables)]
    everything = [np.array(each, dtype=np.int32) for each in itertools.product(*ranges)]
    values = [core_value(core, each) for each in everything]
    assert found == max(values) == core_value(core, slots)
    home = [(each == core.home).sum() for each in everything]
    best = max(h for h, value in zip(home, values, strict=True) if value == found)
    assert (slots == core.home).sum() == best


@given(problem=problems(), seed=SEEDS)
def test_descent_ends_where_no_single_change_gains(problem: Problem, seed: int) -> None:
    core = compile_core(problem)
    part = Part.whole(core)
    slots = random_slots(core, np.random.default_rng(seed))
    search = Search.over(core, slots)
    _kernels.load(core, part, search)
    _kernels.descend(core, part.variables, search)
    value = core_value(core, slots)
    for v in range(core.variables):
        for other in range(core.first[v], core.first[v + 1]):
            changed = slots.copy()
            changed[v] = other
            assert core_value(core, changed) <= value
            if other == core.home[v] != slots[v]:
                assert core_value(core, changed) < value  # ties have gone home


@given(problem=problems(), seed=SEEDS)
def test_crossing_is_at_least_as_good_as_either_assignment(problem: Problem, seed: int) -> None:
    generator = np.random.default_rng(seed)
    core = compile_core(problem)
    part = Part.whole(core)
    slots, other = random_slots(core, generator), random_slots(core, generator)
    before = core_value(core, slots)
    either = max(before, core_value(core, other))
    search = Search.over(core, slots)
    _kernels.load(core, part, search)
    gain = _anneal_kernels.cross(core, part.variables, other, search)
    assert core_value(core, slots) == before + gain >= either
    # Each slot comes from one of the two, and the search is left up to date.
    fresh = Search.over(core, slots.copy())
    _kernels.load(core, part, fresh)
    for mine, theirs in zip(search, fresh, strict=True):
        assert np.array_equal(mine, theirs)


@given(problem=problems(), seed=SEEDS)
def test_annealing_returns_the_value_of_its_slots(problem: Problem, seed: int) -> None:
    core = compile_core(problem)
    part = Part.whole(core)
    starts = random_slots(core, np.random.default_rng(seed))[None]
    slots = core.home.copy()
    search = Search.over(core, slots)
    cooling = Annealing(runs=6, sweeps=5).cooling(len(core.code), part.most(core))
    found = core.constant + _anneal_kernels.anneal(core, part, cooling, starts, seed, search)
    assert found == core_value(core, slots)
    assert found >= max(core_value(core, core.home), core_value(core, starts[0]))


@pytest.mark.parametrize("seed", range(5))
def test_elimination_sets_every_independent_parity_right(seed: int) -> None:
    generator = np.random.default_rng(seed)
    schema = binary(40)
    queries = random_queries(schema, generator, 20, parity=1.0)
    problem = draw(queries, schema, generator, 20)
    core = compile_core(problem)
    slots = core.home.copy()
    start_parities(core, Part.whole(core), slots)
    # Twin: the rank of the matrix says how many terms can be set right.
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
    core = compile_core(problem)
    assert all(np.diff(core.first) <= 2)
    for v in range(core.variables):
        default = problem.defaults[core.attribute[v]]
        assert core.code[core.home[v]] == default
