"""The model as a data player: its strategy is the distribution fitted to the draws so far."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.privacy.sampler import Draws
from dualquery.queries.actions import Actions
from dualquery.refit.compiled import CompiledWorkload
from dualquery.refit.glimpse import glimpse
from dualquery.refit.likelihood import Likelihood
from dualquery.refit.schedule import Schedule
from dualquery.refit.training import Parameters
from dualquery.transcript import Move


@dataclass(frozen=True, eq=False)
class Fitted:
    """Where the fit stands, and the rounds it was fitted to."""

    parameters: Parameters
    rounds: tuple[tuple[float, Draws, npt.NDArray[np.float32]], ...] = ()
    """Temperature, draws, and the logits each round was drawn against."""


class ModelPlayer:
    """After every round, some gradient steps on the likelihood of all draws so far.

    What the player computes is a function of the draws and of public settings, so the state it
    keeps between calls (buffers, and the answers earlier rounds were drawn against) is a memory of
    what could be computed again.
    """

    def __init__(
        self,
        actions: Actions,
        schedule: Schedule,
        rounds: int,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.clock = clock
        self.actions = actions
        self.schedule = schedule
        self.rounds = rounds
        self._compiled = CompiledWorkload.of(actions.queries)
        self._ascent = schedule.ascent(self._compiled)
        self._likelihood = self._no_rounds()

    def _no_rounds(self) -> Likelihood:
        return Likelihood(self._compiled, self.actions.offsets, self.rounds)

    def start(self) -> Fitted:
        return Fitted(self.schedule.start(self._compiled))

    def answers(self, state: Fitted) -> npt.NDArray[np.float64]:
        return self._compiled.in_query_order(self._ascent.answers(state.parameters))

    def respond(self, state: Fitted, temperature: float, draws: Draws) -> Move:
        begun = self.clock()
        likelihood = self._likelihood_of(state)
        parameters = state.parameters
        likelihood.add(temperature, draws, self._ascent.answers(parameters))
        generator = np.random.default_rng([self.schedule.seed, len(state.rounds)])
        ascent, seen = glimpse(self._ascent, likelihood, generator)
        value = 0.0
        for rate in self.schedule.round_rates():
            parameters, value = ascent.step(parameters, seen, rate)
        arrays = {
            "logits": parameters.flat,
            "_mean": parameters.mean,
            "_square": parameters.square,
        }
        notes = {
            "log_likelihood": value,
            "steps": parameters.steps,
            "seconds": self.clock() - begun,
        }
        return Move(arrays, notes)

    def replay(self, state: Fitted, temperature: float, draws: Draws, move: Move) -> Fitted:
        parameters = Parameters(
            move.arrays["logits"],
            move.arrays["_mean"],
            move.arrays["_square"],
            int(move.notes["steps"]),
            self.schedule.components,
        )
        return Fitted(parameters, (*state.rounds, (temperature, draws, state.parameters.flat)))

    def _likelihood_of(self, state: Fitted) -> Likelihood:
        """The likelihood of the rounds of a state; usually the one at hand, one round on."""
        if self._likelihood.rounds > len(state.rounds):
            self._likelihood = self._no_rounds()
        for temperature, draws, flat in state.rounds[self._likelihood.rounds :]:
            drawn_against = Parameters.at(flat, self.schedule.components)
            self._likelihood.add(temperature, draws, self._ascent.answers(drawn_against))
        return self._likelihood
