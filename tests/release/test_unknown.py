"""What no query names is unknown, and everything made of a release says so."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dualquery as dq
from dualquery.base.errors import ParameterError, QueryError
from dualquery.domain.schema import Schema
from dualquery.release.page.payload import payload
from dualquery.release.page.render import render_page

QUERIES = ("smoker=1 & sex=Male", "sex=Female & grade>=mid", "smoker=0")


def narrow(schema: Schema) -> dq.Workload:
    return dq.Workload.of([dq.parse(text, schema) for text in QUERIES], schema)


@pytest.fixture(scope="module", params=["model", "record"])
def made(request: pytest.FixtureRequest, schema: Schema, rows: pa.Table) -> dq.Release:
    job = dq.DualQuery(epsilon=1.0, delta=1e-4, rounds=4, samples=20, player=request.param, seed=1)
    return job.fit(rows, schema=schema, workload=narrow)


def test_the_attributes_that_no_query_names(made: dq.Release) -> None:
    assert made.unknown == ("age", "work class", "rate")
    assert made.summary()["unknown"] == list(made.unknown)


def test_a_run_says_it_before_the_first_draw(schema: Schema, rows: pa.Table) -> None:
    told: list[str] = []
    job = dq.DualQuery(epsilon=1.0, delta=1e-4, rounds=2, samples=5, seed=1, errors=False)
    job.fit(
        rows,
        schema=schema,
        workload=narrow,
        notice=told.append,
        progress=lambda stage, done, total: told.append(stage),
    )
    assert told[0] == (
        "no query of the workload names 3 of 6 attributes: 'age', 'work class', 'rate'; the "
        "release will know nothing about them"
    )
    told.clear()
    job.fit(rows, schema=schema, notice=told.append)
    assert told == []


def test_answers_are_refused_unless_one_insists(made: dq.Release) -> None:
    assert 0.0 <= made.answer("smoker & sex=Male") <= 1.0
    for ask in (made.answer, made.answer_with_error):
        with pytest.raises(QueryError, match=r"no query of this release names 'age'"):
            ask("smoker & age>=50")
    assert made.answer("age<25", unknown="default") == pytest.approx(1.0)
    assert made.answer_with_error("age<25", unknown="default")[1] is None
    several = dq.Workload.of([dq.parse("smoker & rate>=0.25", made.schema)], made.schema)
    with pytest.raises(QueryError, match="'rate'"):
        made.answers(several)
    errors = made.standard_errors(several)
    assert errors is None or np.isnan(errors).all()
    with pytest.raises(ParameterError, match="unknown = 'guess'; expected one of refuse, default"):
        made.answer("smoker", unknown="guess")


def test_rows_cannot_be_chosen_by_it(made: dq.Release) -> None:
    assert made.sample(3).num_rows == 3
    with pytest.raises(QueryError, match="names 'age'"):
        made.sample(3, where="age>=50")


def test_files_say_it(tmp_path, made: dq.Release) -> None:
    out = made.save(tmp_path / "out")
    kept = pq.read_schema(out / "records.parquet").metadata[b"dualquery.unknown"]
    assert json.loads(kept) == list(made.unknown)
    assert dq.load(out).unknown == made.unknown


def test_the_page_shows_no_chart_but_a_sentence(made: dq.Release) -> None:
    page = render_page(made)
    charts = page.partition('id="columns"')[2].partition("</section>")[0]
    assert "Unknown: <code>age</code>, <code>work class</code>, <code>rate</code>." in charts
    assert "0\u00a0to\u00a0&lt;25" not in charts
    assert "grade" in charts
    bits = payload(made, made.components)["known"]
    import base64

    known = np.unpackbits(np.frombuffer(base64.b64decode(bits), np.uint8), bitorder="little")
    assert known[:6].tolist() == [1, 0, 1, 0, 0, 1]


def test_free_attributes_still_take_what_the_record_player_is_told(
    schema: Schema, rows: pa.Table
) -> None:
    job = dq.DualQuery(
        epsilon=1.0, delta=1e-4, rounds=4, samples=20, player="record", refit=False, seed=1,
        free="zero",
    )  # fmt: skip
    made = job.fit(rows, schema=schema, workload=narrow)
    assert set(made.records[:, 1]) == {0}
    assert made.answer("age<25", unknown="default") == 1.0
