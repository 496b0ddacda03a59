"""Threads for kernels that release the GIL.

This is a pool of plain threads over ranges rather than numba's own parallel loops, for two
reasons. Those loops compile slowly, and their default back-end must not be entered from two
threads at once, which is what a Dask worker does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise


def thread_count() -> int:
    """How many threads to use: `DUALQUERY_THREADS`, or the cores this process may run on."""
    wanted = os.environ.get("DUALQUERY_THREADS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@cache
def _pool(workers: int, process: int) -> ThreadPoolExecutor:
    # The process id is part of the key: a pool does not survive a fork.
    return ThreadPoolExecutor(workers, thread_name_prefix="dualquery")


SMALL = 1 << 18
"""Fewer steps of arithmetic than this are done before another thread has woken up."""


def over_ranges(
    task: Callable[[int, int], object], total: int, grain: int = 16_384, work: int = SMALL
) -> None:
    """Call `task(first, last)` for consecutive ranges that cover `range(total)`.

    Ranges hold at least `grain` items, so that small work stays on the calling thread. There are
    up to four ranges per thread, so that a few slow ranges do not leave the other threads idle.

    Args:
        task: what to call.
        total: the number of items.
        grain: of items per range, the least.
        work: the steps of arithmetic of all items together, where items are few and their size
            is known; below `SMALL` of them all items stay on the calling thread.
    """
    workers = 1 if work < SMALL or total < 2 * grain else thread_count()
    if workers == 1:
        task(0, total)
        return
    parts = min(4 * workers, total // grain)
    cuts = [total * part // parts for part in range(parts + 1)]
    pool = _pool(workers, os.getpid())
    running = [pool.submit(task, a, b) for a, b in pairwise(cuts)]
    for future in running:
        future.result()
