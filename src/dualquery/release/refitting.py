"""Fitting another model to an existing release, for which its draws are enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dualquery.base.checks import whole
from dualquery.domain.free import Free
from dualquery.game.fitting import fit_transcript
from dualquery.game.rehearsal import rehearse
from dualquery.model.schedule import Schedule
from dualquery.release.release import Release

Progress = Callable[[str, int, int], None]


def refitted(
    release: Release,
    progress: Progress = lambda stage, done, total: None,
    *,
    components: int | None = None,
    steps: int | None = None,
    errors: bool = True,
) -> Release:
    """The release with a model fitted to its transcript, and with standard errors from a rehearsal.

    Guarantee: this is post-processing. It needs no private table and spends no privacy.

    Args:
        release: the release, which stays as it is.
        progress: told the stage, and how much of it is done.
        components: components of the mixture; None for as many as in the game.
        steps: training steps after the last round; 0 takes the model as the game left it.
        errors: whether to rehearse; if not, answers have no standard errors.
    """
    played = Schedule(**release.parameters["training"])
    wanted = played
    if components is not None:
        wanted = replace(wanted, components=components)
    if steps is not None:
        wanted = replace(wanted, final_steps=whole("steps", steps, least=0))
    model = fit_transcript(
        release.actions,
        release.transcript,
        played,
        wanted,
        Free(release.parameters["free"]),
        lambda done, total: progress("fitting the model", done, total),
    )
    if not errors:
        return release.with_model(model, None)
    table = rehearse(
        model,
        release.actions,
        release.transcript,
        release.privacy.rows,
        wanted,
        lambda done, total: progress("rehearsing for standard errors", done, total),
    )
    return release.with_model(model, table)
