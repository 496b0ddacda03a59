"""What every oracle promises, on every kind of problem, judged by trying every record."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings

from dualquery.base.errors import ParameterError, UnavailableError
from dualquery.oracles import Problem, Response, names, oracle
from dualquery.oracles.registry import ORACLES, registered
from tests.oracles.problems import KINDS, of_kind, problems, without_reduction

EXACT = [each.name for each in ORACLES if each.exact]


def ask(name: str, problem: Problem, *, seed: int = 0, bare: bool = False, starts=()) -> Response:
    """The answer of one oracle; `bare` is without the reduction, which solves small problems."""
    found = registered(name)
    if not found.available:
        pytest.skip(f"oracle {name!r} needs {found.needs}")
    asked = oracle(name, **without_reduction(name) if bare else {})
    response = asked(problem, warm_starts=starts, generator=np.random.default_rng(seed))
    if "licen" in response.status or "CPLEX Error  1016" in response.status:
        pytest.skip(f"oracle {name!r}: {response.status}")
    return response


def best_value(problem: Problem) -> int:
    return oracle("exhaustive")(problem, generator=np.random.default_rng(0)).value


def check(problem: Problem, response: Response, best: int) -> None:
    assert response.record.dtype == np.int32
    assert problem.valid(response.record)
    assert response.value == problem.value(response.record) <= best
    assert response.bound is None or response.bound >= best
    assert response.seconds >= 0
    assert response.status.split(":")[0] in {"optimal", "feasible", "fallback"}
    if response.optimal:
        assert response.value == response.bound == best


@pytest.mark.parametrize("bare", [True, False], ids=["bare", "reduced"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", names())
def test_every_oracle_on_every_kind(name: str, kind: str, bare: bool) -> None:
    for seed in range(2):
        problem = of_kind(kind, seed)
        best = best_value(problem)
        response = ask(name, problem, bare=bare)
        check(problem, response, best)
        if name in EXACT:
            assert response.optimal
        # Small problems are within reach of the heuristics too.
        assert response.value >= best - max(1, best // 50)


@pytest.mark.parametrize("name", names())
def test_attributes_nobody_asks_about_take_the_defaults(name: str) -> None:
    problem = of_kind("single-clause", 3)
    mentioned = set(problem.workload.literals.attribute.tolist())
    record = ask(name, problem).record
    for attribute in set(range(len(record))) - mentioned:
        assert record[attribute] == problem.defaults[attribute]
    empty = of_kind("empty")
    assert np.array_equal(ask(name, empty).record, empty.defaults)


@pytest.mark.parametrize("name", names())
def test_the_same_seed_gives_the_same_record(name: str) -> None:
    problem = of_kind("one-hot", 5)
    starts = [problem.defaults, np.zeros_like(problem.defaults)]
    first = ask(name, problem, seed=7, starts=starts)
    second = ask(name, of_kind("one-hot", 5), seed=7, starts=starts)
    assert np.array_equal(first.record, second.record)


@pytest.mark.parametrize("name", ["annealing", "portfolio"])
@settings(max_examples=60)
@given(problem=problems())
def test_heuristics_are_valid_and_never_above_the_optimum(name: str, problem: Problem) -> None:
    check(problem, ask(name, problem, bare=True), best_value(problem))


@pytest.mark.parametrize("name", [name for name in EXACT if name != "exhaustive"])
@settings(max_examples=25)
@given(problem=problems())
def test_exact_oracles_find_the_optimum(name: str, problem: Problem) -> None:
    best = best_value(problem)
    response = ask(name, problem, bare=True)
    check(problem, response, best)
    assert response.value == best


def test_nothing_heavy_is_imported_before_an_oracle_is_used() -> None:
    code = (
        "import sys, dualquery.oracles as o; o.oracle('highs'); o.available();"
        "heavy = {'numba', 'scipy', 'ortools', 'gurobipy', 'cplex'} & set(sys.modules);"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_registry_names_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParameterError, match=r"oracle = 'anealing'; expected one of annealing, "):
        oracle("anealing")
    with pytest.raises(ParameterError, match="swweps"):
        oracle("annealing", swweps=3)
    monkeypatch.setattr("dualquery.oracles.registry.find_spec", lambda name: None)
    with pytest.raises(UnavailableError, match=r"pip install dualquery\[cpsat\]"):
        oracle("cpsat")
