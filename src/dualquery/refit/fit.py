"""Fit a model to a transcript: the draws are all it needs, whoever has the release can do it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from dualquery.queries.actions import Actions
from dualquery.queries.evaluation import add_matches
from dualquery.refit.compiled import CompiledWorkload
from dualquery.refit.likelihood import Likelihood
from dualquery.refit.mixture import Mixture
from dualquery.refit.schedule import Schedule
from dualquery.refit.training import Ascent, Parameters
from dualquery.transcript import Transcript

Singles = npt.NDArray[np.float32]


def fit_transcript(
    actions: Actions,
    transcript: Transcript,
    schedule: Schedule,
    observer: Callable[[int, int], None] = lambda done, total: None,
) -> Mixture:
    """The model under which the draws of all rounds are most probable.

    Each round's term uses the answers it was drawn against: the mean of the earlier records, or
    the model of the round before. The ascent begins where the game's own fit ended, or for a game
    of records from scratch.
    """
    compiled = CompiledWorkload.of(actions.queries)
    ascent = Ascent(compiled, schedule.components)
    parameters = schedule.start(compiled)
    likelihood = Likelihood(compiled, actions.offsets, len(transcript))
    played = transcript.stacked("logits")
    if played is None:
        against = _record_answers(actions, transcript, compiled)
        rates = schedule.scratch_rates()
    else:
        starts = [parameters.flat, *played[:-1]]
        against = (ascent.answers(Parameters.at(flat, schedule.components)) for flat in starts)
        rates = schedule.final_rates()
        parameters = Parameters.at(played[-1], schedule.components)
    for one, answers in zip(transcript, against, strict=True):
        likelihood.add(one.temperature, one.draws, answers)
    for done, rate in enumerate(rates):
        parameters, _ = ascent.step(parameters, likelihood, rate)
        observer(done + 1, len(rates))
    return ascent.mixture(parameters, actions.queries.schema)


def _record_answers(
    actions: Actions, transcript: Transcript, compiled: CompiledWorkload
) -> Iterator[Singles]:
    """Per round the mean over the records before it; nothing before the first, which is uniform."""
    matches = np.zeros(len(actions), dtype=np.int32)
    for number, one in enumerate(transcript):
        yield (matches[compiled.order] / max(1, number)).astype(np.float32)
        add_matches(actions.queries, one.move.arrays["record"], matches)
