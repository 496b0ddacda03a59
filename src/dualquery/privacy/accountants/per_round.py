"""Advanced composition with each round at its own range: what the authors' program computes."""

from __future__ import annotations

import math

import numpy as np

from dualquery.base.checks import not_negative, probability
from dualquery.privacy.accountants.advanced import invert
from dualquery.privacy.accountants.protocol import GUARD, steps_of_pure_privacy
from dualquery.privacy.events import Events


def epsilon(events: Events, delta: float) -> float:
    """ε = √(2·ln(1/δ)·Σ s_t·r_t²) + Σ s_t·r_t·(e^{r_t} − 1).

    Theorem. The privacy loss of a draw of range r lies in [−r, r] and has a mean of at most
    r·(e^r − 1); the losses of adaptively chosen draws, minus these means, form a supermartingale
    with bounded steps, to which Azuma's inequality applies. A measurement with Laplace noise counts
    like one draw of range ε₀; Gaussian noise is not covered. Proof: ``docs/proofs/per_round.md``.
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

    Proof: ``docs/proofs/per_round.md``.
    """
    return delta(events, epsilon)


def _line(events: Events) -> tuple[float, float]:
    steps, costs = steps_of_pure_privacy(events, "per-round")
    with np.errstate(over="ignore"):
        drift = float(np.sum(steps * costs * np.expm1(costs)))
    return math.sqrt(float(np.sum(steps * costs * costs))), drift
