"""A rehearsal: the whole game once more, with the fitted model in the place of the private table.

How far will released answers be from the truth? The draws alone cannot say: most answers
were never drawn, and the fit is held in by its start and its length as much as by the draws. But
the fitted model is public, so the game can be played again with *its* answers as the truth, by
the same plan and the same training; what the second fit misses is then seen exactly. All of it is
post-processing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from dualquery.game.data_player import DataPlayer
from dualquery.game.fitting import fit_transcript
from dualquery.game.loop import play
from dualquery.game.model_player import ModelPlayer
from dualquery.game.query_player import QueryPlayer
from dualquery.game.record_player import RecordPlayer
from dualquery.game.tables_player import Known, TablesPlayer
from dualquery.game.transcript import Transcript
from dualquery.model.mixture import Mixture
from dualquery.model.schedule import Schedule
from dualquery.model.standard_errors import ErrorTable
from dualquery.oracles.registry import oracle
from dualquery.privacy.sources import SeededSource
from dualquery.workloads.actions import Actions
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import random_marginals
from dualquery.workloads.probes import with_probes
from dualquery.workloads.workload import Workload

State = TypeVar("State")

MOST_QUERIES = 40_000
"""A rehearsal asks a random part of the queries; what a draw tells hardly depends on it."""


def modelled(model: Mixture, actions: Actions, rows: int) -> QueryPlayer:
    """A query player whose truth is a model."""
    counts = np.rint(rows * model.answers(actions.queries)).astype(np.int64)
    return QueryPlayer(Counted(counts, rows), log_prior=actions.log_prior)


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

    def played_by(player: DataPlayer[State]) -> Transcript:
        _, rehearsed = play(
            modelled(model, stage, rows),
            player,
            transcript.temperatures,
            transcript.draw_counts,
            SeededSource(seed),
            observer=observer,
        )
        return rehearsed

    if transcript.records is None:
        rehearsed = played_by(ModelPlayer(stage, schedule, len(transcript)))
    else:
        rehearsed = played_by(RecordPlayer(asked, oracle("annealing"), seed=seed + 1))
    second = fit_transcript(stage, rehearsed, schedule, schedule)
    judged = asked
    for k in (1, 2):
        if k <= len(asked.schema):
            judged = judged + random_marginals(asked.schema, k, 4000, seed=seed)
    return ErrorTable.of(judged, second.answers(judged), model.answers(judged))


def rehearse_tables(player: TablesPlayer, known: Known, seed: int = 0) -> ErrorTable:
    """The errors of a run that measured the same tables, if the model were the truth.

    What the second fits miss is one part of the error. The other is what the first fits disagree
    about: where the tables say nothing, each of them makes up something of its own.

    Args:
        player: who fitted the model.
        known: what was measured, and the fits.
        seed: of the rehearsal's own, public randomness.
    """
    generator = np.random.default_rng([seed, 15])
    model, total = player.model(known), player.total(known)
    asked = player.workload
    rehearsed = []
    for one in known.measurements:
        expected = total * model.answers(one.marginals.queries(asked.schema))
        noise = np.sqrt(one.variance) * generator.standard_normal(len(expected))
        rehearsed.append(replace(one, counts=np.rint(expected + noise).astype(np.int64)))
    second = TablesPlayer(asked, player.plan, seed=seed + 1000)
    again = second.fitted_anew(Known(tuple(rehearsed)), player.plan.last_steps)
    if len(asked) > MOST_QUERIES:
        chosen = np.sort(generator.choice(len(asked), MOST_QUERIES, replace=False))
        asked = asked.take(chosen)
    judged = _with_narrow(asked, seed)
    answers = second.model(again).answers(judged)
    missed = (answers - model.answers(judged)) ** 2
    disagreed = np.var(np.stack(player.member_answers(known, judged)), axis=0, ddof=1)
    return ErrorTable.of_squares(judged, answers, missed + disagreed)


def _with_narrow(asked: Workload, seed: int) -> Workload:
    """The asked queries, and some on one and two attributes that they name."""
    named = np.unique(asked.literals.attribute[asked.terms >> 1])
    judged = asked
    for k in (1, 2):
        if k <= len(named):
            judged = judged + random_marginals(asked.schema, k, 4000, seed=seed)
    return judged
