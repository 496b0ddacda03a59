"""What an accountant is: two functions of the same list of events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.base.errors import ParameterError
from dualquery.privacy.events import Events

GUARD = 1e-12
"""Relative amount by which every figure is rounded up, far above the rounding of its formula."""


class NotCoveredError(ParameterError):
    """An accountant's theorem says nothing about some of the events."""


def steps_of_pure_privacy(
    events: Events, accountant: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How many steps, and the pure ε of each: the draws, and measurements with Laplace noise.

    For accountants whose proof needs nothing of a step but that its privacy loss is bounded.

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
            its formula. Where the theorem says nothing about some event it raises a
            `NotCoveredError`, and so does `delta`.
        delta: the δ at which it holds for a given ε; never below the exact value either.
        exceeds: what the theorem proves about the chance that the privacy loss is above ε: that
            what was released is more than e^ε times as likely under the table as under its
            neighbour. An upper bound. (ε, δ)-privacy alone does not bound this chance by δ, so a
            theorem that says nothing about it leaves this out.
    """

    name: str
    epsilon: Callable[[Events, float], float]
    delta: Callable[[Events, float], float]
    exceeds: Callable[[Events, float], float] | None = None
