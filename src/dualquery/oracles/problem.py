"""The data player's problem: which record satisfies most of the drawn queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import ParameterError
from dualquery.domain.constraints import Constraints
from dualquery.workloads.workload import Workload


@dataclass(frozen=True, eq=False)
class Problem:
    """Maximise constant + Σ_j weights[j]·[x satisfies workload[j]] over valid records x.

    The value of a record is the number of drawn signed queries that it satisfies. A negated
    draw of q is satisfied by 1 − q, so it adds 1 to `constant` and −1 to the weight of q.
    Repeated draws add up, and queries whose draws cancel are dropped. `draws` is the number
    of draws. Attributes that no query mentions, and ties, take the codes in `defaults`.
    """

    workload: Workload
    weights: npt.NDArray[np.int64]
    constant: int
    draws: int
    defaults: npt.NDArray[np.int32]
    constraints: Constraints | None = None

    @classmethod
    def of(
        cls,
        workload: Workload,
        queries: npt.ArrayLike,
        signs: npt.ArrayLike,
        *,
        defaults: npt.NDArray[np.int32] | None = None,
        constraints: Constraints | None = None,
    ) -> Self:
        """The problem of some draws, repeats included.

        Args:
            workload: the queries that could be drawn.
            queries: per draw, the position of its query in the workload.
            signs: per draw 1, or −1 if the query was drawn negated.
            defaults: per attribute, the code it takes where nothing decides; by default the
                schema's own.
            constraints: what no record may have.
        """
        # numba takes long to import, so kernels are imported where they are first needed.
        from dualquery.oracles import _compile_kernels

        drawn = np.asarray(queries, dtype=np.int64)
        sides = np.asarray(signs, dtype=np.int64)
        if drawn.shape != sides.shape or drawn.ndim != 1:
            raise ParameterError(
                f"queries of shape {drawn.shape} and signs of shape {sides.shape}; "
                "expected one sign per drawn query"
            )
        if len(drawn) and not 0 <= drawn.min() <= drawn.max() < len(workload):
            raise ParameterError(
                f"drawn queries from {drawn.min()} to {drawn.max()}; "
                f"expected 0 to {len(workload) - 1}"
            )
        if len(sides) and not np.array_equal(np.abs(sides), np.ones_like(sides)):
            raise ParameterError("a sign is neither -1 nor 1; expected one of them")
        distinct = _compile_kernels.collect(np.sort(2 * drawn + (sides > 0)))
        asked = _compile_kernels.gather(
            distinct.queries, workload.start, workload.terms, len(workload.literals)
        )
        return cls(
            Workload(
                workload.schema,
                workload.literals.take(asked.literals),
                asked.start,
                asked.terms,
                workload.is_parity[distinct.queries],
            ),
            distinct.weights,
            int(np.count_nonzero(sides < 0)),
            len(drawn),
            workload.schema.defaults if defaults is None else defaults,
            constraints,
        )

    def value(self, record: npt.NDArray[np.integer]) -> int:
        """The number of drawn signed queries that a record satisfies."""
        return self.constant + int(self.weights @ satisfied(self.workload, record))

    def in_domain(self, record: npt.NDArray[np.integer]) -> bool:
        """Whether every attribute of a record has a code of its domain."""
        sizes = self.workload.schema.sizes
        return record.shape == sizes.shape and bool(np.all((record >= 0) & (record < sizes)))

    def valid(self, record: npt.NDArray[np.integer]) -> bool:
        """Whether every attribute has a code of its domain, and the constraints hold."""
        if not self.in_domain(record):
            return False
        return self.constraints is None or bool(self.constraints.holds(record[None, :])[0])


def satisfied(workload: Workload, record: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """Per query, whether one record satisfies it: the definition, written plainly."""
    if not len(workload):
        return np.zeros(0, dtype=bool)
    literals = workload.literals
    owner = literals.owner
    hit = record[literals.attribute[owner]] == literals.codes
    holds = np.zeros(len(literals), dtype=bool)
    holds[owner[hit]] = True
    false_terms = holds[workload.terms >> 1] == (workload.terms & 1).astype(bool)
    query = np.repeat(np.arange(len(workload)), np.diff(workload.start))
    false = np.bincount(query[false_terms], minlength=len(workload))
    true = np.diff(workload.start) - false
    held: npt.NDArray[np.bool_] = np.where(workload.is_parity, true % 2 == 0, false == 0)
    return held
