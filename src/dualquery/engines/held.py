"""Shards of the weights as workers hold them. Runs on workers: private side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dualquery.engines.parts import Private, enveloped
from dualquery.privacy.shards import Shard
from dualquery.rows.counting import Counts
from dualquery.workloads.matching import add_matches, share
from dualquery.workloads.workload import Workload

Record = npt.NDArray[np.int32]

_HELD: dict[str, HeldShard] = {}
"""The shards of this process, by the name of the run and the number of the shard."""


@dataclass(frozen=True, repr=False)
class Round:
    """What a shard needs to know to weigh its queries in one round.

    The data player's answers are either the mean of records, of which those from number
    `first` on are given, or the numbers in `answers`.
    """

    number: int
    temperature: float
    first: int = 0
    records: tuple[Record, ...] = ()
    answers: npt.NDArray[np.float64] | None = None


@dataclass(frozen=True, repr=False)
class Birth:
    """Everything a shard is made from: enough to make it again where a worker was lost."""

    workload: Workload
    offsets: npt.NDArray[np.float64]
    counts: Counts
    size: int
    reference: int


class HeldShard:
    """A range of queries with their counts, the matches of the records so far, and weights."""

    def __init__(self, birth: Birth) -> None:
        self.birth = birth
        self.matches = np.zeros(len(birth.workload), dtype=np.int32)
        self.seen = 0
        self.round = -1
        self.shard = Shard(len(birth.workload), offsets=birth.offsets)

    def begin(self, news: Round) -> float | None:
        """Weigh the queries for a round; None where earlier records are missing here."""
        answers = news.answers
        if answers is None:
            if news.first > self.seen:
                return None
            for record in news.records[self.seen - news.first :]:
                add_matches(self.birth.workload, record, self.matches)
                self.seen += 1
            answers = share(self.matches, max(1, self.seen))
        self.shard.score(
            self.birth.counts,
            answers,
            news.temperature,
            size=self.birth.size,
            reference=self.birth.reference,
        )
        self.round = news.number
        return self.shard.largest()


def step(
    name: str,
    number: int,
    *,
    news: Round | None = None,
    largest: float | None = None,
    sought: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None = None,
    birth: Private | None = None,
) -> Private | None:
    """One step of a round on a shard, or several after one another; what the last one found.

    Returns None where the shard is not here, or not in this round: then the client sends its
    birth and all steps up to this one again.
    """
    try:
        if birth is not None:
            _HELD[name] = HeldShard(birth.open())
        held = _HELD.get(name)
        found: Any = None
        if held is not None and news is not None:
            found = held.begin(news)
        if held is None or held.round != number:
            return None
        if largest is not None:
            found = held.shard.tally(largest)
        if sought is not None:
            found = held.shard.locate(*sought)
    except Exception as error:
        return enveloped(error)
    return Private(found)


def forget(run: str) -> None:
    """Let go of the shards of a run."""
    for name in [name for name in _HELD if name.startswith(run)]:
        del _HELD[name]
