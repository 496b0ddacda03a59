"""The data player: answers draws, and sees nothing else."""

from __future__ import annotations

from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from dualquery.game.moves import Move
from dualquery.privacy.sampler import Draws

State = TypeVar("State")


class DataPlayer(Protocol[State]):
    """A strategy over records, improved draw by draw.

    Every method is a function of its arguments and of public settings; a state is a
    value, never changed in place. `replay` reaches the state that `respond` reached when
    it made a move, so that an interrupted game can go on.
    """

    def start(self) -> State: ...

    def answers(self, state: State) -> npt.NDArray[np.float64]:
        """What the strategy answers to each query of the workload."""
        ...

    def respond(self, state: State, temperature: float, draws: Draws) -> Move:
        """The move that answers these draws."""
        ...

    def replay(self, state: State, temperature: float, draws: Draws, move: Move) -> State:
        """The state after a move.

        Args:
            state: before it.
            temperature: at which the draws were drawn.
            draws: what the move answers.
            move: what `respond` gave.
        """
        ...
