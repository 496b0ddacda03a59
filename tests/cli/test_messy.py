"""A messy table from its draft to its samples: schema, two edited lines, check, release, sample."""

from __future__ import annotations

import json

import pandas as pd
import pyarrow as pa
from pyarrow import parquet

import dualquery as dq
from tests.messy import messy_table


def test_from_a_messy_table_to_typed_rows_in_one_go(run, tmp_path) -> None:
    frame = messy_table(800)
    frame.to_csv(tmp_path / "table.csv", index=False)
    file = tmp_path / "schema.toml"
    assert run("schema", tmp_path / "table.csv", "-o", file).code == 0
    lines = file.read_text().splitlines()
    place = lines.index("[attributes.grade]") + 1
    lines[place] = 'values = ["low", "mid", "high"]\nordered = true'  # the file cannot know
    lines.remove("draft = true  # remove this line when you have reviewed the schema")
    file.write_text("\n".join(lines))
    checked = run("check", tmp_path / "table.csv", "--schema", file)
    assert checked.code == 0, checked.out
    assert "curator's eyes only" in checked.out
    assert "800 rows fit the schema" in checked.out
    done = run(
        "release", tmp_path / "table.csv", "--schema", file, "--epsilon", 30, "--delta", 1e-5,
        "--queries", 50, "--k", 1, "--no-errors", "--quiet", "--out", tmp_path / "out",
    )  # fmt: skip
    assert done.code == 0, done.err
    schema = dq.Schema.load(file)
    kept = [name for name in frame.columns if name in schema.names]
    assert list(schema.names) == kept  # the order of the table
    for ending in ("csv", "parquet"):
        path = tmp_path / f"rows.{ending}"
        assert run("sample", tmp_path / "out", "--rows", 300, "--out", path).code == 0
        assert dq.check(path, schema).ok
    rows = parquet.read_table(tmp_path / "rows.parquet")
    assert rows.column_names == kept
    kinds = dict(zip(rows.column_names, rows.schema.types, strict=True))
    assert kinds["admitted"] == pa.date32()
    assert kinds["seen"] == pa.timestamp("us")
    assert kinds["wakes"] == pa.time64("us")
    assert kinds["cost"] == pa.float64()
    assert kinds["age"] == pa.int64()
    assert kinds["smoker"] == pa.bool_()
    assert kinds["zip"] == pa.string()
    for name in ("age", "height", "visits"):
        assert rows.column(name).null_count
    for name in ("cost", "admitted", "city"):
        assert not rows.column(name).null_count
    read = dq.load(tmp_path / "out").sample(50, kind="pandas")
    assert isinstance(read, pd.DataFrame)
    assert str(read["visits"].dtype) == "Int64"
    assert str(read["admitted"].dtype).startswith("datetime64")


def test_drafts_of_some_columns(run, tmp_path) -> None:
    messy_table(100).to_csv(tmp_path / "table.csv", index=False)
    table, file = tmp_path / "table.csv", tmp_path / "schema.toml"
    done = run("schema", table, "-o", file, "--columns", "city, note", "--json")
    told = json.loads(done.out)
    assert told["attributes"] == 1
    assert told["left_out"]["note"].startswith("looks like free text")
    assert dq.Schema.load(file).names == ("city",)
    assert run("schema", table, "-o", file, "--overwrite", "--exclude", "city").code == 0
    assert "city" not in dq.Schema.load(file).names
    wrong = run("schema", table, "-o", tmp_path / "other.toml", "--exclude", "cty")
    assert (wrong.code, "did you mean 'city'" in wrong.err) == (2, True)
    assert not (tmp_path / "other.toml").exists()
    (tmp_path / "pairs.csv").write_text("user,item\n1,0\n1,2\n2,1\n")
    pairs = ("schema", tmp_path / "pairs.csv", "-o", tmp_path / "pairs.toml", "--long", "user,item")
    assert run(*pairs, "--item-prefix", "m").code == 0
    assert dq.Schema.load(tmp_path / "pairs.toml").names == ("m0", "m1", "m2")


def test_a_check_that_fails(run, tmp_path) -> None:
    (tmp_path / "table.csv").write_text("sex,age\nf,3\nx,300\n")
    file = tmp_path / "schema.toml"
    file.write_text('[attributes.sex]\nvalues = ["f", "m"]\n[attributes.age]\nedges = [0, 120]\n')
    done = run("check", tmp_path / "table.csv", "--schema", file)
    assert done.code == 1
    assert "2 problems: a release would refuse the table" in done.out
    told = json.loads(run("check", tmp_path / "table.csv", "--schema", file, "--json").out)
    assert [problem["count"] for problem in told["problems"]] == [1, 1]
    assert "curator" in told["private"]
    assert run("check", tmp_path / "none.csv", "--schema", file).code == 2
