"""The step that chooses tables: the only place where exact scores and draws of tables meet."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dualquery.privacy.choosing import Against, Candidates, Choice, choose, scores_of
from dualquery.privacy.sources import RandomSource
from dualquery.workloads.marginals import Marginals

CELLS_AT_ONCE = 1 << 22
"""About how many cells are counted at a time: 20,000 tables of 256 cells take two passes."""


def choose_tables(
    tabulate: Callable[[Marginals], npt.NDArray[np.int64]],
    candidates: Candidates,
    against: Against,
    temperature: float,
    draws: int,
    source: RandomSource,
) -> Choice:
    """Count all candidates, score them, and draw some of them.

    Counts are held for about `CELLS_AT_ONCE` cells at a time. Neither they nor the scores leave
    this function.

    Guarantee: the result costs what its events say, whatever the rows, if candidates and `against`
    are functions of what was released before.

    Args:
        tabulate: counts cells over the private rows.
        candidates: the tables that can be chosen.
        against: what the current model expects of them.
        temperature: β, per count; see `Purse.choice_temperature`.
        draws: how many tables are chosen.
        source: where draws come from.
    """
    scores = []
    for batch in candidates.batches(CELLS_AT_ONCE):
        expected = against.of(batch)
        scores.append(scores_of(tabulate(batch), batch, expected))
    return choose(np.concatenate(scores), candidates, temperature, draws, source)
