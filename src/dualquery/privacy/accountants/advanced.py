"""Advanced composition at the range of the last round: the paper's second theorem."""

from __future__ import annotations

import math

import numpy as np

from dualquery.base.checks import not_negative, probability
from dualquery.privacy.accountants.protocol import GUARD, steps_of_pure_privacy
from dualquery.privacy.events import Events


def epsilon(events: Events, delta: float) -> float:
    """ε = r·(√(2k·ln(1/δ)) + k·(e^r − 1)), r the largest range, k the draws that cost anything.

    Theorem (Dwork, Rothblum, Vadhan). k adaptively chosen mechanisms, each r-differentially
    private, are together (ε, δ)-private for this ε and every δ in (0, 1). The paper charges each
    draw as if it were made in the last, most expensive round; kept as it is, so that its
    statements can be checked. A measurement with Laplace noise counts like one draw of range ε₀;
    Gaussian noise is not covered. Proof: ``docs/proofs/advanced.md``.
    """
    delta = probability("delta", delta)
    slope, offset = _line(events)
    return (slope * math.sqrt(-2.0 * math.log(delta)) + offset) * (1.0 + GUARD)


def delta(events: Events, epsilon: float) -> float:
    """The δ that solves the theorem for this ε; 1 where no δ below 1 does."""
    epsilon = not_negative("epsilon", epsilon)
    return invert(*_line(events), epsilon)


def exceeds(events: Events, epsilon: float) -> float:
    """At most δ: the proof bounds the chance that the loss is above ε, and δ is that bound.

    Proof: ``docs/proofs/advanced.md``.
    """
    return delta(events, epsilon)


def invert(slope: float, offset: float, epsilon: float) -> float:
    """δ with ε = slope·√(2·ln(1/δ)) + offset, at most 1."""
    if slope == 0.0:
        return 0.0
    slack = (epsilon / (1.0 + GUARD) - offset) / slope
    return min(1.0, math.exp(-0.5 * slack * slack) * (1.0 + GUARD)) if slack > 0.0 else 1.0


def _line(events: Events) -> tuple[float, float]:
    steps, costs = steps_of_pure_privacy(events, "advanced")
    if steps.size == 0:
        return 0.0, 0.0
    count, widest = float(np.sum(steps)), float(np.max(costs))
    try:
        growth = math.expm1(widest)
    except OverflowError:
        growth = math.inf
    return widest * math.sqrt(count), widest * count * growth
