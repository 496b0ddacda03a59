"""The exact draw against what one would write in NumPy: exp, cumsum, searchsorted.

    python -m benchmarks.sampler [--large]

Both sides start from the same exponents and are timed in the same run, best of several. The
NumPy side is not private; it is the yardstick. Figures are ratios of times, so that they mean the
same on every machine.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dualquery.privacy.sampler import draw
from dualquery.privacy.shards import Shard
from dualquery.privacy.sources import SystemSource

ROWS = 30_162
SMALL = (100_000, 1_000_000)
LARGE = (20_000_000,)


def run(
    sizes: Sequence[int] = SMALL, samples: int = 1000, temperature: float = 150.0
) -> list[dict[str, Any]]:
    """One row of figures per number of queries."""
    return [measure(queries, samples, temperature) for queries in sizes]


def measure(
    queries: int,
    samples: int,
    temperature: float,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Any]:
    """Times of one round, ours and NumPy's, at one size."""
    best_of = partial(shortest, clock=clock)
    rng = np.random.default_rng(0)
    counts = rng.integers(0, ROWS // 4, queries)
    answers = np.clip(counts / ROWS + rng.normal(0.0, 0.02, queries), 0.0, 1.0)
    shard = Shard(queries)
    source = SystemSource()
    falls = np.empty(2 * queries)
    sums = np.empty(2 * queries)

    def score() -> None:
        shard.score(counts, answers, temperature, size=ROWS, reference=ROWS)

    def weigh() -> None:
        np.exp(falls, out=sums)
        np.cumsum(sums, out=sums)

    def search() -> None:
        np.searchsorted(sums, sums[-1] * rng.random(samples))

    score()
    falls[:queries] = shard.exponents - shard.largest()
    falls[queries:] = -shard.exponents - shard.largest()
    one = best_of(lambda: draw(shard, 1, source))
    many = best_of(lambda: draw(shard, samples, source))
    scoring, weighing, searching = best_of(score), best_of(weigh), best_of(search)
    return {
        "queries": queries,
        "samples": samples,
        "numpy_ms": 1e3 * weighing,
        "score_ms": 1e3 * scoring,
        "draw_ms": 1e3 * many,
        # What a round costs before its second draw, exponents included.
        "round_over_numpy": (scoring + one) / weighing,
        "all_over_numpy": (scoring + many) / (weighing + searching),
        "us_per_draw": 1e6 * max(0.0, many - one) / max(1, samples - 1),
    }


def shortest(task: Callable[[], object], repeats: int = 7, *, clock: Callable[[], float]) -> float:
    """The shortest of several times, in seconds: what the work takes when nothing disturbs it."""
    times = []
    for _ in range(repeats):
        start = clock()
        task()
        times.append(clock() - start)
    return min(times)


def main() -> None:
    from rich.console import Console
    from rich.table import Table

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="also 20 million queries (1.5 GB)")
    rows = run(SMALL + LARGE if parser.parse_args().large else SMALL)
    print(json.dumps(rows))
    table = Table(title="one round of exact draws")
    for name in rows[0]:
        table.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(
            *(f"{value:,}" if isinstance(value, int) else f"{value:.2f}" for value in row.values())
        )
    Console(stderr=True).print(table)


if __name__ == "__main__":
    main()
