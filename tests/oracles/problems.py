"""Small problems of every kind, random ones, and plain twins of the kernels."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from dualquery.domain.attributes import Attribute
from dualquery.domain.constraints import Constraints
from dualquery.domain.query import Literal, Query
from dualquery.domain.schema import Schema
from dualquery.oracles import Problem
from dualquery.oracles.annealing import Annealing
from dualquery.oracles.core import Core
from dualquery.workloads.workload import Workload

PEOPLE = Schema(
    (
        Attribute.categorical("sex", ["Female", "Male"]),
        Attribute.categorical("relationship", ["Husband", "Wife", "Child", "Other"]),
        Attribute.numeric("age", [0, 18, 30, 50, 70, 120]),
        Attribute.binary("smoker"),
        Attribute.binary("owner"),
        Attribute.categorical("work", ["Private", "State", "None"], missing=True),
    )
)
RULES = Constraints.parse(
    [
        {"if": "relationship=Husband", "then": "sex=Male & age>=18"},
        {"if": "relationship=Wife", "then": "sex=Female & age>=18"},
        {"forbid": "relationship=Child & age>=30"},
        {"forbid": "age<18 & owner=1"},
    ],
    PEOPLE,
)


def binary(d: int) -> Schema:
    return Schema(tuple(Attribute.binary(f"x{i}") for i in range(d)))


def random_queries(
    schema: Schema,
    generator: np.random.Generator,
    count: int,
    *,
    parity: float = 0.0,
    sets: bool = False,
    longest: int = 3,
) -> list[Query]:
    """Random queries; with `sets` a literal takes any set of codes, else one code."""
    queries = []
    for _ in range(count):
        k = int(generator.integers(1, min(longest, len(schema)) + 1))
        literals = []
        for a in generator.choice(len(schema), k, replace=False):
            size = int(schema.sizes[a])
            width = int(generator.integers(1, size + 1)) if sets else 1
            codes = generator.choice(size, width, replace=False)
            negated = bool(generator.integers(2))
            literals.append(Literal(int(a), tuple(int(c) for c in codes), negated))
        kind = "parity" if generator.random() < parity else "conjunction"
        queries.append(Query(kind, tuple(literals)))
    return queries


def draw(
    queries: list[Query],
    schema: Schema,
    generator: np.random.Generator,
    samples: int,
    constraints: Constraints | None = None,
) -> Problem:
    """Draw with repeats from some queries, with random signs and random defaults."""
    workload = Workload.of(queries, schema)
    return Problem.of(
        workload,
        generator.integers(0, len(workload), samples),
        generator.choice([-1, 1], samples),
        defaults=generator.integers(0, schema.sizes).astype(np.int32),
        constraints=constraints,
    )


def of_kind(kind: str, seed: int = 0) -> Problem:
    """One problem of a named kind; small enough to enumerate."""
    generator = np.random.default_rng(seed)
    if kind == "conjunctions":
        schema = binary(9)
        return draw(random_queries(schema, generator, 60), schema, generator, 120)
    if kind == "parities":
        schema = binary(8)
        queries = random_queries(schema, generator, 40, parity=1.0, longest=5)
        return draw(queries, schema, generator, 60)
    if kind == "few-parities":
        schema = binary(10)
        queries = random_queries(schema, generator, 7, parity=1.0)
        return draw(queries, schema, generator, 7)
    if kind == "ranges":
        queries = random_queries(PEOPLE, generator, 40, sets=True)
        return draw(queries, PEOPLE, generator, 80)
    if kind == "one-hot":
        return draw(random_queries(PEOPLE, generator, 60), PEOPLE, generator, 120)
    if kind == "mixed":
        queries = random_queries(PEOPLE, generator, 40, parity=0.4, sets=True, longest=4)
        return draw(queries, PEOPLE, generator, 80)
    if kind == "constraints":
        queries = random_queries(PEOPLE, generator, 60, sets=True)
        return draw(queries, PEOPLE, generator, 120, RULES)
    if kind == "single-clause":
        return draw(random_queries(PEOPLE, generator, 1), PEOPLE, generator, 1)
    if kind == "empty":
        workload = Workload.of(random_queries(PEOPLE, generator, 1), PEOPLE)
        return Problem.of(workload, [], [])
    if kind == "cancelled":
        workload = Workload.of(random_queries(PEOPLE, generator, 1), PEOPLE)
        return Problem.of(workload, [0, 0], [1, -1], constraints=RULES)
    raise ValueError(kind)


KINDS = (
    "conjunctions",
    "parities",
    "few-parities",
    "ranges",
    "one-hot",
    "mixed",
    "constraints",
    "single-clause",
    "empty",
    "cancelled",
)


@st.composite
def problems(draws: st.DrawFn, *, parity: bool = True, constrained: bool = True) -> Problem:
    """A random small problem with any mixture of attributes, sets, parities and rules."""
    generator = np.random.default_rng(draws(st.integers(0, 2**32 - 1)))
    sizes = draws(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    schema = Schema(
        tuple(Attribute.categorical(f"a{i}", list(range(n))) for i, n in enumerate(sizes))
    )
    share = draws(st.sampled_from([0.0, 0.3, 1.0])) if parity else 0.0
    count = draws(st.integers(1, 25))
    queries = random_queries(schema, generator, count, parity=share, sets=True, longest=4)
    rules = None
    if constrained and draws(st.booleans()):
        rules = _satisfiable(schema, generator)
    return draw(queries, schema, generator, draws(st.integers(0, 60)), rules)


def _satisfiable(schema: Schema, generator: np.random.Generator) -> Constraints | None:
    """Some random rules that one hidden record obeys."""
    hidden = generator.integers(0, schema.sizes)[None]
    forbidden = []
    for query in random_queries(schema, generator, 5, sets=True):
        rule = Constraints(schema, Workload.of([query], schema), (0,), ({"forbid": "?"},))
        if rule.holds(hidden)[0]:
            forbidden.append(query)
    if not forbidden:
        return None
    entries = tuple({"forbid": f"rule {i}"} for i in range(len(forbidden)))
    owner = tuple(range(len(forbidden)))
    return Constraints(schema, Workload.of(forbidden, schema), owner, entries)


def without_reduction(name: str) -> dict[str, object]:
    """The settings with which an oracle searches everything, however small."""
    if name == "exhaustive" or name.endswith("-paper"):
        return {}  # these never reduce
    bare = {"fix": False, "enumerate_up_to": 0}
    return bare if name == "annealing" else {"annealing": Annealing(**bare)}


# Plain twins


def term_holds(core: Core, term: int, slots: np.ndarray) -> bool:
    """Whether a term of a core holds, by its definition."""
    truths = []
    for o in range(core.term_start[term], core.term_start[term + 1]):
        l = core.literal[o]
        listed = core.literal_slot[core.literal_start[l] : core.literal_start[l + 1]]
        truths.append((slots[core.literal_variable[l]] in listed) != bool(core.flag[o]))
    return sum(truths) % 2 == 0 if core.parity[term] else all(truths)


def core_value(core: Core, slots: np.ndarray) -> int:
    """The value of an assignment, by its definition."""
    total = core.constant
    for j in range(core.terms):
        if term_holds(core, j, slots):
            total += int(core.weight[j])
    return total
