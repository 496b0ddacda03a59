"""The curator's page and the comparison: what they show, and where they refuse to go."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dualquery as dq
from dualquery.domain.schema import Schema
from dualquery.evaluation.figures import evaluate
from dualquery.evaluation.page import NOT_FOR_PUBLICATION, render_evaluation
from dualquery.release.frames import decode, write_table
from tests.cli.conftest import Outcome, run  # noqa: F401 - a fixture
from tests.release.page.releases import HOSTILE, hostile_schema
from tests.release.page.test_page import read


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory, schema: Schema, rows: pa.Table) -> Path:
    """A folder with a table and two releases of it."""
    folder = tmp_path_factory.mktemp("curator")
    write_table(rows, folder / "table.csv")
    for name, rounds in (("one", None), ("two", 3)):
        job = dq.DualQuery(epsilon=1.0, delta=1e-3, queries=300, rounds=rounds)
        job.fit(rows, schema=schema).save(folder / name)
    return folder


def test_the_page_says_in_red_that_it_is_private(curator: Path, run) -> None:  # noqa: F811
    out = curator / "private.html"
    done: Outcome = run("evaluate", curator / "one", curator / "table.csv", "--report", out)
    assert done.code == 0
    assert NOT_FOR_PUBLICATION in done.err
    page = out.read_text(encoding="utf-8")
    text = " ".join(read(page).text)
    assert text.count(NOT_FOR_PUBLICATION) >= 3
    assert f'<p class="stamp">{NOT_FOR_PUBLICATION}' in page
    for title in ("True against released", "How large", "by the size", "worst queries", "zeros"):
        assert title in text
    assert "<script" not in page
    # The pictures: two matrices, the strongest pairs in table and release, and what intervals hold.
    for label in ("columns, private table", "columns, release", ", private table", ", release"):
        assert f'{label}"' in page
    assert page.count('<b style="left:') > 5
    assert "upright mark is at 95 %" in text


@pytest.mark.parametrize("place", ["one/private.html", "nowhere/private.html", "."])
def test_it_is_not_written_where_it_must_not_be(curator: Path, run, place: str) -> None:  # noqa: F811
    done = run("evaluate", curator / "one", curator / "table.csv", "--report", curator / place)
    assert done.code == 2
    assert "--report" in done.err
    assert len(done.err.splitlines()) == 1


def test_the_worst_queries_come_first(schema: Schema, rows: pa.Table) -> None:
    release = dq.DualQuery(epsilon=1.0, delta=1e-3, queries=300).fit(rows, schema=schema)
    result = evaluate(release, rows)
    page = render_evaluation(result, release.privacy)
    errors = np.abs(result.released - result.truth)
    worst = dq.format_query(result.workload.query(int(np.argmax(errors))), schema)
    text = [part for part in read(page).text if part.strip()]
    assert worst in text
    assert f"{errors.max():.4f}" in page


def test_hostile_names_stay_text_there_too() -> None:
    schema = hostile_schema()
    random = np.random.default_rng(2)
    table = decode(random.integers(0, schema.sizes, (2000, len(schema)), np.int32), schema)
    release = dq.DualQuery(epsilon=1.0, delta=1e-3, queries=200).fit(table, schema=schema)
    page = render_evaluation(evaluate(release, table), release.privacy)
    assert not {"script", "img"} & {tag for tag, _ in read(page).seen}
    assert HOSTILE[0] not in page


def test_compare(curator: Path, run) -> None:  # noqa: F811
    done = run("compare", curator / "one", curator / "two", "--json")
    assert done.code == 0
    assert "NOT PRIVATE" not in done.err
    one, two = json.loads(done.out)["releases"]
    assert two["parameters"]["rounds"] == 3 != one["parameters"]["rounds"]
    assert "evaluation" not in one
    done = run("compare", curator / "one", curator / "two")
    assert "gaussian" in done.out
    assert "max error" not in done.out


def test_compare_with_the_table_adds_errors(curator: Path, run) -> None:  # noqa: F811
    workload = curator / "queries.txt"
    workload.write_text("smoker=1\nsex=Male & age>=50\n")
    arguments = ("compare", curator / "one", curator / "two", "--table", curator / "table.csv")
    done = run(*arguments, "--json")
    assert "NOT PRIVATE" in done.err
    found = json.loads(done.out)["releases"]
    assert all(entry["evaluation"]["queries"] == 300 for entry in found)
    done = run(*arguments, "--workload", workload)
    assert "max error (NOT PRIVATE)" in done.out
    done = run("compare", curator / "one", "--workload", workload)
    assert done.code == 2
    assert "--table" in done.err
    assert run("compare", curator).code == 2
