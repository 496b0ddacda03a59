"""What an engine does, and the choice of one by name."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Protocol, Self

from dualquery.encoding import OutOfDomain
from dualquery.errors import ParameterError, UnavailableError
from dualquery.game.query_player import QueryPlayer
from dualquery.queries.actions import Actions
from dualquery.queries.counting import Answers
from dualquery.queries.workload import Workload
from dualquery.table import Table

NAMES = ("local", "dask")


class Engine(Protocol):
    """Counts a workload and plays the query player's part; used as a context manager."""

    def count(self, table: Table, workload: Workload, out_of_domain: OutOfDomain) -> Answers:
        """Exact counts of the workload over the table."""
        ...

    def query_player(self, actions: Actions, answers: Answers, reference: int) -> QueryPlayer:
        """The query player for these counts."""
        ...

    def data_player(self, player: Any) -> Any:
        """The data player in the form in which the engine's query player reads it."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def open_engine(name: str = "local", scheduler: str | None = None) -> Engine:
    """The engine of that name; `scheduler` is the address of a running Dask scheduler."""
    check_engine(name, scheduler)
    if name == "dask":
        from dualquery.engines.cluster import DaskEngine

        return DaskEngine(scheduler)
    from dualquery.engines.local import LocalEngine

    return LocalEngine()


def check_engine(name: str, scheduler: str | None) -> None:
    """Refuse a choice that cannot be served, before any work is done."""
    if name not in NAMES:
        raise ParameterError(f"engine = {name!r}; expected one of {', '.join(NAMES)}")
    if name == "local" and scheduler is not None:
        raise ParameterError(f"scheduler = {scheduler!r} needs engine dask")
    if name == "dask":
        from importlib.util import find_spec

        if find_spec("distributed") is None:
            raise UnavailableError(
                "engine dask needs the distributed package; "
                "install it with: pip install 'dualquery[dask]'"
            )
