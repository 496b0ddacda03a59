"""The game: rounds of draws and answers, from the first to the last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from dualquery.game.data_player import DataPlayer
from dualquery.game.journal import Journal, NoJournal
from dualquery.game.transcript import Released, Round, Transcript
from dualquery.privacy.measuring import Measurement
from dualquery.privacy.rare import Measured
from dualquery.privacy.sampler import Draws
from dualquery.privacy.sources import RandomSource

State = TypeVar("State")


class Drawer(Protocol):
    """The query player, as the loop sees it: what it knows of the data stays inside."""

    def draw(
        self,
        temperature: float,
        played: npt.NDArray[np.float64],
        samples: int,
        source: RandomSource,
        *,
        reference: int | None = None,
    ) -> Draws:
        """Draw against the answers `played`.

        Args:
            temperature: β ≥ 0.
            played: the data player's answers.
            samples: how many draws.
            source: where random words come from.
            reference: what scores are divided by, if not by the usual number.
        """
        ...


@dataclass(frozen=True)
class Measuring(Generic[State]):
    """Tables that are measured together with the first draws.

    Attributes:
        take: measures them, with noise from this source.
        checked: what a journal holds, if it is what this run releases; refuses anything else.
        knowing: the data player that knows them.
    """

    take: Callable[[RandomSource], Measurement]
    checked: Callable[[Measured | None], Measurement]
    knowing: Callable[[Measurement], DataPlayer[State]]


Observer = Callable[[int, int], None]
"""Told (rounds done, rounds in all). It learns nothing that is not public."""


def step(
    query_player: Drawer,
    data_player: DataPlayer[State],
    state: State,
    temperature: float,
    samples: int,
    source: RandomSource,
    number: int,
    journal: Journal | NoJournal,
    measuring: Measuring[State] | None = None,
) -> tuple[State, Round]:
    """One round: draw against what the data player answers, then let it answer the draws.

    The draws are on disk before anything is computed from them. A run that dies in between
    takes them up again instead of drawing, and paying, a second time.

    Args:
        query_player: draws; it alone knows about the private counts.
        data_player: answers the draws.
        state: where the data player stands.
        temperature: β of this round.
        samples: how many draws.
        source: where random words come from.
        number: of the round, from 0.
        journal: keeps draws and moves.
        measuring: what is measured together with the draws of this round; None for nothing.
    """
    released = journal.released(number)
    if released is None:
        played, made = data_player.answers(state), source.for_round(number)
        draws = query_player.draw(temperature, played, samples, made)
        if measuring is None:
            released = Released(draws)
            journal.write_draws(number, draws)
        else:
            released = Released(draws, measuring.take(made))
            journal.write_released(number, released)
    draws, measurement = released.draws, None
    if measuring is not None:
        measurement = measuring.checked(released.measurement)
        data_player = measuring.knowing(measurement)
    move = journal.move(number)
    if move is None:
        move = data_player.respond(state, temperature, draws)
        journal.write_move(number, move)
    after = data_player.replay(state, temperature, draws, move)
    return after, Round(temperature, draws, move.lasting(), measurement)


def play(
    query_player: Drawer,
    data_player: DataPlayer[State],
    temperatures: npt.NDArray[np.float64],
    samples: npt.NDArray[np.int64],
    source: RandomSource,
    *,
    journal: Journal | NoJournal | None = None,
    measuring: Measuring[State] | None = None,
    observer: Observer = lambda done, total: None,
) -> tuple[State, Transcript]:
    """Play all rounds; round t draws `samples[t]` queries at `temperatures[t]`.

    Args:
        query_player: draws; it alone knows about the private counts.
        data_player: answers the draws.
        temperatures: one per round.
        samples: how many draws, one number per round.
        source: where random words come from.
        journal: keeps the run if it is interrupted; None keeps nothing.
        measuring: what is measured with the first draws, and who plays with it; None for nothing.
        observer: told how many rounds are done, and of how many.
    """
    journal = journal or NoJournal()
    state = data_player.start()
    rounds = []
    for number, (temperature, count) in enumerate(zip(temperatures, samples, strict=True)):
        state, played = step(
            query_player,
            data_player,
            state,
            float(temperature),
            int(count),
            source,
            number,
            journal,
            None if number else measuring,
        )
        if isinstance(played.measurement, Measurement) and measuring is not None:
            data_player = measuring.knowing(played.measurement)
        rounds.append(played)
        observer(number + 1, len(temperatures))
    return state, Transcript(tuple(rounds))
