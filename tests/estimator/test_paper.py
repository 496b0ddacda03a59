"""The preset of the paper: what it plays, and which α and ε its release states."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dualquery as dq
from dualquery.oracles.registry import oracle
from dualquery.release.certificate import describe_certificate

SCHEMA = dq.Schema(
    (
        dq.Attribute.categorical("sex", ["F", "M"]),
        dq.Attribute.numeric("age", [0, 25, 50, 75, 100]),
        dq.Attribute.binary("smoker"),
    )
)
ROWS = 5000
RANDOM = np.random.default_rng(5)
TABLE = pa.table(
    {
        "sex": RANDOM.choice(["F", "M"], ROWS),
        "age": RANDOM.integers(0, 100, ROWS),
        "smoker": RANDOM.integers(0, 2, ROWS),
    }
)
BITS = ("sex=F", "sex=M", "age=0", "age=25", "age=50", "age=75", "smoker")


def fitted(**settings) -> dq.Release:
    job = dq.DualQuery.paper(**{"rows": ROWS, "queries": 20, "seed": 3} | settings)
    return job.fit(TABLE, schema=SCHEMA)


def test_alpha_alone_is_algorithm_2_and_says_what_it_costs(tmp_path: Path) -> None:
    made = fitted(alpha=0.8)
    rounds, samples = made.parameters.rounds, made.parameters.samples
    assert rounds == math.ceil(16 * math.log(2 * 20) / 0.8**2)
    log_universe = len(BITS) * math.log(2)
    assert samples == math.ceil(
        48 * (math.log(2) + log_universe + math.log(rounds / 0.05)) / 0.8**2
    )
    assert made.parameters.eta == 0.2
    # The paper's first theorem, ηT(T−1)s/n, is for a replaced record; adding one costs half of it.
    printed = 0.2 * rounds * (rounds - 1) * samples / ROWS
    assert made.privacy.replacement["pure"] == pytest.approx(printed, rel=1e-5)
    assert made.privacy.epsilon == pytest.approx(printed / 2, rel=1e-5)
    assert made.parameters.epsilon == pytest.approx(made.privacy.epsilon)
    assert (made.privacy.accountant, str(made.privacy.neighbours)) == ("pure", "add-remove")
    path = made.save(tmp_path / "out")
    written = json.loads((path / "release.json").read_text())
    assert written["parameters"]["alpha"] == 0.8
    assert written["certificate"]["asked_alpha"] == 0.8
    page = (path / "report.html").read_text()
    assert f"How sure is a number?</dt><dd>{made.parameters.accuracy}<" in page
    assert "within α = 0.8 of its true answer, except with probability 0.05." in page
    assert "<h3>Accuracy</h3><p>The oracle&#x27;s condition for α = 0.8" in page
    read = dq.load(path)
    assert read.parameters == made.parameters
    assert read.certificate == made.certificate


def test_the_certificate_speaks_of_what_answer_and_sample_give() -> None:
    made = fitted(alpha=0.8, delta=1e-3)
    assert made.privacy.accountant == "advanced"
    assert made.source == "records"
    assert made.certificate is not None
    assert made.certificate.guarantee.alpha == 0.8
    assert "`answer` and `sample` give these records" in describe_certificate(made.certificate)
    assert "of which this says nothing" in describe_certificate(made.certificate, "model")
    counted = dq.evaluate(made, TABLE)
    assert counted.distance.max_error <= 0.8
    every = made.sample_codes(made.parameters.rounds, np.random.default_rng(0))
    assert sorted(map(tuple, every)) == sorted(map(tuple, made.records))


def test_a_budget_gives_the_smallest_alpha() -> None:
    made = fitted(epsilon=8.0, delta=1e-3)
    alpha = made.parameters.alpha
    assert alpha is not None
    assert 0.5 < alpha < 1.0
    assert made.privacy.epsilon <= 8.0 < 1.01 * made.privacy.epsilon
    assert made.certificate is not None
    assert made.certificate.asked_alpha == alpha
    with pytest.raises(dq.ParameterError, match="or give eta and samples as the paper's exp"):
        fitted(epsilon=0.1, delta=1e-3)


def test_the_experiments_parameters_promise_no_accuracy() -> None:
    made = fitted(epsilon=1.0, delta=1e-3, eta=2.0, samples=100)
    assert (made.parameters.alpha, made.certificate) == (None, None)
    assert made.parameters.samples == 100
    assert made.privacy.epsilon <= 1.0


def test_columns_are_bits_or_stay_as_declared(tmp_path: Path) -> None:
    bits = fitted(alpha=0.8)
    assert bits.schema.names == BITS
    sexes = bits.records[:, :2].sum(axis=1)
    assert set(sexes.tolist()) - {1}  # free bits: records of both sexes, or of none
    valid = fitted(alpha=0.8, bits=False)
    assert valid.schema.names == SCHEMA.names
    assert valid.parameters.bits_of is None
    read = dq.load(bits.save(tmp_path / "out"))
    here, there = dq.evaluate(bits, TABLE), dq.evaluate(read, TABLE)
    np.testing.assert_array_equal(here.truth, there.truth)
    declared = dq.evaluate(valid, TABLE).truth
    np.testing.assert_allclose(here.truth, declared)
    wide = dq.Schema(tuple(dq.Attribute.binary(name) for name in ("a", "b", "c")))
    table = pa.table({name: RANDOM.integers(0, 2, 200) for name in ("a", "b", "c")})
    job = dq.DualQuery.paper(alpha=0.9, rows=200, queries=10, seed=0)
    assert job.fit(table, schema=wide).schema == wide


def test_a_run_without_epsilon_can_be_resumed(tmp_path: Path) -> None:
    job = dq.DualQuery.paper(alpha=0.9, rows=ROWS, queries=20)

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "playing" and done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        job.release(TABLE, tmp_path / "out", schema=SCHEMA, progress=stop)
    made = job.release(TABLE, tmp_path / "out", schema=SCHEMA, resume=True)
    assert made.parameters.alpha == 0.9
    other = dq.DualQuery.paper(alpha=0.8, rows=ROWS, queries=20)
    with pytest.raises(KeyboardInterrupt):
        job.release(TABLE, tmp_path / "two", schema=SCHEMA, progress=stop)
    with pytest.raises(dq.ReleaseError, match="cannot resume"):
        other.release(TABLE, tmp_path / "two", schema=SCHEMA, resume=True)


def test_a_ledger_counts_what_alpha_costs(tmp_path: Path) -> None:
    book = dq.Ledger.create(tmp_path / "ledger", epsilon=0.1, delta=1e-3, neighbours="add-remove")
    with pytest.raises(dq.BudgetExceededError):
        dq.DualQuery.paper(alpha=0.8, rows=ROWS, queries=20).fit(
            TABLE, schema=SCHEMA, ledger=book.path
        )


def test_alpha_alone_no_longer_refits() -> None:
    usual = {"player": "record", "queries": 20, "seed": 1}
    made = dq.DualQuery(1e4, 1e-3, alpha=0.8, **usual).fit(TABLE, schema=SCHEMA)
    assert (made.source, made.parameters.alpha) == ("records", 0.8)
    refit = dq.DualQuery(1e4, 1e-3, alpha=0.8, refit=True, errors=False, **usual)
    assert refit.fit(TABLE, schema=SCHEMA).source == "model"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0.8, "rows": None}, "add-remove keeps the number of rows private"),
        ({"alpha": 1.5}, "alpha = 1.5"),
        ({"eta": 2.0, "samples": 50}, "epsilon is missing"),
        ({"beta": 0.1}, "epsilon is missing"),
        ({"alpha": 0.8, "free": "measured", "bits": False}, "epsilon is missing"),
        ({"alpha": 0.8, "free": "measured"}, "leave out bits"),
        ({"alpha": 0.8, "unit": "sex", "most_records": 2}, "leave out unit"),
        ({"alpha": 0.8, "player": "model"}, "need player = record"),
        ({"alpha": 0.8, "oracle": oracle("highs"), "time_limit": 3.0}, "oracles that have a name"),
    ],
)
def test_what_does_not_go_together_is_said(settings: dict, message: str) -> None:
    with pytest.raises(dq.ParameterError, match=message):
        fitted(**settings)


def test_its_query_classes() -> None:
    made = fitted(alpha=0.8, positive=True, bits=False)
    assert not (made.workload.terms & 1).any()
    made = fitted(alpha=0.8, parities=2, parity_share=0.5, oracle="highs", time_limit=5.0)
    assert made.workload.is_parity.sum() == 10
    assert made.parameters.oracle == "highs"
