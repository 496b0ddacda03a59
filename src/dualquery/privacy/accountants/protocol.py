"""What an accountant is: functions of the same list of events, each from one theorem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.base.errors import ParameterError
from dualquery.privacy.events import Events

GUARD = 1e-12
"""Every figure is raised by this relative amount, far above the rounding error of its formula."""


class NotCoveredError(ParameterError):
    """An accountant's theorem says nothing about some of the events."""


def steps_of_pure_privacy(
    events: Events, accountant: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The number of steps, and the pure ε of each: draws, and measurements with Laplace noise.

    For accountants whose proof needs only that the privacy loss of a step is bounded.

    Raises:
        NotCoveredError: some measurement has Gaussian noise, whose loss has no bound.
    """
    draws, ranges = events.costly
    costs = np.array([event.pure for event in events.measurements])
    if not np.all(np.isfinite(costs)):
        raise NotCoveredError(
            f"accountant = {accountant!r} does not cover Gaussian noise; expected gaussian or zcdp"
        )
    return np.append(draws, np.ones(costs.size)), np.append(ranges, costs)


@dataclass(frozen=True)
class Accountant:
    """A theorem that turns events into (ε, δ).

    Attributes:
        name: how users call it.
        epsilon: the ε at which the theorem holds for a given δ; never below the exact value of
            its formula. It raises a `NotCoveredError` if the theorem says nothing about some
            event, and so does `delta`.
        delta: the δ at which the theorem holds for a given ε; never below the exact value either.
        exceeds: an upper bound of the chance that the privacy loss is above ε, which means that
            what was released is more than e^ε times as likely under the table as under its
            neighbour. (ε, δ)-privacy alone does not bound this chance by δ. None if the theorem
            gives no bound.
    """

    name: str
    epsilon: Callable[[Events, float], float]
    delta: Callable[[Events, float], float]
    exceeds: Callable[[Events, float], float] | None = None


def largest_within(cost: Callable[[float], float], epsilon: float) -> float:
    """The largest x with cost(x) ≤ ε, rounded down, for a cost that rises from 0 without bound."""
    from scipy.optimize import brentq

    high = 1.0
    while cost(high) < epsilon:
        high *= 2.0
    low = high
    while cost(low) > epsilon:
        low /= 2.0
    root = float(brentq(lambda x: cost(x) - epsilon, low, high, xtol=1e-300, rtol=1e-14))
    # The root may lie a step above the answer: the figure itself has the last word.
    found = root * (1.0 - GUARD)
    while cost(found) > epsilon:
        found *= 1.0 - GUARD
    return found
