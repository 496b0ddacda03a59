"""A release against the private table. NOT PRIVATE: for the curator's eyes only."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from dualquery.base.stored import Json
from dualquery.baselines.independent import Independent
from dualquery.baselines.product import Uniform, Zeros
from dualquery.release.release import Release
from dualquery.rows.counting import count_rows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.rows.persons import ByPerson
from dualquery.workloads.workload import Workload

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Distance:
    """How far one set of answers is from the truth: the largest and the average difference."""

    max_error: float
    average_error: float

    @classmethod
    def of(cls, answers: Floats, truth: Floats) -> Distance:
        """Over all queries of a workload."""
        apart = np.abs(answers - truth)
        return cls(float(apart.max()), float(apart.mean()))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How far a release and the baselines are from the private answers.

    Attributes:
        workload: the queries.
        truth: their answers on the private table.
        released: their answers by the release.
        source: what the release answers from, `model` or `records`.
        distance: of the released answers from the truth.
        baselines: the same for each baseline, by name.
    """

    workload: Workload
    truth: Floats
    released: Floats
    source: str
    distance: Distance
    baselines: dict[str, Distance]

    def to_dict(self) -> Json:
        """Plain values, ready for JSON."""
        return {
            "queries": len(self.workload),
            **asdict(self.distance),
            "source": self.source,
            "baselines": {name: asdict(distance) for name, distance in self.baselines.items()},
            "private": False,
        }


def evaluate(
    release: Release,
    table: object,
    workload: Workload | None = None,
    out_of_domain: str = "refuse",
) -> Evaluation:
    """Compare released answers with the true ones.

    Guarantee: none. The result depends on every private row and must not be published.
    The independent baseline spends the same (ε, δ) as the release, so that the comparison is fair.

    Args:
        release: what was published.
        table: the private table, as `fit` takes it.
        workload: the queries to compare; without one, those of the release.
        out_of_domain: what to do with a cell outside its domain: "refuse", "clamp" or "missing".
    """
    treatment = OutOfDomain.parse(out_of_domain)
    opened = open_table(table)
    if release.privacy.persons is not None:
        opened = ByPerson(opened, release.privacy.persons)
    schema = opened.bind(release.schema)
    asked = release.workload if workload is None else workload
    answers = count_rows(opened, asked, treatment)
    truth = answers.counts / answers.rows
    released = release.answers(workload, unknown="default")
    independent = Independent.fit(
        opened,
        schema,
        epsilon=release.privacy.epsilon,
        delta=release.privacy.delta,
        neighbours=release.privacy.unit,
        generator=np.random.default_rng(),
        out_of_domain=treatment,
    )
    return Evaluation(
        asked,
        truth,
        released,
        release.source,
        Distance.of(released, truth),
        {b.name: Distance.of(b.answers(asked), truth) for b in (Zeros(), Uniform(), independent)},
    )
