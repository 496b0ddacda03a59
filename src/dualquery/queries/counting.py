"""Exact counts of every query over private rows. Private side of the boundary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dualquery.queries.workload import Workload
from dualquery.records import Records
from dualquery.threads import over_ranges

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Answers:
    """Private counts: `counts[q]` of the `rows` rows satisfy query q."""

    counts: Counts
    rows: int


def count(records: Records, workload: Workload) -> Answers:
    """Count all queries of a workload over records packed for its literals."""
    from dualquery._kernels import count_block

    counts = np.zeros(len(workload), dtype=np.int64)
    for bits, rows in zip(records.blocks, records.block_rows, strict=True):
        last_word = np.uint64(2 ** (((rows - 1) % 64) + 1) - 1)

        def task(
            first: int, last: int, bits: npt.NDArray[np.uint64] = bits, mask: np.uint64 = last_word
        ) -> None:
            count_block(
                bits, mask, workload.start, workload.terms, workload.is_parity, counts, first, last
            )

        over_ranges(task, len(workload), grain=256)
    return Answers(counts, records.rows)
