"""Whatever a private table holds, no command prints a cell of it, except where it is asked to.

Every bad table has a canary in the cells of declared columns, of undeclared ones, or of both. All
commands that read a private table get it.
"""

from __future__ import annotations

import csv
import gzip
import io
import shutil
from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse

import dualquery as dq
from dualquery.base.errors import TableError
from dualquery.rows import csv_file
from tests.cli.conftest import in_a_process

CANARY, NUMBER = "Zyzzogeton", "918273645"
SCHEMA = """
[attributes.sex]
values = ["Female", "Male"]
[attributes.age]
edges = [0, 30, 60, 120]
[attributes.seen]
edges = [2022-01-01, 2022-07-01, 2023-01-01]
[attributes.smoker]
binary = true
[attributes.code]
values = [10, 20, 30]
[attributes.asked]
values = ["yes", "no"]
separator = ";"
"""
DECLARED = """
[attributes.sex]
open = true
[attributes.age]
bounds = [0, 120]
[attributes.seen]
type = "date"
bounds = [2022-01-01, 2023-01-01]
[attributes.smoker]
binary = true
"""
HEADER = ("who", "sex", "age", "seen", "smoker", "code", "asked", "weight", "note")
ROWS = 120
GOOD = ("7", "Male", "41", "2022-03-01", "1", "10", "yes", "1.5", CANARY)


def rows(**bad: object) -> list[list[object]]:
    """Rows with the canary in the undeclared column, the last of them with bad cells."""
    odd = ("0", "Female", "17", "2022-09-01", "0", "20", "no", "1", f"{CANARY}s")
    good = [[str(i), *(odd, GOOD)[i % 2][1:]] for i in range(ROWS - 1)]
    return [*good, [bad.get(name, cell) for name, cell in zip(HEADER, GOOD, strict=True)]]


def text_of(lines: Sequence[Sequence[object]], separator: str = ",") -> str:
    stream = io.StringIO()
    csv.writer(stream, delimiter=separator, lineterminator="\n").writerows([HEADER, *lines])
    return stream.getvalue()


def write_csv(folder: Path, **bad: object) -> Path:
    (folder / "t.csv").write_text(text_of(rows(**bad)))
    return folder / "t.csv"


def with_line(folder: Path, line: str, name: str = "t.csv", separator: str = ",") -> Path:
    (folder / name).write_text(text_of(rows(), separator) + line + text_of(rows(), separator))
    return folder / name


def with_bytes(folder: Path, content: bytes, name: str = "t.csv") -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def write_parquet(folder: Path, **columns: object) -> Path:
    table = pa.table({n: [line[i] for line in rows()] for i, n in enumerate(HEADER)})
    for name, cells in columns.items():
        table = table.set_column(HEADER.index(name), name, pa.array(cells) if isinstance(
            cells, list) else cells)  # fmt: skip
    parquet.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


def damaged_parquet(folder: Path) -> Path:
    path = write_parquet(folder)
    content = bytearray(path.read_bytes())
    at = content.index(CANARY.encode())
    content[at - 12 : at] = b"\xff" * 12
    path.write_bytes(content)
    return path


def two_files(folder: Path) -> Path:
    (folder / "parts").mkdir()
    (folder / "parts" / "0.csv").write_text(text_of(rows()))
    (folder / "parts" / "1.csv").write_text(text_of(rows()) + f"1,{CANARY}\n")
    return folder / "parts"


def two_types(folder: Path) -> Path:
    (folder / "parts").mkdir()
    write_parquet(folder).rename(folder / "parts" / "0.parquet")
    write_parquet(folder, age=[41] * (ROWS - 1) + [int(NUMBER)]).rename(
        folder / "parts" / "1.parquet"
    )
    return folder / "parts"


def no_header(folder: Path) -> Path:
    (folder / "t.csv").write_text("\n" + text_of(rows(sex=CANARY)))
    return folder / "t.csv"


def matrix(folder: Path) -> Path:
    sparse.save_npz(folder / "t.npz", sparse.csr_matrix(np.full((3, 6), int(NUMBER))))
    return folder / "t.npz"


BAD: dict[str, Callable[[Path], Path]] = {
    "value": lambda f: write_csv(f, sex=CANARY),
    "long value": lambda f: write_csv(f, sex=CANARY * 5000),
    "word for a number": lambda f: write_csv(f, age=CANARY),
    "number out of range": lambda f: write_csv(f, age=NUMBER),
    "long number": lambda f: write_csv(f, age=NUMBER * 1000),
    "whole number": lambda f: write_csv(f, code=NUMBER),
    "decimal for a whole number": lambda f: write_csv(f, code=f"{NUMBER}.5"),
    "no date": lambda f: write_csv(f, seen=CANARY),
    "date of another year": lambda f: write_csv(f, seen="9182-07-03"),
    "day that is none": lambda f: write_csv(f, seen="2022-02-31"),
    "no yes or no": lambda f: write_csv(f, smoker=CANARY),
    "other answer": lambda f: write_csv(f, asked=f"yes;{CANARY}"),
    "missing": lambda f: write_csv(f, sex="", age="", who="", weight=""),
    "weight": lambda f: write_csv(f, weight=CANARY),
    "negative weight": lambda f: write_csv(f, weight=f"-{NUMBER}"),
    "line ends": lambda f: write_csv(f, sex=f"{CANARY}\n{CANARY}\r\n", note=f"{CANARY}\n,,,"),
    "cells too many": lambda f: with_line(f, f"1,{CANARY},2,3,4,5,6,7,8,{CANARY},{CANARY}\n"),
    "cells too few": lambda f: with_line(f, f"{CANARY},{CANARY}\n"),
    "semicolons, cells too many": lambda f: with_line(f, f"1;{CANARY};" * 9 + "\n", "t.csv", ";"),
    "tabs, cells too many": lambda f: with_line(f, f"{CANARY}\t" * 12 + "\n", "t.tsv", "\t"),
    "quote not closed": lambda f: with_line(f, f'1,Male,2,3,4,5,6,7,"{CANARY}\n'),
    "text after a quote": lambda f: with_line(f, f'1,Male,2,3,4,5,6,7,"{CANARY}"{CANARY}\n'),
    "NUL": lambda f: with_line(f, f"1,Male,2,3,4,5,6,7,\0{CANARY}\n"),
    "another encoding": lambda f: with_bytes(
        f, text_of(rows(sex=f"{CANARY}é", note=f"é{CANARY}")).encode("latin-1")
    ),
    "header in another encoding": lambda f: with_bytes(
        f, text_of(rows(sex=CANARY)).replace("note", "noté").encode("latin-1")
    ),
    "UTF-16": lambda f: with_bytes(f, text_of(rows(sex=CANARY)).encode("utf-16")),
    "half a gzip file": lambda f: with_bytes(
        f, gzip.compress((text_of(rows()) * 50).encode())[:-20], "t.csv.gz"
    ),
    "no gzip file": lambda f: with_bytes(f, text_of(rows()).encode(), "t.csv.gz"),
    "no parquet file": lambda f: with_bytes(f, text_of(rows()).encode(), "t.parquet"),
    "no known ending": lambda f: with_bytes(f, text_of(rows()).encode(), "t.dat"),
    "folder with a bad row": two_files,
    "folder of two types": two_types,
    "blank first line": no_header,
    "damaged parquet": damaged_parquet,
    "parquet, nested": lambda f: write_parquet(f, sex=[{CANARY: 1}] * ROWS, age=[[CANARY]] * ROWS),
    "parquet, bytes": lambda f: write_parquet(f, sex=[CANARY.encode()] * ROWS),
    "parquet, broken text": lambda f: write_parquet(
        f, sex=pa.array([CANARY.encode() + b"\xff"] * ROWS).view(pa.string())
    ),
    "parquet, decimals": lambda f: write_parquet(f, age=[Decimal(f"{NUMBER}.25")] * ROWS),
    "parquet, year 10000": lambda f: write_parquet(
        f, seen=pa.array([2**62 // 1000] * ROWS, pa.int64()).cast(pa.timestamp("ms"))
    ),
    "parquet, times": lambda f: write_parquet(f, age=[datetime(9182, 7, 3)] * ROWS),
    "parquet, large numbers": lambda f: write_parquet(f, code=[float(NUMBER) * 1e12] * ROWS),
    "parquet, ids": lambda f: write_parquet(f, who=[float(NUMBER) * 1e12] * ROWS),
    "sparse": matrix,
}  # fmt: skip


HEAVY = (
    "release, known", "release, start", "evaluate, json",
    "schema, priced", "schema, priced for persons",
)  # fmt: skip
FEW = ("value", "word for a number", "semicolons, cells too many", "parquet, broken text")
"""Commands that take seconds get a few of the tables, because they read them as the others do."""


def said(done: object) -> str:
    return f"{done.out}\n{done.err}"  # type: ignore[attr-defined]


def commands(files: Path, table: Path) -> dict[str, tuple[object, ...]]:
    """Every command that reads a private table."""
    made = ("release", table, "--schema", files / "s.toml", "--epsilon", 1, "--delta", 1e-3,
            "--queries", 20, "--k", 1, "--out", files / "made", "--overwrite")  # fmt: skip
    few = (*made, "--player", "record", "--rounds", 2, "--samples", 3, "--no-refit")
    known = ("--known", files / "known.txt", "--workload", files / "queries.txt")
    pairs = ("--long", "who,note", "--records", 200)
    drafted = ("schema", table, "-o", files / "d.toml", "--overwrite")
    priced = (*drafted, "--declare", files / "declared.toml", "--epsilon", 1, "--delta", 1e-9)
    return {
        "release": few,
        "release, clamp": (*few, "--out-of-domain", "clamp"),
        "release, persons": (*few, "--unit", "who", "--most-records", 1, "--neighbours",
                             "add-remove", "--rows", 80),
        "release, weights": (*few, "--weight", "weight", "--weight-bound", 2, "--rows", 80),
        "release, long": (*few, "--schema", files / "pairs.toml", *pairs),
        "release, known": (*made[:8], "--out", files / "made", "--overwrite", *known),
        "release, start": ("release", files / "fine.csv", *made[2:], "--start", table,
                           "--rounds", 2, "--samples", 3),
        "check": ("check", table, "--schema", files / "s.toml"),
        "check, json": ("check", table, "--schema", files / "s.toml", "--json"),
        "check, long": ("check", table, "--schema", files / "pairs.toml", *pairs),
        "check, weights": ("check", table, "--schema", files / "s.toml", "--weight", "weight",
                           "--weight-bound", 2),
        "schema": drafted,
        "schema, json": (*drafted, "--json"),
        "schema, skeleton": (*drafted, "--skeleton"),
        "schema, priced": priced,
        "schema, priced for persons": (*priced, "--unit", "who", "--most-records", 1),
        "evaluate": ("evaluate", files / "fine", table),
        "evaluate, json": ("evaluate", files / "fine", table, "--json", "--out-of-domain",
                           "missing", "--target", "smoker"),
        "evaluate, export": ("evaluate", files / "fine", table, "--sdmetrics", files / "theirs"),
    }  # fmt: skip


@pytest.fixture(scope="module")
def fine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a schema, a release, and files that are public."""
    from dualquery.domain.schema import Schema
    from dualquery.estimator import DualQuery

    folder = tmp_path_factory.mktemp("fine")
    (folder / "s.toml").write_text(SCHEMA)
    (folder / "declared.toml").write_text(DECLARED)
    (folder / "pairs.toml").write_text('[binary_columns]\nnames = ["a", "b"]\n')
    (folder / "known.txt").write_text("smoker = 0.5\n")
    (folder / "queries.txt").write_text("sex=Male\nsmoker\nage>=30 & smoker\n")
    lines = [[*line[:-1], "fine"] for line in rows()]
    (folder / "fine.csv").write_text(text_of(lines))
    job = DualQuery(1.0, 1e-3, queries=20, k=1, player="record", rounds=2, samples=3, refit=False)
    job.fit(folder / "fine.csv", schema=Schema.load(folder / "s.toml")).save(folder / "fine")
    return folder


@pytest.mark.parametrize("kind", BAD)
def test_no_command_prints_a_cell(
    kind: str, fine: Path, tmp_path: Path, run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_file, "LONGEST_ROW", 1 << 16)
    table = BAD[kind](tmp_path)
    refused = 0
    for name, command in commands(fine, table).items():
        if name in HEAVY and kind not in FEW:
            continue
        done = run(*command)
        shutil.rmtree(fine / "made", ignore_errors=True)
        assert not (fine / "made.partial").exists(), f"{name}: {said(done)}"
        refused += done.code == 2
        assert done.code in (0, 1, 2), name
        assert "Traceback" not in said(done), f"{name}: {said(done)}"
        assert "internal error" not in said(done), f"{name}: {said(done)}"
        for canary in (CANARY, NUMBER, "9182", "2022-02-31"):
            assert canary not in said(done).replace(str(table), ""), f"{name}: {said(done)}"
        if done.code == 2:
            told = [line for line in done.err.splitlines() if line.startswith("error: ")]
            assert len(told) == 1, f"{name}: {said(done)}"
    assert refused, "or this table is not bad"


def test_a_curator_who_asks_sees_the_cells(fine: Path, tmp_path: Path, run) -> None:
    table = write_csv(tmp_path, sex=CANARY, age=NUMBER)
    for more in ((), ("--json",)):
        done = run("check", table, "--schema", fine / "s.toml", "--show", *more)
        assert CANARY in done.out
        assert NUMBER in done.out
        assert "NOT PRIVATE" in done.out


@pytest.mark.slow
def test_workers_print_no_cell(fine: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    table = write_parquet(tmp_path, sex=[*["Male"] * (ROWS - 1), CANARY])
    command = commands(fine, table)["release"]
    done = in_a_process(*command, "--engine", "dask")
    assert done.returncode == 2, done.stderr
    assert "column 'sex': a cell is outside" in done.stderr
    assert CANARY not in done.stdout + done.stderr


def failing(engine: str) -> object:
    """A query over a private table that fails at a cell when it is run."""
    if engine == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        cells = pa.table({"age": ["41", CANARY]})
        return duckdb.from_arrow(cells).select("cast(age as integer) as age")
    pl = pytest.importorskip("polars")
    if engine == "polars":
        return pl.LazyFrame({"age": ["41", CANARY]}).select(pl.col("age").cast(pl.Int64))
    return pl.LazyFrame({"age": ["41"]}).map_batches(_raise)


def _raise(frame: object) -> object:
    raise ValueError(CANARY)


@pytest.mark.parametrize("engine", ["duckdb", "polars", "a function"])
def test_a_query_that_fails_at_a_cell_does_not_show_it(engine: str) -> None:
    schema = dq.Schema((dq.Attribute.numeric("age", [0, 50, 120]),))
    with pytest.raises(TableError) as refused:
        dq.DualQuery(1.0, 1e-3).fit(failing(engine), schema=schema)
    assert CANARY not in str(refused.value)
    assert refused.value.__suppress_context__, "or a traceback would show what it was raised from"
