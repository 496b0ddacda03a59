"""The model as a data player: its strategy is the distribution fitted to the draws so far."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import ReleaseError
from dualquery.game.moves import ModelMove, Momentum, Move, expect
from dualquery.model.compiled import CompiledWorkload
from dualquery.model.drawn import Buffers, Drawn, answers_of
from dualquery.model.glimpse import glimpse
from dualquery.model.likelihood import Likelihood
from dualquery.model.schedule import Schedule
from dualquery.model.terms import Singles
from dualquery.model.training import Parameters
from dualquery.privacy.sampler import Draws
from dualquery.workloads.actions import Actions

CONCENTRATED = 0.9
"""If the draws name fewer than this share of the distinct queries that we would expect, the model
is lagging."""

WORTHWHILE = 20.0
"""Nats that the second half of a pass must gain for another pass to follow."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """Where the fit stands, and the rounds it was fitted to."""

    parameters: Parameters
    rounds: tuple[tuple[float, Draws, npt.NDArray[np.float32]], ...] = ()
    """Temperature, draws, and the logits each round was drawn against."""


class ModelPlayer:
    """After every round, some gradient steps on the likelihood of all draws so far.

    If the model were right, the draws would follow the prior weights. Where they gather on a few
    queries instead, it is far off there for the temperature, and sharper draws would go on to hit
    the same few: the round then has more passes, as long as they pay.

    What the player computes is a function of the draws and of public settings, so the state it
    keeps between calls (buffers, and the answers earlier rounds were drawn against) is a memory of
    what could be computed again.
    """

    def __init__(self, actions: Actions, schedule: Schedule, rounds: int) -> None:
        self.actions = actions
        self.schedule = schedule
        self.rounds = rounds
        self._compiled = CompiledWorkload.of(actions.queries)
        self._ascent = schedule.ascent(self._compiled.stack)
        self._buffers = Buffers(self._compiled, schedule.components)
        self._likelihood = self._no_rounds()
        self._expected_distinct = cache(actions.expected_distinct)

    def _no_rounds(self) -> Likelihood:
        return Likelihood(self._compiled, self.actions.log_prior, self.rounds)

    def start(self) -> Fitted:
        return Fitted(self.schedule.start(self._compiled.stack))

    def answers(self, state: Fitted) -> npt.NDArray[np.float64]:
        return self._compiled.in_query_order(self._answers(state.parameters))

    def respond(self, state: Fitted, temperature: float, draws: Draws) -> ModelMove:
        likelihood = self._likelihood_of(state)
        parameters = state.parameters
        likelihood.add(temperature, draws, self._answers(parameters))
        generator = np.random.default_rng([self.schedule.seed, len(state.rounds)])
        seen = glimpse(Drawn(self._compiled, likelihood, self._buffers), generator)
        rates = self.schedule.round_rates(temperature)
        parameters, values = self._ascent.climb(parameters, [seen], rates)
        for _ in range(self.schedule.most_passes - 1 if self._lags(draws) else 0):
            if values[-1] - values[len(values) // 2] <= WORTHWHILE:
                break
            parameters, values = self._ascent.climb(parameters, [seen], rates)
        momentum = Momentum(parameters.mean, parameters.square)
        return ModelMove(parameters.flat, values[-1], parameters.steps, momentum)

    def _answers(self, parameters: Parameters) -> Singles:
        """The model's answers, in the arrangement of the compiled workload."""
        tables = self._ascent.tables(parameters)
        weights = parameters.weights.astype(np.float32)
        return answers_of(self._compiled, tables, weights, self._buffers)

    def _lags(self, draws: Draws) -> bool:
        named = len(np.unique(draws.queries))
        return named < CONCENTRATED * self._expected_distinct(len(draws))

    def replay(self, state: Fitted, temperature: float, draws: Draws, move: Move) -> Fitted:
        played = expect(ModelMove, move)
        momentum = played.momentum
        if momentum is None:
            raise ReleaseError("a round holds a model without momentum; expected one with it")
        if played.logits.shape != state.parameters.flat.shape:
            raise ReleaseError("a round holds a model of another size; expected that of this run")
        parameters = Parameters(
            played.logits,
            momentum.mean,
            momentum.square,
            played.steps,
            self.schedule.components,
        )
        return Fitted(parameters, (*state.rounds, (temperature, draws, state.parameters.flat)))

    def _likelihood_of(self, state: Fitted) -> Likelihood:
        """The likelihood of the rounds of a state; usually the one at hand, one round on."""
        if self._likelihood.rounds > len(state.rounds):
            self._likelihood = self._no_rounds()
        for temperature, draws, flat in state.rounds[self._likelihood.rounds :]:
            drawn_against = Parameters.at(flat, self.schedule.components)
            self._likelihood.add(temperature, draws, self._answers(drawn_against))
        return self._likelihood
