"""What every baseline promises, whatever it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dualquery.base.errors import ParameterError
from dualquery.baselines import boosting, fem
from dualquery.baselines.baseline import Answering, Baseline
from dualquery.baselines.boosting import Boosting
from dualquery.baselines.dqrs import Dqrs
from dualquery.baselines.fem import Fem
from dualquery.baselines.matrix import MatrixMechanism
from dualquery.baselines.mwem import Mwem
from dualquery.baselines.mwem_model import ModelMwem, Settings
from dualquery.baselines.online import OnlineWeights
from dualquery.baselines.privbayes import PrivBayes
from dualquery.baselines.product import Zeros
from dualquery.baselines.projection import Projection
from dualquery.baselines.registry import METHODS, Task, method
from dualquery.baselines.sepfem import SepFem
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.estimator import DualQuery
from dualquery.privacy.ledger import Ledger, LedgerError
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.sources import RandomSource, SeededSource, SystemSource
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


def task(given: Given, source: RandomSource, **changes: Any) -> Task:
    made = Task(given.table, given.workload, given.answers, EPSILON, DELTA, source, quick=True)
    return replace(made, **changes)


def fitted(name: str, given: Given, seed: int) -> Baseline:
    return METHODS[name].fit(task(given, SeededSource(seed)))


def release(given: Given) -> Answering:
    """A release itself, at the same cost."""
    job = DualQuery(epsilon=EPSILON, delta=DELTA, seed=3)
    return job.fit(given.rows, schema=given.schema, workload=given.workload)


@pytest.fixture(scope="module")
def given(rows: pa.Table, schema: Schema) -> Given:
    return Given(rows, schema)


@pytest.fixture(scope="module")
def all_made(given: Given) -> dict[str, Baseline]:
    """Every method, fitted once."""
    return {name: fitted(name, given, 1) for name in METHODS}


@pytest.mark.parametrize("name", METHODS)
def test_answers_are_shares(name: str, given: Given, all_made: dict[str, Baseline]) -> None:
    made = all_made[name]
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


@pytest.mark.parametrize("name", METHODS)
def test_the_statement_is_within_the_budget_and_honest(
    name: str, all_made: dict[str, Baseline]
) -> None:
    made, listed = all_made[name], METHODS[name]
    cost = made.privacy
    assert made.name == name
    assert 0.0 <= cost.epsilon <= EPSILON
    assert cost.delta == (0.0 if listed.only_pure or cost.epsilon == 0.0 else DELTA)
    assert cost.private == (cost.epsilon == 0.0), "a seeded run is never private"
    assert (cost.events is not None) == (
        listed.exact and not listed.only_pure and cost.epsilon > 0.0
    )
    assert cost.to_dict()["private"] is cost.private
    assert cost.caveat in cost.text()
    assert ("reads no data" in cost.text()) == (cost.epsilon == 0.0)


def test_what_a_method_cannot_do_is_said_in_one_line(given: Given) -> None:
    with pytest.raises(ParameterError, match="projection"):
        method("projektion")
    asked = task(given, SeededSource(1), neighbours=Neighbours.ADD_REMOVE)
    assert [one.name for one in METHODS.values() if one.allows(asked) is None] == [
        one.name for one in METHODS.values() if Neighbours.ADD_REMOVE in one.neighbours
    ]
    for name in ("independent", "gaussian", "matrix mechanism"):
        refused = METHODS[name].allows(task(given, SeededSource(1), delta=0.0))
        assert refused is not None
        assert "delta above 0" in refused
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(300)))
    workload = random_marginals(schema, 3, 50)
    wide = task(given, SeededSource(1), workload=workload)
    for name in ("mwem", "mwem-improved"):
        with pytest.raises(ParameterError, match=r"needs about 10\^91.8 bytes"):
            METHODS[name].fit(wide)
    broad = Schema(tuple(Attribute.binary(f"x{i}") for i in range(3000)))
    many = fem.Settings(rounds=10_000)
    with pytest.raises(ParameterError, match=r"500,000 records .* takes about \d+ minutes"):
        fem.require_time(random_marginals(broad, 3, 3000), many)
    rows = replace(given.answers, rows=10**8)
    held = METHODS["matrix mechanism"].allows(
        task(given, SeededSource(1), workload=workload, answers=rows)
    )
    assert held is not None
    assert "columns of 100000000 rows" in held
    large = Schema(
        tuple(Attribute.categorical(f"x{i}", [str(code) for code in range(500)]) for i in range(3))
    )
    many = METHODS["matrix mechanism"].allows(
        task(given, SeededSource(1), workload=random_marginals(large, 3, 5))
    )
    assert many is not None
    assert "(about 124 minutes)" in many


def test_what_may_be_published_can_be_charged(given: Given, tmp_path: Path) -> None:
    """MWEM is charged as a pure ε."""
    book = Ledger.create(tmp_path / "l", epsilon=3.0, delta=1e-6)
    settings = {"epsilon": 1.0, "ledger": tmp_path / "l"}
    made = Mwem.fit(given.answers, given.workload, source=SystemSource(), **settings)
    (entry,) = book.account().entries
    assert (entry.note, entry.state) == ("mwem", "spent")
    assert entry.charge.pure == pytest.approx(made.privacy.epsilon)
    with pytest.raises(LedgerError, match="NOT PRIVATE"):
        Mwem.fit(given.answers, given.workload, source=SeededSource(1), **settings)


@pytest.mark.parametrize(
    "kind",
    [ModelMwem, Projection, MatrixMechanism, OnlineWeights, Fem, SepFem, Dqrs, Boosting, PrivBayes],
)
def test_the_exact_methods_are_charged_by_their_events(
    kind: type[
        ModelMwem | Projection | MatrixMechanism | OnlineWeights | Fem | Dqrs | Boosting | PrivBayes
    ],
    given: Given,
    tmp_path: Path,
) -> None:
    book = Ledger.create(tmp_path / "l", epsilon=3.0, delta=1e-6)
    read = given.table if kind in (MatrixMechanism, PrivBayes) else given.answers
    fewer = {"settings": Settings(rounds=2)} if kind is ModelMwem else {}
    if kind is Projection:
        fewer = {"steps": 2}
    if kind in (Fem, SepFem):
        fewer = {"settings": fem.Settings(rounds=2)}
    if kind is Boosting:
        fewer = {"settings": boosting.Settings(rounds=2, samples=5, records=2)}
    if kind is PrivBayes:
        fewer = {"rows": given.answers.rows}
    settings = {"epsilon": 1.0, "delta": 1e-6, "ledger": tmp_path / "l", **fewer}
    made = kind.fit(read, given.workload, source=SystemSource(), **settings)
    assert made.privacy.private
    (entry,) = book.account().entries
    assert (entry.note, entry.state) == (made.name, "spent")
    assert entry.charge.mu_squared == pytest.approx(made.privacy.events.mu_squared)
    with pytest.raises(LedgerError, match="NOT PRIVATE"):
        kind.fit(read, given.workload, source=SeededSource(1), **settings)


@pytest.mark.parametrize("name", METHODS)
def test_a_seed_repeats(name: str, given: Given, all_made: dict[str, Baseline]) -> None:
    again = fitted(name, given, 1).answers(given.workload)
    np.testing.assert_array_equal(again, all_made[name].answers(given.workload))


@pytest.mark.parametrize("name", [n for n in METHODS if n not in ("zeros", "uniform", "mwem")])
def test_what_reads_data_beats_what_does_not(
    name: str, given: Given, all_made: dict[str, Baseline]
) -> None:
    truth = given.answers.counts / given.answers.rows
    error = np.abs(all_made[name].answers(given.workload) - truth).mean()
    assert error < np.abs(Zeros().answers(given.workload) - truth).mean()
