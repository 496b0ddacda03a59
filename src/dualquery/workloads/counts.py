"""Counts: how many rows satisfy each query.

The counts of private rows are private, and only `rows` and `engines` make them. A rehearsal makes
counts of rows drawn from a public model. The query player treats both alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Counted:
    """Of `rows` rows, `counts[q]` satisfy query q."""

    counts: npt.NDArray[np.int64]
    rows: int
