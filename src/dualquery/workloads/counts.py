"""How many records satisfy each query: whole numbers, whoever the records belong to.

The counts of private rows are private, and only `rows` and `engines` make them. A rehearsal makes
the counts of a public model. The query player treats both alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Counted:
    """`counts[q]` of the `rows` records satisfy query q."""

    counts: npt.NDArray[np.int64]
    rows: int
