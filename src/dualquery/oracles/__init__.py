"""Best responses: drawn queries in, a valid record out.

Nothing here knows private rows, counts or weights. An oracle sees the drawn queries with
their signs and the public schema, so whatever it does (a heuristic, a time limit, its own
randomness) is post-processing of the draws. The game and the rooms above it may import this
one; it imports only domain and workloads. Start reading at `oracle.py` (the protocol) and
`problem.py`; then `annealing.py`, the default, leads through `compile.py` and `reduction/`.
"""

from dualquery.oracles.oracle import Oracle, Response
from dualquery.oracles.problem import Problem
from dualquery.oracles.registry import available, names, oracle

__all__ = ["Oracle", "Problem", "Response", "available", "names", "oracle"]
