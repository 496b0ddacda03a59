"""Certificates: the accuracy theorem's conditions on a game of records."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import dualquery as dq
from dualquery.base.errors import ParameterError, ReleaseError
from dualquery.domain.schema import Schema
from dualquery.release.certificate import describe_certificate
from tests.release.fuzzing import resealed


def test_a_certified_release(tmp_path, schema: Schema, rows: pa.Table) -> None:
    job = dq.DualQuery(epsilon=1.0, delta=1e-3, queries=300, seed=1, certify=0.2, refit=False)
    made = job.fit(rows, schema=schema)
    found = made.certificate.guarantee
    assert made.parameters.player == "record"
    assert found.within_every_round
    assert found.largest_gap <= 0.05
    assert not found.parameters_met
    assert found.alpha is None
    assert "would need" in describe_certificate(made.certificate)
    assert all(one.move.bound is not None for one in made.transcript)
    assert dq.load(made.save(tmp_path / "out")).certificate == made.certificate


CLAIMS = {
    "alpha": 0.001, "beta": 1e-9, "within_every_round": True, "parameters_met": True,
    "rounds_needed": "many", "samples_needed": None, "eta_needed": [], "largest_gap": -1.0,
}  # fmt: skip


def test_what_a_file_claims_to_follow_is_not_believed(
    tmp_path, schema: Schema, rows: pa.Table
) -> None:
    job = dq.DualQuery(epsilon=1.0, delta=1e-3, queries=50, seed=1, certify=0.2, refit=False,
                       rounds=3, samples=10, eta=2.0)  # fmt: skip
    made = job.fit(rows, schema=schema)
    out = made.save(tmp_path / "out")
    stored = json.loads((out / "release.json").read_text())
    for name, claim in CLAIMS.items():
        stored["certificate"] |= {name: claim}
    (out / "release.json").write_text(json.dumps(stored))
    resealed(out)
    assert dq.load(out).certificate == made.certificate
    for name, wrong in (("asked_alpha", "x"), ("asked_alpha", 2.0), ("beta_used", None)):
        content = {**stored, "certificate": {**stored["certificate"], name: wrong}}
        (out / "release.json").write_text(json.dumps(content))
        resealed(out)
        with pytest.raises(ReleaseError) as refused:
            dq.load(out)
        assert "\n" not in str(refused.value)


def test_the_theorem_holds_where_its_parameters_are_met(schema: Schema, rows: pa.Table) -> None:
    """A generous ε: what matters here is that T, s and η are the theorem's."""
    small = Schema(schema.attributes[:3])
    alpha = 0.9
    job = dq.DualQuery(
        epsilon=1e6, delta=1e-3, queries=5, k=1, seed=1, certify=alpha, refit=False,
        rounds=60, samples=900, eta=alpha / 4,
    )  # fmt: skip
    certificate = job.fit(rows, schema=small).certificate
    found = certificate.guarantee
    assert found.parameters_met
    assert found.alpha == alpha
    assert "probability 0.95" in describe_certificate(certificate)


def test_bad_wishes(schema: Schema) -> None:
    for settings, word in (
        ({"certify": 0.0}, "certify = 0"),
        ({"certify": 1.5}, "certify = 1.5"),
        ({"certify": 0.1, "player": "model"}, "needs player = record"),
    ):
        with pytest.raises(ParameterError, match=word):
            dq.DualQuery(epsilon=1.0, delta=1e-3, **settings).fit(None, schema=schema)
