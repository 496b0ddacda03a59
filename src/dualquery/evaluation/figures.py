"""A release against the private table. NOT PRIVATE: for the curator's eyes only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dualquery.baselines.independent import Independent
from dualquery.baselines.product import Uniform, Zeros
from dualquery.release.release import Release
from dualquery.rows.counting import count_rows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.workloads.workload import Workload

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Errors:
    """Error of one set of answers against the truth."""

    max_error: float
    average_error: float

    @classmethod
    def of(cls, answers: Floats, truth: Floats) -> Errors:
        distance = np.abs(answers - truth)
        return cls(float(distance.max()), float(distance.mean()))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How far a release and the baselines are from the private answers."""

    workload: Workload
    truth: Floats
    released: Floats
    source: str
    errors: Errors
    baselines: dict[str, Errors]

    def to_dict(self) -> dict[str, Any]:
        return {
            "queries": len(self.workload),
            "max_error": self.errors.max_error,
            "average_error": self.errors.average_error,
            "source": self.source,
            "baselines": {
                name: {"max_error": e.max_error, "average_error": e.average_error}
                for name, e in self.baselines.items()
            },
            "private": False,
        }


def evaluate(
    release: Release,
    table: Any,
    workload: Workload | None = None,
    out_of_domain: str = "refuse",
) -> Evaluation:
    """Compare released answers with the true ones.

    Guarantee: none. The result depends on every private row and must not be published.
    The independent baseline spends the same (ε, δ) as the release, so that the comparison is fair.
    """
    treatment = OutOfDomain.parse(out_of_domain)
    source = open_table(table)
    schema = source.bind(release.schema)
    asked = release.workload if workload is None else workload
    answers = count_rows(source, asked, treatment)
    truth = answers.counts / answers.rows
    released = release.answers(workload, unknown="default")
    independent = Independent.fit(
        source,
        schema,
        epsilon=release.privacy.epsilon,
        delta=release.privacy.delta,
        neighbours=release.privacy.neighbours,
        generator=np.random.default_rng(),
        out_of_domain=treatment,
    )
    return Evaluation(
        asked,
        truth,
        released,
        release.source,
        Errors.of(released, truth),
        {b.name: Errors.of(b.answers(asked), truth) for b in (Zeros(), Uniform(), independent)},
    )
