"""What the oracle's answers prove about the accuracy of a release.

The accuracy theorem needs every record played to satisfy a share of the draws that is within
α/4 of the best possible share. A record misses the best share by at most
(bound − value)/draws, its *gap*. The gap is computed from draws and records only, so it may
be published.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dualquery.base.checks import positive, probability, whole
from dualquery.base.errors import ParameterError
from dualquery.domain.schema import Schema

CONFIDENCE = 0.05
"""β if none is given: the probability that the draws were unlucky and the theorem does not hold."""


def log_universe_size(schema: Schema) -> float:
    """The logarithm of the number of records |X|."""
    return float(sum(math.log(size) for size in schema.sizes.tolist()))


@dataclass(frozen=True)
class Needed:
    """What the accuracy theorem asks of a run: T rounds of s draws, at the learning rate η."""

    rounds: int
    samples: int
    eta: float


def needed(
    alpha: float, beta: float, queries: int, log_universe: float, rounds: int | None = None
) -> Needed:
    """The parameters of Algorithm 2, for accuracy α except with probability β.

    T = 16 log|Q|/α², η = α/4 and s = 48 log(2|X|T/β)/α². The class is closed under negation, so
    |Q| = 2·queries.

    Args:
        alpha: the error to guarantee, between 0 and 1.
        beta: the probability with which the guarantee may fail, between 0 and 1.
        queries: m, the number of queries of the workload.
        log_universe: log|X|, see `log_universe_size`.
        rounds: T of s, if more rounds than needed are played.
    """
    probability("alpha", alpha)
    probability("beta", beta)
    least = math.ceil(16 * math.log(2 * whole("queries", queries)) / alpha**2)
    played = least if rounds is None else whole("rounds", rounds)
    samples = math.ceil(48 * _log_events(log_universe, played, beta) / alpha**2)
    return Needed(least, samples, alpha / 4)


def _log_events(log_universe: float, rounds: int, beta: float) -> float:
    """log(2|X|T/β): what the union bound over records and rounds costs."""
    return math.log(2) + log_universe + math.log(rounds / beta)


@dataclass(frozen=True)
class Guarantee:
    """Whether the accuracy theorem applies to a finished game, condition by condition.

    `within_every_round` is the theorem's condition on the oracle as the paper states it.
    `within_on_average` is the weaker condition that its proof needs. `parameters_met` says
    whether rounds, samples and eta are as the theorem asks; `rounds_needed`, `samples_needed`
    and `eta_needed` are what it asks. `alpha` and `beta` are what is guaranteed, or None if a
    condition fails. `error_bound` holds in any case with probability 1 − β. It says nothing if
    it exceeds 1, and is infinite if some gap is unknown.
    """

    alpha: float | None
    beta: float | None
    within_every_round: bool
    within_on_average: bool
    rounds_needed: int
    samples_needed: int
    eta_needed: float
    parameters_met: bool
    mean_gap: float
    largest_gap: float
    error_bound: float


def accuracy_guarantee(
    *,
    alpha: float,
    beta: float,
    rounds: int,
    samples: int,
    eta: float,
    queries: int,
    log_universe: float,
    gaps: Sequence[float | None],
) -> Guarantee:
    """The paper's accuracy theorem, applied to the game that was played.

    Theorem: with |Q| = 2·queries, T ≥ 16 log|Q|/α², η = α/4, s ≥ 48 log(2|X|T/β)/α² and
    every record within α/4 of the best response, all answers are within α of the truth
    with probability 1 − β.

    The bound behind it holds for any T, s, η. The query player's regret is at most
    log|Q|/(ηT) + η/2, because payoffs span 2. With probability 1 − β all averages of s draws
    are within σ = √(log(2|X|T/β)/(2s)) of their means, for every record and round (Hoeffding).
    A round then costs the data player at most its gap plus 2σ: σ for the record, and σ for the
    data. Hence error ≤ log|Q|/(ηT) + η/2 + 2σ + mean gap. At the theorem's
    parameters this is α/4 + α/8 + 0.21α + α/4 < α.

    Args:
        alpha: the error to guarantee, between 0 and 1.
        beta: the probability with which the guarantee may fail, between 0 and 1.
        rounds: T, the number of rounds played.
        samples: s, the number of draws per round.
        eta: η, the learning rate.
        queries: m, the number of queries of the workload.
        log_universe: log|X|, see `log_universe_size`.
        gaps: the gap of each round, or None where it is unknown.
    """
    probability("alpha", alpha)
    probability("beta", beta)
    for name, value in (("rounds", rounds), ("samples", samples), ("queries", queries)):
        whole(name, value)
    positive("eta", eta)
    if len(gaps) != rounds:
        raise ParameterError(f"{len(gaps)} gaps of {rounds} rounds; expected one gap per round")
    known = [math.inf if gap is None else gap for gap in gaps]
    mean_gap, largest_gap = math.fsum(known) / rounds, max(known)
    log_queries = math.log(2 * queries)
    log_events = _log_events(log_universe, rounds, beta)
    asked = needed(alpha, beta, queries, log_universe, rounds)
    met = (
        rounds >= asked.rounds
        and samples >= asked.samples
        and math.isclose(eta, asked.eta, rel_tol=1e-9)
    )
    limit = alpha / 4 + 1e-12  # a gap is a quotient of whole numbers, so it may be off by rounding
    every, average = largest_gap <= limit, mean_gap <= limit
    holds = met and average
    return Guarantee(
        alpha=alpha if holds else None,
        beta=beta if holds else None,
        within_every_round=every,
        within_on_average=average,
        rounds_needed=asked.rounds,
        samples_needed=asked.samples,
        eta_needed=asked.eta,
        parameters_met=met,
        mean_gap=mean_gap,
        largest_gap=largest_gap,
        error_bound=log_queries / (eta * rounds)
        + eta / 2
        + 2 * math.sqrt(log_events / (2 * samples))
        + mean_gap,
    )
