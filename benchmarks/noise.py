"""Exact noise against what one would write in NumPy: a rounded float, which is not private.

    python -m benchmarks noise

Both sides are timed in the same run, best of several, on one core; ours with the operating
system's randomness. Seconds are those of the process, so that a busy machine does not blur them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dualquery.privacy.noise import discrete_laplace, rounded_gaussian
from dualquery.privacy.sources import SystemSource

VALUES = 1_000_000


def run(values: int = VALUES) -> list[dict[str, Any]]:
    """One row of figures per distribution and scale."""
    rng, source = np.random.default_rng(0), SystemSource()
    rows = []
    for sigma in (1.0, 41.3, 1e6):
        ours = seconds_of(lambda s=sigma: rounded_gaussian(s, values, source))
        numpy = seconds_of(lambda s=sigma: np.rint(rng.normal(0.0, s, values)).astype(np.int64))
        rows.append(figures("rounded Gaussian", sigma, values, ours, numpy))
    for scale in (10.0, 2.0 / 0.37):
        ours = seconds_of(lambda b=scale: discrete_laplace(b, values, source))
        numpy = seconds_of(lambda b=scale: np.rint(rng.laplace(0.0, b, values)).astype(np.int64))
        rows.append(figures("discrete Laplace", scale, values, ours, numpy))
    return rows


def figures(kind: str, scale: float, values: int, ours: float, numpy: float) -> dict[str, Any]:
    return {
        "noise": kind,
        "scale": scale,
        "values_per_second": int(values / ours),
        "numpy_values_per_second": int(values / numpy),
        "times_numpy": ours / numpy,
    }


def seconds_of(task: Callable[[], object], repeats: int = 5) -> float:
    """The shortest of several times; the first call, which may compile, does not count."""
    task()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return min(times)
