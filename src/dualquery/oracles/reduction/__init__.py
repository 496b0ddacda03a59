"""What every solver does first: fix what is forced, split, solve the small parts.

On wide data this is the whole solution; on narrow data it leaves a smaller core.
"""

from dualquery.oracles.reduction.reduce import Reduction, reduce_core

__all__ = ["Reduction", "reduce_core"]
