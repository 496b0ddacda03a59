"""The oracles by name, what they need, and what they can prove."""

from __future__ import annotations

from dataclasses import dataclass, fields
from importlib import import_module
from importlib.util import find_spec

from dualquery.base.checks import one_of
from dualquery.base.errors import ParameterError, UnavailableError
from dualquery.oracles.oracle import Oracle


@dataclass(frozen=True)
class Registered:
    """One oracle: where it lives, and what can be said without importing it.

    `where` is "module:class" within this package, and `about` says what it is for. `package` is
    what it needs beyond the core dependencies, and `extra` the extra of this package that installs
    it.
    """

    name: str
    where: str
    about: str
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
    Registered(
        "annealing",
        "annealing:Annealing",
        "a search of milliseconds, nearly always as good as the optimum; proves nothing",
    ),
    Registered(
        "portfolio",
        "portfolio:Portfolio",
        "annealing, then about a second for a bound on every round; what certificates take",
    ),
    Registered(
        "highs",
        "highs:Highs",
        "annealing, then a tight program on HiGHS: proves most rounds",
        exact=True,
    ),
    Registered(
        "cpsat",
        "cpsat:CpSat",
        "the same on CP-SAT: for rounds that branch a lot",
        exact=True,
        package="ortools",
        extra="cpsat",
    ),
    Registered(
        "gurobi", "gurobi:Gurobi", "the same on Gurobi (licence)", exact=True, package="gurobipy"
    ),
    Registered("cplex", "cplex:Cplex", "the same on CPLEX (licence)", exact=True, package="cplex"),
    Registered(
        "highs-paper",
        "highs:HighsPaper",
        "the paper's program as it is printed, on HiGHS: to compare",
        exact=True,
    ),
    Registered(
        "cpsat-paper",
        "cpsat:CpSatPaper",
        "the paper's program on CP-SAT",
        exact=True,
        package="ortools",
        extra="cpsat",
    ),
    Registered(
        "gurobi-paper",
        "gurobi:GurobiPaper",
        "the paper's program on Gurobi (licence)",
        exact=True,
        package="gurobipy",
    ),
    Registered(
        "cplex-paper",
        "cplex:CplexPaper",
        "the paper's program on CPLEX (licence), as the paper has it",
        exact=True,
        package="cplex",
    ),
    Registered(
        "exhaustive",
        "exhaustive:Exhaustive",
        "every record tried: for tests, and for schemas of a few thousand records",
        exact=True,
    ),
)

_BY_NAME = {each.name: each for each in ORACLES}


def names() -> tuple[str, ...]:
    """Every oracle's name, installed or not."""
    return tuple(_BY_NAME)


def registered(name: str) -> Registered:
    """What is known about one oracle."""
    return _BY_NAME[one_of("oracle", name, _BY_NAME)]


def available() -> tuple[str, ...]:
    """The names of the oracles whose packages are installed."""
    return tuple(each.name for each in ORACLES if each.available)


def oracle(name: str = "annealing", **settings: object) -> Oracle:
    """Make an oracle; `settings` are its own, such as `sweeps` or `time_limit`."""
    found = registered(name)
    if not found.available:
        raise UnavailableError(f"oracle {name!r} needs a package: pip install {found.needs}")
    module, maker = found.where.split(":")
    make = getattr(import_module(f"dualquery.oracles.{module}"), maker)
    known = [one.name for one in fields(make)]
    for setting in settings:
        if setting not in known:
            raise ParameterError(f"oracle {name!r} has no {setting}; it has {', '.join(known)}")
    built: Oracle = make(**settings)
    return built


def described() -> str:
    """Every oracle in a line: what it is for, and whether it is installed."""
    width = max(map(len, names()))
    return "\n".join(
        f"{one.name:{width}}  {one.about}; "
        + ("installed" if one.available else f"not installed: pip install {one.needs}")
        for one in ORACLES
    )
