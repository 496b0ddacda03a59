"""Counting and weights on the workers of a Dask cluster. Private side.

The client holds the workload, the counts and the records of the game, which is enough to make
any shard again; the workers hold what a round needs: matches, exponents, bucket counts.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import EngineError, first_line
from dualquery.base.threads import thread_count
from dualquery.engines.held import Birth, Round, forget, step
from dualquery.engines.local import LocalEngine
from dualquery.engines.parts import (
    Private,
    add_parts,
    another_version,
    count_part,
    cut,
    package_version,
)
from dualquery.game.query_player import QueryPlayer
from dualquery.game.record_player import Played, RecordPlayer
from dualquery.game.transcript import Move
from dualquery.privacy.sampler import Draws, draw
from dualquery.privacy.shards import route
from dualquery.privacy.sources import RandomSource
from dualquery.rows.arrow import ParquetTable
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.table import Table
from dualquery.version import __version__
from dualquery.workloads.actions import Actions
from dualquery.workloads.counts import Counted
from dualquery.workloads.workload import Workload

ATTEMPTS = 6
"""How often a lost worker's task is done again before the run gives up."""

FAN_IN = 4
"""Counts added up in one task."""

CONNECT = "20s"
"""How long to try to reach a scheduler."""

PATIENCE = 60
"""Seconds to wait for a worker when there is none."""


class DaskEngine:
    """The workers of the cluster at an address, or of a local one that lives as long as this."""

    def __init__(self, scheduler: str | None = None) -> None:
        self._scheduler = scheduler
        self._cluster: Any = None
        self._client: Any = None
        self._run = uuid.uuid4().hex

    def __enter__(self) -> Self:
        distributed: Any = import_module("distributed")
        try:
            if self._scheduler is None:
                # Without credentials any process on this machine could join and read exact counts.
                self._cluster = distributed.LocalCluster(
                    security=distributed.Security.temporary(),
                    n_workers=thread_count(),
                    threads_per_worker=1,
                    dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                    env={"DUALQUERY_THREADS": "1"},
                )
            where = self._cluster or self._scheduler
            self._client = distributed.Client(where, timeout=CONNECT, set_as_default=False)
            self._client.wait_for_workers(1, timeout=PATIENCE)
            require_same_version(self._client)
        except EngineError:
            self.__exit__(None, None, None)
            raise
        except (OSError, TimeoutError, ValueError) as error:
            self.__exit__(None, None, None)
            where = self._scheduler or "a local cluster"
            raise EngineError(
                f"cannot reach Dask workers at {where}: {first_line(error)}"
            ) from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._client is not None:
            with suppress(Exception):  # a scheduler that is gone has nothing left to forget
                self._client.run(forget, self._run, on_error="ignore")
            with suppress(Exception):
                self._client.close()
        if self._cluster is not None:
            self._cluster.close()

    @property
    def client(self) -> Any:
        """The Dask client, while the engine is open."""
        return self._client

    def count(self, table: Table, workload: Workload, out_of_domain: OutOfDomain) -> Counted:
        if not isinstance(table, ParquetTable):  # one stream of rows: nothing to share out
            return LocalEngine().count(table, workload, out_of_domain)
        parts = cut(table, 2 * len(self._client.nthreads()))
        if not parts:
            return LocalEngine().count(table, workload, out_of_domain)

        def attempt() -> Private:
            # Not part of the tasks: a workload of millions of queries goes out once per worker.
            sent = self._client.scatter(workload, broadcast=True, hash=False)
            level = [
                self._client.submit(count_part, part, sent, out_of_domain, __version__, pure=False)
                for part in parts
            ]
            while len(level) > 1:
                level = [
                    self._client.submit(add_parts, level[i : i + FAN_IN], pure=False)
                    for i in range(0, len(level), FAN_IN)
                ]
            added: Private = level[0].result()
            return added

        counts, rows = _persistently(attempt).open()
        return Counted(counts, rows)

    def query_player(self, actions: Actions, answers: Counted, reference: int) -> QueryPlayer:
        shards = RemoteShards(self._client, self._run, actions, answers, reference)
        return RemoteQueryPlayer(answers, reference, shards)

    def data_player(self, player: Any) -> Any:
        return RemoteRecordPlayer(player) if isinstance(player, RecordPlayer) else player


class RemoteRecordPlayer:
    """The record player without its matches, which the shards keep: its answers are its records."""

    def __init__(self, player: RecordPlayer) -> None:
        self._player = player

    def start(self) -> Played:
        return Played((), np.zeros(0, dtype=np.int32))

    def answers(self, state: Played) -> Any:
        return state.records

    def respond(self, state: Played, temperature: float, draws: Draws) -> Move:
        return self._player.respond(state, temperature, draws)

    def replay(self, state: Played, temperature: float, draws: Draws, move: Move) -> Played:
        return Played((*state.records, move.arrays["record"]), state.matches)


class RemoteQueryPlayer(QueryPlayer):
    """The query player over shards on workers.

    Guarantee: that of `QueryPlayer`. The shards hold the same exponents in the same order, so
    the same words of a random source give the same draws.
    """

    def __init__(self, answers: Counted, reference: int, shards: RemoteShards) -> None:
        self._shards = shards

    def draw(self, temperature: float, played: Any, samples: int, source: RandomSource) -> Draws:
        """As in `QueryPlayer`; `played` holds the records so far, or an answer per query."""
        self._shards.news(temperature, played)
        return draw(self._shards, samples, source)


class RemoteShards:
    """Contiguous ranges of queries on workers, as one set of actions.

    A shard is sent to a worker once and then told what changed. A worker that is lost takes its
    shards with it; they are made again, on another worker, from what the client holds, up to
    the very step of the round that was under way.
    """

    def __init__(
        self, client: Any, run: str, actions: Actions, answers: Counted, reference: int
    ) -> None:
        self._client = client
        self._run = run
        workload = self._workload = actions.queries
        self._offsets = actions.offsets
        self._answers = answers
        self._reference = reference
        homes = sorted(client.nthreads())
        shards = max(1, min(len(homes), len(workload)))
        self._cuts = [len(workload) * i // shards for i in range(shards + 1)]
        self._homes = homes[:shards]
        self._number = -1
        self._temperature = 0.0
        self._played: Any = ()
        self._told = 0
        self._largest: float | None = None
        self._totals = np.zeros((shards, 1), dtype=np.int64)

    @property
    def queries(self) -> int:
        return len(self._workload)

    def news(self, temperature: float, played: Any) -> None:
        """Begin a round: the temperature, and what the data player plays."""
        self._told = len(self._played) if isinstance(self._played, tuple) else 0
        self._number += 1
        self._temperature, self._played, self._largest = temperature, played, None

    def largest(self) -> float:
        found = self._ask({i: {"news": self._news(i, self._told)} for i in self._shards})
        return float(max(found.values()))

    def tally(self, largest: float) -> npt.NDArray[np.int64]:
        self._largest = largest
        found = self._ask({i: {"largest": largest} for i in self._shards})
        self._totals = np.stack([found[i] for i in self._shards])
        total: npt.NDArray[np.int64] = self._totals.sum(axis=0)
        return total

    def locate(
        self, buckets: npt.NDArray[np.int64], ranks: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        shards, inside = route(self._totals, buckets, ranks)
        chosen = {int(i): np.flatnonzero(shards == i) for i in np.unique(shards)}
        found = self._ask(
            {i: {"sought": (buckets[part], inside[part])} for i, part in chosen.items()}
        )
        positions = np.empty(buckets.size, dtype=np.int64)
        scaled = np.empty(buckets.size, dtype=np.uint64)
        for i, part in chosen.items():
            positions[part], scaled[part] = found[i]
            positions[part] += 2 * self._cuts[i]
        return positions, scaled

    @property
    def _shards(self) -> range:
        return range(len(self._homes))

    def _news(self, i: int, first: int) -> Round:
        if isinstance(self._played, tuple):
            records = tuple(self._played[first:])
            return Round(self._number, self._temperature, first, records)
        part = self._played[self._cuts[i] : self._cuts[i + 1]]
        return Round(self._number, self._temperature, answers=part)

    def _birth(self, i: int) -> Private:
        part = np.arange(self._cuts[i], self._cuts[i + 1])
        return Private(
            Birth(
                self._workload.take(part),
                self._offsets[part],
                self._answers.counts[part],
                self._answers.rows,
                self._reference,
            )
        )

    def _ask(self, questions: dict[int, dict[str, Any]]) -> dict[int, Any]:
        """One step of several shards at once; those that are lost are made again first."""
        answers: dict[int, Any] = {}
        for attempt in range(ATTEMPTS):
            waiting = {
                i: self._send(i, question, anew=attempt > 0)
                for i, question in questions.items()
                if i not in answers
            }
            for i, future in waiting.items():
                found = self._receive(i, future)
                if found is not None:
                    answers[i] = found.open()
            if len(answers) == len(questions):
                return answers
            self._rehome()
        raise EngineError(f"workers were lost {ATTEMPTS} times in one step; giving up")

    def _send(self, i: int, question: dict[str, Any], *, anew: bool) -> Any:
        home = self._homes[i]
        if anew:
            question = {**question, "news": self._news(i, 0), "largest": self._largest}
            try:
                # Scattered, not part of the task: it may be large, and tasks are kept and logged.
                question["birth"] = self._client.scatter(self._birth(i), workers=[home], hash=False)
            except losses():
                return None
        return self._client.submit(
            step, f"{self._run}/{i}", self._number, **question, workers=[home], pure=False
        )

    def _receive(self, i: int, future: Any) -> Private | None:
        """What a shard answered; None where it, or its worker, is lost."""
        while future is not None:
            try:
                found: Private | None = future.result(timeout=2)
                return found
            except TimeoutError:
                # A task that is bound to one worker waits for ever for one that is gone.
                if self._homes[i] not in self._client.nthreads():
                    future.cancel()
                    return None
            except losses():
                return None
        return None

    def _rehome(self) -> None:
        """Give the shards of lost workers to those that are left."""
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise EngineError("all Dask workers were lost") from None
        require_same_version(self._client)  # among those left may be new ones
        left = sorted(self._client.nthreads())
        for i, home in enumerate(self._homes):
            if home not in left:
                self._homes[i] = left[i % len(left)]


def require_same_version(client: Any) -> None:
    """Refuse workers that would count with other code than this process."""
    found = client.run(package_version, on_error="return")
    for version in found.values():
        if isinstance(version, losses()):
            continue  # lost meanwhile, and dealt with where it is missed
        if isinstance(version, Exception):
            raise EngineError(f"a Dask worker cannot import dualquery: {first_line(version)}")
        if version != __version__:
            raise another_version(version, __version__)


def _persistently(attempt: Callable[[], Private]) -> Private:
    """Repeat what failed because workers were lost."""
    for _ in range(ATTEMPTS):
        try:
            return attempt()
        except losses():
            continue
    raise EngineError(f"workers were lost {ATTEMPTS} times while counting; giving up")


def losses() -> tuple[type[BaseException], ...]:
    """What a lost worker looks like from the client."""
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError, FuturesCancelledError

    return (KilledWorker, FutureCancelledError, FuturesCancelledError, OSError, TimeoutError)
