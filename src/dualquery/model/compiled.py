"""A workload arranged for the model's kernels: grouped by shared prefixes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dualquery.base.order import lexical_order
from dualquery.base.ragged import offsets, taken
from dualquery.model.stack import Stack
from dualquery.workloads.workload import Workload

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CompiledWorkload:
    """The queries of a workload in an order in which equal prefixes stand together.

    A parity, "an even number of its terms holds", is (1 + Σ_k π_k Π (1 − 2p))/2, so it is
    a product too, over rows 1 − 2p instead of p; those rows stand behind the others.

    Only the attributes in use have a part in it: their tables are stacked, one row per code.

    Attributes:
        workload: the queries.
        order: position i of the arrangement holds query order[i].
        group_start, prefix_start, prefix, last: see `_kernels.forward`.
        stack: the attributes in use, whose tables are stacked.
        member_start, members: the codes of each literal, as rows of the stacked tables.
    """

    workload: Workload
    literals: int
    order: Ints
    group_start: Ints
    prefix_start: Ints
    prefix: npt.NDArray[np.int32]
    last: npt.NDArray[np.int32]
    is_parity: npt.NDArray[np.bool_]
    has_parities: bool
    stack: Stack
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
        prefix_start, terms = taken(self.prefix_start, groups)
        return replace(
            self,
            order=self.order[positions],
            group_start=np.append(first, len(positions)).astype(np.int64),
            prefix_start=prefix_start,
            prefix=self.prefix[terms],
            last=self.last[positions],
            is_parity=self.is_parity[positions],
        )

    @classmethod
    def of(cls, workload: Workload, stack: Stack | None = None) -> CompiledWorkload:
        """Arrange a workload; the stack is that of the attributes it names, unless it is given."""
        # One order of terms for all queries makes more prefixes equal; the last term stands last.
        matrix = workload.sorted_terms()
        matrix[workload.is_parity] += np.where(
            matrix[workload.is_parity] >= 0, np.int32(2 * len(workload.literals)), np.int32(0)
        )
        order = lexical_order(list(np.ascontiguousarray(matrix.T)))
        arranged = matrix[order]
        prefixes = arranged[:, :-1]
        new = np.ones(len(workload), dtype=bool)
        new[1:] = (prefixes[1:] != prefixes[:-1]).any(axis=1)
        first = np.flatnonzero(new)
        kept = prefixes[first]
        used = kept >= 0
        literals = workload.literals
        stack = stack or Stack.of(workload.schema, literals.attribute)
        first_row = stack.start[stack.positions(literals.attribute)]
        return cls(
            workload,
            len(literals),
            order,
            np.append(first, len(workload)).astype(np.int64),
            offsets(used.sum(axis=1)),
            kept[used],
            np.ascontiguousarray(arranged[:, -1]),
            workload.is_parity[order],
            bool(workload.is_parity.any()),
            stack,
            literals.start,
            (np.repeat(first_row, np.diff(literals.start)) + literals.codes).astype(np.int64),
        )
