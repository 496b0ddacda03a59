"""The query player: multiplicative weights over the queries and their negations.

This is the one place where private counts meet randomness; only the draws leave it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dualquery.privacy.sampler import Draws, draw
from dualquery.privacy.shards import Shard
from dualquery.privacy.sources import RandomSource
from dualquery.workloads.counts import Counted


class QueryPlayer:
    """Draws queries on which the data player's answers are far from the private ones.

    At temperature β, query q has weight exp(+β(q(D) − a_q)) and its negation the inverse,
    a_q being what the data player answers. The private counts stay integers and the weights
    are made anew each round, so that no rounding accumulates.

    Guarantee: the draws of one round cost what their event says (`Events.of` with this
    temperature, this many draws, and `reference` rows), whatever the answers a_q, as long as
    those are a function of earlier draws.
    """

    def __init__(
        self,
        answers: Counted,
        reference: int | None = None,
        *,
        log_prior: npt.NDArray[np.float64] | None = None,
    ) -> None:
        self._answers = answers
        self._reference = answers.rows if reference is None else reference
        self._shard = Shard(len(answers.counts), log_prior=log_prior)

    def draw(
        self,
        temperature: float,
        played: npt.NDArray[np.float64],
        samples: int,
        source: RandomSource,
        *,
        reference: int | None = None,
    ) -> Draws:
        """`samples` independent (query, sign) pairs against the answers `played`; see `Drawer`."""
        self._shard.score(
            self._answers.counts,
            played,
            temperature,
            size=self._answers.rows,
            reference=self._reference if reference is None else reference,
        )
        return draw(self._shard, samples, source)
