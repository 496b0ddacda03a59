"""All baselines by name: how each is fitted, what it promises, and where it cannot run.

A comparison goes over `METHODS` and needs to know none of them:

    for method in METHODS.values():
        if method.allows(task) is None:
            answers = method.fit(task).answers(task.workload)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dualquery.base.checks import one_of
from dualquery.base.errors import DualQueryError, ParameterError
from dualquery.baselines import boosting, fem, matrix, projection, universe
from dualquery.baselines.baseline import Baseline
from dualquery.baselines.boosting import Boosting
from dualquery.baselines.dqrs import Dqrs
from dualquery.baselines.fem import Fem
from dualquery.baselines.independent import Independent
from dualquery.baselines.limits import require_codes
from dualquery.baselines.matrix import MatrixMechanism
from dualquery.baselines.mwem import IMPROVED, Mwem
from dualquery.baselines.mwem_factored import FactoredMwem
from dualquery.baselines.mwem_model import ModelMwem
from dualquery.baselines.online import OnlineWeights
from dualquery.baselines.perturbation import Gaussian, Laplace
from dualquery.baselines.privbayes import PrivBayes
from dualquery.baselines.privbayes_shape import Settings, Shape
from dualquery.baselines.product import Uniform, Zeros
from dualquery.baselines.projection import Projection
from dualquery.baselines.sepfem import SepFem
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sources import RandomSource
from dualquery.rows.table import Table
from dualquery.workloads.counts import Counted
from dualquery.workloads.workload import Workload

REPLACE_ONE = (Neighbours.REPLACE_ONE,)
BOTH = (Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE)


@dataclass(frozen=True, eq=False)
class Task:
    """What every method is given. Private: it holds rows and counts.

    Attributes:
        table: the private rows.
        workload: the queries.
        answers: their true counts.
        epsilon: the budget.
        delta: the budget's δ; 0 for pure ε.
        source: the random source of draws and noise.
        neighbours: which tables the promise compares.
        reference: the public size of a table under add-remove neighbours; None for its true size,
            which is right only if the table itself is public.
        quick: whether methods with many rounds should run few of them; for tests.
    """

    table: Table
    workload: Workload
    answers: Counted
    epsilon: float
    delta: float
    source: RandomSource
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    reference: int | None = None
    quick: bool = False

    @property
    def rows(self) -> int:
        """The public number of rows, or the reference."""
        return self.answers.rows if self.reference is None else self.reference

    @property
    def generator(self) -> np.random.Generator:
        """Noise in floating point, for the methods that are for comparison only."""
        return np.random.default_rng(self.source.words(4))


@dataclass(frozen=True)
class Method:
    """A way to answer a workload, and the conditions under which it can.

    Attributes:
        name: what tables and options call it.
        title: what it is, for people.
        make: fits it.
        exact: whether its noise and draws are exact, so that answers could be published.
        pure: whether it can keep a pure ε (δ = 0).
        only_pure: whether its ε is pure, whatever δ it is given.
        neighbours: for which neighbours it has a proof.
        records: whether it gives records or a distribution, and not answers alone.
        needs: raises an error in one line, with the memory or time it would need, if the workload
            is too wide for it.
    """

    name: str
    title: str
    make: Callable[[Task], Baseline]
    exact: bool = True
    pure: bool = True
    only_pure: bool = False
    neighbours: tuple[Neighbours, ...] = REPLACE_ONE
    records: bool = True
    needs: Callable[[Task], None] = lambda task: None

    def allows(self, task: Task) -> str | None:
        """Why the method cannot do the task, in one line; None if it can."""
        if task.neighbours not in self.neighbours:
            return f"{self.name} has no proof for {task.neighbours} neighbours"
        if task.delta == 0.0 and not self.pure:
            return f"{self.name} has Gaussian noise, which needs delta above 0"
        try:
            self.needs(task)
        except DualQueryError as error:
            return str(error)
        return None

    def fit(self, task: Task) -> Baseline:
        """The method, fitted; a task that it does not allow is refused."""
        obstacle = self.allows(task)
        if obstacle is not None:
            raise ParameterError(obstacle)
        return self.make(task)


def method(name: str) -> Method:
    """The method of that name, or an error that lists the names."""
    return METHODS[one_of("method", name, list(METHODS))]


def _zeros(task: Task) -> Baseline:
    return Zeros()


def _uniform(task: Task) -> Baseline:
    return Uniform()


def _independent(task: Task) -> Baseline:
    return Independent.fit(
        task.table,
        task.workload.schema,
        epsilon=task.epsilon,
        delta=task.delta,
        neighbours=task.neighbours,
        generator=task.generator,
    )


def _laplace(task: Task) -> Baseline:
    return Laplace.fit(
        task.answers,
        task.workload,
        epsilon=task.epsilon,
        delta=task.delta,
        generator=task.generator,
        neighbours=task.neighbours,
        reference=task.rows,
    )


def _gaussian(task: Task) -> Baseline:
    return Gaussian.fit(
        task.answers,
        task.workload,
        epsilon=task.epsilon,
        delta=task.delta,
        generator=task.generator,
        neighbours=task.neighbours,
        reference=task.rows,
    )


def _mwem(task: Task) -> Baseline:
    return Mwem.fit(task.answers, task.workload, epsilon=task.epsilon, source=task.source)


def _mwem_improved(task: Task) -> Baseline:
    return Mwem.fit(
        task.answers,
        task.workload,
        epsilon=task.epsilon,
        source=task.source,
        settings=IMPROVED,
        name="mwem-improved",
    )


def _mwem_in_factors(task: Task) -> Baseline:
    return FactoredMwem.fit(task.answers, task.workload, epsilon=task.epsilon, source=task.source)


def _of_counts(
    kind: type[ModelMwem | OnlineWeights | Dqrs],
) -> Callable[[Task], Baseline]:
    def fit(task: Task) -> Baseline:
        return kind.fit(
            task.answers,
            task.workload,
            epsilon=task.epsilon,
            delta=task.delta,
            source=task.source,
        )

    return fit


def _projection(task: Task) -> Baseline:
    return Projection.fit(
        task.answers,
        task.workload,
        epsilon=task.epsilon,
        delta=task.delta,
        source=task.source,
        neighbours=task.neighbours,
        reference=task.rows,
        steps=projection.FEWEST // 4 if task.quick else None,
    )


def _boosting(task: Task) -> Baseline:
    few = boosting.Settings(rounds=5, samples=50, records=20)
    return Boosting.fit(
        task.answers,
        task.workload,
        epsilon=task.epsilon,
        delta=task.delta,
        source=task.source,
        settings=few if task.quick else None,
    )


def _perturbed(kind: type[Fem]) -> Callable[[Task], Baseline]:
    def fit(task: Task) -> Baseline:
        return kind.fit(
            task.answers,
            task.workload,
            epsilon=task.epsilon,
            delta=task.delta,
            source=task.source,
            settings=_fem_settings(task),
        )

    return fit


def _fem_settings(task: Task) -> fem.Settings:
    return fem.Settings(rounds=50, records=8) if task.quick else fem.Settings()


def _few_responses(task: Task) -> None:
    fem.require_time(task.workload, _fem_settings(task))


def _matrix(task: Task) -> Baseline:
    return MatrixMechanism.fit(
        task.table,
        task.workload,
        epsilon=task.epsilon,
        delta=task.delta,
        source=task.source,
        neighbours=task.neighbours,
        reference=task.rows,
    )


def _privbayes(task: Task) -> Baseline:
    return PrivBayes.fit(
        task.table,
        task.workload,
        epsilon=task.epsilon,
        delta=task.delta,
        source=task.source,
        rows=task.rows,
        neighbours=task.neighbours,
    )


def _few_pairs(task: Task) -> None:
    Shape.of(
        task.workload,
        task.epsilon,
        task.delta,
        rows=task.rows,
        settings=Settings(),
        neighbours=task.neighbours,
    ).require_time(task.rows)


def _a_universe(task: Task) -> None:
    universe.require_memory(task.workload.schema)


def _few_coefficients(task: Task) -> None:
    matrix.require_few_coefficients(task.workload)
    named = len(np.unique(task.workload.literals.attribute))
    require_codes("the matrix mechanism", named, task.rows)


_ALL = (
    Method("zeros", "a table of zeros", _zeros, neighbours=BOTH),
    Method("uniform", "each possible record once", _uniform, neighbours=BOTH),
    Method(
        "independent",
        "noisy one-way marginals",
        _independent,
        exact=False,
        pure=False,
        neighbours=BOTH,
    ),
    Method(
        "laplace",
        "Laplace noise per query",
        _laplace,
        exact=False,
        neighbours=BOTH,
        records=False,
    ),
    Method(
        "gaussian",
        "Gaussian noise per query",
        _gaussian,
        exact=False,
        pure=False,
        neighbours=BOTH,
        records=False,
    ),
    Method("mwem", "MWEM as published", _mwem, only_pure=True, needs=_a_universe),
    Method(
        "mwem-improved", "MWEM with improvements", _mwem_improved, only_pure=True, needs=_a_universe
    ),
    Method("mwem in factors", "MWEM in factors", _mwem_in_factors, only_pure=True),
    Method("mwem on the model", "MWEM on the model", _of_counts(ModelMwem)),
    Method("projection", "projection", _projection, neighbours=BOTH),
    Method(
        "matrix mechanism",
        "matrix mechanism for marginals",
        _matrix,
        pure=False,
        neighbours=BOTH,
        records=False,
        needs=_few_coefficients,
    ),
    Method(
        "online multiplicative weights", "multiplicative weights online", _of_counts(OnlineWeights)
    ),
    Method("fem", "FEM", _perturbed(Fem), needs=_few_responses),
    Method("sepfem", "sepFEM", _perturbed(SepFem), needs=_few_responses),
    Method("dqrs", "DQRS", _of_counts(Dqrs)),
    Method("boosting", "boosting for queries", _boosting),
    Method("privbayes", "PrivBayes", _privbayes, neighbours=BOTH, needs=_few_pairs),
)

METHODS: dict[str, Method] = {one.name: one for one in _ALL}
"""Every method, by name, the simplest first."""
