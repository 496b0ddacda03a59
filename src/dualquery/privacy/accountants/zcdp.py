"""Zero-concentrated differential privacy with the constant for bounded range."""

from __future__ import annotations

import math

from dualquery.base.checks import not_negative, positive, probability
from dualquery.privacy.accountants.protocol import GUARD, largest_within
from dualquery.privacy.events import Events


def epsilon(events: Events, delta: float) -> float:
    """The ε that ρ = ⅛·Σ s_t·r_t² gives at δ, by the best order α.

    Theorem. A draw of bounded range r is (r²/8)-zCDP: its Rényi divergence of order α is at most
    α·r²/8. Counts with rounded Gaussian noise are (Δ²/2σ²)-zCDP, with Laplace noise (ε₀²/2)-zCDP.
    ρ adds up over adaptively chosen draws and measurements. A ρ-zCDP mechanism is (ε, δ)-private
    whenever, for some α > 1,

        δ ≥ e^{(α−1)(αρ−ε)}·(1−1/α)^α/(α−1).

    Solved for ε, each α gives a valid
    ε(α) = αρ + ln(1−1/α) + (ln(1/δ) − ln α)/(α−1), whose derivative vanishes exactly where
    ρ(α−1)² + ln α = ln(1/δ); the left side increases, so the best α is the one root. An error
    in α cannot make the answer invalid, because every α is. Proof: ``docs/proofs/zcdp.md``.
    """
    return epsilon_of_rho(events.rho, delta)


def epsilon_of_rho(rho: float, delta: float) -> float:
    """The ε of a ρ-zCDP mechanism at δ, by the best order α, rounded up."""
    rho = not_negative("rho", rho)
    delta = probability("delta", delta)
    if rho == 0.0:
        return 0.0
    above = _best_order_for_delta(rho, delta)
    alpha = 1.0 + above
    terms = (
        alpha * rho,
        -math.log1p(1.0 / above),
        -(math.log(delta) + math.log1p(above)) / above,
    )
    return max(0.0, math.fsum(terms) + GUARD * math.fsum(map(abs, terms)))


def delta(events: Events, epsilon: float) -> float:
    """The δ that ρ gives at ε, by the best order α; at most 1.

    The logarithm of the bound is convex in α; its derivative
    (2α−1)ρ − ε + ln(1−1/α) increases, so the best α is the one root.
    """
    epsilon = not_negative("epsilon", epsilon)
    rho = events.rho
    if rho == 0.0:
        return 0.0
    above = _best_order_for_epsilon(rho, epsilon)
    alpha = 1.0 + above
    exponent = above * (alpha * rho - epsilon)
    logarithm = exponent - alpha * math.log1p(1.0 / above) - math.log(above)
    return min(1.0, math.exp(min(0.0, logarithm)) * (1.0 + GUARD * (1.0 + abs(exponent))))


def exceeds(events: Events, epsilon: float) -> float:
    """At most e^{−(ε−ρ)²/(4ρ)} for ε ≥ ρ: the chance that the loss is above ε.

    Markov's inequality for e^{(α−1)·loss}, whose mean is at most e^{(α−1)αρ}, at the best order
    α = (ε + ρ)/(2ρ). Proof: ``docs/proofs/zcdp.md``.
    """
    epsilon = not_negative("epsilon", epsilon)
    rho = events.rho
    if rho == 0.0:
        return 0.0
    if epsilon <= rho:
        return 1.0
    exponent = (epsilon - rho) ** 2 / (4.0 * rho)
    return min(1.0, math.exp(-exponent) * (1.0 + GUARD * (1.0 + exponent)))


def rho_of(epsilon: float, delta: float) -> float:
    """The largest ρ whose ε at δ is within `epsilon`, rounded down."""
    return largest_within(lambda rho: epsilon_of_rho(rho, delta), positive("epsilon", epsilon))


def _best_order_for_delta(rho: float, delta: float) -> float:
    """α − 1 for the best α > 1 at δ."""
    from scipy.optimize import brentq

    target = -math.log(delta)
    # Each of the two terms alone stays below the target at the root.
    highest = min(math.expm1(target), math.sqrt(target / rho))
    if rho * highest * highest + math.log1p(highest) <= target:
        return highest
    root = brentq(
        lambda v: rho * v * v + math.log1p(v) - target, 0.0, highest, xtol=1e-300, rtol=1e-14
    )
    return float(root)


def _best_order_for_epsilon(rho: float, epsilon: float) -> float:
    """α − 1 for the best α > 1 at ε, found in the logarithm of α − 1."""
    from scipy.optimize import brentq

    def slope(logarithm: float) -> float:
        above = math.exp(logarithm)
        return (1.0 + 2.0 * above) * rho - epsilon - math.log1p(1.0 / above)

    # At highest, 2ρ(α−1) alone outweighs ε and the logarithm, which is below 1/(α−1).
    highest = math.log((epsilon + 1.0) / (2.0 * rho) + 1.0 / math.sqrt(rho) + 1.0)
    lowest = -1.0
    while slope(lowest) > 0.0:
        lowest *= 2.0
        if lowest < -700.0:
            return math.exp(-700.0)
    return math.exp(float(brentq(slope, lowest, highest, xtol=1e-13, rtol=1e-14)))
