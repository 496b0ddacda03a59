"""A guard against lost speed: fails if a kernel or a small release lost a third of its ratio.

    python -m benchmarks.guard             compares with benchmarks/ratios.json; exit code 1 if lost
    python -m benchmarks.guard --write     stores the ratios of this run instead

What is compared are ratios to NumPy's time for the same work, measured in the same run and in
processor seconds. They mean nearly the same on a slow machine, a fast one and a busy one; seconds
would not. Caches are shared with other work, so what seems lost is measured again, up to three
times, before it fails; stored is the smallest of three runs. After a change that is meant to cost
time, or that saves some, store the ratios anew and say so in the commit.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.kernels import KERNELS, one_thread

STORED = Path(__file__).with_name("ratios.json")
LOST = 2 / 3
"""A ratio below this share of the stored one is lost."""

TIMES = 3
"""How often a ratio is measured before it is stored, and again before it counts as lost."""

Checks = Mapping[str, Callable[[], float]]


def small_release() -> float:
    """A whole release of a small table: NumPy's time for a fixed piece of work over ours."""
    from dualquery.domain.attributes import Attribute
    from dualquery.domain.schema import Schema
    from dualquery.estimator import DualQuery

    random = np.random.default_rng(0)
    sizes = (2, 3, 5, 8, 2, 4, 6, 3)
    frame = pa.table({f"a{i}": random.integers(0, s, 3000) for i, s in enumerate(sizes)})
    schema = Schema(
        tuple(Attribute.categorical(f"a{i}", list(range(s))) for i, s in enumerate(sizes))
    )

    def release() -> None:
        DualQuery(1.0, 1e-6, queries=5000, seed=1).fit(frame, schema=schema)

    return _shortest(yardstick, 3) / _shortest(release, 2)


def yardstick() -> None:
    """Matrix products, exponentials and sorts, about as a release mixes them."""
    random = np.random.default_rng(0)
    square = random.random((600, 600))
    numbers = random.random(400_000)
    for _ in range(10):
        square @ square
        np.exp(numbers)
        np.sort(numbers)


def checks() -> dict[str, Callable[[], float]]:
    """Every ratio that is guarded, by name."""
    found: dict[str, Callable[[], float]] = {
        kernel.__name__: (lambda kernel=kernel: float(kernel()["of_numpy"])) for kernel in KERNELS
    }
    return {**found, "small_release": small_release}


def measured(guarded: Checks) -> dict[str, float]:
    with one_thread():
        return {name: ratio() for name, ratio in guarded.items()}


def lost(ratios: Mapping[str, float], stored: Mapping[str, float]) -> list[str]:
    """The names whose ratio is a third below the stored one, or was never stored."""
    return [name for name, ratio in ratios.items() if ratio < LOST * stored.get(name, np.inf)]


def guard(guarded: Checks, stored: Mapping[str, float]) -> list[str]:
    """Measure, and again what seems lost; one line for each ratio that is."""
    best = measured(guarded)
    for _ in range(TIMES):
        again = measured({name: guarded[name] for name in lost(best, stored)})
        best |= {name: max(ratio, best[name]) for name, ratio in again.items()}
    for name, ratio in best.items():
        print(f"{name:16} {ratio:8.3g} times NumPy, stored {stored.get(name, np.nan):8.3g}")
    return [
        f"{name}: {best[name]:.3g} times NumPy instead of {stored.get(name, np.nan):.3g}"
        for name in lost(best, stored)
    ]


def _shortest(work: Callable[[], object], times: int) -> float:
    work()  # kernels are loaded, and possibly compiled
    found = []
    for _ in range(times):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found)


def main() -> int:
    if "--write" in sys.argv[1:]:
        runs = [measured(checks()) for _ in range(TIMES)]
        ratios = {name: float(f"{min(one[name] for one in runs):.3g}") for name in runs[0]}
        STORED.write_text(json.dumps(ratios, indent=1) + "\n", encoding="utf-8")
        return 0
    failed = guard(checks(), json.loads(STORED.read_text(encoding="utf-8")))
    for line in failed:
        print(f"lost a third or more: {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
