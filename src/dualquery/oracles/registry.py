"""The oracles by name, what they need, and what they can prove."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from dualquery.base.errors import ParameterError, UnavailableError
from dualquery.oracles.oracle import Oracle


@dataclass(frozen=True)
class Registered:
    """One oracle: where it lives, and what can be said without importing it.

    `where` is "module:class" within this package. `package` is what it needs beyond the core
    dependencies, and `extra` the extra of this package that installs it.
    """

    name: str
    where: str
    summary: str
    exact: bool = False
    package: str | None = None
    extra: str | None = None

    @property
    def available(self) -> bool:
        """Whether the package it needs is installed; nothing is imported to find out."""
        return self.package is None or find_spec(self.package) is not None

    @property
    def needs(self) -> str:
        """What to install, in the words of an error message."""
        return f"dualquery[{self.extra}]" if self.extra else str(self.package)


ORACLES: tuple[Registered, ...] = (
    Registered("annealing", "annealing:Annealing", "simulated annealing on valid records"),
    Registered("portfolio", "portfolio:Portfolio", "annealing, relaxation, then an exact search"),
    Registered("highs", "highs:Highs", "integer program in tight form on HiGHS", exact=True),
    Registered(
        "highs-paper", "highs:HighsPaper", "the paper's integer programs on HiGHS", exact=True
    ),
    Registered(
        "cpsat",
        "cpsat:CpSat",
        "integer program on OR-Tools' CP-SAT",
        exact=True,
        package="ortools",
        extra="cpsat",
    ),
    Registered(
        "gurobi", "gurobi:Gurobi", "integer program on Gurobi", exact=True, package="gurobipy"
    ),
    Registered("cplex", "cplex:Cplex", "integer program on CPLEX", exact=True, package="cplex"),
    Registered("exhaustive", "exhaustive:Exhaustive", "tries every record; for tests", exact=True),
)

_BY_NAME = {each.name: each for each in ORACLES}


def names() -> tuple[str, ...]:
    """Every oracle's name, installed or not."""
    return tuple(_BY_NAME)


def registered(name: str) -> Registered:
    """What is known about one oracle."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise ParameterError(
            f"Expected oracle to be one of {', '.join(_BY_NAME)}, found {name!r}"
        ) from None


def available() -> tuple[str, ...]:
    """The names of the oracles whose packages are installed."""
    return tuple(each.name for each in ORACLES if each.available)


def oracle(name: str = "annealing", **settings: Any) -> Oracle:
    """Make an oracle; `settings` are its own, such as `sweeps` or `time_limit`."""
    found = registered(name)
    if not found.available:
        raise UnavailableError(f"oracle {name!r} needs a package: pip install {found.needs}")
    module, maker = found.where.split(":")
    make = getattr(import_module(f"dualquery.oracles.{module}"), maker)
    try:
        built: Oracle = make(**settings)
    except TypeError as error:
        raise ParameterError(f"oracle {name!r}: {error}") from None
    return built
