"""What a cell, a row or a person becomes depends on nothing else in the table.

codes(A ++ B) = codes(A) ++ codes(B), for every reader, type and treatment, whatever B holds.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv
from pyarrow import feather, orc, parquet
from scipy import sparse

from dualquery.base.errors import TableError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.engines.parts import count_part, cut
from dualquery.privacy.unit import Persons, Weight
from dualquery.rows import csv_file, encoding
from dualquery.rows import table as tables
from dualquery.rows.cells import CellReader, OutOfDomain, column_of_objects
from dualquery.rows.encoded import EncodedRows
from dualquery.rows.encoding import judge_column
from dualquery.rows.long import LongTable
from dualquery.rows.opening import TableFile, open_table
from dualquery.rows.persons import ByPerson
from dualquery.rows.priced import draft_with_price
from dualquery.rows.table import Table
from dualquery.rows.weights import ByWeight
from dualquery.workloads.generators import all_marginals

HOSTILE = [
    "abc", "True", "unknown", "+41", "99", "99.0", "-9.0", "inf", "-inf", "1e999", "nan", "NA", "",
    " 41 ", "1_0", "0x10", "٣", "1e5", "41.", ".5", "00041", "2022-03-01", "2022-03-01T12:30:00",
    "2022-03-01 12:30:00+02:00", "08:30:00", "9" * 400, "-" + "9" * 400,
     "9" * 5000, "a;b", "a;zz", 'say "no"', "two\nlines",
    "cr\r\nlf", "comma,cell", "é" * 40, "true", "yes", "b", "1.0", "9007199254740993",
]  # fmt: skip

CALM = ["41", "7", "99.0", "99", "3.25", "0", "119", "b", "2022-03-02", "2022-03-01T08:00:00", "NA"]

ATTRIBUTES = {
    "number": Attribute.numeric("c", [0, 20, 40, 120]).missing_as("99", "-9", "NA"),
    "bare number": Attribute.numeric("c", [0, 20, 40, 120]),
    "whole": Attribute.categorical("c", [0, 1, 7, 41]).missing_as("99"),
    "text": Attribute.categorical("c", ["a", "b", "41"], default="b"),
    "binary": Attribute.binary("c"),
    "date": Attribute.from_dict(
        "c", {"type": "date", "edges": ["2022-01-01", "2022-03-02", "2023-01-01"], "missing": True}
    ),
    "stamp": Attribute.from_dict(
        "c", {"type": "timestamp", "edges": ["2022-01-01T00:00:00", "2023-01-01T00:00:00"]}
    ),
    "comma": Attribute.from_dict(
        "c", {"edges": [0, 20, 40, 120], "decimal": ",", "thousands": ".", "missing": ["99", "x"]}
    ),
    "time": Attribute.from_dict("c", {"type": "time", "edges": ["00:00:00", "12:00:00"]}),
}


def schema_of(attribute: Attribute) -> Schema:
    return Schema((attribute,))


def codes(table: Table, schema: Schema, treatment: OutOfDomain) -> list[int] | str:
    """All codes of the only column, or `refused`."""
    try:
        bound = table.bind(schema)
        return [
            int(code)
            for block in table.blocks(bound, [0], treatment)
            for code in block.codes(0)  # type: ignore[union-attr]
        ]
    except TableError:
        return "refused"


def joined(first: list[int] | str, second: list[int] | str) -> list[int] | str:
    if isinstance(first, str) or isinstance(second, str):
        return "refused"
    return first + second


@pytest.mark.parametrize("treatment", OutOfDomain)
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_every_route_reads_a_cell_as_the_one_function_does(
    name: str, treatment: OutOfDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Distinct cells, many distinct cells, dictionaries, slices: always the same function."""
    attribute = ATTRIBUTES[name]
    reader = CellReader(attribute, treatment)
    cells: list[str | None] = [*CALM * 40, *HOSTILE, None]
    expected = [reader.code(cell) for cell in cells]
    for most in (encoding.MOST_DISTINCT, 1):
        monkeypatch.setattr(encoding, "MOST_DISTINCT", most)
        for column in (
            pa.array(cells),
            pa.array(cells, pa.large_string()),
            pa.array(cells).dictionary_encode(),
            pa.array(cells).cast(pa.string_view()),
            pa.array([None, *cells]).slice(1),
            column_of_objects(cells),
        ):
            assert judge_column(column, attribute, treatment).codes.tolist() == expected
    if treatment is not OutOfDomain.REFUSE:
        assert min(expected) >= 0  # whether a release is made does not depend on one cell


@pytest.mark.parametrize("treatment", OutOfDomain)
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_no_pair_of_cells_interferes(name: str, treatment: OutOfDomain) -> None:
    attribute = ATTRIBUTES[name]
    reader = CellReader(attribute, treatment)
    for neighbour in HOSTILE:
        for cell in HOSTILE:
            column = pa.array([cell] * 40 + [neighbour])
            found = judge_column(column, attribute, treatment).codes
            assert found.tolist() == [reader.code(cell)] * 40 + [reader.code(neighbour)]


TYPED: list[list[object]] = [
    [99, 7, 41], [99.0, 7.0, 3.25], [True, False], ["99.0", "7"], [None, 7], [b"\xff\xfe", 7],
    [float("inf"), 1], [2**70, 7], [np.int64(7), np.float32(7)], ["99", 99, 99.0, True, None],
]  # fmt: skip


@pytest.mark.parametrize("treatment", OutOfDomain)
@pytest.mark.parametrize("name", ["number", "whole", "text", "binary"])
def test_types_that_a_frame_inferred_change_nothing(name: str, treatment: OutOfDomain) -> None:
    """A column of whole numbers becomes one of objects by one cell, and is read the same."""
    attribute, schema = ATTRIBUTES[name], schema_of(ATTRIBUTES[name])
    for first in TYPED:
        for second in TYPED:
            parts = [pd.DataFrame({"c": pd.Series(cells)}) for cells in (first, second)]
            objects = [pd.DataFrame({"c": pd.Series(cells, dtype=object)}) for cells in
                       (first, second, [*first, *second])]  # fmt: skip
            dictionary = {"c": [*first, *second]}
            alone = [codes(open_table(part), schema, treatment) for part in objects[:2]]
            expected = joined(*alone)
            assert codes(open_table(objects[2]), schema, treatment) == expected
            assert codes(open_table(dictionary), schema, treatment) == expected
            assert joined(*[codes(open_table(p), schema, treatment) for p in parts]) == expected
    assert attribute is schema.attributes[0]


def write_csv(rows: pa.Table, path: Path) -> None:
    arrow_csv.write_csv(rows, path)


def as_csv(rows: pa.Table, folder: Path) -> object:
    write_csv(rows, folder / "t.csv")
    return folder / "t.csv"


def as_gzip(rows: pa.Table, folder: Path) -> object:
    write_csv(rows, folder / "plain.csv")
    (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "plain.csv").read_bytes()))
    return folder / "t.csv.gz"


def as_csv_folder(rows: pa.Table, folder: Path) -> object:
    (folder / "csv").mkdir()
    half = rows.num_rows // 2
    write_csv(rows.slice(0, half), folder / "csv" / "0.csv")
    write_csv(rows.slice(half), folder / "csv" / "1.csv")
    return folder / "csv"


def as_parquet(rows: pa.Table, folder: Path) -> object:
    parquet.write_table(rows, folder / "t.parquet", row_group_size=7)
    return folder / "t.parquet"


def as_parquet_folder(rows: pa.Table, folder: Path) -> object:
    (folder / "pq").mkdir()
    half = rows.num_rows // 2
    parquet.write_table(rows.slice(0, half), folder / "pq" / "0.parquet")
    parquet.write_table(rows.slice(half), folder / "pq" / "1.parquet")
    return folder / "pq"


def as_polars(rows: pa.Table, _: Path) -> object:
    import polars as pl

    return pl.from_arrow(rows)


def as_duckdb(rows: pa.Table, _: Path) -> object:
    import duckdb

    return duckdb.from_arrow(rows)


def as_packed(ending: str, kind: str) -> Callable[[pa.Table, Path], object]:
    def write(rows: pa.Table, folder: Path) -> object:
        with pa.CompressedOutputStream(str(folder / f"t.csv{ending}"), kind) as file:
            arrow_csv.write_csv(rows, file)
        return folder / f"t.csv{ending}"

    return write


def as_encoded(encoding: str) -> Callable[[pa.Table, Path], object]:
    def write(rows: pa.Table, folder: Path) -> object:
        write_csv(rows, folder / "plain.csv")
        text = (folder / "plain.csv").read_bytes().decode()
        (folder / "t.csv").write_bytes(text.encode(encoding, "replace"))
        return TableFile(folder / "t.csv", encoding=encoding)

    return write


def as_statistics(ending: str) -> Callable[[pa.Table, Path], object]:
    def write(rows: pa.Table, folder: Path) -> object:
        pyreadstat = pytest.importorskip("pyreadstat")
        path = folder / f"t{ending}"
        writers = {".sav": "write_sav", ".dta": "write_dta", ".xpt": "write_xport"}
        kept = [pa.array([c[:200].replace("\0", "") for c in column.to_pylist()])
                for column in rows.columns]  # fmt: skip
        if ending == ".sas7bdat":
            from tests.rows.sas import write_table

            columns = {
                name: one.to_pylist() for name, one in zip(rows.column_names, kept, strict=True)
            }
            write_table(path, columns, {}, {})
            return path
        getattr(pyreadstat, writers[ending])(pa.table(kept, rows.column_names).to_pandas(), path)
        return path

    return write


def as_excel(rows: pa.Table, folder: Path) -> object:
    """Each cell has the type that it looks like, as spreadsheets do it."""
    book = pytest.importorskip("openpyxl").Workbook()
    pytest.importorskip("python_calamine")
    book.active.append(rows.column_names)
    for row in rows.to_pylist():
        book.active.append([_as_typed(cell) for cell in row.values()])
    book.save(folder / "t.xlsx")
    return folder / "t.xlsx"


def _as_typed(cell: str) -> object:
    if cell in ("True", "False"):
        return cell == "True"
    if cell.isascii() and cell.isdigit() and len(cell) < 10:
        return int(cell)
    try:
        return date.fromisoformat(cell)
    except ValueError:
        return cell.replace("\r", " ").replace("=", "-")


def as_json_lines(rows: pa.Table, folder: Path) -> object:
    lines = []
    for row in rows.to_pylist():
        typed = {key: _as_typed(cell) for key, cell in row.items()}
        lines.append(
            json.dumps({k: str(v) if isinstance(v, date) else v for k, v in typed.items()})
        )
    (folder / "t.jsonl").write_text("\n".join(lines))
    return folder / "t.jsonl"


def as_feather(rows: pa.Table, folder: Path) -> object:
    feather.write_feather(rows, folder / "t.feather", chunksize=7)
    return folder / "t.feather"


def as_stream(rows: pa.Table, folder: Path) -> object:
    with pa.ipc.new_stream(str(folder / "t.arrows"), rows.schema) as file:
        file.write_table(rows, max_chunksize=7)
    return folder / "t.arrows"


def as_orc(rows: pa.Table, folder: Path) -> object:
    orc.write_table(rows, str(folder / "t.orc"))
    return folder / "t.orc"


def as_sqlite(rows: pa.Table, folder: Path) -> object:
    """A table without types, in which each cell has the type that it looks like."""
    with closing(sqlite3.connect(folder / "t.db")) as base:
        base.execute("create table t (c, comment, who)")
        marks = ", ".join("?" for _ in rows.column_names)
        base.executemany(
            f"insert into t ({', '.join(rows.column_names)}) values ({marks})",
            [[str(v) if isinstance(v := _as_typed(c), date) else v for c in row.values()]
             for row in rows.to_pylist()],
        )  # fmt: skip
        base.commit()
    return f"sqlite:{folder / 't.db'}#t"


def as_duckdb_file(rows: pa.Table, folder: Path) -> object:
    import duckdb

    with duckdb.connect(str(folder / "t.duckdb")) as base:
        base.register("given", rows)
        base.execute("create table t as select * from given")
    return f"duckdb:{folder / 't.duckdb'}#select * from t"


def as_numpy(rows: pa.Table, folder: Path) -> object:
    kinds = [(name, "U6000") for name in rows.column_names]
    records = np.array([tuple(row.values()) for row in rows.to_pylist()], dtype=kinds)
    np.save(folder / "t.npy", records)
    return folder / "t.npy"


READERS: dict[str, Callable[[pa.Table, Path], object]] = {
    "csv": as_csv,
    "csv.gz": as_gzip,
    "folder of csv": as_csv_folder,
    "parquet": as_parquet,
    "folder of parquet": as_parquet_folder,
    "arrow": lambda rows, _: rows,
    "pandas": lambda rows, _: rows.to_pandas(),
    "polars": as_polars,
    "lazy polars": lambda rows, folder: as_polars(rows, folder).lazy(),  # type: ignore[attr-defined]
    "duckdb": as_duckdb,
    "dictionary": lambda rows, _: rows.to_pydict(),
    "csv.bz2": as_packed(".bz2", "bz2"),
    "csv.zst": as_packed(".zst", "zstd"),
    "csv in UTF-16": as_encoded("utf-16"),
    "csv in Windows-1252": as_encoded("windows-1252"),
    "SPSS": as_statistics(".sav"),
    "Stata": as_statistics(".dta"),
    "SAS": as_statistics(".sas7bdat"),
    "SAS transport": as_statistics(".xpt"),
    "Excel": as_excel,
    "JSON lines": as_json_lines,
    "Feather": as_feather,
    "Arrow stream": as_stream,
    "ORC": as_orc,
    "SQLite": as_sqlite,
    "DuckDB file": as_duckdb_file,
    "NumPy": as_numpy,
}


@pytest.mark.parametrize("treatment", OutOfDomain)
@pytest.mark.parametrize("reader", READERS)
def test_hostile_rows_change_no_other_code(
    reader: str, treatment: OutOfDomain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read in tiny blocks, with a comment that nobody declared: its line ends matter to no row."""
    if reader == "duckdb":
        pytest.importorskip("duckdb")
    monkeypatch.setattr(csv_file, "PART_BYTES", 64)
    monkeypatch.setattr(tables, "BLOCK_ROWS", 64)  # the hostile rows begin inside a block
    calm = pa.table({"c": CALM * 5, "comment": ["fine"] * len(CALM) * 5})
    cells = [cell for cell in HOSTILE if cell]  # an empty text and no cell are one in a CSV file
    odd = ("a\nb", 'c"d', ",,", "\r\n", "x" * 200)
    comments = [odd[number % 5] for number in range(len(cells))]
    hostile = pa.table({"c": cells, "comment": comments})
    for name, attribute in ATTRIBUTES.items():
        schema = schema_of(attribute)
        found = []
        for number, rows in enumerate((calm, hostile, pa.concat_tables([calm, hostile]))):
            folder = tmp_path / f"{name}-{number}"
            folder.mkdir()
            found.append(codes(open_table(READERS[reader](rows, folder)), schema, treatment))
        plain = CellReader(attribute, treatment)
        expected = [plain.code(cell) for cell in CALM * 5]
        assert found[0] == ("refused" if min(expected) < 0 else expected)
        assert found[2] == joined(found[0], found[1])


@pytest.mark.parametrize("treatment", [OutOfDomain.CLAMP, OutOfDomain.MISSING])
@pytest.mark.parametrize("name", ["number", "whole", "text", "date", "time"])
def test_parts_of_workers_are_read_as_the_whole(
    name: str, treatment: OutOfDomain, tmp_path: Path
) -> None:
    """Dask workers read row groups: with any cut the same counts."""
    attribute = ATTRIBUTES[name]
    workload = all_marginals(schema_of(attribute), 1)
    rows = pa.table({"c": [*CALM * 5, *HOSTILE]})
    parquet.write_table(rows, tmp_path / "t.parquet", row_group_size=5)
    table = open_table(tmp_path / "t.parquet")
    reader = CellReader(attribute, treatment)
    expected = np.bincount([reader.code(cell) for cell in rows.column("c").to_pylist()],
                           minlength=attribute.size)  # fmt: skip
    for parts in (1, 2, 5):
        found = sum(
            count_part(piece, workload, treatment).open().counts
            for piece in cut(table, parts)  # type: ignore[arg-type]
        )
        assert sorted(np.asarray(found).tolist()) == sorted(expected.tolist())


@pytest.mark.parametrize("part", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("line", ["\n", "\r\n"])
def test_quoted_line_ends_are_read_right_at_every_border(
    part: int, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_file, "PART_BYTES", part)
    path = tmp_path / "t.csv"
    for shift in range(40):
        comment = "x" * shift + f'{line}1,""{line}2,"",3{line}' + "y"
        path.write_bytes(
            (f'c,note{line}' + f"7,ok{line}" * 9 + f'41,"{comment}"{line}' + f"0,ok{line}" * 9)
            .encode()
        )  # fmt: skip
        found = codes(open_table(path), schema_of(ATTRIBUTES["whole"]), OutOfDomain.REFUSE)
        assert found == [2] * 9 + [3] + [0] * 9


def read(path: Path) -> None:
    table = open_table(path)
    list(table.blocks(table.bind(schema_of(ATTRIBUTES["whole"])), [0], OutOfDomain.CLAMP))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('7,"never closed', "quote"),
        ("7,a\0b", "NUL"),
        ("7,secret,cell", "3 cells; expected 2"),
        ("7", "1 cells; expected 2"),
        ('7,"closed"secret', "quote"),
    ],
)
@pytest.mark.parametrize("part", [16, 1 << 20])
def test_rows_that_are_none_are_refused_without_showing_them(
    row: str, message: str, part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_file, "PART_BYTES", part)
    path = tmp_path / "t.csv"
    path.write_text("c,note\n" + "41,ok\n" * 20 + row + "\n" + "0,ok\n" * 20)
    with pytest.raises(TableError, match=message) as refused:
        read(path)
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


EXTREME = {
    "durations": (pa.array([1, 7, 41], pa.duration("s")), pa.array([2**62, -1], pa.duration("s"))),
    "zones": (
        pa.array([1646136000 * 10**9] * 3, pa.timestamp("ns", tz="Europe/Berlin")),
        pa.array([2**63 - 1, -(2**63)], pa.timestamp("ns", tz="Europe/Berlin")),
    ),
    "days": (
        pa.array([86_400_000 * 19_053] * 3, pa.date64()),
        pa.array([2**63 - 1, 86_400_001]).cast(pa.date64(), safe=False),
    ),
    "halves": (
        pa.array(np.array([1, 0.5], np.float16)),
        pa.array(np.array([np.inf, np.nan], np.float16)),
    ),
    "numbers": (pa.array([1.0, 7.0, 41.0]), pa.array([1e300, None, 2.0**53])),
    "small decimals": (
        pa.array([Decimal("1.50")], pa.decimal32(9, 2)), pa.array([None], pa.decimal32(9, 2))
    ),
    "views": (pa.array(["1", "b"], pa.string_view()), pa.array(["x" * 99], pa.string_view())),
    "no text": (
        pa.array(["7", "b"]), pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    ),
}  # fmt: skip
"""Columns whose type a file declares, and cells of that type which some library cannot read."""


def layouts(first: pa.Array, second: pa.Array) -> dict[str, tuple[pa.Table, pa.Table]]:
    """The same cells, held in several ways: each alone, and with the other ones after them."""
    found = {"chunks": (first, pa.chunked_array([first, second]))}
    if first.type != pa.decimal32(9, 2):  # which Arrow makes no dictionaries of
        one, two = first.dictionary_encode(), second.dictionary_encode()
        twice = [one.dictionary, one.dictionary, pa.nulls(1, first.type)]
        if first.type != pa.string_view():
            odd = pa.DictionaryArray.from_arrays(
                pa.array([2 * len(one.dictionary)], pa.int32()), pa.concat_arrays(twice)
            )
            found["dictionary that lists none"] = (one, pa.chunked_array([one, odd]))
        found["dictionaries"] = (one, pa.chunked_array([one, two]))
    return {name: (pa.table({"c": one}), pa.table({"c": both})) for name, (one, both) in
            found.items()}  # fmt: skip


@pytest.mark.parametrize("treatment", [OutOfDomain.CLAMP, OutOfDomain.MISSING])
@pytest.mark.parametrize("kind", EXTREME)
def test_no_cell_stops_a_typed_column_however_it_is_held(kind: str, treatment: OutOfDomain) -> None:
    calm, hostile = EXTREME[kind]
    for layout, (alone, both) in layouts(calm, hostile).items():
        for name, attribute in ATTRIBUTES.items():
            expected = codes(open_table(alone), schema_of(attribute), treatment)
            found = codes(open_table(both), schema_of(attribute), treatment)
            assert found[: len(calm)] == expected, (layout, name)
        ids = [ByPerson(open_table(one), Persons("c", 1), treatment).strata for one in
               (alone, both)]  # fmt: skip
        assert ids[1].of_row[: len(calm)].tolist() == ids[0].of_row.tolist()
        weighed = [ByWeight(open_table(one), Weight("c", 9.0), None, treatment).weights for one in
                   (alone, both)]  # fmt: skip
        assert weighed[1][: len(calm)].tolist() == weighed[0].tolist()


FRAMES = {
    "periods": pd.period_range("2022-03-01", periods=3, freq="D"),
    "intervals": pd.interval_range(0, 3),
    "durations": pd.to_timedelta(["1s", "41s", "1.5s"]),
    "flags": [True, False, True],
    "whole": [1, 7, 41],
    "small whole": np.array([1, 7, 41], np.uint8),
    "nullable": pd.array([1, None, 41], dtype="Int64"),
    "halves": np.array([1, 0.5, 41], np.float16),
    "categories": pd.Categorical(["b", "41", "b"]),
    "whole categories": pd.Categorical([7, 41, 7]),
    "categories of several kinds": pd.Categorical([7, "b", 41.5]),
    "sparse": pd.arrays.SparseArray([0, 0, 7]),
    "dates": pd.to_datetime(["2022-03-01", "2022-03-02", "2022-03-02"]),
    "zones": pd.to_datetime(["2022-03-01T23:00"] * 3).tz_localize("Asia/Tokyo"),
    "texts": pd.array(["b", "41", None], dtype="string"),
}


@pytest.mark.parametrize("treatment", [OutOfDomain.CLAMP, OutOfDomain.MISSING])
@pytest.mark.parametrize("kind", FRAMES)
def test_a_pandas_column_is_read_as_it_was_when_one_cell_changes_its_type(
    kind: str, treatment: OutOfDomain
) -> None:
    calm = pd.DataFrame({"c": FRAMES[kind]})
    for name, attribute in ATTRIBUTES.items():
        expected = codes(open_table(calm), schema_of(attribute), treatment)
        for stranger in ("abc", 2.5, None, 1 + 2j, pd.NaT, b"x", "\ud800", [1], 10**30):
            more = pd.DataFrame({"c": pd.Series([stranger], dtype=object)})
            if kind == "sparse" and stranger == "\ud800":
                continue  # pandas itself cannot hold it
            frames = [pd.concat([calm, more], ignore_index=True)]
            if kind in ("whole", "flags"):  # pandas finds a type for all of them
                frames.append(pd.DataFrame({"c": [*calm["c"].tolist(), stranger]}))
            for both in frames:
                found = codes(open_table(both), schema_of(attribute), treatment)
                assert found[: len(calm)] == expected, (name, stranger)


def test_categories_are_not_handed_to_a_conversion_that_wants_one_type_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Arrow's own has ended the process twice, in a frame of mixed types: it is not asked."""
    import narwhals as nw

    def crashes(series: nw.Series) -> pa.Array:
        pytest.fail(f"Arrow is asked to convert {series.dtype}")

    cells = ["b", 7, 2.5, None, True, b"x", date(2022, 3, 1)]
    frame = pd.DataFrame({"c": pd.Categorical(cells), "number": 1.5, "who": pd.Series(cells)})
    objects = open_table(frame.astype({"c": object}))
    expected = {name: codes(objects, schema_of(one), OutOfDomain.CLAMP) for name, one in
                ATTRIBUTES.items()}  # fmt: skip
    monkeypatch.setattr(nw.Series, "to_arrow", crashes)
    for name, attribute in ATTRIBUTES.items():
        assert codes(open_table(frame), schema_of(attribute), OutOfDomain.CLAMP) == expected[name]


@pytest.mark.parametrize("treatment", OutOfDomain)
def test_large_whole_numbers_that_a_frame_made_decimal_are_refused(treatment: OutOfDomain) -> None:
    """By one missing cell pandas makes decimal numbers of all; then nobody can be told apart."""
    large = [2**60, 2**60 + 1, None]
    exact = Attribute.categorical("c", [1, 2**60, 2**60 + 1])
    for source in (pd.DataFrame({"c": large}), {"c": np.array([2**60, 2**60 + 1, 2.5])}):
        assert codes(open_table(source), schema_of(exact), treatment) == "refused"
        with pytest.raises(TableError, match=r"no longer say which|a cell is missing"):
            _ = ByPerson(open_table(source), Persons("c", 1), treatment).strata
    # What a file declares decimal is refused whatever it holds.
    for cells in ([1.0], [1.0, 1e300]):
        declared = pa.table({"c": pa.array(cells)})
        assert codes(open_table(declared), schema_of(exact), treatment) == "refused"


IDS: list[Sequence[object]] = [[2.5], ["A2"], [10**30], ["1 "], [True], ["01"], [1.5, "x"]]


@pytest.mark.parametrize("stranger", IDS)
def test_a_strange_id_changes_no_record_that_others_keep(stranger: Sequence[object]) -> None:
    own = [n % 40 for n in range(400)]
    rows = pd.DataFrame({"who": own, "c": 7})
    alone = ByPerson(open_table(rows), Persons("who", 3)).strata.of_row
    theirs = pd.DataFrame({"who": pd.Series(list(stranger), dtype=object), "c": 7})
    both = pd.concat([rows, theirs], ignore_index=True)
    found = ByPerson(open_table(both), Persons("who", 3)).strata.of_row
    others = np.array([n != 1 for n in own])  # the id 1 may gain a record
    np.testing.assert_array_equal(found[:400][others], alone[others])


@pytest.mark.parametrize("reader", READERS)
def test_the_kept_records_of_others_stay_by_every_reader(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reader == "duckdb":
        pytest.importorskip("duckdb")
    monkeypatch.setattr(csv_file, "PART_BYTES", 64)
    persons, own = Persons("who", 2), [str(n % 9) for n in range(60)]
    found = []
    for number, more in enumerate(([], ["2.5", "A2", "two\nlines", 'say "no"', "1e999"] * 3)):
        folder = tmp_path / str(number)
        folder.mkdir()
        rows = pa.table({"who": [*own, *more], "c": ["7"] * (60 + len(more))})
        found.append(ByPerson(open_table(READERS[reader](rows, folder)), persons).strata.of_row)
    np.testing.assert_array_equal(found[1][:60], found[0])
    assert len(found[1]) == 75


def test_one_person_however_the_id_is_written() -> None:
    persons = Persons("who", 1)
    for ids in ([1, 1.0, "1", "01", " 1 "], ["1", 1], [1.0, 1]):
        frame = pd.DataFrame({"who": pd.Series(ids, dtype=object), "c": 7})
        strata = ByPerson(open_table(frame), persons).strata
        assert (strata.of_row != strata.of_row.max()).sum() in (1, len(ids) - 1)
        assert len(np.unique(strata.of_row)) == 2


def test_a_dictionary_that_lists_an_id_twice_does_not_defeat_the_cap() -> None:
    twice = pa.DictionaryArray.from_arrays(pa.array(np.arange(50) % 2), ["ann", "ann"])
    strata = ByPerson(open_table(pa.table({"who": twice, "c": [7] * 50})), Persons("who", 1)).strata
    values, times = np.unique(strata.of_row, return_counts=True)
    assert sorted(times.tolist()) == [1, 49]
    assert len(values) == 2
    none = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["ann", None]))
    with pytest.raises(TableError, match="a cell is missing"):
        _ = ByPerson(open_table(pa.table({"who": none})), Persons("who", 1)).strata


def test_the_pairs_of_others_stay_whatever_one_person_lists() -> None:
    pairs = pa.table({"r": [str(n % 9) for n in range(60)], "i": [str(n % 4) for n in range(60)]})
    more = pa.table({"r": ["x", "2.5", "None"], "i": ["unheard of", "0.0", "1e999"]})
    schema = Schema(tuple(Attribute.binary(f"i{n}") for n in range(4)))

    def held(table: pa.Table) -> list[list[int]]:
        source = LongTable(table, "r", "i", prefix="i")
        rows = EncodedRows.read(source, source.bind(schema), range(4), OutOfDomain.CLAMP)
        return [rows.columns[n].tolist() for n in range(4)]

    alone, both = held(pairs), held(pa.concat_tables([pairs, more]))
    for one, other in zip(alone, both, strict=True):
        assert other[: len(one)] == one


@pytest.mark.parametrize("treatment", [OutOfDomain.CLAMP, OutOfDomain.MISSING])
def test_a_pair_that_names_nobody_or_nothing_stops_no_release(treatment: OutOfDomain) -> None:
    """It is left out; one without an item says that there is such a row."""
    calm = pa.table({"who": ["ann", "ann", "bob"], "r": ["1", "2", "3"], "i": ["0", "1", "0"]})
    more = {
        "row": (None, "9", "1"), "item": ("eve", "9", None), "person": (None, "9", "1"),
    }  # fmt: skip
    schema = Schema(tuple(Attribute.binary(f"i{n}") for n in range(2)))
    for name, (who, row, item) in more.items():
        odd = {"who": [who], "r": [None if name == "row" else row], "i": [item]}
        both = pa.concat_tables([calm, pa.table(odd).cast(calm.schema), calm.slice(0, 1)])
        pairs = LongTable(both, "r", "i", prefix="i")
        rows = EncodedRows.read(pairs, schema, range(2), treatment)
        assert [rows.columns[n][:3].tolist() for n in range(2)] == [[1, 0, 1], [0, 1, 0]]
        assert rows.rows == (3 if name == "row" else 4)
        kept = ByPerson(LongTable(both, "r", "i", prefix="i"), Persons("who", 1), treatment)
        alone = ByPerson(LongTable(calm, "r", "i", prefix="i"), Persons("who", 1))
        assert kept.strata.of_row[:3].tolist() == alone.strata.of_row.tolist()
        again = EncodedRows.read(kept, schema, range(2), treatment)
        assert [again.columns[n][:3].tolist() for n in range(2)] == [[1, 0, 1], [0, 1, 0]]
        strict = ByPerson(LongTable(both, "r", "i", prefix="i"), Persons("who", 1))
        with pytest.raises(TableError, match="a cell is missing"):
            EncodedRows.read(strict, schema, range(2))


def test_another_number_in_a_sparse_matrix_is_what_a_frame_would_make_of_it(
    tmp_path: Path,
) -> None:
    schema = Schema((Attribute.binary("x0"), Attribute.binary("x1", default=1)))
    matrix = sparse.csr_matrix([[1, 0], [3, 2], [0, 1]])
    sparse.save_npz(tmp_path / "m.npz", matrix)
    for source in (matrix, tmp_path / "m.npz"):
        with pytest.raises(TableError, match="holds another number"):
            EncodedRows.read(open_table(source), schema, range(2))
        rows = EncodedRows.read(open_table(source), schema, range(2), OutOfDomain.CLAMP)
        assert [rows.columns[n].tolist() for n in range(2)] == [[1, 0, 0], [0, 1, 1]]


def test_a_sparse_matrix_has_nothing_to_interpret() -> None:
    schema = Schema(tuple(Attribute.binary(f"x{n}") for n in range(3)))
    first = sparse.csr_matrix(np.eye(3))
    both = sparse.vstack([first, sparse.csr_matrix([[1, 1, 1]])])

    def counts(matrix: object) -> list[float]:
        table = open_table(matrix)
        rows = EncodedRows.read(table, table.bind(schema), range(3))
        return [float(rows.columns[n][:3].sum()) for n in range(3)]

    assert counts(first) == counts(both)


@pytest.mark.parametrize("stranger", ["True", "unknown", "+41", "1e999", "inf", "abc"])
@pytest.mark.parametrize("reader", ["arrow", "csv"])
def test_a_paid_schema_moves_by_one_record_at_most(
    stranger: str, reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fine counts behind its edges: with forced noise, one cell cannot move all the edges."""
    monkeypatch.setattr(csv_file, "PART_BYTES", 4096)
    random = np.random.default_rng(3)
    cells = [str(n) for n in random.integers(0, 900, 4000)] + ["999.0"] * 1500
    declared = {"age": {"bounds": [0, 1000], "missing": ["999"]}}
    edges = []
    for last in ("41", stranger):
        rows = pa.table({"age": [*cells, last]})
        draft = draft_with_price(
            READERS[reader](rows, tmp_path), declared, epsilon=50, delta=1e-6, bins=4, seed=1
        )
        edges.append(np.array(draft.schema.attributes[0].edges))
    assert np.abs(edges[0] - edges[1]).max() <= 5
