"""Counting and weights on the workers of a Dask cluster. Private side.

The client holds the workload, the counts and the records of the game. From these it can make any
shard again. The workers hold what a round needs: matches, exponents, and counts per bucket.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from importlib import import_module
from types import TracebackType
from typing import Any, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import EngineError, first_line
from dualquery.base.threads import thread_count
from dualquery.domain.schema import Schema
from dualquery.engines.held import Birth, News, Question, Record, ShardAnswer, forget, step
from dualquery.engines.kept import MOST_WIDTH, bytes_of_codes, tabulate_part
from dualquery.engines.local import LocalEngine
from dualquery.engines.parts import (
    MOST_FOOTERS,
    Piece,
    Private,
    RowGroup,
    add_parts,
    another_version,
    arranged,
    count_part,
    files_of,
    package_version,
    rare_part,
    row_groups,
)
from dualquery.engines.scheduler import (
    address_of,
    awaited,
    gone,
    is_gone,
    needed,
    quiet,
    reach,
)
from dualquery.game.data_player import DataPlayer
from dualquery.game.moves import Move, RecordMove, expect
from dualquery.game.query_player import QueryPlayer
from dualquery.game.record_player import Played, RecordPlayer
from dualquery.game.tables_player import Known, TablesPlayer
from dualquery.model.ensemble import Members, climbed
from dualquery.model.mixture import Mixture
from dualquery.model.terms import Term
from dualquery.model.training import Ascent, Parameters
from dualquery.privacy.sampler import Draws, draw
from dualquery.privacy.shards import route
from dualquery.privacy.sources import RandomSource
from dualquery.rows.arrow import ParquetTable
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.rare import RareAsked
from dualquery.rows.table import Table
from dualquery.version import __version__
from dualquery.workloads.actions import Actions
from dualquery.workloads.counts import Counted
from dualquery.workloads.marginals import Marginals
from dualquery.workloads.rare import RareCells
from dualquery.workloads.workload import Workload

ATTEMPTS = 6
"""How often a task is tried before the run gives up, because its workers were lost."""

FAN_IN = 4
"""How many counts of parts one task adds up."""

CONNECT = "10s"
"""How long a scheduler that listens may take to answer."""

PATIENCE = 60
"""Seconds to wait for a worker when there is none."""

State = TypeVar("State")

Client = Any
"""Dask's client; its functions carry no types."""

Future = Any
"""One of Dask's futures."""

Strategy = npt.NDArray[np.float64] | tuple[Record, ...] | Mixture
"""What the data player answers with: one answer per query, the records whose mean answers, or a
model. Of the last two, every shard works out the answers to its own queries."""


class DaskEngine:
    """The workers of a Dask cluster.

    The cluster is the one at the address of `scheduler`. Without an address, the engine starts a
    local cluster when it is entered and stops it when it is left.
    """

    def __init__(self, scheduler: str | None = None) -> None:
        self._scheduler = scheduler
        self._cluster: Any = None  # Dask's too
        self._client: Client = None
        self._run = uuid.uuid4().hex
        self._held = ExitStack()
        self._here = LocalEngine()
        self._parts: tuple[ParquetTable, list[list[Piece]]] | None = None

    def __enter__(self) -> Self:
        if self._scheduler is not None:
            reach(self._scheduler)
        distributed: Any = import_module("distributed")
        self._held.enter_context(quiet())
        try:
            if self._scheduler is None:
                # Without credentials any process on this machine could join and read exact counts.
                closed: Any = import_module("dualquery.engines.closed")
                spills = self._held.enter_context(closing(closed.Spills()))
                self._cluster = closed.closed_cluster(thread_count(), spills.path)
            where = self._cluster or self._scheduler
            self._client = distributed.Client(where, timeout=CONNECT, set_as_default=False)
            address_of(self._client)  # while it knows
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
            with suppress(Exception):
                if not is_gone(self._client):  # its workers would wait for a scheduler in vain
                    self._client.run(forget, self._run, on_error="ignore")
            with suppress(Exception):
                self._client.close()
        try:
            if self._cluster is not None:
                self._cluster.close()
        finally:
            self._held.close()

    @property
    def client(self) -> Client:
        """The Dask client; None unless the engine is open."""
        return self._client

    def count(
        self,
        table: Table,
        workload: Workload,
        out_of_domain: OutOfDomain,
        keep: Schema | None = None,
    ) -> Counted:
        if not isinstance(table, ParquetTable):
            # One stream of rows cannot be cut into parts, and rows that are weighed must not be:
            # those of one person may lie in several parts.
            return self._here.count(table, workload, out_of_domain, keep)
        with needed(self._client):
            bits = len(workload.literals)
            counted = self._over_parts(table, count_part, workload, bits, out_of_domain)
        # A folder without row groups has no parts to count.
        return counted or LocalEngine().count(table, workload, out_of_domain)

    def _over_parts(
        self,
        table: ParquetTable,
        task: Callable[..., Private[Counted]],
        asked: object,
        bits: int,
        out_of_domain: OutOfDomain,
    ) -> Counted | None:
        """What a task counts in all parts together; None if there are none.

        Args:
            table: the private rows.
            task: counts one part.
            asked: what it counts.
            bits: how many a packed row has.
            out_of_domain: what happens to cells outside their domain.
        """
        workers = len(self._client.nthreads())
        parts = arranged(self._row_groups(table, workers), 2 * workers, bits)
        if not parts:
            return None

        def attempt() -> Private[Counted]:
            # Not part of the tasks: a workload of millions of queries is sent once per worker.
            sent = self._client.scatter(asked, broadcast=True, hash=False)
            return self._added(
                [
                    self._client.submit(task, part, sent, out_of_domain, __version__, pure=False)
                    for part in parts
                ]
            )

        return _persistently(self._client, attempt).open()

    def _added(self, level: list[Future]) -> Private[Counted]:
        """The counts of all parts together, added up on the workers."""
        while len(level) > 1:
            level = [
                self._client.submit(add_parts, level[i : i + FAN_IN], pure=False)
                for i in range(0, len(level), FAN_IN)
            ]
        added: Private[Counted] = awaited(self._client, level[0])
        return added

    def _row_groups(self, table: ParquetTable, workers: int) -> list[RowGroup]:
        """The row groups of all files; the footers of many files are read by the workers."""
        files = files_of(table)
        step = max(MOST_FOOTERS, -(-len(files) // (4 * workers)))
        if len(files) <= step:
            return row_groups(files).open()
        waiting = [
            self._client.submit(row_groups, files[i : i + step], pure=False)
            for i in range(0, len(files), step)
        ]
        try:
            found = [awaited(self._client, future).open() for future in waiting]
        except losses():
            if is_gone(self._client):
                raise gone(self._client) from None
            return row_groups(files).open()  # workers were lost: here, then
        return [group for part in found for group in part]

    def tabulate(
        self, table: Table, schema: Schema, marginals: Marginals, out_of_domain: OutOfDomain
    ) -> npt.NDArray[np.int64]:
        if not isinstance(table, ParquetTable):
            return self._here.tabulate(table, schema, marginals, out_of_domain)
        if bytes_of_codes(schema) > MOST_WIDTH or schema.sizes.max() <= 2:
            # Cells are counted where the rows are, as the conjunctions that they are: of 0/1
            # columns 64 rows at a time.
            return self.count(table, marginals.queries(schema), out_of_domain).counts
        with needed(self._client):
            cells = self._tabulate_parts(table, schema, marginals, out_of_domain)
        return (
            self._here.tabulate(table, schema, marginals, out_of_domain) if cells is None else cells
        )

    def rare_histogram(
        self,
        table: Table,
        schema: Schema,
        cells: RareCells,
        edges: npt.NDArray[np.int64],
        out_of_domain: OutOfDomain,
    ) -> npt.NDArray[np.int64]:
        found = self._rare(table, schema, RareAsked(cells, edges=edges), out_of_domain)
        if found is None:
            return self._here.rare_histogram(table, schema, cells, edges, out_of_domain)
        return found

    def rare_counts(
        self,
        table: Table,
        schema: Schema,
        cells: RareCells,
        most: int,
        out_of_domain: OutOfDomain,
    ) -> npt.NDArray[np.int64]:
        found = self._rare(table, schema, RareAsked(cells, most=most), out_of_domain)
        if found is None:
            return self._here.rare_counts(table, schema, cells, most, out_of_domain)
        return found

    def _rare(
        self, table: Table, schema: Schema, asked: RareAsked, out_of_domain: OutOfDomain
    ) -> npt.NDArray[np.int64] | None:
        """What is asked about rare cells, counted where the rows are; None if they are here."""
        if not isinstance(table, ParquetTable):
            return None
        with needed(self._client):
            bits = len(asked.cells.used)
            found = self._over_parts(table, rare_part, (schema, asked), bits, out_of_domain)
        return None if found is None else found.counts

    def _tabulate_parts(
        self, table: ParquetTable, schema: Schema, marginals: Marginals, out_of_domain: OutOfDomain
    ) -> npt.NDArray[np.int64] | None:
        """Cells from the codes of the parts, which workers keep from one step to the next."""
        if self._parts is None or self._parts[0] is not table:
            # The same parts at every step. Sub-bins may need twice the bytes of bins.
            workers = len(self._client.nthreads())
            bits = 8 * 2 * len(schema)
            groups = self._row_groups(table, workers)
            self._parts = (table, arranged(groups, 2 * workers, bits))
        parts = self._parts[1]
        if not parts:
            return None

        def attempt() -> Private[Counted]:
            workers = sorted(self._client.nthreads())
            sent = self._client.scatter((schema, marginals), broadcast=True, hash=False)
            return self._added(
                [
                    # To the same worker at every step; another one has to read the part first.
                    self._client.submit(
                        tabulate_part, f"{self._run}/rows-{i}", part, sent, out_of_domain,
                        __version__, pure=False, workers=[workers[i % len(workers)]],
                        allow_other_workers=True,
                    )
                    for i, part in enumerate(parts)
                ]
            )  # fmt: skip

        return _persistently(self._client, attempt).open().counts

    def query_player(self, actions: Actions, answers: Counted, reference: int) -> QueryPlayer:
        with needed(self._client):
            shards = RemoteShards(self._client, self._run, actions, answers, reference)
        return RemoteQueryPlayer(answers, reference, shards)

    def data_player(self, player: DataPlayer[State]) -> DataPlayer[State]:
        either: object = player  # mypy takes no `DataPlayer[State]` for a `RecordPlayer`
        if not isinstance(either, RecordPlayer):
            return player
        # Its answers are records instead of numbers; only `RemoteQueryPlayer` reads them.
        return cast("DataPlayer[State]", RemoteRecordPlayer(either))

    def tables_answers(self, player: TablesPlayer, known: Known) -> npt.NDArray[np.float64]:
        # The model itself; only `RemoteQueryPlayer` reads it. Single precision is what is used.
        model = player.model(known)
        single = Mixture(
            model.schema,
            model.weights.astype(np.float32),
            model.own.astype(np.float32),
            model.edges,
        )
        return cast("npt.NDArray[np.float64]", single)

    def climb(
        self,
        members: Members,
        ascent: Callable[[], Ascent],
        terms: Sequence[Term],
        rates: Sequence[float],
    ) -> Members:
        """Every fit on a worker. Fits are public: they follow from what was released."""
        if len(members) == 1:
            return climbed(members, ascent, terms, rates)
        with needed(self._client):
            try:
                sent = self._client.scatter((ascent, terms, rates), broadcast=True, hash=False)
                waiting = [
                    self._client.submit(climb_member, member, sent, pure=False)
                    for member in members
                ]
                return tuple(awaited(self._client, future) for future in waiting)
            except losses():
                if is_gone(self._client):
                    raise gone(self._client) from None
        return climbed(members, ascent, terms, rates)  # workers were lost: here, then


def climb_member(
    member: Parameters,
    climbing: tuple[Callable[[], Ascent], Sequence[Term], Sequence[float]],
) -> Parameters:
    """One fit after one step at each rate. Runs on a worker."""
    return climbed((member,), *climbing)[0]


class RemoteRecordPlayer:
    """The record player, except that its answers are its records so far.

    It counts no matches: each shard counts those of its own queries.
    """

    def __init__(self, player: RecordPlayer) -> None:
        self._player = player

    def start(self) -> Played:
        return Played((), np.zeros(0, dtype=np.int32))

    def answers(self, state: Played) -> tuple[Record, ...]:
        return state.records

    def respond(self, state: Played, temperature: float, draws: Draws) -> Move:
        return self._player.respond(state, temperature, draws)

    def replay(self, state: Played, temperature: float, draws: Draws, move: Move) -> Played:
        return Played((*state.records, expect(RecordMove, move).record), state.matches)


class RemoteQueryPlayer(QueryPlayer):
    """The query player over shards on workers.

    Guarantee: that of `QueryPlayer`. The shards hold the same exponents in the same order, so
    the same words of a random source give the same draws.
    """

    def __init__(self, answers: Counted, reference: int, shards: RemoteShards) -> None:
        self._shards = shards

    def draw(
        self,
        temperature: float,
        played: Strategy,
        samples: int,
        source: RandomSource,
        *,
        reference: int | None = None,
    ) -> Draws:
        """As in `QueryPlayer`, except that `played` may also be the records so far."""
        with needed(self._shards.client):
            self._shards.news(temperature, played, reference)
            return draw(self._shards, samples, source)


class RemoteShards:
    """Contiguous ranges of queries on workers, which together are all actions.

    A shard is sent to a worker once. After that it is only told what changed. When a worker is
    lost, its shards are lost too. The client makes them again on another worker, and repeats the
    steps of the current round.
    """

    def __init__(
        self, client: Client, run: str, actions: Actions, answers: Counted, reference: int
    ) -> None:
        self.client = client
        self._run = run
        workload = self._workload = actions.queries
        self._log_prior = actions.log_prior
        self._answers = answers
        self._reference = reference
        homes = sorted(client.nthreads())
        shards = max(1, min(len(homes), len(workload)))
        self._cuts = [len(workload) * i // shards for i in range(shards + 1)]
        self._homes = homes[:shards]
        self._divisor: int | None = None
        self._number = -1
        self._temperature = 0.0
        self._played: Strategy = ()
        self._model: Future = None
        self._told = 0
        self._largest: float | None = None
        self._totals = np.zeros((shards, 1), dtype=np.int64)

    @property
    def queries(self) -> int:
        return len(self._workload)

    def news(self, temperature: float, played: Strategy, reference: int | None = None) -> None:
        """Begin a round at this temperature, against these answers, with this divisor."""
        self._divisor = reference
        self._told = len(self._played) if isinstance(self._played, tuple) else 0
        self._number += 1
        self._temperature, self._played, self._largest = temperature, played, None
        self._model = None

    def largest(self) -> float:
        found = self._ask({i: Question(self._news(i, self._told)) for i in self._shards})
        return max(answer.largest for answer in found.values())

    def tally(self, largest: float) -> npt.NDArray[np.int64]:
        self._largest = largest
        found = self._ask({i: Question(largest=largest) for i in self._shards})
        self._totals = np.stack([found[i].totals for i in self._shards])
        total: npt.NDArray[np.int64] = self._totals.sum(axis=0)
        return total

    def locate(
        self, buckets: npt.NDArray[np.int64], ranks: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        shards, inside = route(self._totals, buckets, ranks)
        chosen = {int(i): np.flatnonzero(shards == i) for i in np.unique(shards)}
        found = self._ask(
            {i: Question(sought=(buckets[part], inside[part])) for i, part in chosen.items()}
        )
        positions = np.empty(buckets.size, dtype=np.int64)
        scaled = np.empty(buckets.size, dtype=np.uint64)
        for i, part in chosen.items():
            positions[part], scaled[part] = found[i].positions, found[i].mantissas
            positions[part] += 2 * self._cuts[i]
        return positions, scaled

    @property
    def _shards(self) -> range:
        return range(len(self._homes))

    def _news(self, i: int, first: int) -> News:
        if isinstance(self._played, tuple):
            return News(self._number, self._temperature, first, self._played[first:])
        if isinstance(self._played, Mixture):
            return News(self._number, self._temperature, reference=self._divisor)
        part = self._played[self._cuts[i] : self._cuts[i + 1]]
        return News(self._number, self._temperature, answers=part, reference=self._divisor)

    def _birth(self, i: int) -> Private[Birth]:
        part = np.arange(self._cuts[i], self._cuts[i + 1])
        return Private(
            Birth(
                self._workload.take(part),
                self._log_prior[part],
                self._answers.counts[part],
                self._answers.rows,
                self._reference,
            )
        )

    def _ask(self, questions: dict[int, Question]) -> dict[int, ShardAnswer]:
        """Ask several shards at once. Shards that were lost are made again, and asked again."""
        answers: dict[int, ShardAnswer] = {}
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

    def _send(self, i: int, question: Question, *, anew: bool) -> Future:
        """The future of a shard's answer; None if its worker is lost."""
        home, birth, model = self._homes[i], None, None
        if anew:
            question = replace(question, news=self._news(i, 0), largest=self._largest)
            try:
                # Scattered, not part of the task: it may be large, and tasks are kept and logged.
                birth = self.client.scatter(self._birth(i), workers=[home], hash=False)
            except losses():
                return None
        if question.news is not None and isinstance(self._played, Mixture):
            try:
                if self._model is None or anew:  # once per worker, however many shards it has
                    self._model = self.client.scatter(self._played, broadcast=True, hash=False)
            except losses():
                return None
            model = self._model
        name = f"{self._run}/{i}"
        return self.client.submit(
            step, name, self._number, question, birth, model, workers=[home], pure=False
        )

    def _receive(self, i: int, future: Future) -> Private[ShardAnswer] | None:
        """What a shard answered; None if the shard or its worker is lost."""
        while future is not None:
            try:
                found: Private[ShardAnswer] | None = future.result(timeout=2)
                return found
            except TimeoutError:
                # A task that is bound to a lost worker would wait for it for ever.
                if self.client.status != "running" and is_gone(self.client):
                    raise gone(self.client) from None
                if self._homes[i] not in self.client.nthreads():
                    future.cancel()
                    return None
            except losses():
                return None
        return None

    def _rehome(self) -> None:
        """Give the shards of lost workers to those that are left."""
        if is_gone(self.client):
            raise gone(self.client)
        try:
            self.client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise EngineError("all Dask workers were lost") from None
        require_same_version(self.client)  # new workers may have joined
        left = sorted(self.client.nthreads())
        for i, home in enumerate(self._homes):
            if home not in left:
                self._homes[i] = left[i % len(left)]


def require_same_version(client: Client) -> None:
    """Refuse workers that would count with other code than this process."""
    found = client.run(package_version, on_error="return")
    for version in found.values():
        if isinstance(version, losses()):
            continue  # this worker was lost meanwhile; whoever needs it will notice
        if isinstance(version, Exception):
            raise EngineError(f"a Dask worker cannot import dualquery: {first_line(version)}")
        if version != __version__:
            raise another_version(version, __version__)


def _persistently(client: Client, attempt: Callable[[], Private[Counted]]) -> Private[Counted]:
    """Try again while attempts fail because workers were lost."""
    for _ in range(ATTEMPTS):
        try:
            return attempt()
        except losses():
            if is_gone(client):
                raise gone(client) from None
    raise EngineError(f"workers were lost {ATTEMPTS} times while counting; giving up")


def losses() -> tuple[type[BaseException], ...]:
    """The errors that a client sees when a worker is lost."""
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError, FuturesCancelledError

    return (KilledWorker, FutureCancelledError, FuturesCancelledError, OSError, TimeoutError)
