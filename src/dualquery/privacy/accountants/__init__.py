"""The accountants, by name. All read the same events; they differ in what they can prove."""

from __future__ import annotations

import math
from types import ModuleType

from dualquery.base.checks import one_of
from dualquery.privacy.accountants import advanced, gaussian, per_round, pure, zcdp
from dualquery.privacy.accountants.protocol import Accountant, NotCoveredError
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
    name: Accountant(name, module.epsilon, module.delta, module.exceeds)
    for name, module in _MODULES.items()
}


def get_accountant(name: str) -> Accountant:
    """The accountant of that name, or an error that lists the names."""
    return ACCOUNTANTS[one_of("accountant", name, ACCOUNTANTS)]


def epsilon_by_accountant(events: Events, delta: float) -> dict[str, float]:
    """The ε of every accountant at δ, in the order of the registry.

    It is infinite where an accountant does not cover some event (`not_covering` names those).
    """
    return {name: _epsilon_or_infinity(name, events, delta) for name in ACCOUNTANTS}


def not_covering(events: Events) -> tuple[str, ...]:
    """The accountants whose theorem says nothing about some of the events."""
    return tuple(name for name in ACCOUNTANTS if not _covers(name, events))


def _epsilon_or_infinity(name: str, events: Events, delta: float) -> float:
    try:
        return ACCOUNTANTS[name].epsilon(events, delta)
    except NotCoveredError:
        return math.inf


def _covers(name: str, events: Events) -> bool:
    try:
        ACCOUNTANTS[name].delta(events, 1.0)
    except NotCoveredError:
        return False
    return True


__all__ = [
    "ACCOUNTANTS",
    "DEFAULT_ACCOUNTANT",
    "Accountant",
    "NotCoveredError",
    "epsilon_by_accountant",
    "get_accountant",
    "not_covering",
]
