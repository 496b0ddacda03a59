"""Where counting runs and where the query player's weights live. Private side.

Engines give the same counts, and from the same source the same draws; they differ in where the
memory and the time are spent.
"""

from dualquery.engines.engine import Engine, open_engine

__all__ = ["Engine", "open_engine"]
