"""The run that measures tables: draws say where, tables say what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import ReleaseError
from dualquery.game.choosing import choose_tables
from dualquery.game.journal import Journal, NoJournal
from dualquery.game.loop import Drawer, Observer
from dualquery.game.rare_steps import (
    RareCounter,
    is_about_rare_cells,
    is_rare_step,
    measure_rare_step,
)
from dualquery.game.tables_player import Known, TablesPlayer
from dualquery.game.tables_steps import Kind, Step, TablesPlan
from dualquery.game.transcript import Released, Round, Transcript
from dualquery.privacy.choosing import Choice
from dualquery.privacy.measuring import measure
from dualquery.privacy.rare import Charges, Rare
from dualquery.privacy.sampler import Draws
from dualquery.privacy.sources import RandomSource
from dualquery.workloads.marginals import Marginals

Tabulator = Callable[[Marginals], npt.NDArray[np.int64]]
"""Counts all cells of some marginals over private rows. Its result never leaves this module
without noise."""

Expectation = Callable[[Marginals], npt.NDArray[np.float64] | None]
"""The shares of all cells of some marginals by public knowledge; None without any."""

Answering = Callable[[TablesPlayer, Known], npt.NDArray[np.float64]]
"""What a player answers to each query."""


def play_tables(
    drawer: Drawer,
    tabulate: Tabulator,
    player: TablesPlayer,
    source: RandomSource,
    *,
    rare: RareCounter | None = None,
    expected: Expectation = lambda marginals: None,
    answers: Answering = TablesPlayer.answers,
    journal: Journal | NoJournal | None = None,
    observer: Observer = lambda done, total: None,
) -> tuple[Known, Transcript]:
    """Take all steps of the player's plan.

    What a step releases is on disk before anything is computed from it. A run that dies in
    between takes it up again instead of releasing, and paying, a second time.

    Args:
        drawer: the query player.
        tabulate: counts cells over the private rows.
        player: fits the model and says which tables come next.
        source: where draws and noise come from.
        rare: counts rare cells over the private rows; needed if the plan measures any.
        expected: what a public start says of tables before they are measured.
        answers: the player's answers, in the form that the drawer reads.
        journal: what keeps the run if it is interrupted.
        observer: told how many steps are done, and of how many.
    """
    journal = journal or NoJournal()
    plan = player.plan
    known = player.start()
    rounds = []
    for number, step in enumerate(plan.steps):
        temperature = _temperature(plan, step)
        released = journal.released(number)
        if released is None:
            made = source.for_round(number)
            if step.kind is Kind.DRAWS:
                drawn = _draws(drawer, player, known, temperature, step.draws, made, answers)
                released = Released(drawn)
            elif step.kind is Kind.CHOICE:
                against = player.against(known, number)
                beta = plan.purse.choice_temperature(step.share, step.tables)
                tables = player.candidates(known)
                chosen = min(step.tables, len(tables))
                made_choice = choose_tables(tabulate, tables, against, beta, chosen, made)
                released = Released.measured(made_choice)
            elif is_about_rare_cells(player, known, step):
                assert rare is not None  # a plan of rare cells is played by those who count them
                released = Released.measured(measure_rare_step(rare, player, known, step, made))
            else:
                marginals = player.marginals(known, step)
                scale = plan.purse.scale(step.share, len(marginals))
                counts = tabulate(marginals)
                measured = measure(counts, marginals, plan.purse.noise, scale, made)
                released = Released.measured(replace(measured, expected=expected(marginals)))
            journal.write_released(number, released)
        elif not _is_of(step, released, player, known):
            raise ReleaseError(
                f"what the journal holds of round {number + 1} is not what the plan of this run "
                "releases there; the run cannot be resumed"
            )
        move = journal.move(number)
        kept = move is not None
        if move is None:
            move = player.respond(known, number, released)
            journal.write_move(number, move)
        known = player.replay(known, number, released, move)
        if kept and known.members is not None and not player.could_hold(known.members, known):
            raise ReleaseError(
                f"the fits in round {number + 1} of the journal are not those of this run; it "
                "cannot be resumed"
            )
        rounds.append(Round(temperature, released.draws, move, released.measurement))
        observer(number + 1, len(plan.steps))
    return known, Transcript(tuple(rounds))


def _is_of(step: Step, released: Released, player: TablesPlayer, known: Known) -> bool:
    """Whether a journal's round is one of this step: it is published and paid for as it stands.

    How codes are grouped is not compared: it was decided when the tables were measured. So was
    which means were unsure.
    """
    one, plan = released.measurement, player.plan
    if step.kind is Kind.DRAWS:
        queries = released.draws.queries
        inside = bool(np.all((queries >= 0) & (queries < len(player.workload))))
        return one is None and len(queries) == step.draws and inside
    if one is None or len(released.draws):
        return False
    if isinstance(one, Charges | Rare):
        return is_rare_step(step, one, player, known)
    if isinstance(one, Choice):
        if step.kind is not Kind.CHOICE:
            return False
        beta = plan.purse.choice_temperature(step.share, step.tables)
        candidates = player.candidates(known)
        chosen = min(step.tables, len(candidates))
        return one.is_of(candidates, beta, chosen)
    if step.kind is Kind.CHOICE or is_about_rare_cells(player, known, step):
        return False
    tables = one.marginals.attributes
    if step.kind is Kind.AGAIN:
        fits = player.may_be_second(one.marginals)
    else:
        fits = np.array_equal(tables, player.marginals(known, step).attributes)
    return (
        fits
        and one.noise is plan.purse.noise
        and one.scale == plan.purse.scale(step.share, len(tables))
    )


def _temperature(plan: TablesPlan, step: Step) -> float:
    if step.kind is not Kind.DRAWS:
        return 0.0
    return plan.purse.temperature(step.share, step.draws)


def _draws(
    drawer: Drawer,
    player: TablesPlayer,
    known: Known,
    temperature: float,
    samples: int,
    source: RandomSource,
    answering: Answering = TablesPlayer.answers,
) -> Draws:
    """Draws against what the fits answer.

    If the number of records is private, the temperature is charged against the public reference
    n0, while scores are divided by the estimated number of records N̂, which is public too. A
    temperature that is larger by N̂/n0 then has the range that is charged; `rescaled` takes off
    what its rounding costs.
    """
    answers = answering(player, known)
    budget = player.plan.budget
    if budget.unit.size_is_public:
        return drawer.draw(temperature, answers, samples, source)
    reference = max(1, round(player.total(known)))
    scaled = budget.unit.rescaled(temperature, budget.rows, reference)
    return drawer.draw(scaled, answers, samples, source, reference=reference)
