"""What every solver does first: fix what is forced, split the rest, solve the small parts.

On wide data this is the whole solution. On narrow data it leaves a smaller core. Start
reading at `reduce_core`; only the solvers of `dualquery.oracles` import this.
"""

from dualquery.oracles.reduction.reduce import Reduction, reduce_core

__all__ = ["Reduction", "reduce_core"]
