"""The oracles by name, what they need, and what they can prove."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from dualquery.base.checks import one_of
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
    Registered("annealing", "annealing:Annealing"),
    Registered("portfolio", "portfolio:Portfolio"),
    Registered("highs", "highs:Highs", exact=True),
    Registered("highs-paper", "highs:HighsPaper", exact=True),
    Registered("cpsat", "cpsat:CpSat", exact=True, package="ortools", extra="cpsat"),
    Registered("gurobi", "gurobi:Gurobi", exact=True, package="gurobipy"),
    Registered("cplex", "cplex:Cplex", exact=True, package="cplex"),
    Registered("exhaustive", "exhaustive:Exhaustive", exact=True),
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
    try:
        built: Oracle = make(**settings)
    except TypeError as error:
        raise ParameterError(f"oracle {name!r}: {error}") from None
    return built
