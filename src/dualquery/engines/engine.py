"""What an engine does, and the choice of one by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from dualquery.base.checks import one_of
from dualquery.base.errors import ParameterError, UnavailableError
from dualquery.domain.schema import Schema
from dualquery.game.data_player import DataPlayer
from dualquery.game.query_player import QueryPlayer
from dualquery.game.tables_player import Known, TablesPlayer
from dualquery.model.ensemble import Members
from dualquery.model.terms import Term
from dualquery.model.training import Ascent
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.table import Table
from dualquery.workloads.actions import Actions
from dualquery.workloads.counts import Counted
from dualquery.workloads.marginals import Marginals
from dualquery.workloads.rare import RareCells
from dualquery.workloads.workload import Workload

NAMES = ("local", "dask")

State = TypeVar("State")


class Engine(Protocol):
    """Counts a workload and plays the query player's part; used as a context manager."""

    def count(
        self,
        table: Table,
        workload: Workload,
        out_of_domain: OutOfDomain,
        keep: Schema | None = None,
    ) -> Counted:
        """Exact counts of the workload over the table.

        Args:
            table: the private rows.
            workload: the queries.
            out_of_domain: what happens to cells outside their domain.
            keep: the schema that `tabulate` will be asked with next: that of the workload, or its
                `fine` one. An engine may keep codes for it, so that rows are read once.
        """
        ...

    def tabulate(
        self, table: Table, schema: Schema, marginals: Marginals, out_of_domain: OutOfDomain
    ) -> npt.NDArray[np.int64]:
        """Exact counts of all cells of some marginals over the table, laid end to end.

        Args:
            table: the private rows.
            schema: their declared domain.
            marginals: which cells.
            out_of_domain: what happens to cells outside their domain.
        """
        ...

    def rare_histogram(
        self,
        table: Table,
        schema: Schema,
        cells: RareCells,
        edges: npt.NDArray[np.int64],
        out_of_domain: OutOfDomain,
    ) -> npt.NDArray[np.int64]:
        """How many rows are charged how much for being in some rare cells.

        Args:
            table: the private rows.
            schema: their declared domain.
            cells: which.
            edges: of the bins of charges.
            out_of_domain: what happens to cells outside their domain.
        """
        ...

    def rare_counts(
        self,
        table: Table,
        schema: Schema,
        cells: RareCells,
        most: int,
        out_of_domain: OutOfDomain,
    ) -> npt.NDArray[np.int64]:
        """The rows in each rare cell; none counts in more than it can pay for with `most`.

        Args:
            table: the private rows.
            schema: their declared domain.
            cells: which.
            most: the most that a row may be charged.
            out_of_domain: what happens to cells outside their domain.
        """
        ...

    def query_player(self, actions: Actions, answers: Counted, reference: int) -> QueryPlayer:
        """The query player for these counts."""
        ...

    def data_player(self, player: DataPlayer[State]) -> DataPlayer[State]:
        """The same data player, with its answers in the form that `query_player` reads."""
        ...

    def tables_answers(self, player: TablesPlayer, known: Known) -> npt.NDArray[np.float64]:
        """What a player of tables answers, in the form that `query_player` reads."""
        ...

    def climb(
        self,
        members: Members,
        ascent: Callable[[], Ascent],
        terms: Sequence[Term],
        rates: Sequence[float],
    ) -> Members:
        """Fits after one step at each rate; all of it is public."""
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
    one_of("engine", name, NAMES)
    if name == "local" and scheduler is not None:
        raise ParameterError(f"scheduler = {scheduler!r} needs engine dask")
    if name == "dask":
        from importlib.util import find_spec

        # Credentials for the cluster that a run starts by itself are made with cryptography.
        for package in ("distributed", "cryptography") if scheduler is None else ("distributed",):
            if find_spec(package) is None:
                raise UnavailableError(
                    f"engine dask needs the {package} package; "
                    "install it with: pip install 'dualquery[dask]'"
                )
        if scheduler is not None:
            _check_address(scheduler)


def _check_address(scheduler: str) -> None:
    """Refuse what cannot be an address: a client that was made for it would not go away."""
    from distributed.comm.addressing import parse_address, parse_host_port
    from distributed.comm.registry import get_backend

    try:
        scheme, place = parse_address(scheduler)
        get_backend(scheme)
        if scheme in ("tcp", "tls"):
            parse_host_port(place)
    except ValueError as error:
        raise ParameterError(
            f"scheduler = {scheduler!r}: {error}; expected an address such as tcp://host:8786"
        ) from None
    security: Any = import_module("distributed").Security()
    if scheme == "tls" and security.get_connection_args("client")["ssl_context"] is None:
        raise ParameterError(
            f"scheduler = {scheduler!r} needs certificates; expected distributed.comm.tls in "
            "Dask's configuration"
        )
