"""Every record tried: what the other oracles are tested against."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dualquery.base.errors import ParameterError
from dualquery.oracles.oracle import Record, Response
from dualquery.oracles.problem import Problem


@dataclass(frozen=True)
class Exhaustive:
    """Try every combination of codes of the attributes that the problem mentions.

    It is plain on purpose. It evaluates whole records by the definition of a query, and shares
    no code with the solvers it judges. It refuses more than `limit` records.
    """

    limit: int = 2_000_000

    @property
    def name(self) -> str:
        return "exhaustive"

    def __call__(
        self,
        problem: Problem,
        *,
        warm_starts: Sequence[Record] = (),
        generator: np.random.Generator,
    ) -> Response:
        started = time.perf_counter()
        mentioned = set(problem.workload.literals.attribute.tolist())
        if problem.constraints is not None:
            mentioned |= set(problem.constraints.attributes.tolist())
        attributes = sorted(mentioned)
        sizes = [int(problem.workload.schema.sizes[a]) for a in attributes]
        count = int(np.prod(np.array(sizes, dtype=float))) if sizes else 1
        if count > self.limit:
            raise ParameterError(
                f"oracle 'exhaustive': {count} records to try, more than limit={self.limit}"
            )
        # Defaults come first, so that ties keep them where possible.
        domains = [
            [(int(problem.defaults[a]) + step) % size for step in range(size)]
            for a, size in zip(attributes, sizes, strict=True)
        ]
        record = np.array(problem.defaults, dtype=np.int32)
        best, best_value = None, -1
        for codes in itertools.product(*domains):
            record[attributes] = codes
            if problem.constraints is not None and not problem.constraints.holds(record[None])[0]:
                continue
            value = problem.value(record)
            if value > best_value:
                best, best_value = record.copy(), value
        if best is None:
            raise ParameterError("the constraints leave no record")
        seconds = time.perf_counter() - started
        return Response(best, best_value, float(best_value), "optimal", seconds)
