"""CPLEX and Gurobi without a licence: stand-ins with their calls, which solve with SciPy.

They show that the adapters hand over the right program and read the right answer. The contract
tests run on the real packages wherever these are installed.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from dualquery.base.errors import ParameterError
from dualquery.oracles import oracle
from dualquery.oracles.registry import ORACLES, described
from tests.oracles.problems import of_kind, without_reduction

LICENSED = ("cplex", "cplex-paper", "gurobi", "gurobi-paper")
PRINTED = [one.name for one in ORACLES if one.name.endswith("-paper")]


class Solved:
    """A program as it was handed over, and what SciPy makes of it."""

    def __init__(self) -> None:
        self.rows: list[tuple[np.ndarray, str, float]] = []
        self.limits: dict[str, float] = {}

    def solve(self) -> None:
        rows = np.array([row for row, _, _ in self.rows]).reshape(len(self.rows), len(self.top))
        low = [bound if sense == "G" else -np.inf for _, sense, bound in self.rows]
        high = [bound if sense == "L" else np.inf for _, sense, bound in self.rows]
        self.found = milp(
            -np.array(self.gain),
            integrality=np.array([kind == "I" for kind in self.kinds], dtype=int),
            bounds=Bounds(np.zeros(len(self.top)), np.array(self.top)),
            constraints=LinearConstraint(rows, low, high) if self.rows else (),
        )


def fake_cplex(made: list[Solved]) -> ModuleType:
    class Model(Solved):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)
            for kind in ("log", "error", "warning", "results"):
                setattr(self, f"set_{kind}_stream", lambda stream: None)
            self.objective = SimpleNamespace(
                sense=SimpleNamespace(maximize=1), set_sense=lambda sense: None
            )
            self.variables = SimpleNamespace(add=self.columns)
            self.linear_constraints = SimpleNamespace(add=self.constraints)
            self.MIP_starts = SimpleNamespace(
                add=lambda pair, effort: None, effort_level=SimpleNamespace(solve_MIP=3)
            )
            self.parameters = SimpleNamespace(
                timelimit=self.parameter("seconds"),
                threads=self.parameter("threads"),
                mip=SimpleNamespace(tolerances=SimpleNamespace(mipgap=self.parameter("gap"))),
            )
            self.solution = SimpleNamespace(
                get_status_string=lambda: "solved",
                is_primal_feasible=lambda: self.found.x is not None,
                get_values=lambda: self.found.x.tolist(),
                MIP=SimpleNamespace(get_best_objective=lambda: -self.found.mip_dual_bound),
            )

        def parameter(self, name: str) -> SimpleNamespace:
            return SimpleNamespace(set=lambda value: self.limits.update({name: value}))

        def columns(self, obj, lb, ub, types) -> None:
            self.gain, self.top, self.kinds = obj, ub, types

        def constraints(self, lin_expr, senses, rhs) -> None:
            for (columns, values), sense, bound in zip(lin_expr, senses, rhs, strict=True):
                row = np.zeros(len(self.top))
                row[columns] = values
                self.rows.append((row, sense, bound))

        def __enter__(self) -> Model:
            return self

        def __exit__(self, *raised) -> None: ...

    module = ModuleType("cplex")
    module.Cplex, module.SparsePair = Model, lambda columns, values: (columns, values)
    return module


class Expression:
    """A product of numbers and variables, of which only the numbers matter here."""

    __array_ufunc__ = None  # NumPy leaves the product to this class

    def __init__(self, rows) -> None:
        self.rows = rows

    def __rmatmul__(self, rows) -> Expression:
        return Expression(rows.toarray() if isinstance(rows, csr_array) else rows)

    def __rmul__(self, sign: float) -> Expression:
        return Expression(sign * self.rows)

    def __ge__(self, bound: np.ndarray):
        return list(zip(self.rows, ["G"] * len(bound), bound, strict=True))


def fake_gurobi(made: list[Solved]) -> ModuleType:
    class Environment:
        def __init__(self, params) -> None: ...

        def __enter__(self) -> Environment:
            return self

        def __exit__(self, *raised) -> None: ...

    class Model(Solved, Environment):
        Status = 2

        def __init__(self, env) -> None:
            super().__init__()
            made.append(self)
            self.Params = SimpleNamespace()

        def addMVar(self, count, lb, ub, vtype) -> Expression:
            self.top, self.kinds, self.x = ub, vtype, Expression(None)
            return self.x

        def addConstr(self, rows) -> None:
            self.rows += rows

        def setObjective(self, expression, sense) -> None:
            self.gain = expression.rows

        def optimize(self) -> None:
            self.limits = {"seconds": self.Params.TimeLimit, "gap": self.Params.MIPGap}
            self.solve()
            self.SolCount = int(self.found.x is not None)
            if self.SolCount:
                self.x.X, self.ObjBound = self.found.x, -self.found.mip_dual_bound

    module = ModuleType("gurobipy")
    module.Env, module.Model = Environment, Model
    module.GRB = SimpleNamespace(MAXIMIZE=-1, UNDEFINED=1e101)
    return module


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Solved]:
    """The programs that the stand-ins were given."""
    found: list[Solved] = []
    for module in (fake_cplex(found), fake_gurobi(found)):
        module.__spec__ = ModuleSpec(module.__name__, None)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return found


@pytest.mark.parametrize("kind", ["conjunctions", "parities", "one-hot", "constraints"])
@pytest.mark.parametrize("name", LICENSED)
def test_their_answers_are_the_optimum(name: str, kind: str, made: list[Solved]) -> None:
    problem, generator = of_kind(kind), np.random.default_rng(0)
    bare = {} if name.endswith("-paper") else {**without_reduction(name), "cuts": False}
    response = oracle(name, time_limit=75.0, **bare)(problem, generator=generator)
    assert response.optimal
    assert response.value == oracle("exhaustive")(problem, generator=generator).value
    if name.endswith("-paper"):  # the tight form is often proved before the solver is called
        assert made[0].limits["seconds"] == 75.0


@pytest.mark.parametrize("name", PRINTED)
def test_every_solver_gets_the_printed_program(name: str, made: list[Solved]) -> None:
    problem, generator = of_kind("one-hot", 1), np.random.default_rng(0)
    response = oracle(name)(problem, generator=generator)
    assert response.optimal
    assert response.bound == oracle("exhaustive")(problem, generator=generator).value


def test_the_list_says_what_each_is_for_and_whether_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dualquery.oracles.registry.find_spec", lambda name: None)
    lines = described().splitlines()
    assert [line.split()[0] for line in lines] == [one.name for one in ORACLES]
    assert lines[0].endswith("; installed")
    missing = [line.split()[0] for line in lines if "not installed: pip install " in line]
    assert missing == [one.name for one in ORACLES if one.package]
    assert all(len(line) < 110 for line in lines)


def test_a_setting_that_an_oracle_lacks_is_named_with_those_it_has() -> None:
    with pytest.raises(ParameterError, match="'annealing' has no time_limit; it has runs, agree"):
        oracle("annealing", time_limit=1.0)
