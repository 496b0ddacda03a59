"""What every oracle is, and what it answers."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from dualquery.oracles.problem import Problem

Record = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Response:
    """A valid record, and what is known about it.

    `value` is the number of drawn signed queries that the record satisfies. It is always
    counted on the record itself and never copied from a solver. `bound` is a number that no
    valid record can exceed, or None if none is known. `status` is "optimal" if the value meets
    the bound, and "feasible" if it may not. It is "fallback: reason" if the oracle's own method
    failed and the best record at hand was used instead.
    """

    record: Record
    value: int
    bound: float | None
    status: str
    seconds: float

    @property
    def optimal(self) -> bool:
        """Whether no valid record is better."""
        return self.status == "optimal"


class Oracle(Protocol):
    """A way to find a record that satisfies many drawn queries.

    `warm_starts` are records worth starting from, such as those of earlier rounds.
    `generator` is public randomness: it plays no part in the privacy of a release.
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


@dataclass(frozen=True)
class Found:
    """What the method of an oracle found: a record, a bound if any, and what failed if any."""

    record: Record
    bound: float | None = None
    failure: str | None = None


class TimedOracle(ABC):
    """An oracle that is only a method: the clock, the check and the value are added here."""

    label: ClassVar[str]

    @property
    def name(self) -> str:
        return self.label

    @abstractmethod
    def find(
        self, problem: Problem, warm_starts: Sequence[Record], generator: np.random.Generator
    ) -> Found:
        """Find a record; it may turn out to be invalid."""

    def __call__(
        self,
        problem: Problem,
        *,
        warm_starts: Sequence[Record] = (),
        generator: np.random.Generator,
    ) -> Response:
        started = time.perf_counter()
        found = self.find(problem, warm_starts, generator)
        return respond(problem, [found.record], started, bound=found.bound, failure=found.failure)


def respond(
    problem: Problem,
    candidates: Sequence[Record],
    started: float,
    *,
    bound: float | None = None,
    failure: str | None = None,
) -> Response:
    """The best valid record among the candidates, with what may be claimed about it.

    A solver can fail, run out of time or round badly, and the game must go on. So every
    candidate is checked here, mended where it breaks a constraint, and valued afresh. If no
    candidate is left, the defaults are taken.

    Args:
        problem: the problem that was solved.
        candidates: records, good or bad.
        started: when the oracle was called, on the clock `time.perf_counter`.
        bound: a number that no valid record can exceed, if one is known.
        failure: why the oracle's own method failed, if it did.
    """
    best, best_value = None, -1
    for candidate in [*candidates, problem.defaults]:
        if candidate is problem.defaults and best is not None:
            break
        record = np.array(candidate, dtype=np.int32)
        if not problem.valid(record):
            if problem.constraints is None or not problem.in_domain(record):
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
