"""What a reviewer asks: coverage by kind, columns, pairs, K-marginal score, guessing a column."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dualquery as dq
from dualquery.domain.schema import Schema
from dualquery.evaluation.fidelity import cramers_v
from dualquery.evaluation.figures import Distance, Evaluation
from dualquery.evaluation.page import render_evaluation
from dualquery.evaluation.sdmetrics import metadata, write_input
from dualquery.model.mixture import Mixture
from dualquery.model.standard_errors import LEVELS, MOST_LITERALS, ErrorTable
from dualquery.release.release import Release
from dualquery.rows.encoding import OutOfDomain
from dualquery.rows.opening import open_table
from tests.release.page.releases import made_release


def codes_of(rows: pa.Table, schema: Schema) -> np.ndarray:
    found = []
    for attribute in schema.attributes:
        cells = rows.column(attribute.name).to_pylist()
        found.append([attribute.missing_code if c is None else attribute.code_of(c) for c in cells])
    return np.array(found).T


@pytest.fixture(scope="module")
def exact(schema: Schema, rows: pa.Table) -> Release:
    """A release whose model is the private table itself, one component per row."""
    codes = codes_of(rows, schema)
    tables = np.zeros((int(schema.code_start[-1]), len(codes)))
    for row, record in enumerate(codes):
        tables[schema.code_start[:-1] + record, row] = 1.0
    model = Mixture(schema, np.full(len(codes), 1.0 / len(codes)), tables)
    errors = ErrorTable(np.full((1, MOST_LITERALS, len(LEVELS) - 1), 0.01))
    return made_release(schema).with_model(model, errors)


def test_a_perfect_release_is_told_so(exact: Release, rows: pa.Table) -> None:
    found = dq.evaluate(exact, rows)
    assert found.distance.max_error < 1e-12
    assert found.coverage is not None
    assert found.coverage["all"] == 1.0
    assert set(found.coverage) == {"all", "conjunctions of 3"}
    assert found.fidelity is not None
    assert max(found.fidelity.columns.values()) < 1e-12
    assert all(abs(pair.true - pair.released) < 1e-9 for pair in found.fidelity.pairs)
    assert found.fidelity.k_marginal == pytest.approx(1000.0)
    assert "wider than needed" in found.verdict[-1]


def test_distances_are_those_of_the_definition(schema: Schema, rows: pa.Table) -> None:
    """Against a model that is certain of the declared defaults."""
    tables = np.zeros((int(schema.code_start[-1]), 1))
    tables[schema.code_start[:-1] + schema.defaults, 0] = 1.0
    release = made_release(schema).with_model(Mixture(schema, np.ones(1), tables), None)
    found = dq.evaluate(release, rows).fidelity
    assert found is not None
    codes = codes_of(rows, schema)
    for place, name in enumerate(schema.names):
        assert found.columns[name] == pytest.approx(
            float((codes[:, place] != schema.defaults[place]).mean())
        )
    apart = (codes[:, [0, 2]] != schema.defaults[[0, 2]]).any(axis=1).mean()
    (pair,) = [p for p in found.pairs if (p.first, p.second) == ("sex", "smoker")]
    assert pair.distance == pytest.approx(float(apart))
    assert pair.released == 0.0
    assert found.marginals == 20  # all triples of six columns


def test_cramers_v() -> None:
    assert cramers_v(np.diag([0.5, 0.5])) == pytest.approx(1.0)
    assert cramers_v(np.outer([0.3, 0.7], [0.2, 0.8])) == pytest.approx(0.0, abs=1e-9)
    assert cramers_v(np.array([[0.4, 0.6], [0.0, 0.0]])) == 0.0  # one value only
    joint = np.array([[0.3, 0.2], [0.1, 0.4]])
    chi = sum(
        (joint[i, j] - joint[i].sum() * joint[:, j].sum()) ** 2
        / (joint[i].sum() * joint[:, j].sum())
        for i in range(2)
        for j in range(2)
    )
    assert cramers_v(joint) == pytest.approx(np.sqrt(chi))


def test_the_coverage_is_that_of_the_intervals(exact: Release, rows: pa.Table) -> None:
    narrow = ErrorTable(np.full((1, MOST_LITERALS, len(LEVELS) - 1), 1e-9))
    assert exact.model is not None
    tables = (
        0.9 * exact.model.own + 0.1 / np.repeat(exact.schema.sizes, exact.schema.sizes)[:, None]
    )
    blurred = exact.with_model(replace(exact.model, own=tables), narrow)
    found = dq.evaluate(blurred, rows)
    assert found.coverage is not None
    assert found.coverage["all"] < 0.1
    assert "too narrow" in found.verdict[-1]


def test_a_plain_sentence_when_a_baseline_wins(exact: Release, rows: pa.Table) -> None:
    found = dq.evaluate(exact, rows)
    lost = replace(
        found, distance=Distance(0.5, 0.2), baselines={"independent": Distance(0.1, 0.03)}
    )
    assert lost.verdict[0].startswith(
        "The baseline 'independent' is closer to the truth than this release: its average error is "
        "0.03000, that of the release 0.20000."
    )


@pytest.fixture(scope="module")
def judged(exact: Release, rows: pa.Table) -> Evaluation:
    pytest.importorskip("sklearn")
    return dq.evaluate(exact, rows, target="smoker")


def test_guessing_a_column(judged: Evaluation) -> None:
    one = judged.usefulness
    assert one is not None
    assert one.tested == 500
    assert one.synthetic > one.frequent  # smokers are older in this table
    assert abs(one.synthetic - one.real) < 0.12
    assert judged.to_dict()["target"]["target"] == "smoker"


def test_the_private_page_shows_all_of_it(judged: Evaluation, exact: Release) -> None:
    page = render_evaluation(judged, exact.privacy)
    for words in (
        "What the intervals hold", "Single columns", "Pairs of columns", "Guessing a column",
        "K-marginal score as NIST's SDNist defines it", "one by one",
        "TV of the tenth that depends most", "conditional shares", "strongest tenth",
    ):  # fmt: skip
        assert words in page


@pytest.mark.parametrize(
    ("target", "message"),
    [("smokr", "no attribute 'smokr'; did you mean 'smoker'?")],
)
def test_a_wrong_target_is_named(exact, rows, target: str, message: str) -> None:
    with pytest.raises(dq.DualQueryError, match=message[:20]):
        dq.evaluate(exact, rows, target=target)


def test_the_input_of_an_sdmetrics_report(exact: Release, rows: pa.Table, tmp_path: Path) -> None:
    opened = open_table(rows)
    write_input(exact, opened, opened.bind(exact.schema), tmp_path, OutOfDomain.REFUSE)
    told = json.loads((tmp_path / "metadata.json").read_text())
    assert told == metadata(exact.schema)
    assert told["columns"]["age"] == {"sdtype": "numerical"}
    assert told["columns"]["sex"] == {"sdtype": "categorical"}
    real = (tmp_path / "real.csv").read_text().splitlines()
    made = (tmp_path / "synthetic.csv").read_text().splitlines()
    assert real[0] == made[0]
    assert len(real) == len(made) == 1001
    assert stat.S_IMODE((tmp_path / "real.csv").stat().st_mode) == 0o600
