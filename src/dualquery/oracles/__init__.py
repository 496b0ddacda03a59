"""Best responses: drawn queries in, a valid record out.

Nothing here knows about private rows, counts or weights: an oracle sees the drawn
queries with their signs and the public schema, so whatever it does (a heuristic, a
time limit, its own randomness) is post-processing of the draws.
"""

from dualquery.oracles.oracle import Oracle, Response
from dualquery.oracles.problem import Problem
from dualquery.oracles.registry import available, names, oracle

__all__ = ["Oracle", "Problem", "Response", "available", "names", "oracle"]
