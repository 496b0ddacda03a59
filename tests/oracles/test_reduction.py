"""The reduction keeps an optimum, whatever it settles."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.oracles import Problem, oracle
from dualquery.oracles.annealing import Annealing
from dualquery.oracles.compile import compile_core
from dualquery.oracles.core import Part, decode, encode
from dualquery.oracles.reduction import reduce_core
from dualquery.workloads.generators import parities, random_marginals
from dualquery.workloads.workload import Literals, Workload
from tests.oracles.problems import binary, core_value, problems


def best_slots(core) -> int:
    ranges = [range(core.first[v], core.first[v + 1]) for v in range(core.variables)]
    return max(
        core_value(core, np.array(each, dtype=np.int32)) for each in itertools.product(*ranges)
    )


@settings(max_examples=150)
@given(problem=problems())
def test_an_optimum_of_the_rest_completes_an_optimum_of_the_whole(problem: Problem) -> None:
    core = compile_core(problem)
    best = best_slots(core)
    fixed = reduce_core(core, enumerate_up_to=0)
    assert best_slots(fixed.rest) == best
    # Any assignment of the rest expands to one of the same value.
    for slots in (fixed.rest.home, fixed.rest.first[1:] - 1):
        full = fixed.expand(slots.astype(np.int32))
        assert core_value(core, full) == core_value(fixed.rest, slots)
    solved = reduce_core(core)
    assert not solved.parts
    assert solved.settled == best == core_value(core, solved.expand(solved.slots))


@given(problem=problems())
def test_projecting_an_expanded_assignment_changes_nothing(problem: Problem) -> None:
    core = compile_core(problem)
    fixed = reduce_core(core, enumerate_up_to=0)
    slots = (fixed.rest.first[1:] - 1).astype(np.int32)
    back = fixed.project(fixed.expand(slots))
    assert core_value(fixed.rest, back) == core_value(fixed.rest, slots)
    record = decode(core, fixed.expand(slots), problem.defaults)
    assert np.array_equal(encode(core, [record])[0], fixed.expand(slots))


@given(problem=problems())
def test_components_share_no_term(problem: Problem) -> None:
    split = reduce_core(compile_core(problem), fix=False, enumerate_up_to=0)
    seen_variables, seen_terms = [], []
    for part in split.parts:
        used = set()
        for j in part.terms:
            for o in range(split.rest.term_start[j], split.rest.term_start[j + 1]):
                used.add(int(split.rest.literal_variable[split.rest.literal[o]]))
        assert used == set(part.variables.tolist()) or not used
        seen_variables += part.variables.tolist()
        seen_terms += part.terms.tolist()
    assert len(set(seen_variables)) == len(seen_variables)
    assert sorted(seen_terms) == sorted(Part.whole(split.rest).terms.tolist())


def test_sparse_problems_are_settled_without_a_search() -> None:
    schema = binary(20_000)
    generator = np.random.default_rng(0)
    for workload in (random_marginals(schema, 3, 3_000), parities(schema, 3, 3_000)):
        problem = Problem.of(workload, np.arange(3_000), generator.choice([-1, 1], 3_000))
        response = oracle("annealing")(problem, generator=generator)
        assert not Annealing().reduce(problem).parts
        assert response.optimal
        if workload.is_parity.all():
            assert response.value == 3_000


def test_a_part_of_a_thousand_attributes_overflows_nothing() -> None:
    """2 to the power of 1,100 is no float; warnings are errors here."""
    width = 1100
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(width)))
    literals = Literals.single(np.arange(width), np.ones(width, dtype=np.int32))
    first = np.arange(width - 1)
    chain = Workload.conjunctions(schema, literals, np.column_stack([2 * first, 2 * first + 2]))
    weights = np.where(first % 2 == 0, 3, -2)
    problem = Problem(chain, weights, 2 * len(first), 5 * len(first), schema.defaults)
    split = reduce_core(compile_core(problem), fix=False)
    assert [len(part.variables) for part in split.parts] == [width]
