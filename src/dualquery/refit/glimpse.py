"""A fresh random part of the queries for a few steps, where all of them would take too long.

What costs is the normaliser over all queries. Drawn queries are always kept; of the others a
random part is, with prior weights raised to stand for the rest. Sums over queries, of weights and
of weighted slopes, then have the right expectation; only their ratio, the gradient, is off by
the variance of a normaliser estimated from hundreds of thousands of terms.
"""

from __future__ import annotations

import numpy as np

from dualquery.refit.likelihood import Likelihood
from dualquery.refit.training import Ascent

ENOUGH = 1_000_000
"""Up to so many queries every step sees all of them."""


def glimpse(
    ascent: Ascent, likelihood: Likelihood, generator: np.random.Generator, enough: int = ENOUGH
) -> tuple[Ascent, Likelihood]:
    """Ascent and likelihood over about `enough` queries; as they are, if there are no more."""
    compiled = ascent.compiled
    queries = len(compiled.order)
    if queries <= enough:
        return ascent, likelihood
    share = 0.5 * enough / queries
    needed = np.logical_or.reduceat(likelihood.drawn, compiled.group_start[:-1])
    groups = np.flatnonzero(needed | (generator.random(len(needed)) < share))
    part, positions = compiled.part(groups)
    kept_anyway = np.repeat(needed[groups], np.diff(part.group_start))
    scale = np.where(kept_anyway, 1.0, 1.0 / share).astype(np.float32)
    return ascent.on(part), likelihood.part(positions, scale)
