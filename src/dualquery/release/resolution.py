"""How finely columns were measured: in their bins, or in sub-bins."""

from __future__ import annotations

import numpy as np

from dualquery.domain.schema import Schema
from dualquery.game.transcript import Transcript


def fine_columns(schema: Schema, transcript: Transcript) -> int:
    """How many columns have a table of their own in sub-bins.

    Args:
        schema: the attributes.
        transcript: what was measured.
    """
    fine = schema.fine
    if fine is schema:
        return 0
    found: set[int] = set()
    for one in transcript.measurements:
        marginals = one.marginals
        same = np.array_equal(marginals.groups.code_start, fine.code_start)
        if marginals.arity == 1 and same:
            found.update(marginals.attributes[:, 0].tolist())
    return sum(bool(fine.sizes[a] > schema.sizes[a]) for a in found)
