"""A solver that fails never stops a run."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.base.errors import ParameterError
from dualquery.oracles import Response, exact, milp, oracle
from dualquery.oracles.compile import compile_core
from dualquery.oracles.core import Part
from dualquery.oracles.oracle import respond
from dualquery.oracles.program import paper_form, tight_form
from dualquery.oracles.solver import Solution
from tests.oracles.problems import of_kind, without_reduction


def ask(name: str, problem, **settings) -> Response:
    """Without the reduction, which would solve these problems before any solver runs."""
    asked = oracle(name, **settings, **without_reduction(name))
    return asked(problem, generator=np.random.default_rng(0))


def broken(*args, **kwargs):
    raise RuntimeError("out of memory")


def test_a_crash_leaves_the_annealed_record(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = of_kind("mixed")
    annealed = ask("annealing", problem)
    monkeypatch.setattr(milp, "relax", broken)
    for name in ("highs", "portfolio"):
        response = ask(name, problem)
        assert response.value == annealed.value
        assert response.status.startswith(f"fallback: {name} failed: RuntimeError: out of memory")
        assert response.bound >= response.value


def test_a_crash_of_the_papers_program_leaves_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = of_kind("constraints")
    monkeypatch.setattr(milp, "solve", broken)
    response = ask("highs-paper", problem)
    assert response.status == "fallback: RuntimeError: out of memory"
    assert problem.valid(response.record)


def test_no_time_is_no_error() -> None:
    for kind in ("mixed", "constraints"):
        problem = of_kind(kind)
        for name in ("highs", "portfolio", "highs-paper"):
            response = ask(name, problem, time_limit=0.0)
            assert problem.valid(response.record)
            assert response.value <= response.bound


def test_nothing_found_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = of_kind("parities", 1)
    monkeypatch.setattr(milp, "solve", lambda *a, **k: Solution(None, None, "time limit reached"))
    response = ask("highs", problem)
    assert response.status in {"optimal", "fallback: time limit reached"}
    response = ask("highs-paper", problem)
    assert response.status == "fallback: time limit reached"


def test_dust_around_whole_numbers_is_forgiven() -> None:
    problem = of_kind("one-hot")
    core = compile_core(problem)
    part = Part.whole(core)
    for form in (tight_form, paper_form):
        program = form(core, part)
        exact = milp.solve(
            program, start=np.full(program.columns, np.nan), seconds=10.0, gap=0.0
        ).point
        dusty = np.where(exact < 0.5, -4e-30, 1 - 1e-9)
        clean, read = core.home.copy(), core.home.copy()
        program.slots(core, part.variables, exact, clean)
        program.slots(core, part.variables, dusty, read)
        assert np.array_equal(clean, read)


def test_a_bound_below_the_value_is_never_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = of_kind("one-hot", 1)
    best = ask("exhaustive", problem).value
    lie = Solution(None, -1e9, "done")
    monkeypatch.setattr(milp, "relax", lambda *a, **k: lie)
    response = ask("highs", problem)
    assert response.bound >= response.value
    assert response.value <= best


def test_broken_candidates_are_mended_or_passed_over() -> None:
    problem = of_kind("constraints")
    outside = np.full_like(problem.defaults, 99)
    forbidden = np.array([0, 0, 0, 0, 0, 0], dtype=np.int32)
    assert not problem.valid(forbidden)
    response = respond(problem, [outside, forbidden], 0.0)
    assert problem.valid(response.record)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("annealing", {"runs": 0}, "runs = 0"),
        ("annealing", {"sweeps": 0}, "sweeps = 0"),
        ("annealing", {"agree": 0}, "agree = 0"),
        ("annealing", {"unanimous": 0}, "unanimous = 0"),
        ("annealing", {"cold": 2.0}, "cold = 2"),
        ("highs", {"time_limit": -1}, "time_limit = -1"),
        ("highs", {"gap": 1}, "gap = 1"),
        ("highs-paper", {"time_limit": -1}, "time_limit = -1"),
        ("highs-paper", {"gap": 1}, "gap = 1"),
    ],
)
def test_bad_settings_are_named(name: str, settings: dict, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        oracle(name, **settings)


def test_cuts_tighten_the_relaxation_and_the_papers_is_looser() -> None:
    gains = []
    for seed in range(3):
        problem = of_kind("one-hot", seed)
        core = compile_core(problem)
        part = Part.whole(core)
        cut = milp.relax(tight_form(core, part), 10.0, cuts=True).bound
        tight = milp.relax(tight_form(core, part), 10.0).bound
        paper = milp.relax(paper_form(core, part), 10.0).bound
        best = ask("exhaustive", problem).value - core.constant
        assert best - 1e-6 <= cut <= tight + 1e-6
        assert tight <= paper + 1e-6
        gains.append(tight - cut)
    assert max(gains) >= 1
    assert exact.SLACK < 1e-3


def test_without_its_search_an_exact_oracle_only_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = of_kind("parities", 1)
    best = ask("exhaustive", problem).value
    monkeypatch.setattr(milp, "solve", broken)
    bounds = []
    for cuts in (False, True):
        response = ask("highs", problem, search=False, cuts=cuts)
        assert response.value <= best <= response.bound
        assert response.status == "feasible"
        bounds.append(response.bound)
    assert bounds[1] < bounds[0]
    assert ask("highs", problem).status.startswith("fallback: highs failed")
