"""A fresh random part of the queries for a few steps, where all of them would take too long.

What costs is the normaliser of every round over all queries. Drawn queries are always kept; of the
others a random part is, with prior weights raised to stand for the rest. Sums over queries, of
weights and of weighted slopes, then have the right expectation; only their ratio, the gradient, is
off by the variance of a normaliser whose part that was not drawn is estimated.
"""

from __future__ import annotations

import numpy as np

from dualquery.model.drawn import Drawn

ENOUGH_QUERIES, MOST_QUERIES = 500_000, 1_000_000
QUERIES_A_CODE = 150
ENOUGH_TERMS = 50_000_000
"""A step sees all queries up to 500,000, or up to 150 for each code where that is more, but never
more than 1,000,000, and no more terms of normalisers (one per query and round) than 50,000,000.
Beyond that it sees all drawn queries, and of the others as many as half of that number."""

NEARLY_ALL = 0.9
"""A larger part is not worth its copy."""


def enough_queries(rounds: int, codes: int) -> int:
    """How many queries a step over so many rounds may see all of."""
    wanted = max(ENOUGH_QUERIES, min(MOST_QUERIES, QUERIES_A_CODE * codes))
    return min(wanted, ENOUGH_TERMS // max(1, rounds))


def glimpse(drawn: Drawn, generator: np.random.Generator, enough: int | None = None) -> Drawn:
    """The term over a part of the queries; as it is, up to `enough` of them."""
    queries = len(drawn.compiled.order)
    if enough is None:
        enough = enough_queries(drawn.likelihood.rounds, drawn.compiled.stack.rows)
    if queries <= enough:
        return drawn
    share = 0.5 * enough / queries
    named = drawn.likelihood.drawn
    kept = np.flatnonzero(named | (generator.random(queries) < share))
    if len(kept) > NEARLY_ALL * queries:
        return drawn
    scale = np.where(named[kept], 1.0, 1.0 / share).astype(np.float32)
    return drawn.part(kept, scale)
