"""Gaussian differential privacy: the tightest of the five, and the default."""

from __future__ import annotations

import math
from functools import cache

from dualquery.base.checks import not_negative, positive, probability
from dualquery.privacy.accountants.protocol import GUARD, largest_within
from dualquery.privacy.events import Events

_LOG_SQRT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_NARROW = 0.5
_FAR_LEFT = -5.0


def epsilon(events: Events, delta: float) -> float:
    """The ε that μ = ½·√(Σ (s_t+1)·r_t²) gives at δ.

    Theorem. s independent draws from a mechanism of bounded range r are μ-GDP for
    μ = (r/2)·√(s+1): telling neighbours apart from them is at least as hard as telling N(0, 1)
    from N(μ, 1) from one observation. Counts with rounded Gaussian noise are Δ/σ-GDP, and μ² of
    draws and measurements chosen adaptively add up. A μ-GDP mechanism is (ε, δ(ε))-private for
    every ε ≥ 0, with

        δ(ε) = Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2).

    Proof: ``docs/proofs/gaussian.md``.
    """
    return epsilon_of_mu(math.sqrt(events.mu_squared), delta)


def delta(events: Events, epsilon: float) -> float:
    """δ(ε) of the theorem above."""
    return delta_of_mu(math.sqrt(events.mu_squared), epsilon)


def epsilon_of_mu(mu: float, delta: float) -> float:
    """The smallest ε ≥ 0 with δ(ε) ≤ δ for a μ-GDP mechanism, rounded up."""
    from scipy.optimize import brentq

    mu = not_negative("mu", mu)
    delta = probability("delta", delta)
    if mu == 0.0:
        return 0.0
    target = math.log(delta)
    if _log_delta(mu, 0.0) <= target:
        return 0.0
    # δ(ε) < Φ(−x) ≤ e^{−x²/2}/2 for x = ε/μ − μ/2, so this x is more than enough.
    highest = mu * (math.sqrt(-2.0 * target) + 0.5 * mu)
    root = float(
        brentq(lambda e: _log_delta(mu, e) - target, 0.0, highest, xtol=1e-300, rtol=1e-14)
    )
    return root + GUARD * (root + 0.1 * mu)


def delta_of_mu(mu: float, epsilon: float) -> float:
    """δ(ε) of a μ-GDP mechanism, rounded up."""
    mu = not_negative("mu", mu)
    epsilon = not_negative("epsilon", epsilon)
    if mu == 0.0:
        return 0.0
    logarithm = _log_delta(mu, epsilon)
    return min(1.0, math.exp(logarithm) * (1.0 + GUARD * (1.0 + abs(logarithm))))


def exceeds(events: Events, epsilon: float) -> float:
    """An upper bound of the chance that the privacy loss of the run is above ε."""
    return exceeds_at_most(math.sqrt(events.mu_squared), epsilon)


def measurement_exceeds(mu: float, epsilon: float) -> float:
    """Φ(−ε/μ + μ/2): the chance that the loss of one Gaussian measurement is above ε.

    The measurement is N(μ, 1) under the table and N(0, 1) under its neighbour; the loss at x is
    μx − μ²/2, which is N(μ²/2, μ²) under the table. δ(ε) is smaller, because it subtracts
    e^ε·Φ(−ε/μ − μ/2). For ε = 1 the chance is 8.6·δ at δ = 10⁻³ and 20·δ at δ = 10⁻⁶.
    Rounded up.
    """
    from scipy.special import log_ndtr

    mu = not_negative("mu", mu)
    epsilon = not_negative("epsilon", epsilon)
    if mu == 0.0:
        return 0.0
    return _exp_up(float(log_ndtr(-epsilon / mu + 0.5 * mu)))


def exceeds_at_most(mu: float, epsilon: float) -> float:
    """The largest chance that the loss of any μ-GDP mechanism is above ε, rounded up.

    Theorem. Let S be the outcomes with loss above ε, p and q their chances under the table and
    its neighbour. Then p > e^ε·q, and μ-GDP says p ≤ Φ(Φ⁻¹(q) + μ). The quotient Φ(z + μ)/Φ(z)
    falls in z, so p is at most Φ(z + μ) for the z at which Φ(z + μ) = e^ε·Φ(z). A mechanism that
    publishes only whether a Gaussian measurement is above a threshold comes as near as one
    likes, so the bound of a Gaussian measurement (`measurement_exceeds`) does not hold for all.
    Proof: ``docs/proofs/gaussian.md``.
    """
    from scipy.optimize import brentq
    from scipy.special import log_ndtr

    mu = not_negative("mu", mu)
    epsilon = not_negative("epsilon", epsilon)
    if mu == 0.0:
        return 0.0

    def surplus(z: float) -> float:
        # Raised by more than the rounding of the logarithms, so that the root is not too small.
        lower = float(log_ndtr(z))
        return float(log_ndtr(z + mu)) - lower - epsilon + 1e-13 * (1.0 - lower)

    # Where the densities have the quotient e^ε, the tails have a larger one.
    low = -epsilon / mu - 0.5 * mu
    high = 0.0
    while surplus(high) > 0.0:
        high = 2.0 * high + 1.0
        if high > 40.0:  # Φ is 1 in floating point: ε is so small that nothing is excluded
            return 1.0
    z = float(brentq(surplus, low, high, xtol=1e-300, rtol=1e-14))
    return _exp_up(float(log_ndtr(z + mu + 2e-14 * (1.0 + abs(z)))))


def _exp_up(logarithm: float) -> float:
    return min(1.0, math.exp(logarithm) * (1.0 + GUARD * (1.0 + abs(logarithm))))


def mu_of(epsilon: float, delta: float) -> float:
    """The largest μ whose ε at δ is within `epsilon`, rounded down."""
    return largest_within(lambda mu: epsilon_of_mu(mu, delta), positive("epsilon", epsilon))


def _log_delta(mu: float, epsilon: float) -> float:
    """ln δ(ε), without the cancellation of the textbook formula.

    With a = ε/μ − μ/2 and b = a + μ one has e^ε·φ(b) = φ(a), hence δ = φ(a)·(R(a) − R(b)), R the
    Mills ratio (1 − Φ)/φ. Where a and b are close the difference is the integral of
    −R'(x) = 1 − x·R(x), which has no cancellation left; where a is far to the left φ·R overflows
    and the textbook formula is harmless.
    """
    from scipy.special import erfcx, ndtr

    def mills(x: float) -> float:
        return math.sqrt(math.pi / 2.0) * float(erfcx(x / math.sqrt(2.0)))

    a = epsilon / mu - 0.5 * mu
    b = epsilon / mu + 0.5 * mu
    log_density = -0.5 * a * a - _LOG_SQRT_TWO_PI
    if a < _FAR_LEFT:
        return math.log(float(ndtr(-a)) - math.exp(log_density) * mills(b))
    if mu > _NARROW:
        return log_density + math.log(mills(a) - mills(b))
    nodes, weights = _quadrature()
    points = [a + 0.5 * mu * (node + 1.0) for node in nodes]
    integral = 0.5 * mu * math.fsum(w * _falling(x) for x, w in zip(points, weights, strict=True))
    return log_density + math.log(integral)


@cache
def _quadrature() -> tuple[list[float], list[float]]:
    """Nodes and weights of Gauss and Legendre; to find them takes longer than to use them."""
    import numpy as np

    nodes, weights = np.polynomial.legendre.leggauss(10)
    return nodes.tolist(), weights.tolist()


def _falling(x: float) -> float:
    """1 − x·R(x) > 0, by its asymptotic series where the difference would cancel."""
    from scipy.special import erfcx

    if x < 30.0:
        return 1.0 - x * math.sqrt(math.pi / 2.0) * float(erfcx(x / math.sqrt(2.0)))
    z = 1.0 / (x * x)
    return z * (1.0 - 3.0 * z * (1.0 - 5.0 * z * (1.0 - 7.0 * z * (1.0 - 9.0 * z))))
