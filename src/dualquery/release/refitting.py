"""Fitting a model to a release that exists: the draws are enough."""

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
    """The release with a model fitted to its transcript, and standard errors by a rehearsal.

    Guarantee: post-processing. The private table is not needed and no privacy is spent.

    Args:
        components: of the mixture, if not as in the game.
        steps: of the last stretch; 0 takes the model as the game left it.
        errors: whether to rehearse; without, answers have no standard errors.
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
