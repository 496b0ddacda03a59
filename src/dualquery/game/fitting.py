"""Fit a model to a transcript: the draws are all it needs, whoever has the release can do it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import ReleaseError
from dualquery.domain.free import Filling, Free
from dualquery.game.moves import RecordMove, expect
from dualquery.game.transcript import Transcript
from dualquery.model.compiled import CompiledWorkload
from dualquery.model.drawn import Buffers, Drawn, answers_of
from dualquery.model.glimpse import glimpse
from dualquery.model.likelihood import Likelihood
from dualquery.model.mixture import Mixture
from dualquery.model.schedule import Schedule
from dualquery.model.training import Ascent, Parameters
from dualquery.workloads.actions import Actions
from dualquery.workloads.matching import add_matches

Singles = npt.NDArray[np.float32]

PATIENCE, TOLERANCE = 30, 0.1
"""Steps without a rise of the log-likelihood by more than the tolerance end a climb."""

MOST_STRETCHES = 3
"""A climb takes at most so many times the steps of the last stretch."""


def fit_transcript(
    actions: Actions,
    transcript: Transcript,
    played: Schedule,
    schedule: Schedule,
    free: Filling = Free.DEFAULT,
    observer: Callable[[int, int], None] = lambda done, total: None,
) -> Mixture:
    """The model under which the draws of all rounds are most probable.

    Each round's term uses the answers it was drawn against: the mean of the earlier records, or
    the model of the round before. The ascent begins where the game's own fit ended, if it has as
    many components, else from scratch.

    Args:
        played: how the model was trained during the game, if a model played.
        schedule: how it is to be trained now.
        free: what attributes take that no query mentions.
    """
    compiled = CompiledWorkload.of(actions.queries)
    likelihood = Likelihood(compiled, actions.log_prior, len(transcript))
    logits = transcript.logits
    if logits is not None and logits.shape[1] != (compiled.stack.rows + 1) * played.components:
        raise ReleaseError("the models in this release do not belong to its queries and training")
    against = (
        _record_answers(actions, transcript, compiled)
        if logits is None
        else _model_answers(logits, compiled, played)
    )
    for one, answers in zip(transcript, against, strict=True):
        likelihood.add(one.temperature, one.draws, answers)
    ascent = schedule.ascent(compiled.stack)
    drawn = Drawn(compiled, likelihood, Buffers(compiled, schedule.components))
    if logits is not None and schedule.components == played.components:
        parameters = Parameters.at(logits[-1], played.components)
    else:
        parameters = _climbed(ascent, drawn, schedule)
    # A fit to records is never as near as their temperatures: small steps would leave it short.
    rates = schedule.final_rates(
        0.0 if logits is None else float(transcript.temperatures.max(initial=0.0))
    )
    generator = np.random.default_rng([schedule.seed, 1])
    for done, rate in enumerate(rates):
        if done % schedule.round_steps == 0:
            seen = glimpse(drawn, generator)
        parameters, _ = ascent.step(parameters, [seen], rate)
        observer(done + 1, len(rates))
    return ascent.mixture(parameters, free)


def _climbed(ascent: Ascent, drawn: Drawn, schedule: Schedule) -> Parameters:
    """From the start, at the full rate, until the likelihood has stopped rising.

    The rule looks at the likelihood alone: the climb ends when the best of the last
    `PATIENCE` values is no more than `TOLERANCE` above the best before them.
    """
    parameters = schedule.start(ascent.stack)
    values: list[float] = []
    # One part for the whole climb: values from different parts cannot be compared.
    seen = glimpse(drawn, np.random.default_rng([schedule.seed, 0]))
    for _ in range(MOST_STRETCHES * schedule.final_steps):
        parameters, value = ascent.step(parameters, [seen], schedule.rate)
        values.append(value)
        earlier, latest = values[:-PATIENCE], values[-PATIENCE:]
        if earlier and max(latest) <= max(earlier) + TOLERANCE:
            break
    return parameters


def _model_answers(
    logits: Singles, compiled: CompiledWorkload, played: Schedule
) -> Iterator[Singles]:
    """Per round the answers of the model before it: the start, then what each round left."""
    ascent = played.ascent(compiled.stack)
    buffers = Buffers(compiled, played.components)
    for flat in (played.start(compiled.stack).flat, *logits[:-1]):
        parameters = Parameters.at(flat, played.components)
        weights = parameters.weights.astype(np.float32)
        yield answers_of(compiled, ascent.tables(parameters), weights, buffers)


def _record_answers(
    actions: Actions, transcript: Transcript, compiled: CompiledWorkload
) -> Iterator[Singles]:
    """Per round the mean over the records before it; nothing before the first, which is uniform."""
    matches = np.zeros(len(actions), dtype=np.int32)
    for number, one in enumerate(transcript):
        yield (matches[compiled.order] / max(1, number)).astype(np.float32)
        add_matches(actions.queries, expect(RecordMove, one.move).record, matches)
