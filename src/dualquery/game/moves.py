"""What a data player plays in one round: a record, a model, or fits to tables.

Every move follows from what was released before it, so every move may be published. How long it
took to find is not part of it: a reading of the clock does not follow from draws.

`arrays` and `notes` are how a move is stored, in a journal and in a release; `read_move` is their
inverse. Arrays whose name begins with an underscore only serve to take up an interrupted game.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import as_float, whole
from dualquery.base.errors import ReleaseError
from dualquery.base.stored import Array, Arrays, Document, Json

Singles = npt.NDArray[np.float32]

LARGEST = 1e15
"""The largest figure of a round that is believed; a game counts at most so many draws."""


@dataclass(frozen=True, eq=False)
class RecordMove:
    """The record player's answer.

    Attributes:
        record: one code per attribute.
        value: how many of the round's draws it satisfies.
        bound: what no record can exceed, if the oracle knows it.
        status: what the oracle says about its answer, such as `optimal`.
    """

    what: ClassVar[str] = "a record"

    record: npt.NDArray[np.int32]
    value: int
    bound: float | None
    status: str

    @property
    def proved_optimal(self) -> bool:
        return self.status == "optimal"

    def gap(self, draws: int) -> float | None:
        """The most by which the record misses the best share of `draws`; None if unknown."""
        return None if self.bound is None else max(0.0, self.bound - self.value) / max(1, draws)

    def lasting(self) -> RecordMove:
        return self

    def arrays(self) -> dict[str, Array]:
        return {"record": self.record}

    def notes(self) -> Json:
        return {"value": self.value, "bound": self.bound, "status": self.status}


@dataclass(frozen=True, eq=False)
class Momentum:
    """What the optimiser of a model remembers of earlier steps.

    Attributes:
        mean: the running mean of slopes, one per parameter.
        square: the running mean of their squares.
    """

    mean: Singles
    square: Singles


@dataclass(frozen=True, eq=False)
class ModelMove:
    """The model player's answer.

    Attributes:
        logits: all parameters of the model after the round.
        log_likelihood: of the draws so far, under that model.
        steps: gradient steps since the game began.
        momentum: what an interrupted game needs in order to go on; a release does without it.
    """

    what: ClassVar[str] = "a model"

    logits: Singles
    log_likelihood: float
    steps: int
    momentum: Momentum | None = None

    def lasting(self) -> ModelMove:
        """The move without what only an interrupted game needs."""
        return replace(self, momentum=None)

    def arrays(self) -> dict[str, Array]:
        kept: dict[str, Array] = {"logits": self.logits}
        if self.momentum is not None:
            kept |= {"_mean": self.momentum.mean, "_square": self.momentum.square}
        return kept

    def notes(self) -> Json:
        return {"log_likelihood": self.log_likelihood, "steps": self.steps}


@dataclass(frozen=True, eq=False)
class TablesMove:
    """What was done after a step of a game that measures tables.

    Attributes:
        members: the logits of every mixture, one row each, if there was a fit.
        steps: gradient steps of that fit.
    """

    what: ClassVar[str] = "fits to tables"

    members: Singles | None = None
    steps: int | None = None

    def lasting(self) -> TablesMove:
        return self

    def arrays(self) -> dict[str, Array]:
        return {} if self.members is None else {"members": self.members}

    def notes(self) -> Json:
        return {} if self.steps is None else {"steps": self.steps}


Move = RecordMove | ModelMove | TablesMove
Expected = TypeVar("Expected", RecordMove, ModelMove, TablesMove)


def expect(kind: type[Expected], move: Move) -> Expected:
    """The move as one of this kind; a journal or a release may hold another."""
    if not isinstance(move, kind):
        raise ReleaseError(f"a round holds {move.what}; expected {kind.what}")
    return move


def read_move(arrays: Arrays, notes: Document) -> Move:
    """The move that is stored as these arrays and notes. Notes that no move has are passed over.

    The arrays may have any shape and type: whoever uses a move of foreign origin checks them.
    """
    if "record" in arrays:
        return RecordMove(
            arrays["record"],
            whole("value", _number(notes, "value"), least=0),
            None if notes.get("bound") is None else as_float("bound", _number(notes, "bound")),
            str(notes["status"]),
        )
    if "logits" in arrays:
        mean, square = arrays.get("_mean"), arrays.get("_square")
        kept = None if mean is None or square is None else Momentum(mean, square)
        return ModelMove(
            arrays["logits"],
            float(_number(notes, "log_likelihood")),
            whole("steps", _number(notes, "steps"), least=0),
            kept,
        )
    steps = None if notes.get("steps") is None else whole("steps", _number(notes, "steps"), least=0)
    return TablesMove(arrays.get("members"), steps)


def _number(notes: Document, name: str) -> float:
    value = notes[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ReleaseError(f"{name} of a round is {value!r}; expected a number")
    if not abs(value) <= LARGEST:  # NaN compares as neither
        raise ReleaseError(f"{name} of a round is none that a game has")
    return value
