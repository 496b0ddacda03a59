"""Counting and weights in this process, on its threads."""

from __future__ import annotations

from types import TracebackType
from typing import Self, TypeVar

from dualquery.game.data_player import DataPlayer
from dualquery.game.query_player import QueryPlayer
from dualquery.rows.counting import count_rows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.table import Table
from dualquery.workloads.actions import Actions
from dualquery.workloads.counts import Counted
from dualquery.workloads.workload import Workload

State = TypeVar("State")


class LocalEngine:
    """The engine that is used unless another is chosen: it needs nothing but this process."""

    def count(self, table: Table, workload: Workload, out_of_domain: OutOfDomain) -> Counted:
        return count_rows(table, workload, out_of_domain)

    def query_player(self, actions: Actions, answers: Counted, reference: int) -> QueryPlayer:
        return QueryPlayer(answers, reference, offsets=actions.offsets)

    def data_player(self, player: DataPlayer[State]) -> DataPlayer[State]:
        return player

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
