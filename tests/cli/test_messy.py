"""A messy table from its draft to its samples: schema, two edited lines, check, release, sample."""

from __future__ import annotations

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
