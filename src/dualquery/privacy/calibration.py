"""From a budget to the parameters of a run: always the largest that still fit.

Every accountant's ε grows with draws, temperatures and rounds. So each question is a search for
the last value that fits. The accountant itself decides what fits, never an approximation of it.
Nothing here reads data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualquery.base.checks import not_negative, positive, probability, whole
from dualquery.base.errors import ParameterError
from dualquery.privacy.accountants import DEFAULT_ACCOUNTANT, get_accountant
from dualquery.privacy.accountants.gaussian import epsilon_of_mu, mu_of
from dualquery.privacy.events import Events, record_player_temperatures
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.rounding import rounded_up
from dualquery.privacy.unit import Persons, Unit, Weight

SCALE_STEP = 1e-9
"""A scale that is larger by this relative step would not fit."""

MOST_ROUNDS = 10_000_000
MOST_SAMPLES = 2**53


@dataclass(frozen=True)
class Budget:
    """What a run may cost, and how that is counted.

    Attributes:
        epsilon: ε > 0.
        delta: δ in (0, 1); the pure accountant also takes 0.
        rows: the public n (replace-one) or reference n0 (add-remove), in parts of the unit.
        neighbours: whether a unit is replaced, or added or removed.
        accountant: which theorem counts.
        persons: who the units are; None if each record is one.
        weight: how much each record counts; None if all count the same.
    """

    epsilon: float
    delta: float
    rows: int
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    accountant: str = DEFAULT_ACCOUNTANT
    persons: Persons | None = None
    weight: Weight | None = None

    def __post_init__(self) -> None:
        get_accountant(self.accountant)
        exact = {
            "epsilon": positive("epsilon", self.epsilon),
            "delta": probability("delta", self.delta)
            if self.accountant != "pure" or not_negative("delta", self.delta) > 0.0
            else 0.0,
            "rows": whole("rows", self.rows),
            "neighbours": Neighbours.parse(self.neighbours),
        }
        for name, value in exact.items():
            object.__setattr__(self, name, value)

    @property
    def unit(self) -> Unit:
        """Whose influence is bounded."""
        return Unit(self.neighbours, self.persons, self.weight)

    @property
    def size(self) -> int:
        """The public n or n0 as people count: records, weights, or persons who weigh the same."""
        return self.rows // self.unit.parts

    def events(self, temperatures: ArrayLike, draws: ArrayLike) -> Events:
        """The events of a run on a table of this size, for these neighbours."""
        return Events.of(temperatures, draws, self.rows, self.unit)

    def cost(self, events: Events) -> float:
        """The ε of the events at this budget's δ, by its accountant."""
        return get_accountant(self.accountant).epsilon(events, self.delta)

    def allows(self, events: Events) -> bool:
        """Whether the events fit."""
        return self.cost(events) <= self.epsilon


def share_of_releases(
    epsilon: float, delta: float, releases: int, slack: float | None = None
) -> float:
    """The ε that each of several releases may spend at δ, so that a ledger of (ε, δ) allows all.

    μ² adds up over releases (``docs/proofs/composition.md``), so each gets 1/N of it. The result
    is rounded down.

    Args:
        epsilon: the total ε of the ledger.
        delta: its total δ, and the δ of each release.
        releases: how many there will be.
        slack: the share of δ that the ledger keeps for schemas with a price; left out, what a
            ledger keeps by default.
    """
    from dualquery.privacy.ledger import SLACK, Rule

    slack = SLACK if slack is None else slack
    releases = whole("releases", releases)
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    total = mu_of(epsilon, Rule(epsilon, delta, slack * delta).delta_of_losses)
    each = min(epsilon_of_mu(total / math.sqrt(releases), delta), epsilon)
    while releases * mu_of(each, delta) ** 2 > total * total:
        each *= 1.0 - 1e-9
    return each


@dataclass(frozen=True)
class RecordPlan:
    """Parameters of a run of the classical game."""

    rounds: int
    samples: int
    eta: float

    @property
    def temperatures(self) -> NDArray[np.float64]:
        """β_t = η·(t−1)."""
        return record_player_temperatures(self.eta, self.rounds)


def calibrate(
    budget: Budget,
    *,
    rounds: int | None = None,
    samples: int | None = None,
    eta: float | None = None,
) -> RecordPlan:
    """The parameters of the classical game, given two of the three: the third is the largest.

    Args:
        budget: what the run may cost.
        rounds: the number of rounds.
        samples: the number of draws per round.
        eta: the learning rate.
    """
    if rounds is None and samples is not None and eta is not None:
        return RecordPlan(largest_rounds(budget, samples=samples, eta=eta), samples, eta)
    if samples is None and rounds is not None and eta is not None:
        temperatures = record_player_temperatures(positive("eta", eta), _two_or_more(rounds))
        return RecordPlan(rounds, largest_samples(budget, temperatures), eta)
    if eta is None and rounds is not None and samples is not None:
        shape = np.arange(_two_or_more(rounds), dtype=np.float64)
        return RecordPlan(rounds, samples, largest_scale(budget, shape, whole("samples", samples)))
    raise ParameterError(
        f"rounds = {rounds}, samples = {samples}, eta = {eta}; expected exactly two of them"
    )


def largest_rounds(budget: Budget, *, samples: int, eta: float) -> int:
    """The largest number of rounds of the classical game that fits."""
    samples, eta = whole("samples", samples), positive("eta", eta)

    def events(rounds: int) -> Events:
        return budget.events(record_player_temperatures(eta, rounds), samples)

    if not budget.allows(events(2)):
        cost = budget.cost(events(2))
        raise too_small(budget, cost, f"two rounds of samples={samples} at eta={eta:g}")
    best = last_that_fits(lambda rounds: budget.allows(events(rounds)), 2, MOST_ROUNDS)
    if best == MOST_ROUNDS:
        raise ParameterError(
            f"epsilon={budget.epsilon:g} allows more than {MOST_ROUNDS} rounds of "
            f"samples={samples} at eta={eta:g}; give more samples or a larger eta"
        )
    return best


def largest_samples(budget: Budget, temperatures: ArrayLike) -> int:
    """The largest number of draws per round that fits at these temperatures."""
    beta = np.atleast_1d(np.asarray(temperatures, dtype=np.float64))
    _some_round_costs(beta)
    if not budget.allows(budget.events(beta, 1)):
        cost = budget.cost(budget.events(beta, 1))
        raise too_small(budget, cost, f"one draw in each of {beta.size} rounds")
    best = last_that_fits(
        lambda samples: budget.allows(budget.events(beta, samples)), 1, MOST_SAMPLES
    )
    if best == MOST_SAMPLES:
        raise ParameterError(
            f"epsilon={budget.epsilon:g} allows more than 2^53 samples per round; give more "
            "rounds or a higher temperature"
        )
    return best


def largest_scale(budget: Budget, shape: ArrayLike, draws: ArrayLike) -> float:
    """The largest factor such that temperatures factor·shape fit with these draws per round.

    A factor that is larger by a relative 10⁻⁹ would not fit. For the shape 0, 1, 2, … the factor
    is the classical game's η.
    """
    ramp = np.atleast_1d(np.asarray(shape, dtype=np.float64))
    _some_round_costs(ramp)
    if not np.any(budget.events(ramp, draws).costly[0]):
        raise ParameterError(
            "no round of positive temperature has draws; expected draws in one or more of them"
        )

    def fits(scale: float) -> bool:
        with np.errstate(over="ignore"):
            temperatures = scale * ramp
        return bool(np.all(np.isfinite(temperatures))) and budget.allows(
            budget.events(temperatures, draws)
        )

    smallest = 1e-30 / float(np.max(ramp))
    if not fits(smallest):
        events = budget.events(smallest * ramp, draws)
        what = f"{int(events.draws.sum())} draws at any temperature"
        raise too_small(budget, budget.cost(events), what)
    low = smallest
    high = 1.0 / float(np.max(ramp))
    while fits(high):
        low, high = high, high * 16.0
    while high > low * (1.0 + SCALE_STEP):
        # While the interval is wide, halve its ratio; once it is narrow, halve its difference.
        middle = float(np.sqrt(low) * np.sqrt(high)) if high > 2.0 * low else 0.5 * (low + high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def last_that_fits(fits: Callable[[int], bool], low: int, limit: int) -> int:
    """The last integer in [low, limit] that fits; `low` is known to fit."""
    step = 1
    while low < limit and fits(min(low + step, limit)):
        low = min(low + step, limit)
        step *= 2
    high = min(low + step, limit + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _two_or_more(rounds: int) -> int:
    """Refuse a single round: the first round of the classical game is free, so anything fits."""
    return whole("rounds", rounds, least=2)


def _some_round_costs(temperatures: NDArray[np.float64]) -> None:
    if not np.any(temperatures > 0.0):
        raise ParameterError("every temperature is 0; expected one or more above 0")


MOST_ADVISED = 10.0
"""The largest ε that an error recommends."""


def smallest_epsilon(suffices: Callable[[float], bool], least: float) -> float:
    """About the smallest ε above `least` that suffices, in three digits; one that does suffice.

    Args:
        suffices: whether an ε does; it holds for all that are large enough.
        least: an ε that does not.
    """
    high = 2.0 * least
    while not suffices(high):
        least, high = high, 2.0 * high
    while high > 1.001 * least:
        middle = float(np.sqrt(least * high))
        least, high = (least, middle) if suffices(middle) else (middle, high)
    while not suffices(shown := float(rounded_up(high, 3))):
        high = 1.01 * shown
    return shown


def too_small(budget: Budget, enough: float, what: str) -> ParameterError:
    """The error about a budget that does not even allow `what`, which costs `enough`."""
    advice = f"epsilon={rounded_up(enough, 3)} would be enough"
    if enough > MOST_ADVISED:  # a promise that protects nobody is no advice
        advice = "the table is too small for any epsilon that protects anybody"
    return ParameterError(
        f"epsilon={budget.epsilon:g} is too small for {what} with rows={budget.rows} and "
        f"delta={rounded_up(budget.delta)} ({budget.neighbours}, {budget.accountant}); {advice}"
    )
