"""Pure differential privacy: the paper's first theorem."""

from __future__ import annotations

import numpy as np

from dualquery.base.checks import not_negative
from dualquery.privacy.accountants.protocol import GUARD, steps_of_pure_privacy
from dualquery.privacy.events import Events


def epsilon(events: Events, delta: float = 0.0) -> float:
    """ε = Σ_t s_t·r_t, with δ = 0.

    Theorem. A draw of bounded range r is r-differentially private: if the exponents of two
    neighbouring tables differ by values in [u, u + r], every probability changes by a factor in
    [e^{−r}, e^{r}]. Costs of independent and of adaptively chosen draws add up. For the classical
    game this is η·T·(T−1)·s/n. A measurement with Laplace noise adds its ε₀; Gaussian noise is
    not covered. Proof: ``docs/proofs/pure.md``.

    `delta` is accepted so that all accountants are called alike, and ignored.
    """
    steps, costs = steps_of_pure_privacy(events, "pure")
    return float(np.sum(steps * costs)) * (1.0 + GUARD)


def delta(events: Events, epsilon: float) -> float:
    """0 where ε covers the whole sum; otherwise this theorem says nothing, and δ is 1."""
    epsilon = not_negative("epsilon", epsilon)
    steps, costs = steps_of_pure_privacy(events, "pure")
    return 0.0 if epsilon >= float(np.sum(steps * costs)) * (1.0 + GUARD) else 1.0


def exceeds(events: Events, epsilon: float) -> float:
    """0 where ε covers the whole sum: the loss is never above it."""
    return delta(events, epsilon)
