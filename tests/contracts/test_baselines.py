"""What every baseline promises, whatever it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dualquery.baselines.baseline import Answering, Baseline
from dualquery.baselines.fem import Fem
from dualquery.baselines.independent import Independent
from dualquery.baselines.matrix import MatrixMechanism
from dualquery.baselines.mwem import IMPROVED, Mwem
from dualquery.baselines.mwem_model import ModelMwem, Settings
from dualquery.baselines.online import OnlineWeights
from dualquery.baselines.perturbation import Gaussian, Laplace
from dualquery.baselines.product import Uniform, Zeros
from dualquery.baselines.projection import Projection
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.privacy.ledger import Ledger, LedgerError
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sources import SeededSource, SystemSource
from dualquery.rows.counting import count_packed
from dualquery.rows.opening import open_table
from dualquery.rows.packed import PackedRows
from dualquery.workloads.counts import Counted
from dualquery.workloads.generators import parities, random_marginals
from dualquery.workloads.workload import Workload

EPSILON, DELTA = 2.0, 1e-4


class Given:
    """A table, its schema, a workload of both kinds, and the counts."""

    def __init__(self, rows: pa.Table, schema: Schema) -> None:
        self.rows, self.table, self.schema = rows, open_table(rows), schema
        self.workload: Workload = random_marginals(schema, 3, 40) + parities(schema, 2, 20)
        packed = PackedRows.pack(self.table, schema, self.workload.literals)
        self.answers: Counted = count_packed(packed, self.workload)


def per_query(kind: type[Laplace | Gaussian], given: Given, seed: int) -> Baseline:
    return kind.fit(
        given.answers, given.workload,
        epsilon=EPSILON, delta=DELTA, generator=np.random.default_rng(seed),
    )  # fmt: skip


def independent(given: Given, seed: int) -> Baseline:
    return Independent.fit(
        given.table, given.schema, epsilon=EPSILON, delta=DELTA,
        neighbours=Neighbours.REPLACE_ONE, generator=np.random.default_rng(seed),
    )  # fmt: skip


def mwem(given: Given, seed: int) -> Baseline:
    return Mwem.fit(given.answers, given.workload, epsilon=EPSILON, source=SeededSource(seed))


def improved(given: Given, seed: int) -> Baseline:
    return Mwem.fit(
        given.answers, given.workload, epsilon=EPSILON, source=SystemSource(), settings=IMPROVED
    )


def on_the_model(given: Given, seed: int) -> Baseline:
    return ModelMwem.fit(
        given.answers, given.workload, epsilon=EPSILON, delta=DELTA, source=SeededSource(seed)
    )


def projection(given: Given, seed: int) -> Baseline:
    return Projection.fit(
        given.answers, given.workload, epsilon=EPSILON, delta=DELTA, source=SeededSource(seed),
        steps=40,
    )  # fmt: skip


def matrix(given: Given, seed: int) -> Baseline:
    return MatrixMechanism.fit(
        given.table, given.workload, epsilon=EPSILON, delta=DELTA, source=SeededSource(seed)
    )


def online(given: Given, seed: int) -> Baseline:
    return OnlineWeights.fit(
        given.answers, given.workload, epsilon=EPSILON, delta=DELTA, source=SeededSource(seed)
    )


def fem(given: Given, seed: int) -> Baseline:
    return Fem.fit(
        given.answers, given.workload, epsilon=EPSILON, delta=DELTA, source=SeededSource(seed)
    )


MAKERS: dict[str, Callable[[Given, int], Baseline]] = {
    "zeros": lambda given, seed: Zeros(),
    "uniform": lambda given, seed: Uniform(),
    "independent": independent,
    "laplace": lambda given, seed: per_query(Laplace, given, seed),
    "gaussian": lambda given, seed: per_query(Gaussian, given, seed),
    "mwem": mwem,
    "mwem, improved": improved,
    "mwem on the model": on_the_model,
    "projection": projection,
    "matrix mechanism": matrix,
    "online multiplicative weights": online,
    "fem": fem,
}


def release(given: Given) -> Answering:
    """A release itself, at the same cost."""
    job = DualQuery(epsilon=EPSILON, delta=DELTA, seed=3)
    return job.fit(given.rows, schema=given.schema, workload=given.workload)


@pytest.fixture(scope="module")
def given(rows: pa.Table, schema: Schema) -> Given:
    return Given(rows, schema)


@pytest.mark.parametrize("name", MAKERS)
def test_answers_are_shares(name: str, given: Given) -> None:
    made = MAKERS[name](given, 1)
    answers = made.answers(given.workload)
    assert answers.dtype == np.float64
    assert answers.shape == (len(given.workload),)
    assert np.all((answers >= 0.0) & (answers <= 1.0 + 1e-12))
    np.testing.assert_array_equal(answers, made.answers(given.workload))


def test_a_release_answers_under_the_same_protocol(given: Given) -> None:
    made = release(given)
    answers = made.answers(given.workload)
    assert answers.shape == (len(given.workload),)
    assert np.all((answers >= 0.0) & (answers <= 1.0 + 1e-12))
    assert 0.0 < made.privacy.epsilon <= EPSILON
    assert made.privacy.delta == DELTA
    assert made.privacy.neighbours is Neighbours.REPLACE_ONE
    assert made.privacy.to_dict()["private"] is made.privacy.private is False
    assert "NOT PRIVATE" in made.privacy.text()


@pytest.mark.parametrize("name", MAKERS)
def test_the_statement_is_within_the_budget_and_honest(name: str, given: Given) -> None:
    made = MAKERS[name](given, 1)
    cost = made.privacy
    assert made.name == name.split(",")[0]
    assert 0.0 <= cost.epsilon <= EPSILON
    assert cost.delta in (0.0, DELTA)
    assert cost.private == (name in ("zeros", "uniform", "mwem, improved"))
    assert cost.to_dict()["private"] is cost.private
    assert cost.caveat in cost.text()
    assert ("reads no data" in cost.text()) == (cost.epsilon == 0.0)


def test_what_may_be_published_can_be_charged(given: Given, tmp_path: Path) -> None:
    """What costs says that it is for comparison only, or is charged before its first draw."""
    for name, make in MAKERS.items():
        cost = make(given, 1).privacy
        charged = name.startswith("mwem")
        assert charged or cost.epsilon == 0.0 or cost.caveat
    book = Ledger.create(tmp_path / "l", epsilon=3.0, delta=1e-6)
    settings = {"epsilon": 1.0, "ledger": tmp_path / "l"}
    made = Mwem.fit(given.answers, given.workload, source=SystemSource(), **settings)
    (entry,) = book.account().entries
    assert (entry.note, entry.state) == ("mwem", "spent")
    assert entry.charge.pure == pytest.approx(made.privacy.epsilon)
    with pytest.raises(LedgerError, match="NOT PRIVATE"):
        Mwem.fit(given.answers, given.workload, source=SeededSource(1), **settings)


@pytest.mark.parametrize("kind", [ModelMwem, Projection, MatrixMechanism, OnlineWeights, Fem])
def test_the_exact_methods_are_charged_by_their_events(
    kind: type[ModelMwem | Projection | MatrixMechanism | OnlineWeights | Fem],
    given: Given,
    tmp_path: Path,
) -> None:
    book = Ledger.create(tmp_path / "l", epsilon=3.0, delta=1e-6)
    read = given.table if kind is MatrixMechanism else given.answers
    fewer = {"settings": Settings(rounds=2)} if kind is ModelMwem else {}
    if kind is Projection:
        fewer = {"steps": 2}
    settings = {"epsilon": 1.0, "delta": 1e-6, "ledger": tmp_path / "l", **fewer}
    made = kind.fit(read, given.workload, source=SystemSource(), **settings)
    assert made.privacy.private
    (entry,) = book.account().entries
    assert (entry.note, entry.state) == (made.name, "spent")
    assert entry.charge.mu_squared == pytest.approx(made.privacy.events.mu_squared)
    with pytest.raises(LedgerError, match="NOT PRIVATE"):
        kind.fit(read, given.workload, source=SeededSource(1), **settings)


@pytest.mark.parametrize("name", [name for name in MAKERS if name != "mwem, improved"])
def test_a_seed_repeats(name: str, given: Given) -> None:
    first, second = (MAKERS[name](given, 5).answers(given.workload) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", [n for n in MAKERS if n not in ("zeros", "uniform", "mwem")])
def test_what_reads_data_beats_what_does_not(name: str, given: Given) -> None:
    truth = given.answers.counts / given.answers.rows
    error = np.abs(MAKERS[name](given, 2).answers(given.workload) - truth).mean()
    assert error < np.abs(Zeros().answers(given.workload) - truth).mean()
