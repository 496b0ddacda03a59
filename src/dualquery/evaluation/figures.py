"""A release against the private table. NOT PRIVATE: for the curator's eyes only."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from dualquery.base.errors import TableError
from dualquery.base.stored import Json
from dualquery.baselines.baseline import Baseline
from dualquery.baselines.independent import Independent
from dualquery.baselines.product import Uniform, Zeros
from dualquery.evaluation.fidelity import Fidelity, K, fidelity
from dualquery.evaluation.relations import Relations, columns_of, relations
from dualquery.evaluation.usefulness import Usefulness, usefulness
from dualquery.release.asking.figure import WITHIN
from dualquery.release.release import Release
from dualquery.rows.bit_columns import BitColumns
from dualquery.rows.counting import count_rows
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from dualquery.rows.persons import ByPerson
from dualquery.rows.table import Table
from dualquery.rows.weights import ByWeight
from dualquery.workloads.workload import Workload

Floats = npt.NDArray[np.float64]

ALL = "all"
"""The entry of `coverage` that is about all queries."""


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
        coverage: how many of the true answers lie in the release's 95 % intervals, over all
            queries and by kind of query; None if the release knows no standard errors.
        fidelity: how well single columns, pairs and triples came through.
        usefulness: what a classifier learns from synthetic rows, if a target was named.
        relations: how well relations between columns came through, in answers and in rows, and
            whether the intervals hold there; None if fewer than two columns are known.
    """

    workload: Workload
    truth: Floats
    released: Floats
    source: str
    distance: Distance
    baselines: dict[str, Distance]
    coverage: dict[str, float] | None = None
    fidelity: Fidelity | None = None
    usefulness: Usefulness | None = None
    relations: Relations | None = None

    def __repr__(self) -> str:
        return (
            f"<Evaluation of {len(self.workload):,} queries, NOT PRIVATE: maximum error "
            f"{self.distance.max_error:.2g}, average {self.distance.average_error:.2g}>"
        )

    @property
    def verdict(self) -> list[str]:
        """What the figures mean, in plain sentences."""
        return verdict(self)

    def to_dict(self) -> Json:
        """Plain values, ready for JSON."""
        return {
            "queries": len(self.workload),
            **asdict(self.distance),
            "source": self.source,
            "coverage": None if self.coverage is None else self.coverage[ALL],
            "coverage_by_kind": self.coverage,
            "baselines": {name: asdict(distance) for name, distance in self.baselines.items()},
            "verdict": self.verdict,
            **({} if self.fidelity is None else _fidelity_entries(self.fidelity)),
            **({} if self.usefulness is None else {"target": asdict(self.usefulness)}),
            "relations": None if self.relations is None else self.relations.to_dict(),
            "private": False,
        }


def evaluate(
    release: Release,
    table: object,
    workload: Workload | None = None,
    out_of_domain: str = "refuse",
    *,
    target: str | None = None,
) -> Evaluation:
    """Compare released answers with the true ones.

    Guarantee: none. The result depends on every private row and must not be published.
    The independent baseline spends the same (ε, δ) as the release, so that the comparison is fair.
    It is left out at δ = 0, where its Gaussian noise promises nothing.

    Args:
        release: what was published.
        table: the private table, as `fit` takes it.
        workload: the queries to compare; without one, those of the release.
        out_of_domain: what to do with a cell outside its domain: "refuse", "clamp" or "missing".
        target: a column that a classifier guesses from the others, once trained on synthetic rows
            and once on private ones; needs scikit-learn.
    """
    treatment = OutOfDomain.parse(out_of_domain)
    released = release.answers(workload, unknown="default")  # refuses what is no workload
    opened = open_table(table)
    if release.parameters.bits_of is not None:
        opened = BitColumns(opened, opened.bind(release.parameters.bits_of))
    opened = _as_counted(opened, release, treatment)
    schema = opened.bind(release.schema)
    asked = release.workload if workload is None else workload
    answers = count_rows(opened, asked, treatment)
    if not answers.rows:
        raise TableError("no row of the table weighs anything, so there is nothing to compare with")
    truth = answers.counts / answers.rows
    columns = columns_of(release)
    baselines: list[Baseline] = [Zeros(), Uniform()]
    if release.privacy.delta > 0.0:  # its Gaussian noise promises nothing at δ = 0
        baselines.append(
            Independent.fit(
                opened,
                schema,
                epsilon=release.privacy.epsilon,
                delta=release.privacy.delta,
                neighbours=release.privacy.unit,
                generator=np.random.default_rng(),
                out_of_domain=treatment,
            )
        )
    return Evaluation(
        asked,
        truth,
        released,
        release.source,
        Distance.of(released, truth),
        {one.name: Distance.of(one.answers(asked), truth) for one in baselines},
        coverage_by_kind(release, asked, released, truth),
        fidelity(release, opened, schema, treatment),
        None if target is None else usefulness(release, opened, schema, target, treatment),
        relations(release, EncodedRows.read(opened, schema, columns, treatment))
        if len(columns) > 1
        else None,
    )


def _as_counted(table: Table, release: Release, treatment: OutOfDomain) -> Table:
    """The table with its rows weighed as the release weighed them."""
    privacy = release.privacy
    if privacy.weight is not None:
        return ByWeight(table, privacy.weight, privacy.persons, treatment)
    return table if privacy.persons is None else ByPerson(table, privacy.persons, treatment)


def coverage_by_kind(
    release: Release, workload: Workload, released: Floats, truth: Floats
) -> dict[str, float] | None:
    """The share of true answers inside the intervals: over all queries, and by kind of query.

    Args:
        release: what answers, and knows standard errors.
        workload: the queries.
        released: their answers by the release.
        truth: their answers on the private table.
    """
    errors = release.standard_errors(workload)
    if errors is None:
        return None
    known = np.isfinite(errors)
    if not known.any():
        return None
    inside = np.abs(released - truth) <= WITHIN * errors
    found = {ALL: float(inside[known].mean())}
    columns = np.diff(workload.start)
    for count in np.unique(columns):
        for parity in (False, True):
            chosen = known & (columns == count) & (workload.is_parity == parity)
            if chosen.any():
                name = f"{'parities' if parity else 'conjunctions'} of {count}"
                found[name] = float(inside[chosen].mean())
    return found


def verdict(result: Evaluation) -> list[str]:
    """What the figures of an evaluation mean, in plain sentences."""
    said = []
    ours = result.distance.average_error
    better = {n: d for n, d in result.baselines.items() if d.average_error < ours}
    if better:
        name, best = min(better.items(), key=lambda item: item[1].average_error)
        said.append(
            f"The baseline {name!r} is closer to the truth than this release: its average error is "
            f"{best.average_error:.5f}, that of the release {ours:.5f}. {_REASONS[name]}"
        )
    elif "independent" in result.baselines:
        times = result.baselines["independent"].average_error / max(ours, 1e-12)
        said.append(
            f"The release is closer to the truth than every baseline; its average error is "
            f"{times:.1f} times smaller than that of 'independent'."
        )
    if result.coverage is not None and not 0.9 <= result.coverage[ALL] <= 0.99:
        wide = "too narrow" if result.coverage[ALL] < 0.9 else "wider than needed"
        said.append(
            f"The 95 % intervals hold {100 * result.coverage[ALL]:.1f} % of the true answers: "
            f"they are {wide} for these queries."
        )
    return said


BASELINES = {
    "zeros": "answers as if all bits were off: 1 to a query that only rules values out, 0 to every "
    "other; it reads nothing",
    "uniform": "supposes that all values are equally likely; it reads nothing",
    "independent": "spends the same ε and δ on the columns one by one, and supposes that they do "
    "not hang together",
}
"""What each baseline does, in words."""

_REASONS = {
    "zeros": "Nearly all true answers are close to those of bits that are off; ask for larger "
    "shares, or give more budget.",
    "uniform": "The budget is too small for these queries; give more, or ask for less.",
    "independent": "Either the columns hardly hang together, or the budget is too small to learn "
    "how they do; then single columns are all that can be released well.",
}


def _fidelity_entries(found: Fidelity) -> Json:
    return {
        "columns": found.columns,
        "pairs": [asdict(pair) for pair in found.pairs],
        "k_marginal": found.k_marginal,
        "k_marginal_note": f"K-marginal score as NIST's SDNist defines it (k = {K}), computed by "
        "dualquery",
    }
