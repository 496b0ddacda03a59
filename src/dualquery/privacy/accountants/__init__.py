"""The accountants, by name. All read the same events; they differ in what they can prove."""

from __future__ import annotations

from types import ModuleType

from dualquery.errors import ParameterError
from dualquery.privacy.accountants import advanced, gaussian, per_round, pure, zcdp
from dualquery.privacy.accountants.protocol import Accountant
from dualquery.privacy.events import Events

DEFAULT_ACCOUNTANT = "gaussian"

_MODULES: dict[str, ModuleType] = {
    "pure": pure,
    "advanced": advanced,
    "per-round": per_round,
    "zcdp": zcdp,
    "gaussian": gaussian,
}

ACCOUNTANTS: dict[str, Accountant] = {
    name: Accountant(name, module.epsilon, module.delta) for name, module in _MODULES.items()
}


def get_accountant(name: str) -> Accountant:
    """The accountant of that name, or an error that lists the names."""
    try:
        return ACCOUNTANTS[name]
    except KeyError:
        known = ", ".join(ACCOUNTANTS)
        raise ParameterError(f"unknown accountant={name!r}; expected one of {known}") from None


def epsilon_by_accountant(events: Events, delta: float) -> dict[str, float]:
    """The ε of every accountant at δ, in the order of the registry."""
    return {name: accountant.epsilon(events, delta) for name, accountant in ACCOUNTANTS.items()}


__all__ = [
    "ACCOUNTANTS",
    "DEFAULT_ACCOUNTANT",
    "Accountant",
    "epsilon_by_accountant",
    "get_accountant",
]
