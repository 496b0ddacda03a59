"""Counting and weights in this process, on its threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, TypeVar

import numpy as np
import numpy.typing as npt

from dualquery.domain.schema import Schema
from dualquery.game.data_player import DataPlayer
from dualquery.game.query_player import QueryPlayer
from dualquery.game.tables_player import Known, TablesPlayer
from dualquery.model.ensemble import Members, climbed
from dualquery.model.terms import Term
from dualquery.model.training import Ascent
from dualquery.rows.bits import PackedOnes
from dualquery.rows.counting import count_layers, count_packed, pack_layers
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.packed import PackedRows
from dualquery.rows.rare import RareRows
from dualquery.rows.table import Table
from dualquery.rows.tabulation import tabulate
from dualquery.rows.weighed import Weighed
from dualquery.workloads.actions import Actions
from dualquery.workloads.counts import Counted
from dualquery.workloads.marginals import Marginals
from dualquery.workloads.rare import RareCells
from dualquery.workloads.workload import Workload

State = TypeVar("State")


class LocalEngine:
    """The engine that is used unless another is chosen: it needs nothing but this process."""

    def __init__(self) -> None:
        # Tables are measured several times over: their codes are kept once they were read.
        self._encoded: tuple[Table, Schema, EncodedRows] | None = None
        # So are the packed columns of 0/1 attributes, from which tables are counted as well.
        # Rows that weigh the same are one layer, with the parts that each of them counts.
        self._packed: tuple[Table, tuple[tuple[int, PackedOnes], ...]] | None = None
        self._rare: tuple[Table, RareRows] | None = None

    def count(
        self,
        table: Table,
        workload: Workload,
        out_of_domain: OutOfDomain,
        keep: Schema | None = None,
    ) -> Counted:
        self._packed = self._rare = None
        if isinstance(table, Weighed):
            layers = pack_layers(table, workload, out_of_domain)
            # Layers of binary digits share rows, and would take more memory than codes.
            if table.strata.disjoint:
                self._keep(table, layers, workload.schema)
            return count_layers(layers, workload, table)
        literals = workload.literals
        if keep is None or PackedOnes.fit(literals, keep):
            packed = PackedRows.pack(table, workload.schema, literals, out_of_domain)
        else:
            packed, rows = EncodedRows.read_packed(
                table, workload.schema, literals, out_of_domain, keep
            )
            self._encoded = None if rows is None else (table, keep, rows)
        counted = count_packed(packed, workload)
        self._keep(table, [(1, packed)], workload.schema)
        return counted

    def _keep(self, table: Table, layers: list[tuple[int, PackedRows]], schema: Schema) -> None:
        """Keep packed columns from which tables can be counted; the codes of others are read."""
        found = [(parts, PackedOnes.of(packed, schema)) for parts, packed in layers]
        ones = tuple((parts, one) for parts, one in found if one is not None)
        if ones and len(ones) == len(layers):
            self._packed = (table, ones)

    def tabulate(
        self, table: Table, schema: Schema, marginals: Marginals, out_of_domain: OutOfDomain
    ) -> npt.NDArray[np.int64]:
        ones = self._packed
        if ones is not None and ones[0] is table and ones[1][0][1].hold(marginals):
            cells = np.zeros(marginals.cells, dtype=np.int64)
            for parts, one in ones[1]:
                cells += parts * one.tabulate(marginals)
            return cells
        attributes = np.unique(marginals.attributes).tolist()
        kept = self._encoded
        if kept is None or kept[0] is not table or not set(attributes) <= set(kept[2].columns):
            rows = EncodedRows.read(table, schema, attributes, out_of_domain)
            self._encoded = kept = (table, schema, rows)
        elif kept[1] is not schema:
            if kept[1] is schema.fine:  # one-way tables come first, and need finer codes
                rows = kept[2].coarser(schema)
            else:
                rows = EncodedRows.read(table, schema, attributes, out_of_domain)
            self._encoded = kept = (table, schema, rows)
        return tabulate(kept[2], marginals)

    def rare_histogram(
        self,
        table: Table,
        schema: Schema,
        cells: RareCells,
        edges: npt.NDArray[np.int64],
        out_of_domain: OutOfDomain,
    ) -> npt.NDArray[np.int64]:
        return self._rare_rows(table, schema, cells, out_of_domain).histogram(edges)

    def rare_counts(
        self,
        table: Table,
        schema: Schema,
        cells: RareCells,
        most: int,
        out_of_domain: OutOfDomain,
    ) -> npt.NDArray[np.int64]:
        return self._rare_rows(table, schema, cells, out_of_domain).counts(most)

    def _rare_rows(
        self, table: Table, schema: Schema, cells: RareCells, out_of_domain: OutOfDomain
    ) -> RareRows:
        """What rows are charged is counted once for the histogram and the counts after it."""
        kept = self._rare
        if kept is None or kept[0] is not table or kept[1].cells is not cells:
            ones = self._packed
            packed = ones[1][0][1].packed if ones is not None and ones[0] is table else None
            if packed is None or not RareRows.hold(packed, cells):
                packed = PackedRows.pack(table, schema, cells.literals(), out_of_domain)
            self._rare = kept = (table, RareRows(packed, cells))
        return kept[1]

    def query_player(self, actions: Actions, answers: Counted, reference: int) -> QueryPlayer:
        return QueryPlayer(answers, reference, log_prior=actions.log_prior)

    def data_player(self, player: DataPlayer[State]) -> DataPlayer[State]:
        return player

    def tables_answers(self, player: TablesPlayer, known: Known) -> npt.NDArray[np.float64]:
        return player.answers(known)

    def climb(
        self,
        members: Members,
        ascent: Callable[[], Ascent],
        terms: Sequence[Term],
        rates: Sequence[float],
    ) -> Members:
        return climbed(members, ascent, terms, rates)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
