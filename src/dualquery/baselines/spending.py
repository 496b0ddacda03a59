"""The budget of a baseline: the noise that a part of it buys, and the statement at the end."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import positive
from dualquery.baselines.baseline import SEEDED, Cost
from dualquery.baselines.noise import rational_scale
from dualquery.privacy.accountants import get_accountant
from dualquery.privacy.accountants.gaussian import mu_of
from dualquery.privacy.events import Events, Noise
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.noise import discrete_laplace, rounded_gaussian
from dualquery.privacy.sources import RandomSource

SHORT = 1.0 - 1e-10
"""Accountants round up, so a little less than the budget is planned."""


def planned(epsilon: float) -> float:
    """The ε that a run is planned with."""
    return positive("epsilon", epsilon) * SHORT


def noise_for(
    epsilon: float, delta: float, *, l1: float, l2: float, share: float = 1.0
) -> tuple[Noise, float]:
    """The noise of all counts of a run, and its scale.

    Guarantee: counts that move by at most `l1` and `l2` between neighbours, with Laplace noise of
    this scale, are (`share`·ε)-private if δ = 0. With Gaussian noise of this scale they spend
    `share` of the μ² that (ε, δ) allows.

    Args:
        epsilon: the budget, as planned.
        delta: the budget's δ; 0 for pure ε.
        l1: how far all counts together move in L1.
        l2: how far they move in L2.
        share: the part of the budget that they take.
    """
    if delta == 0.0:
        return Noise.LAPLACE, float(rational_scale(l1 / (share * epsilon)))
    return Noise.GAUSSIAN, l2 / (mu_of(epsilon, delta) * math.sqrt(share))


def choice_range(epsilon: float, delta: float, *, choices: int, share: float) -> float:
    """The bounded range that each of some single draws may have.

    A draw of range r is r-private, and has μ² = (1 + 1)·r²/4.

    Args:
        epsilon: the budget, as planned.
        delta: the budget's δ; 0 for pure ε.
        choices: how many draws; each is an event of its own.
        share: the part of the budget that they take.
    """
    if delta == 0.0:
        return share * epsilon / choices
    return mu_of(epsilon, delta) * math.sqrt(2.0 * share / choices)


def with_noise(
    counts: npt.NDArray[np.int64], noise: Noise, scale: float, source: RandomSource
) -> npt.NDArray[np.int64]:
    """Counts with exact noise, a whole number each."""
    draw = rounded_gaussian if noise is Noise.GAUSSIAN else discrete_laplace
    return counts + draw(scale, len(counts), source)


def accountant_of(delta: float, name: str = "gaussian") -> str:
    """The accountant that states ε: the named one, or the sum if δ = 0."""
    return "pure" if delta == 0.0 else name


def stated(
    events: Events,
    delta: float,
    mechanism: str,
    *,
    private: bool,
    neighbours: Neighbours = Neighbours.REPLACE_ONE,
    accountant: str = "gaussian",
) -> Cost:
    """The statement of a run.

    Args:
        events: all that it released.
        delta: δ; 0 for pure ε.
        mechanism: what was done, in words.
        private: whether its random source is.
        neighbours: which tables the events compare.
        accountant: which one states ε if δ > 0.
    """
    name = accountant_of(delta, accountant)
    return Cost(
        get_accountant(name).epsilon(events, delta),
        delta,
        neighbours,
        f"{mechanism}, {name} accountant",
        "" if private else SEEDED,
        events,
    )
