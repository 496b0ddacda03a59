"""One gradient step of a fit to measured tables: how near it comes to the machine's matrix product.

    python -m benchmarks fits

`peak_gflops` is a large product of single-precision matrices on one thread, measured in the same
run. Cells count six operations per component: the share of a cell, and two slopes. `of_numpy` is
the time of the NumPy twin (one `einsum` per table and slope) divided by ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.model.measured import Measured
from dualquery.model.stack import Stack
from dualquery.privacy.events import Noise
from dualquery.privacy.measuring import Measurement
from dualquery.workloads.marginals import Marginals

CASES = {
    "60 tables of three, up to 41 codes": ([16, 8, 8, 16, 7, 14, 6, 5, 2, 20, 20, 20, 41], 60, 64),
    "60 tables of three, 128 components": ([16, 8, 8, 16, 7, 14, 6, 5, 2, 20, 20, 20, 41], 60, 128),
    "560 tables of eight cells": ([2] * 16, 560, 64),
}


def run() -> list[dict[str, Any]]:
    """One row per case, all on one thread."""
    import scipy.linalg.cython_blas  # noqa: F401  its threads can be limited only once it is loaded

    with threadpool_limits(1, user_api="blas"):
        peak = _peak()
        return [_measure(name, *case, peak) for name, case in CASES.items()]


def _peak() -> float:
    """Billions of operations per second of a large matrix product."""
    matrix = np.random.default_rng(0).random((1500, 1500), dtype=np.float32)
    return 2.0 * 1500**3 / _best_of(lambda: matrix @ matrix, 5) / 1e9


def _measure(name: str, sizes: list[int], tables: int, components: int, peak: float) -> Any:
    random = np.random.default_rng(1)
    schema = Schema(
        tuple(Attribute.categorical(f"a{i}", list(range(s))) for i, s in enumerate(sizes))
    )
    stack = Stack.of(schema, np.arange(len(sizes)))
    triples = np.array(list(combinations(range(len(sizes)), 3)), dtype=np.int32)
    named = triples[np.sort(random.choice(len(triples), tables, replace=False))]
    marginals = Marginals(stack.groups, named)
    counts = random.integers(0, 200, marginals.cells)
    one = Measurement(marginals, Noise.GAUSSIAN, 10.0, counts)
    term = Measured(stack, [one], 30_000.0)
    shares = random.dirichlet(np.ones(components), stack.rows).astype(np.float32)
    weights = random.dirichlet(np.ones(components)).astype(np.float32)
    term.slopes(shares, weights)
    ours = _best_of(lambda: term.slopes(shares, weights), 30)
    twin = _best_of(lambda: _twin(stack, one, shares, weights), 2)
    reached = 6.0 * marginals.cells * components / ours / 1e9
    return {
        "name": name,
        "cells": marginals.cells,
        "components": components,
        "milliseconds": 1e3 * ours,
        "gflops": reached,
        "peak_gflops": peak,
        "share_of_peak": reached / peak,
        "of_numpy": twin / ours,
    }


def _twin(stack: Stack, one: Measurement, shares: Any, weights: Any) -> None:
    """The slopes of all tables, as one would write them in NumPy."""
    start, cells = stack.start, one.marginals.start
    slope = np.zeros_like(shares)
    for t, (a, b, c) in enumerate(one.marginals.attributes.tolist()):
        x, y, z = (shares[start[i] : start[i + 1]] for i in (a, b, c))
        away = 30_000.0 * np.einsum("k,ik,jk,lk->ijl", weights, x, y, z, optimize=True)
        pull = (away - one.counts[cells[t] : cells[t + 1]].reshape(away.shape)).astype(np.float32)
        slope[start[a] : start[a + 1]] += np.einsum("ijl,jk,lk->ik", pull, y, z, optimize=True)
        slope[start[b] : start[b + 1]] += np.einsum("ijl,ik,lk->jk", pull, x, z, optimize=True)
        slope[start[c] : start[c + 1]] += np.einsum("ijl,ik,jk->lk", pull, x, y, optimize=True)


def _best_of(work: Callable[[], object], times: int) -> float:
    best = np.inf
    for _ in range(times):
        begun = time.thread_time()  # other work on the machine takes no part in it
        work()
        best = min(best, time.thread_time() - begun)
    return float(best)


if __name__ == "__main__":
    for row in run():
        print(row)
