"""A workload arranged for the model's kernels: grouped by shared prefixes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dualquery.queries.workload import Workload

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CompiledWorkload:
    """The queries of a workload in an order in which equal prefixes stand together.

    A parity, "an even number of its terms holds", is (1 + Σ_k π_k Π (1 − 2p))/2, so it is
    a product too, over rows 1 − 2p instead of p; those rows stand behind the others.

    Only the attributes in use have a part in it: their tables are stacked, one row a code.

    Attributes:
        order: position i of the arrangement holds query order[i].
        group_start, prefix_start, prefix, last: see `_kernels.forward`.
        codes: which rows of the tables of *all* attributes the stacked tables are.
        table_start: where each attribute in use begins in the stacked tables.
        member_start, members: the codes of each literal, as rows of the stacked tables.
    """

    literals: int
    order: Ints
    group_start: Ints
    prefix_start: Ints
    prefix: npt.NDArray[np.int32]
    last: npt.NDArray[np.int32]
    is_parity: npt.NDArray[np.bool_]
    has_parities: bool
    codes: Ints
    table_start: Ints
    member_start: Ints
    members: Ints

    @property
    def row_count(self) -> int:
        """Rows of literals: p and 1 − p each, and where there are parities 1 − 2p of both."""
        return (4 if self.has_parities else 2) * self.literals

    def in_query_order(self, arranged: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
        """Values in this arrangement, put back into the order of the workload."""
        values = np.empty(len(arranged))
        values[self.order] = arranged
        return values

    def part(self, positions: Ints) -> CompiledWorkload:
        """The queries at these positions, ascending, as an arrangement of their own."""
        group = np.searchsorted(self.group_start, positions, side="right") - 1
        groups, first = np.unique(group, return_index=True)
        lengths = np.diff(self.prefix_start)[groups]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        terms = np.repeat(self.prefix_start[groups] - ends[:-1], lengths) + np.arange(ends[-1])
        return replace(
            self,
            order=self.order[positions],
            group_start=np.append(first, len(positions)).astype(np.int64),
            prefix_start=ends,
            prefix=self.prefix[terms],
            last=self.last[positions],
            is_parity=self.is_parity[positions],
        )

    @classmethod
    def of(cls, workload: Workload) -> CompiledWorkload:
        # One order of terms for all queries makes more prefixes equal; the last term stands last.
        matrix = workload.sorted_terms()
        matrix[workload.is_parity] += np.where(
            matrix[workload.is_parity] >= 0, np.int32(2 * len(workload.literals)), np.int32(0)
        )
        order = np.lexsort(matrix.T[::-1])
        arranged = matrix[order]
        prefixes = arranged[:, :-1]
        new = np.ones(len(workload), dtype=bool)
        new[1:] = (prefixes[1:] != prefixes[:-1]).any(axis=1)
        first = np.flatnonzero(new)
        kept = prefixes[first]
        used = kept >= 0
        literals, schema = workload.literals, workload.schema
        attributes, position = np.unique(literals.attribute, return_inverse=True)
        sizes = schema.sizes[attributes].astype(np.int64)
        table_start = np.concatenate([[0], np.cumsum(sizes)])
        before = np.repeat(schema.code_start[attributes] - table_start[:-1], sizes)
        return cls(
            len(literals),
            order.astype(np.int64),
            np.append(first, len(workload)).astype(np.int64),
            np.concatenate([[0], np.cumsum(used.sum(axis=1))]).astype(np.int64),
            kept[used],
            np.ascontiguousarray(arranged[:, -1]),
            workload.is_parity[order],
            bool(workload.is_parity.any()),
            before + np.arange(table_start[-1]),
            table_start,
            literals.start,
            (np.repeat(table_start[position], np.diff(literals.start)) + literals.codes).astype(
                np.int64
            ),
        )
