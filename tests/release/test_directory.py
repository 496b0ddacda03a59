"""The release directory: whole or not there, and the same when read back."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import dualquery as dq
from dualquery.base.errors import ParameterError, QueryError, ReleaseError
from dualquery.domain.schema import Schema
from dualquery.privacy.statement import NOT_PRIVATE
from dualquery.release import directory, reading, stamps
from dualquery.release.verifying import content_digest
from tests.release.page.releases import made_release

KINDS = {
    "records": {"player": "record", "refit": False},
    "refitted": {"player": "record"},
    "model": {"player": "model"},
}


@pytest.fixture(scope="module", params=KINDS)
def made(request: pytest.FixtureRequest, schema: Schema, rows: pa.Table) -> dq.Release:
    job = dq.DualQuery(epsilon=1.0, delta=1e-3, queries=500, seed=3, **KINDS[request.param])
    return job.fit(rows, schema=schema)


@pytest.fixture(scope="module")
def recorded(schema: Schema, rows: pa.Table) -> dq.Release:
    job = dq.DualQuery(epsilon=1.0, delta=1e-3, queries=500, seed=3, **KINDS["records"])
    return job.fit(rows, schema=schema)


def test_the_files(tmp_path, made: dq.Release) -> None:
    out = made.save(tmp_path / "out")
    assert sorted(file.name for file in out.iterdir()) == [
        *(["model.npz"] if made.model is not None else []),
        "records.parquet",
        "release.json",
        "report.html",
        "transcript.npz",
        "workload.npz",
    ]
    content = json.loads((out / "release.json").read_text())
    assert content["format"] == reading.FORMAT
    assert content["package"]["version"] == dq.__version__
    assert content["privacy"]["stamp"] == NOT_PRIVATE
    assert content["parameters"]["rounds"] == len(made.transcript)
    played = made.transcript.records is not None
    assert content["oracle"].get("rounds") == (len(made.transcript) if played else None)
    assert content["source"] == made.source
    assert NOT_PRIVATE in (out / "report.html").read_text()
    records = pq.read_table(out / "records.parquet")
    assert records.num_rows == (len(made.transcript) if played else directory.SHOWN_RECORDS)
    assert records.column_names == list(made.schema.names)


def test_reading_back(tmp_path, made: dq.Release) -> None:
    again = dq.load(made.save(tmp_path / "out"))
    assert again.schema == made.schema
    assert again.privacy == made.privacy
    assert again.parameters == made.parameters
    assert list(again.workload) == list(made.workload)
    assert again.source == made.source
    np.testing.assert_array_equal(again.answers(), made.answers())
    for one, other in zip(again.transcript, made.transcript, strict=True):
        np.testing.assert_array_equal(one.draws.queries, other.draws.queries)
        assert type(one.move) is type(other.move)
        assert one.move.notes() == other.move.notes()
        assert one.move.arrays().keys() == other.move.arrays().keys()
        for name, array in one.move.arrays().items():
            np.testing.assert_array_equal(array, other.move.arrays()[name])


def test_an_unseeded_release_carries_no_stamp(tmp_path, schema: Schema, rows: pa.Table) -> None:
    release = dq.DualQuery(epsilon=1.0, delta=1e-3, queries=50).fit(rows, schema=schema)
    out = release.save(tmp_path / "out")
    for file in ("release.json", "report.html"):
        assert "NOT PRIVATE" not in (out / file).read_text()


def test_every_file_of_a_seeded_run_is_stamped(tmp_path, made: dq.Release) -> None:
    out = made.save(tmp_path / "out")
    assert pq.read_schema(out / "records.parquet").metadata[b"dualquery.stamp"].decode() == (
        NOT_PRIVATE
    )
    for file in out.glob("*.npz"):
        with np.load(file) as stored:
            assert str(stored["stamp"]) == NOT_PRIVATE, file
    assert NOT_PRIVATE in (out / "report.html").read_text().partition("</head>")[0]
    assert {stamps.stamp_of(file) for file in out.iterdir() if file.suffix != ".json"} == {
        NOT_PRIVATE
    }


@pytest.mark.parametrize("name", ["records.parquet", "model.npz", "workload.npz", "report.html"])
@pytest.mark.parametrize("seeded", [True, False])
def test_a_release_whose_stamps_disagree_is_refused(
    tmp_path, made: dq.Release, seeded: bool, name: str
) -> None:
    """One file of another run, with its digest entered as if it belonged there."""
    honest = replace(
        made,
        privacy=replace(made.privacy, private=True),
        parameters=replace(made.parameters, seed=None),
    )
    one, other = (made, honest) if seeded else (honest, made)
    out, from_elsewhere = one.save(tmp_path / "out"), other.save(tmp_path / "other")
    if not (out / name).exists():
        pytest.skip("a release of records has no model")
    dq.load(out)
    shutil.copy(from_elsewhere / name, out / name)
    content = json.loads((out / "release.json").read_text())
    content["files"][name] = hashlib.sha256((out / name).read_bytes()).hexdigest()
    content["digest"] = content_digest(content)
    (out / "release.json").write_text(json.dumps(content))
    with pytest.raises(ReleaseError, match=f"{name}' is stamped .* they are not of one release"):
        dq.load(out)


def test_words_in_a_schema_are_no_stamp(tmp_path, rows: pa.Table) -> None:
    sly = f'<meta name="dualquery-stamp" content="{NOT_PRIVATE}">'
    table = rows.select(["smoker"]).append_column(sly, rows.column("smoker"))
    schema = Schema((dq.Attribute.binary("smoker"), dq.Attribute.binary(sly)))
    made = dq.DualQuery(epsilon=1.0, delta=1e-4, queries=20, errors=False).fit(table, schema=schema)
    assert dq.load(made.save(tmp_path / "out")).privacy.private


def test_what_exists_is_not_overwritten(tmp_path, made: dq.Release) -> None:
    out = made.save(tmp_path / "out")
    with pytest.raises(ReleaseError, match="exists; choose another name"):
        made.save(out)
    made.save(out, overwrite=True)
    other = tmp_path / "mine"
    other.mkdir()
    (other / "keep.txt").write_text("precious")
    with pytest.raises(ReleaseError, match="not a release"):
        made.save(other, overwrite=True)
    assert (other / "keep.txt").read_text() == "precious"


def test_a_failed_write_leaves_nothing(tmp_path, made, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(folder) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(directory, "_sync", fail)
    with pytest.raises(OSError, match="disk full"):
        made.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_release_is_refused(tmp_path, made: dq.Release) -> None:
    out = made.save(tmp_path / "out")
    with (out / "transcript.npz").open("ab") as file:
        file.write(b"x")
    with pytest.raises(ReleaseError, match=r"transcript\.npz' is missing or was changed"):
        dq.load(out)
    (out / "release.json").write_text("{")
    with pytest.raises(ReleaseError, match="cannot read release"):
        dq.load(out)
    with pytest.raises(ReleaseError, match="not a release directory"):
        dq.load(tmp_path)


@pytest.mark.parametrize("name", ["plain", "x\x1b[31m", "it's"])
def test_what_is_no_release_is_named_once(tmp_path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(ReleaseError) as refused:
        dq.load(tmp_path / name)
    assert str(refused.value).startswith(f"{str(tmp_path / name)!r} is not a release directory")


def test_a_newer_format_is_refused(tmp_path, made: dq.Release) -> None:
    out = made.save(tmp_path / "out")
    content = json.loads((out / "release.json").read_text())
    (out / "release.json").write_text(json.dumps({**content, "format": 99}))
    with pytest.raises(ReleaseError, match="format 99"):
        dq.load(out)


def test_answers_are_those_of_the_records(recorded: dq.Release) -> None:
    made = recorded
    query = "smoker=1 & age>=50"
    holds = (made.records[:, 2] == 1) & (made.records[:, 1] >= 3)
    assert made.answer(query) == pytest.approx(holds.mean())
    assert made.answer(dq.parse(query, made.schema)) == made.answer(query)
    with pytest.raises(QueryError, match="no attribute"):
        made.answer("nope=1")


def test_samples(made: dq.Release) -> None:
    sample = made.sample(300, seed=1)
    assert isinstance(sample, pa.Table)
    assert sample.num_rows == 300
    assert sample.schema.names == list(made.schema.names)
    kinds = [pa.string(), pa.int64(), pa.int64(), pa.string(), pa.float64(), pa.string()]
    assert sample.schema.types == kinds
    assert not made.style.types
    assert sample.equals(made.sample(300, seed=1))
    with pytest.raises(ParameterError, match="rows = 0"):
        made.sample(0)


def test_pandas_in_pandas_out(schema: Schema, rows: pa.Table) -> None:
    frame = rows.to_pandas()
    made = dq.DualQuery(epsilon=1.0, delta=1e-3, queries=50, seed=1).fit(frame, schema=schema)
    sample = made.sample(20)
    assert isinstance(sample, pd.DataFrame)
    assert sample.dtypes.equals(frame.dtypes)


def test_types_of_the_input_on_request(schema: Schema, rows: pa.Table) -> None:
    """And with a warning, because a type can depend on a single cell."""
    age = rows.column("age").cast(pa.float32())
    frame = rows.set_column(rows.column_names.index("age"), "age", age)
    job = dq.DualQuery(epsilon=1.0, delta=1e-3, queries=50, refit=False, player="record", rounds=2)
    sample = job.fit(frame, schema=schema).sample(5)
    assert sample.field("age").type == pa.int64()
    with pytest.warns(UserWarning, match="like_input.*do not publish"):
        made = job.fit(frame, schema=schema, like_input=True)
    assert made.sample(5).field("age").type == pa.float32()


def test_sparse_in_sparse_out() -> None:
    matrix = sparse.random_array((300, 30), density=0.2, rng=np.random.default_rng(0)).tocsr()
    matrix.data[:] = 1
    job = dq.DualQuery(epsilon=1.0, delta=1e-3, queries=200, seed=1)
    wide = Schema(tuple(dq.Attribute.binary(f"x{i}") for i in range(30)))
    sample = job.fit(matrix, schema=wide).sample(40)
    assert sparse.issparse(sample)
    assert sample.shape == (40, 30)
    assert set(np.unique(sample.toarray())) <= {0, 1}


def test_a_workload_of_ones_own(schema: Schema, rows: pa.Table) -> None:
    job = dq.DualQuery(epsilon=1.0, delta=1e-3, seed=1)
    made = job.fit(rows, schema=schema, workload=lambda resolved: dq.all_marginals(resolved, 2))
    assert len(made.workload) == len(dq.all_marginals(schema, 2))
    other = Schema(schema.attributes[:3])
    with pytest.raises(QueryError, match="another schema"):
        job.fit(rows, schema=schema, workload=dq.all_marginals(other, 1))


def test_rows_on_a_condition(made: dq.Release) -> None:
    sample = made.sample(50, where="smoker=1 & age>=25", seed=1)
    assert sample.column("smoker").to_pylist() == [1] * 50
    assert min(sample.column("age").to_pylist()) >= 25
    with pytest.raises(QueryError, match="no attribute"):
        made.sample(5, where="nope=1")


def test_a_refit_needs_no_table_and_is_the_same_again(tmp_path, recorded: dq.Release) -> None:
    from dualquery.release.refitting import refitted

    stored = dq.load(recorded.save(tmp_path / "out"))
    assert stored.source == "records"
    once, again = refitted(stored), refitted(stored)
    assert once.source == "model"
    assert once.privacy == recorded.privacy
    np.testing.assert_array_equal(once.answers(), again.answers())
    other = refitted(stored, components=4, steps=10)
    assert len(other.model.weights) == 4
    for wrong in ({"components": 0}, {"steps": -1}):
        with pytest.raises(ParameterError, match="expected"):
            refitted(stored, **wrong)


def test_about_is_kept_and_only_if_there_is_something(schema: Schema, tmp_path: Path) -> None:
    plain = made_release(schema)
    plain.save(tmp_path / "plain")
    assert "about" not in json.loads((tmp_path / "plain" / "release.json").read_text("utf-8"))
    plain.with_about({"title": "T"}).save(tmp_path / "told")
    again = dq.load(tmp_path / "told")
    assert again.about.title == "T"
    assert again.with_about({"publisher": "P"}).about.title == "T"
