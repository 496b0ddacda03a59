"""What every oracle is, and what it answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dualquery.oracles.problem import Problem

Record = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Response:
    """A valid record and what is known about it.

    `value` is the number of drawn signed queries the record satisfies, always counted
    on the record itself and never copied from a solver; `bound` is a number no valid
    record can exceed, where one is known. `status` is "optimal" where value meets bound,
    "feasible" where it may not, and "fallback: reason" where the oracle's own method
    failed and the best record at hand was used instead.
    """

    record: Record
    value: int
    bound: float | None
    status: str
    seconds: float

    @property
    def optimal(self) -> bool:
        return self.status == "optimal"


class Oracle(Protocol):
    """A way to find a record that satisfies many drawn queries.

    `warm_starts` are records worth starting from (say, those of earlier rounds);
    `generator` is public randomness without any part in the privacy of a release.
    """

    @property
    def name(self) -> str: ...

    def __call__(
        self,
        problem: Problem,
        *,
        warm_starts: Sequence[Record] = (),
        generator: np.random.Generator,
    ) -> Response: ...


def respond(
    problem: Problem,
    candidates: Sequence[Record],
    started: float,
    *,
    bound: float | None = None,
    failure: str | None = None,
) -> Response:
    """The best valid record among the candidates, with what may be claimed about it.

    A solver can fail, run out of time or round badly; the game must go on. Whatever it
    handed over is checked here, mended where it breaks a constraint, and valued afresh;
    with no candidate left the defaults stand in.
    """
    best, best_value = None, -1
    for candidate in [*candidates, problem.defaults]:
        if candidate is problem.defaults and best is not None:
            break
        record = np.array(candidate, dtype=np.int32)
        if not problem.valid(record):
            if problem.constraints is None or not in_domain(problem, record):
                continue
            record = problem.constraints.repair(record[None])[0]
        value = problem.value(record)
        if value > best_value:
            best, best_value = record, value
    assert best is not None  # the defaults can always be mended
    if failure is not None:
        status = f"fallback: {failure}"
    elif bound is not None and best_value >= np.floor(bound + 1e-6):
        status, bound = "optimal", float(best_value)
    else:
        status = "feasible"
    return Response(best, best_value, bound, status, time.perf_counter() - started)


def in_domain(problem: Problem, record: Record) -> bool:
    """Whether every attribute of `record` has a code of its domain."""
    sizes = problem.workload.schema.sizes
    return record.shape == sizes.shape and bool(np.all((record >= 0) & (record < sizes)))
