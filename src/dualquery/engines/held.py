"""Shards of the weights, and codes of rows, as workers hold them. Runs on workers: private side."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dualquery.domain.schema import Schema
from dualquery.engines.parts import Piece, Private, enveloped
from dualquery.model.compiled import CompiledWorkload
from dualquery.model.mixture import Mixture
from dualquery.privacy.shards import Shard
from dualquery.rows.counting import Counts
from dualquery.rows.encoded import EncodedRows
from dualquery.workloads.matching import add_matches, share
from dualquery.workloads.workload import Workload

Record = npt.NDArray[np.int32]

_HELD: dict[str, HeldShard] = {}
"""The shards of this process by name: the name of the run, and the number of the shard."""


_ROWS: dict[str, KeptRows] = {}
"""The codes of parts in this process by name: the name of the run, and the number of the part."""

IDLE = 1800.0
"""Seconds after which a shard that nobody asked for is dropped: its client is taken for dead. A
client that was only slow finds it missing and makes it again, as after the loss of a worker. Codes
are dropped in the same way, and read again."""

MOST_KEPT = 1 << 30
"""The bytes of codes that a worker keeps. Parts beyond that are read at every step."""


@dataclass(frozen=True, repr=False)
class News:
    """What a shard is told at the beginning of a round, so that it can weigh its queries.

    The data player's answers are the numbers in `answers`, or those of a model that is sent beside
    the news, or the mean of its records so far. Of the records, only those from number `first` on
    are sent.
    """

    number: int
    temperature: float
    first: int = 0
    records: tuple[Record, ...] = ()
    answers: npt.NDArray[np.float64] | None = None
    reference: int | None = None


@dataclass(frozen=True, repr=False)
class Birth:
    """Everything that a shard is made from. A shard of a lost worker is made again from it."""

    workload: Workload
    log_prior: npt.NDArray[np.float64]
    counts: Counts
    size: int
    reference: int


@dataclass(frozen=True, repr=False)
class Question:
    """One or more steps of a round that a shard is asked to do, in the order of these fields.

    Attributes:
        news: begin a round.
        largest: count the actions per bucket; this is the largest exponent of all shards.
        sought: find actions, given by their buckets and by their ranks in this shard.
    """

    news: News | None = None
    largest: float | None = None
    sought: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None = None


@dataclass(frozen=True, repr=False)
class ShardAnswer:
    """What the last step of a question found; the fields of other steps hold nothing.

    Attributes:
        largest: the largest exponent of the shard.
        totals: the number of actions per bucket.
        positions: where the sought actions stand in the shard.
        mantissas: the mantissas of their weights.
    """

    largest: float = -np.inf
    totals: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    positions: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    mantissas: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))


class HeldShard:
    """A range of queries: their counts, their weights, and how many records so far match them."""

    def __init__(self, birth: Birth) -> None:
        self.birth = birth
        self.matches = np.zeros(len(birth.workload), dtype=np.int32)
        self.seen = 0
        self.round = -1
        self.shard = Shard(len(birth.workload), log_prior=birth.log_prior)
        self.asked = time.monotonic()
        self._compiled: CompiledWorkload | None = None

    def begin(self, news: News, model: Mixture | None = None) -> float | None:
        """Weigh the queries for a round; None if this shard has not seen all earlier records."""
        answers = news.answers
        if model is not None:
            self._compiled = self._compiled or CompiledWorkload.of(self.birth.workload)
            answers = model.answers_to(self._compiled, single=True)
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
            reference=self.birth.reference if news.reference is None else news.reference,
        )
        self.round = news.number
        return self.shard.largest()


def step(
    name: str,
    number: int,
    question: Question,
    birth: Private[Birth] | None = None,
    model: Mixture | None = None,
) -> Private[ShardAnswer] | None:
    """One or more steps of a round on a shard.

    Args:
        name: the name of the shard.
        number: the number of the round.
        question: the steps.
        birth: what to make the shard from, if it is to be made again.
        model: what answers in this round, where it is a model.

    Returns:
        What the last step found. None if the shard is not here or is in another round: then the
        client sends its birth, and all steps of the round up to this one, again.
    """
    try:
        if birth is not None:
            _HELD[name] = HeldShard(birth.open())
            _watch()
        held = _HELD.get(name)
        if held is not None:
            held.asked = time.monotonic()
        found = ShardAnswer()
        if held is not None and question.news is not None:
            top = held.begin(question.news, model)
            found = found if top is None else ShardAnswer(largest=top)
        if held is None or held.round != number:
            return None
        if question.largest is not None:
            found = ShardAnswer(totals=held.shard.tally(question.largest))
        if question.sought is not None:
            positions, mantissas = held.shard.locate(*question.sought)
            found = ShardAnswer(positions=positions, mantissas=mantissas)
    except Exception as error:
        return enveloped(error)
    return Private(found)


@dataclass(eq=False, repr=False)
class KeptRows:
    """The codes of a part, the row groups that they come from, and the schema they belong to."""

    pieces: Sequence[Piece]
    schema: Schema
    rows: EncodedRows
    asked: float = field(default_factory=time.monotonic)

    @property
    def bytes(self) -> int:
        return sum(codes.nbytes for codes in self.rows.columns.values())


def rows_of(name: str) -> KeptRows | None:
    """The codes of a part, if they are here."""
    kept = _ROWS.get(name)
    if kept is not None:
        kept.asked = time.monotonic()
    return kept


def keep_rows(name: str, rows: KeptRows) -> None:
    """Keep the codes of a part instead of those before, if there is room for them."""
    _ROWS.pop(name, None)
    if sum(kept.bytes for kept in list(_ROWS.values())) + rows.bytes <= MOST_KEPT:
        _ROWS[name] = rows
        _watch()


def forget(run: str) -> None:
    """Let go of the shards and codes of a run."""
    for name in [*_HELD, *_ROWS]:
        if name.startswith(run):
            _HELD.pop(name, None)
            _ROWS.pop(name, None)


def drop_idle(now: float) -> None:
    """Let go of the shards and codes that nobody has asked for in a long time."""
    for name, shard in list(_HELD.items()):
        if now - shard.asked > IDLE:
            _HELD.pop(name, None)
    for name, rows in list(_ROWS.items()):
        if now - rows.asked > IDLE:
            _ROWS.pop(name, None)


_WATCHING = threading.Lock()


def _watch() -> None:
    """Look for idle shards and codes from time to time, as long as there are any here."""

    def look() -> None:
        with _WATCHING:
            while _HELD or _ROWS:
                time.sleep(min(60.0, IDLE / 2))
                drop_idle(time.monotonic())

    if not _WATCHING.locked():
        threading.Thread(target=look, name="dualquery shards", daemon=True).start()
