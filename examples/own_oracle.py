"""An oracle of your own: how a record is found may be anything, and privacy does not care.

Run it with `python examples/own_oracle.py`. The oracle here is a plain local search; it is
judged against trying every record, then used for a whole release beside the default one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import dualquery as dq

Record = npt.NDArray[np.int32]
"""One code per attribute."""


@dataclass(frozen=True)
class LocalSearch:
    """Change one attribute at a time while that satisfies more of the drawn queries."""

    starts: int = 2
    sweeps: int = 6

    @property
    def name(self) -> str:
        return "local-search"

    def __call__(
        self,
        problem: dq.Problem,
        *,
        warm_starts: Sequence[Record] = (),
        generator: np.random.Generator,
    ) -> dq.Response:
        started = time.perf_counter()
        sizes = problem.workload.schema.sizes
        found = [np.array(record) for record in warm_starts[:1]]
        found += [generator.integers(0, sizes, dtype=np.int32) for _ in range(self.starts)]
        for record in found:
            self._search(problem, record)
        # The best of them is checked and valued there: an oracle cannot break the game.
        return dq.respond(problem, found, started)

    def _search(self, problem: dq.Problem, record: Record) -> None:
        value = problem.value(record)
        attributes = np.unique(problem.workload.literals.attribute)
        for _ in range(self.sweeps):
            before = value
            for attribute in attributes:
                kept = record[attribute]
                for code in range(problem.workload.schema.sizes[attribute]):
                    record[attribute] = code
                    changed = problem.value(record)
                    if changed > value:
                        value, kept = changed, code
                record[attribute] = kept
            if value == before:
                return


def invent(rows: int, conditions: int = 20) -> tuple[pa.Table, dq.Schema]:
    """A survey of health: what people have depends on their age and on how frail they are."""
    random = np.random.default_rng(7)
    age = random.integers(18, 100, rows)
    frail = random.normal(0.03 * (age - 55), 1.0)
    rare = random.uniform(0.0, 3.0, conditions)
    columns: dict[str, npt.ArrayLike] = {"age": age}
    for i in range(conditions):
        columns[f"c{i}"] = (random.logistic(frail - rare[i]) > 0.0).astype(np.int64)
    declared = [dq.Attribute.numeric("age", [18, 35, 50, 65, 80, 100])]
    declared += [dq.Attribute.binary(f"c{i}") for i in range(conditions)]
    return pa.table(columns), dq.Schema(tuple(declared))


def judge(problems: int = 20) -> float:
    """The mean share of the best value that the search reaches, over small random problems."""
    random = np.random.default_rng(0)
    schema = dq.Schema(tuple(dq.Attribute.categorical(f"a{i}", range(3)) for i in range(6)))
    workload = dq.random_marginals(schema, 3, 60)
    shares = []
    for _ in range(problems):
        problem = dq.Problem.of(workload, random.integers(0, 60, 80), random.choice([-1, 1], 80))
        best = dq.oracle("exhaustive")(problem, generator=random)
        mine = LocalSearch()(problem, generator=random)
        assert problem.valid(mine.record)
        assert mine.value <= best.value
        shares.append(mine.value / best.value)
    return float(np.mean(shares))


def main(rows: int = 8_000, rounds: int = 25) -> None:
    print(f"local search reaches {100 * judge():.1f} % of the optimum on small problems")
    survey, schema = invent(rows)
    settings = {"epsilon": 2.0, "delta": 1e-6, "queries": 5_000, "player": "record", "refit": False}
    for chosen in (LocalSearch(), "annealing"):
        job = dq.DualQuery(**settings, rounds=rounds, oracle=chosen)
        release = job.fit(survey, schema=schema)
        result = dq.evaluate(release, survey)  # NOT PRIVATE; this survey is invented
        print(
            f"{release.parameters.oracle:>12}: ε = {release.privacy.epsilon:.3f}, "
            f"max error {result.distance.max_error:.3f}, "
            f"average {result.distance.average_error:.4f}"
        )


if __name__ == "__main__":
    main()
