"""What the game made public: every draw, and what each round was drawn against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.base.stored import Array, Arrays, Document
from dualquery.game.declared import check_measured
from dualquery.game.moves import ModelMove, Move, RecordMove, Singles, read_move
from dualquery.privacy.events import Events
from dualquery.privacy.measuring import Measurement
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.rare import Measured, Rare, read_measured
from dualquery.privacy.sampler import Draws
from dualquery.privacy.unit import Unit


@dataclass(frozen=True, eq=False)
class Released:
    """What one round released: draws, or what was measured."""

    draws: Draws
    measurement: Measured | None = None

    @classmethod
    def measured(cls, measurement: Measured) -> Released:
        """What was measured alone."""
        return cls(Draws(np.zeros(0, np.int64), np.zeros(0, np.bool_)), measurement)


@dataclass(frozen=True, eq=False)
class Round:
    """One round: the temperature, what was released, and the answer to it.

    A round in which tables were measured, or chosen, has temperature 0; a choice knows its own. The
    round has no draws, unless the tables are
    those of free attributes, which are measured with the draws of the first round.
    """

    temperature: float
    draws: Draws
    move: Move
    measurement: Measured | None = None


@dataclass(frozen=True, eq=False)
class Transcript:
    """All rounds: the private output of the game, and all that leaves it."""

    rounds: tuple[Round, ...]

    def __len__(self) -> int:
        return len(self.rounds)

    def __iter__(self) -> Iterator[Round]:
        return iter(self.rounds)

    @property
    def temperatures(self) -> npt.NDArray[np.float64]:
        return np.array([one.temperature for one in self.rounds])

    @property
    def draw_counts(self) -> npt.NDArray[np.int64]:
        return np.array([len(one.draws) for one in self.rounds], dtype=np.int64)

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The measured tables, in order."""
        every = (one.measurement for one in self.rounds)
        return tuple(one for one in every if isinstance(one, Measurement))

    @property
    def rare(self) -> tuple[Rare, ...]:
        """The measured rare cells, in order."""
        every = (one.measurement for one in self.rounds)
        return tuple(one for one in every if isinstance(one, Rare))

    def events(self, rows: int, neighbours: Neighbours | Unit) -> Events:
        """What was released, as accountants read it, in order.

        Args:
            rows: the public number of rows, or the public reference size.
            neighbours: the unit of privacy.
        """
        found = Events.of_measurements()
        for one in self.rounds:
            if one.measurement is None or len(one.draws):
                drawn = Events.of([one.temperature], [len(one.draws)], rows, neighbours)
                found = found.then(drawn)
            if one.measurement is not None:
                found = found.then(Events.in_sequence(*one.measurement.events(neighbours)))
        return found

    @property
    def records(self) -> npt.NDArray[np.int32] | None:
        """The records played, one row per round, if the data player played records."""
        found = [one.move.record for one in self.rounds if isinstance(one.move, RecordMove)]
        return np.stack(found) if found and len(found) == len(self) else None

    @property
    def logits(self) -> Singles | None:
        """The parameters of the model after each round, one row per round, if a model played."""
        found = [one.move.logits for one in self.rounds if isinstance(one.move, ModelMove)]
        return np.stack(found) if found and len(found) == len(self) else None

    def to_arrays(self) -> dict[str, Array]:
        """The transcript as arrays, for `transcript.npz`."""
        arrays: dict[str, Array] = {
            "temperatures": self.temperatures,
            "draw_counts": self.draw_counts,
            "queries": np.concatenate([one.draws.queries for one in self.rounds]),
            "negated": np.concatenate([one.draws.negated for one in self.rounds]),
        }
        moves = [one.move.arrays() for one in self.rounds]
        for name in moves[0]:
            if all(name in one for one in moves):
                arrays[f"move_{name}"] = np.stack([one[name] for one in moves])
        for number, one in enumerate(self.rounds):
            if one.measurement is not None:
                measured = one.measurement.to_arrays()
                arrays |= {f"measured_{number}_{name}": a for name, a in measured.items()}
                arrays |= {
                    f"played_{number}_{name}": a
                    for name, a in moves[number].items()
                    if f"move_{name}" not in arrays
                }
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Arrays, notes: Sequence[Document]) -> Transcript:
        """The inverse of `to_arrays`, with the notes of each round."""
        ends = np.cumsum(arrays["draw_counts"])
        moves = _with_prefix(arrays, "move_")
        rounds = []
        for index, (end, count) in enumerate(zip(ends, arrays["draw_counts"], strict=True)):
            part = slice(end - count, end)
            measured = _with_prefix(arrays, f"measured_{index}_")
            played = _with_prefix(arrays, f"played_{index}_")
            if measured:
                check_measured(measured)
            rounds.append(
                Round(
                    float(arrays["temperatures"][index]),
                    Draws(arrays["queries"][part], arrays["negated"][part]),
                    read_move({name: a[index] for name, a in moves.items()} | played, notes[index]),
                    read_measured(measured) if measured else None,
                )
            )
        return cls(tuple(rounds))


def _with_prefix(arrays: Arrays, prefix: str) -> dict[str, Array]:
    """The arrays whose names begin so, without that beginning."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
