"""A rehearsal: the whole game once more, with the fitted model in the place of the private table.

How far will released answers be from the truth? The draws alone cannot say: most answers
were never drawn, and the fit is held in by its start and its length as much as by the draws. But
the fitted model is public, so the game can be played again with *its* answers as the truth, by
the same plan and the same training; what the second fit misses is then seen exactly. All of it is
post-processing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dualquery.game.fitting import fit_transcript
from dualquery.game.loop import play
from dualquery.game.model_player import ModelPlayer
from dualquery.game.record_player import RecordPlayer
from dualquery.game.transcript import Transcript
from dualquery.model.mixture import Mixture
from dualquery.model.schedule import Schedule
from dualquery.model.standard_errors import ErrorTable
from dualquery.oracles.registry import oracle
from dualquery.privacy.sampler import Draws, draw
from dualquery.privacy.shards import Shard
from dualquery.privacy.sources import RandomSource, SeededSource
from dualquery.workloads.actions import Actions
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.probes import with_probes

MOST_QUERIES = 40_000
"""A rehearsal asks a random part of the queries; what a draw tells hardly depends on it."""


class ModelledQueries:
    """A query player whose truth is a model."""

    def __init__(self, model: Mixture, actions: Actions, rows: int) -> None:
        self._counts = np.rint(rows * model.answers(actions.queries)).astype(np.int64)
        self._rows = rows
        self._shard = Shard(len(actions), offsets=actions.offsets)

    def draw(
        self,
        temperature: float,
        played: npt.NDArray[np.float64],
        samples: int,
        source: RandomSource,
    ) -> Draws:
        self._shard.score(self._counts, played, temperature, size=self._rows, reference=self._rows)
        return draw(self._shard, samples, source)


def rehearse(
    model: Mixture,
    actions: Actions,
    transcript: Transcript,
    rows: int,
    schedule: Schedule,
    observer: Callable[[int, int], None] = lambda done, total: None,
    seed: int = 0,
) -> ErrorTable:
    """The errors of a game like the one of the transcript, if the model were the truth."""
    generator = np.random.default_rng(seed)
    asked = actions.workload
    if len(asked) > MOST_QUERIES:
        asked = asked.take(np.sort(generator.choice(len(asked), MOST_QUERIES, replace=False)))
    probed = len(actions) > actions.asked
    stage = with_probes(asked, seed=seed + 1) if probed else Actions.plain(asked)
    player: Any = (
        ModelPlayer(stage, schedule, len(transcript))
        if transcript.records is None
        else RecordPlayer(asked, oracle("annealing"), seed=seed + 1)
    )
    _, rehearsed = play(
        ModelledQueries(model, stage, rows),
        player,
        transcript.temperatures,
        transcript.draw_counts,
        SeededSource(seed),
        observer=observer,
    )
    second = fit_transcript(stage, rehearsed, schedule, schedule)
    judged = asked
    for k in (1, 2):
        if k <= len(asked.schema):
            judged = judged + random_marginals(asked.schema, k, 4000, seed=seed)
    return ErrorTable.of(judged, second.answers(judged), model.answers(judged))
