"""`free = measured`: one-way tables for free attributes, their promise, price and whole way."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dualquery as dq
from dualquery.base.errors import ParameterError, ReleaseError
from dualquery.domain.attributes import Attribute
from dualquery.domain.free import Free, MeasuredShares
from dualquery.domain.schema import Schema
from dualquery.game.free_tables import SHARE, FreeTables, Measuring, named_tables
from dualquery.game.journal import Journal, begun
from dualquery.game.plan import Player, make_plan
from dualquery.privacy.accountants import get_accountant
from dualquery.privacy.calibration import Budget
from dualquery.privacy.ledger import Ledger
from dualquery.privacy.sources import SeededSource
from dualquery.release.parameters import RunParameters
from dualquery.release.verifying import check_measurements, check_plan
from dualquery.workloads.generators import all_marginals
from tests.baselines.exact import log_laplace
from tests.game.test_resume import Killed, killed_after, release_files

JOB = dq.DualQuery(
    epsilon=2.0, delta=1e-3, rounds=4, samples=10, queries=60, player="record", refit=False,
    free="measured", free_share=0.2, seed=4,
)  # fmt: skip
TINY = Schema((Attribute.binary("a"), Attribute.categorical("b", "xyz")))


def counted(records: tuple[tuple[int, int], ...]) -> np.ndarray:
    """The one-way tables of a table, one after another."""
    a, b = zip(*records, strict=True)
    return np.concatenate([np.bincount(a, minlength=2), np.bincount(b, minlength=3)])


def test_no_tables_tell_neighbours_apart_by_more_than_their_share() -> None:
    """Cells have noise of their own, so the worst tables are the worst in each cell."""
    budget = Budget(2.0, 0.0, 3, accountant="pure")
    tables = FreeTables(0.5, 2)
    scale = tables.scale(budget)
    stated = tables.event(budget).pure
    assert stated == pytest.approx(1.0, rel=1e-6)
    every = list(product(range(2), range(3)))
    seen = np.arange(-20, 24)

    def worst(scale: float) -> float:
        losses = []
        for kept, one, other in product(every, every, every):
            pair = zip(counted((kept, one)), counted((kept, other)), strict=True)
            losses.append(
                sum(
                    float(np.max(log_laplace(seen - c, scale) - log_laplace(seen - d, scale)))
                    for c, d in pair
                )
            )
        return max(losses)

    assert 0.95 * stated <= worst(scale) <= stated
    assert worst(scale / 1.1) > stated


@pytest.mark.parametrize(("accountant", "delta"), [("gaussian", 1e-6), ("zcdp", 1e-6), ("pure", 0)])
def test_tables_and_draws_together_keep_the_budget(accountant: str, delta: float) -> None:
    budget = Budget(1.0, delta, 10_000, accountant=accountant)
    free = FreeTables(0.3, 8)
    with_free = make_plan(
        budget, TINY, player=Player.RECORD, rounds=10, samples=20, free=free
    )  # fmt: skip
    without = make_plan(budget, TINY, player=Player.RECORD, rounds=10, samples=20)
    assert with_free.budget == budget
    assert 0.999 <= get_accountant(accountant).epsilon(with_free.events, delta) <= 1.0
    assert 0.5 * without.eta < with_free.eta < without.eta
    (measured,) = with_free.events.measurements
    assert measured.l2 == pytest.approx(np.sqrt(16.0))
    alone = {"gaussian": "mu_squared", "zcdp": "rho"}.get(accountant)
    if alone is not None:
        whole = getattr(without.events, alone)
        assert getattr(measured, alone) == pytest.approx(0.3 * whole, rel=1e-3)
    # All three given are checked together with the tables.
    with pytest.raises(ParameterError, match="more than epsilon"):
        make_plan(
            budget, TINY, player=Player.RECORD, rounds=10, samples=20, eta=without.eta, free=free
        )


def test_what_is_measured_has_the_stated_noise() -> None:
    budget = Budget(1.0, 1e-6, 1000)
    tables = FreeTables(0.1, 2)
    marginals = named_tables(all_marginals(TINY, 1))
    truth = np.array([600, 400, 500, 300, 200])
    measuring = Measuring(tables, budget, marginals, lambda asked: truth)
    away = [measuring(SeededSource(seed)).counts - truth for seed in range(200)]
    assert np.std(away) == pytest.approx(tables.scale(budget), rel=0.1)


def test_free_attributes_follow_their_shares() -> None:
    schema = Schema((*TINY.attributes, Attribute.categorical("c", "pqr", default="r")))
    made = MeasuredShares.of(schema, np.array([0, 1], dtype=np.int32), np.array([1, 3, 6, -5, 2]))
    np.testing.assert_allclose(made.of_codes, [0.25, 0.75, 0.75, 0.0, 0.25, 0.0, 0.0, 1.0])
    generator = np.random.default_rng(0)
    found = np.array([made.record(schema, generator) for _ in range(4000)])
    assert found[:, 0].mean() == pytest.approx(0.75, abs=0.03)
    assert (found[:, 1] == 2).mean() == pytest.approx(0.25, abs=0.03)
    assert set(found[:, 1]) == {0, 2}
    assert set(found[:, 2]) == {2}, "what was not measured takes its default"
    nothing = MeasuredShares.of(TINY, np.array([0], dtype=np.int32), np.array([-1, 0]))
    np.testing.assert_allclose(nothing.of_codes[:2], [0.5, 0.5])


def test_records_of_a_run_follow_the_table_where_no_draw_decides() -> None:
    schema = Schema(tuple(Attribute.binary(f"x{i}") for i in range(40)))
    ones = np.random.default_rng(1).random((3000, 40)) < 0.8
    table = pa.table({f"x{i}": ones[:, i].astype(np.int64) for i in range(40)})
    job = dq.DualQuery(
        epsilon=1.0, delta=1e-4, rounds=40, samples=1, marginals=(1,), player="record",
        refit=False, seed=1,
    )  # fmt: skip
    by_default = job.fit(table, schema=schema).records.mean()
    measured = replace(job, free="measured").fit(table, schema=schema).records.mean()
    assert by_default < 0.1
    assert measured == pytest.approx(0.8, abs=0.04)


def test_the_whole_way(tmp_path: Path, schema: Schema, rows: pa.Table) -> None:
    job = replace(JOB, seed=None)
    book = Ledger.create(tmp_path / "ledger", epsilon=3.0, delta=1e-3)
    made = job.release(rows, tmp_path / "out", schema=schema, ledger=tmp_path / "ledger")
    plan = job.plan(rows.num_rows, schema)
    events = made.transcript.events(rows.num_rows, made.privacy.unit)
    assert events == plan.events
    assert [one.measurement is not None for one in made.transcript] == [True] + [False] * 3
    assert made.privacy.epsilon == get_accountant("gaussian").epsilon(events, 1e-3) <= 2.0
    (entry,) = book.account().entries
    assert entry.charge.mu_squared == pytest.approx(events.mu_squared)
    read = dq.load(tmp_path / "out")
    assert (read.parameters.free, read.parameters.free_share) == (Free.MEASURED, 0.2)
    np.testing.assert_array_equal(read.records, made.records)
    (measured,) = read.transcript.measurements
    np.testing.assert_array_equal(measured.counts, made.transcript.measurements[0].counts)
    assert json.loads((tmp_path / "out" / "release.json").read_text())["parameters"]["free_share"]
    assert "count the cells of 6 marginals" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize("calls", [2, 4])
def test_a_killed_run_resumes_to_the_same_release(
    tmp_path: Path, schema: Schema, rows: pa.Table, calls: int
) -> None:
    job = replace(JOB, eta=3.0)
    job.release(rows, tmp_path / "whole", schema=schema)
    with pytest.raises(Killed):
        job.release(rows, tmp_path / "out", schema=schema, progress=killed_after(calls))
    for other, said in (
        (replace(job, free_share=0.1), "another free share"),
        (replace(job, free="zero", free_share=None), "another free"),
    ):
        with pytest.raises(ReleaseError, match=said):
            other.release(rows, tmp_path / "out", schema=schema, resume=True)
    job.release(rows, tmp_path / "out", schema=schema, resume=True)
    assert release_files(tmp_path / "out") == release_files(tmp_path / "whole")


def test_tables_that_are_in_the_journal_are_not_measured_again(
    tmp_path: Path, schema: Schema, rows: pa.Table
) -> None:
    """Without a seed, measuring again would give other noise. What is on disk must be released."""
    job = replace(JOB, seed=None)
    with pytest.raises(Killed):
        job.release(rows, tmp_path / "out", schema=schema, progress=killed_after(3))
    journal = Journal.resume(tmp_path / "out.partial", begun(tmp_path / "out.partial"))
    kept = journal.released(0).measurement.counts
    journal.close()
    made = job.release(rows, tmp_path / "out", schema=schema, resume=True)
    np.testing.assert_array_equal(made.transcript.measurements[0].counts, kept)


def test_a_journal_with_other_tables_is_refused() -> None:
    budget, marginals = Budget(1.0, 1e-6, 1000), named_tables(all_marginals(TINY, 1))

    def measuring(share: float) -> Measuring:
        return Measuring(
            FreeTables(share, 2), budget, marginals, lambda asked: np.zeros(5, dtype=np.int64)
        )

    made = measuring(0.1)(SeededSource(1))
    assert measuring(0.1).checked(made) is made
    for found in (None, measuring(0.2)(SeededSource(1))):
        with pytest.raises(ReleaseError, match="not what the plan of this run releases"):
            measuring(0.1).checked(found)


def test_a_release_without_its_tables_is_not_believed(schema: Schema, rows: pa.Table) -> None:
    made = JOB.fit(rows, schema=schema)
    whole, stated = made.transcript, made.parameters
    check_measurements(whole, schema)
    check_plan(stated, whole, schema)
    first, *others = whole.rounds
    bare = type(whole)((replace(first, measurement=None), *others))
    later = type(whole)((others[0], first, *others[1:]))

    def refused(transcript: object, parameters: RunParameters, said: str) -> None:
        with pytest.raises(ReleaseError, match=said):
            check_plan(parameters, transcript, schema)

    refused(bare, stated, "does not hold the tables")
    refused(later, stated, "does not hold the tables")
    refused(whole, replace(stated, free=Free.ZERO, free_share=None), "no plan of them")
    refused(whole, replace(stated, free_share=None), "do not say what the tables")
    hot = type(whole)((replace(first, temperature=3.0), *others))
    for transcript in (later, hot):
        with pytest.raises(ReleaseError, match="are no marginals of its schema"):
            check_measurements(transcript, schema)


def test_a_refit_gives_free_attributes_what_was_measured(schema: Schema, rows: pa.Table) -> None:
    made = replace(JOB, refit=True, errors=False).fit(rows, schema=schema)
    assert made.model is not None
    assert made.answers().shape == (60,)


def test_what_does_not_fit_is_refused_in_one_line(schema: Schema, rows: pa.Table) -> None:
    for change, said in (
        ({"free": "zero"}, "free_share speaks of measured tables; it needs free = measured"),
        ({"player": "model"}, "it needs player = record"),
        ({"player": None}, "it needs player = record"),
        ({"free_share": 1.5}, "free_share"),
        (
            {"accountant": "advanced"},
            "tables, because its theorem is about draws alone",
        ),
        ({"free": "measure"}, "measured"),
    ):
        with pytest.raises(ParameterError, match=said):
            replace(JOB, **change).fit(rows, schema=schema)
    assert JOB.tuning.free_tables(3) == FreeTables(0.2, 3)
    assert replace(JOB, free_share=None).tuning.free_tables(3) == FreeTables(SHARE, 3)


def test_the_theorem_pays_for_the_tables_too(schema: Schema) -> None:
    job = dq.DualQuery(epsilon=1.0, delta=1e-6, player="record", beta=0.05, queries=20, k=1)
    plain, measured = (
        one.plan(200_000, schema) for one in (job, replace(job, free="measured", free_share=0.5))
    )
    assert measured.free is not None
    assert measured.epsilon["gaussian"] <= 1.0
    assert measured.rounds < plain.rounds, "a larger alpha is promised"
