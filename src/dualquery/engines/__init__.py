"""PRIVATE. Where counting and weights live: in this process, or on the workers of a Dask cluster.

Engines give the game its query player; only draws leave that. The estimator, the paper's
experiments and the command line may import this room. Start reading at `engine`.
"""

from dualquery.engines.engine import Engine, open_engine

__all__ = ["Engine", "open_engine"]
