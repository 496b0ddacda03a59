"""Queries on public records: those that the record player plays, and sampled ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from dualquery.base.threads import over_ranges
from dualquery.domain.query import Query
from dualquery.domain.schema import Schema
from dualquery.workloads.workload import Literals, Workload

Record = npt.NDArray[np.int32]
Matches = npt.NDArray[np.int32]

AT_ONCE = 1024
"""Queries that are answered together, so that their bytes stay near the processor."""


def truths(literals: Literals, record: Record) -> npt.NDArray[np.uint8]:
    """Per term (twice the literal, plus one if negated), whether a record satisfies it."""
    lengths = np.diff(literals.start)
    hit = literals.codes == np.repeat(record[literals.attribute], lengths)
    holds = np.logical_or.reduceat(hit, literals.start[:-1])
    return np.column_stack([holds, ~holds]).reshape(-1).astype(np.uint8)


def add_matches(workload: Workload, record: Record, matches: Matches) -> None:
    """Add 1 to `matches[q]` for each query q that the record satisfies."""
    from dualquery.workloads._kernels import add_matches as kernel
    from dualquery.workloads._kernels import add_uniform_matches

    truth = truths(workload.literals, record)
    task: Callable[[int, int], None]
    if workload.arity is not None and not workload.has_parities:
        terms = workload.terms.reshape(len(workload), workload.arity)
        task = partial(add_uniform_matches, truth, terms, matches)
    else:
        task = partial(kernel, truth, workload.start, workload.terms, workload.is_parity, matches)
    over_ranges(task, len(workload), grain=65_536)


def mean_answers(workload: Workload, records: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """Per query, the share of the records that satisfy it."""
    matches = np.zeros(len(workload), dtype=np.int32)
    for record in records:
        add_matches(workload, record, matches)
    return share(matches, len(records))


def shares_holding(workload: Workload, records: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """The same on many records: eight records in a byte.

    Args:
        workload: the queries.
        records: one row of codes each.
    """
    literals = workload.literals
    terms = np.empty((2 * len(literals), (len(records) + 7) // 8), dtype=np.uint8)
    for one, attribute in enumerate(literals.attribute.tolist()):
        member = literals.membership(one, int(workload.schema.sizes[attribute]))
        holds = member[records[:, attribute]]
        terms[2 * one] = np.packbits(holds)
        terms[2 * one + 1] = np.packbits(~holds)  # the rest of the last byte is empty in both
    found = np.empty(len(workload), dtype=np.float64)
    lengths = np.diff(workload.start)
    kinds = np.unique(np.column_stack([lengths, workload.is_parity]), axis=0)
    for length, parity in kinds.tolist():
        queries = np.flatnonzero((lengths == length) & (workload.is_parity == bool(parity)))
        join = np.bitwise_xor if parity else np.bitwise_and
        for first in range(0, len(queries), AT_ONCE):
            some = queries[first : first + AT_ONCE]
            held = terms[workload.terms[workload.start[some]]]
            for place in range(1, length):
                join(held, terms[workload.terms[workload.start[some] + place]], out=held)
            found[some] = np.bitwise_count(held).sum(axis=1, dtype=np.int64)
    found[workload.is_parity] = len(records) - found[workload.is_parity]  # an odd number held
    return found / len(records)


def satisfying(
    records: npt.NDArray[np.int32], query: Query, schema: Schema
) -> npt.NDArray[np.bool_]:
    """Which records satisfy one query."""
    holds = np.column_stack(
        [
            np.isin(records[:, one.attribute], list(one.allowed(int(schema.sizes[one.attribute]))))
            for one in query.literals
        ]
    )
    even: npt.NDArray[np.bool_] = holds.sum(axis=1) % 2 == 0
    return even if query.kind == "parity" else np.asarray(holds.all(axis=1))


def share(matches: Matches, total: int) -> npt.NDArray[np.float64]:
    """Per query, its matches as a share of `total` records; all threads divide."""
    shares = np.empty(len(matches), dtype=np.float64)

    def task(first: int, last: int) -> None:
        np.divide(matches[first:last], total, out=shares[first:last])

    over_ranges(task, len(matches), grain=1 << 18)
    return shares
