"""Fitting another model to an existing release, for which its draws are enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dualquery.base.checks import whole
from dualquery.base.errors import ReleaseError
from dualquery.domain.free import Filling, Free
from dualquery.game.fitting import fit_transcript
from dualquery.game.free_tables import shares_of
from dualquery.game.rehearsal import rehearse, rehearse_tables
from dualquery.game.tables_steps import TablesPlan
from dualquery.game.wide_player import player_of
from dualquery.model.forbidden import without_forbidden
from dualquery.model.totals import obeying
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
    if components is not None:
        components = whole("components", components)
    if steps is not None:
        steps = whole("steps", steps, least=0)
    if release.parameters.tables is not None:
        return _refitted_to_tables(
            release, release.parameters.tables, progress, components, steps, errors
        )
    played = release.parameters.training
    wanted = played
    if components is not None:
        wanted = replace(wanted, components=components)
    if steps is not None:
        wanted = replace(wanted, final_steps=steps)
    model = fit_transcript(
        release.actions,
        release.transcript,
        played,
        wanted,
        _filling(release),
        lambda done, total: progress("fitting the model", done, total),
    )
    model = obeying(without_forbidden(model), release.parameters.known)
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


def _filling(release: Release) -> Filling:
    """What attributes take that no query mentions."""
    free, measured = release.parameters.free, release.transcript.measurements
    return shares_of(release.schema, measured[0]) if free is Free.MEASURED else free


def _refitted_to_tables(
    release: Release,
    plan: TablesPlan,
    progress: Progress,
    components: int | None,
    steps: int | None,
    errors: bool,
) -> Release:
    """The same for a release of measured tables: the last fits, unless others are asked for."""
    _check_fits(release, plan)
    if components is not None:
        plan = replace(plan, components=components)
    player = player_of(release.workload, plan)
    known = player.recall(release.transcript)
    if components is not None or steps:
        progress("fitting the model", 0, 0)
        known = player.fitted_anew(known, steps or plan.first_steps + plan.last_steps)
    model = without_forbidden(player.model(known, release.parameters.free))
    model = obeying(model, release.parameters.known)
    if not errors:
        return release.with_model(model, None)
    progress("rehearsing for standard errors", 0, 0)
    return release.with_model(model, rehearse_tables(player, known))


def _check_fits(release: Release, plan: TablesPlan) -> None:
    """Refuse fits that do not belong to the plan; a release may come from anywhere."""
    player = player_of(release.workload, plan)
    known = player.recall(release.transcript)
    if known.members is not None and not player.holds(known.members, known):
        raise ReleaseError("the fits in this release do not belong to its plan and tables")
