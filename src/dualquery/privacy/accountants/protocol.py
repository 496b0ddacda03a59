"""What an accountant is: two functions of the same list of events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dualquery.privacy.events import Events

GUARD = 1e-12
"""Relative amount by which every figure is rounded up, far above the rounding of its formula."""


@dataclass(frozen=True)
class Accountant:
    """A theorem that turns events into (ε, δ).

    Attributes:
        name: how users call it.
        epsilon: the ε at which the theorem holds for a given δ; never below the exact value of
            its formula.
        delta: the δ at which it holds for a given ε; never below the exact value either.
    """

    name: str
    epsilon: Callable[[Events, float], float]
    delta: Callable[[Events, float], float]
