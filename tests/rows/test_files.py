"""Files of other programs: what their cells are, what they document, and how they are refused."""

from __future__ import annotations

import datetime
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dualquery.base.errors import DualQueryError, TableError, UnavailableError
from dualquery.domain.schema import Schema
from dualquery.privacy.unit import Persons
from dualquery.rows.arrow import ArrowTable
from dualquery.rows.cells import OutOfDomain
from dualquery.rows.drafting import draft
from dualquery.rows.files import needed, statistics
from dualquery.rows.opening import TableFile, open_table
from dualquery.rows.persons import ByPerson

pyreadstat = pytest.importorskip("pyreadstat")
from tests.rows import sas  # noqa: E402 - it needs pyreadstat

pytest.importorskip("python_calamine")

SURVEY = pd.DataFrame(
    {
        "sex": [1.0, 2.0, -9.0, np.nan],
        "age": [41.0, 30.0, 7.0, 99.0],
        "town": ["Bonn", "", "Köln", "Bonn"],
        "born": [datetime.date(1984, 2, 29), None, datetime.date(1900, 1, 1), None],
        "seen": pd.to_datetime(["2020-01-01 12:30:00", None, "1969-12-31 23:59:59", None]),
    }
)
SCHEMA = Schema.from_dict(
    {
        "attributes": {
            "sex": {"values": [1, 2], "missing": [-9]},
            "age": {"edges": [0, 18, 65, 120], "missing": [99]},
            "town": {"values": ["Bonn", "Köln"], "missing": True},
            "born": {"edges": ["1900-01-01", "1950-01-01", "2000-01-01"], "type": "date",
                     "missing": True},
            "seen": {"edges": ["1960-01-01T00:00:00", "1970-01-01T00:00:00", "2021-01-01T00:00:00"],
                     "type": "timestamp", "missing": True},
        }
    }
)  # fmt: skip
EXPECTED = [[0, 1, 2, 2], [1, 1, 0, 3], [0, 2, 1, 0], [1, 2, 0, 2], [1, 2, 0, 2]]


def codes(source: object, schema: Schema = SCHEMA) -> list[list[int]]:
    table = open_table(source)
    every = range(len(schema))
    blocks = list(table.blocks(table.bind(schema), every, OutOfDomain.REFUSE))
    return [np.concatenate([b.codes(a) for b in blocks]).tolist() for a in every]  # type: ignore[union-attr]


@pytest.mark.parametrize("ending", [".sav", ".zsav", ".dta", ".xpt", ".sas7bdat"])
def test_statistical_files_say_what_their_cells_are(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"t{ending}"
    said = {"column_labels": {"sex": "Sex of the person"}}
    named = {"variable_value_labels": {"sex": {1: "male", 2: "female", -9: "refused"}}}
    if ending == ".dta":
        pyreadstat.write_dta(SURVEY, path, **said, **named)
    elif ending == ".xpt":
        pyreadstat.write_xport(SURVEY, path, **said)
    elif ending == ".sas7bdat":
        write_sas(path)
    else:
        more = {"missing_ranges": {"sex": [-9, {"lo": -5, "hi": -1}]},
                "variable_measure": {"sex": "nominal"}}  # fmt: skip
        pyreadstat.write_sav(SURVEY, path, compress=ending == ".zsav", **said, **named, **more)
    for at_once in (statistics.ROWS_AT_ONCE, 3):
        monkeypatch.setattr(statistics, "ROWS_AT_ONCE", at_once)
        assert codes(path) == EXPECTED
    table = open_table(path)
    assert isinstance(table, ArrowTable)
    told = table.documented[table.header[0]]
    assert told.label == "Sex of the person"
    if ending != ".xpt":
        assert dict(told.labels) == {"1": "male", "2": "female", "-9": "refused"}
    if ending in (".sav", ".zsav"):
        assert (told.missing, told.ranges, told.level) == (("-9",), ((-5.0, -1.0),), "nominal")
        assert [told.is_missing(text) for text in ("-9", "-3", "1")] == [True, True, False]


def write_sas(path: Path, catalogue: str = "") -> None:
    """The survey as SAS writes it: days and seconds since 1960, and labels in a file beside it."""
    first = datetime.date(1960, 1, 1)
    sas.write_table(
        path,
        {
            "sex": [None if np.isnan(one) else one for one in SURVEY["sex"]],
            "age": list(SURVEY["age"]),
            "town": list(SURVEY["town"]),
            "born": [None if one is None else (one - first).days for one in SURVEY["born"]],
            "seen": [None if pd.isna(one) else (one - pd.Timestamp(first)).total_seconds()
                     for one in SURVEY["seen"]],
        },
        {"sex": "Sex of the person"},
        {"sex": "SEXF8", "born": "YYMMDD10", "seen": "DATETIME20"},
    )  # fmt: skip
    sas.write_catalogue(
        path.with_name(catalogue or f"{path.stem}.sas7bcat"),
        {"SEXF": {1: "male", 2: "female", -9: "refused"}, "OTHER": {1: "no"}},
    )


def test_a_catalogue_of_sas_says_what_values_are_called(tmp_path: Path) -> None:
    """It has the name of its table, or that of SAS; without one, codes have no words."""
    path = tmp_path / "t.sas7bdat"
    write_sas(path, "formats.sas7bcat")
    made = draft(path).schema.attributes
    assert dict(made[0].meaning.labels) == {"1": "male", "2": "female", "-9": "refused"}
    assert (made[0].meaning.label, made[3].type) == ("Sex of the person", "date")
    (tmp_path / "formats.sas7bcat").rename(tmp_path / "elsewhere.sas7bcat")
    assert draft(path).schema.attributes[0].meaning.labels == ()
    (tmp_path / "t.sas7bcat").write_text("no catalogue")
    with pytest.raises(TableError, match=r"cannot read .*t\.sas7bcat', which says what values"):
        open_table(path)


def test_days_and_times_that_are_none_are_judged_by_the_schema(tmp_path: Path) -> None:
    """A number of days beyond all calendars is one cell outside, and no error of its column."""
    frame = pd.DataFrame({"d": [1.0, 1e300, -1e18], "t": [30_600.0, -5.0, 1e12]})
    pyreadstat.write_dta(frame, tmp_path / "t.dta", variable_format={"d": "%td", "t": "%9.0g"})
    pyreadstat.write_sav(frame, tmp_path / "t.sav", variable_format={"d": "DATE11", "t": "TIME8"})
    entries = {"d": {"edges": ["1500-01-01", "1970-01-01"], "type": "date", "missing": True}}
    schema = Schema.from_dict({"attributes": entries})
    for name in ("t.dta", "t.sav"):
        table = open_table(tmp_path / name)
        (block,) = table.blocks(table.bind(schema), [0], OutOfDomain.MISSING)
        assert block.codes(0).tolist() == [0, 1, 1]  # type: ignore[union-attr]
    entries = {"t": {"edges": ["00:00", "12:00", "24:00"], "type": "time", "missing": True}}
    schema = Schema.from_dict({"attributes": entries})
    table = open_table(tmp_path / "t.sav")
    (block,) = table.blocks(table.bind(schema), [0], OutOfDomain.MISSING)
    assert block.codes(0).tolist() == [0, 2, 2]  # type: ignore[union-attr]


def workbook(path: Path, **sheets: list[list[object]]) -> Path:
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_a_sheet(tmp_path: Path) -> None:
    rows = [list(SURVEY.columns), [1, 41, "Bonn", datetime.date(1984, 2, 29),
            datetime.datetime(2020, 1, 1, 12, 30)], [], [2, "30", None, None, None],
            [-9, 7.0, "Köln", datetime.date(1900, 1, 1), "1969-12-31 23:59:59"],
            [None, 99, "Bonn", None, None]]  # fmt: skip
    rows[4][3] = "1900-01-01"  # Excel counts a day of 1900 that never was
    path = workbook(tmp_path / "t.xlsx", data=rows, notes=[["a"]], wide=[["a", "b"], [1, 2, 3]],
                    gap=[["a", None, "b"]], none=[])  # fmt: skip
    assert codes(TableFile(path, sheet="data")) == EXPECTED
    for sheet, told in (
        (None, "has the sheets 'data', .*say which one"),
        ("dat", "no sheet 'dat'; did you mean 'data'"),
        ("notes", "has one column"),
        ("wide", "cells to the right of its last named column"),
        ("gap", "column 2 has no name"),
        ("none", "is empty"),
    ):
        with pytest.raises(TableError, match=told):
            open_table(TableFile(path, sheet=sheet))


BLANK: dict[str, tuple[str, list[object]]] = {
    "one in the middle": ("a-b", []),
    "several": ("a---b", []),
    "the last": ("ab--", []),
    "the first": ("--ab", []),
    "everywhere": ("-a-b-", []),
    "the only ones": ("--", []),
    "of empty texts": ("-a-b-", ["", "", ""]),
}
"""Where blank rows stand (-) among two others, and what their cells are."""


@pytest.mark.parametrize("ending", ["xlsx", "csv", "jsonl"])
@pytest.mark.parametrize("place", BLANK)
def test_a_blank_row_is_none_whatever_stands_around_it(
    place: str, ending: str, tmp_path: Path
) -> None:
    """One with a single cell is a row, and stays one, if all around it are blank."""
    order, blank = BLANK[place]
    schema = Schema.from_dict({"attributes": {
        "first": {"values": ["x", "y"], "missing": True},
        "second": {"edges": [0, 1, 2], "missing": True}, "third": {"binary": True}}})  # fmt: skip
    full = {"a": ["x", 0, 1], "b": [None, 1, None]}
    rows = [full.get(one, blank) for one in order]
    path = tmp_path / f"t.{ending}"
    if ending == "xlsx":
        workbook(path, data=[list(schema.names), *rows])
    elif ending == "csv":
        lines = [",".join("" if c is None else str(c) for c in row) if any(row) else "" for row in
                 rows]  # fmt: skip
        path.write_text("\n".join([",".join(schema.names), *lines]) + "\n")
    else:
        objects = [json.dumps(dict(zip(schema.names, row, strict=True))) if any(row) else "" for
                   row in rows]  # fmt: skip
        path.write_text("\n".join(objects) + "\n")
    expected = {"a": [0, 0, 1], "b": [2, 1, 0]}
    table = open_table(path)
    found = [
        [block.codes(at).tolist() for at in range(3)]  # type: ignore[union-attr]
        for block in table.blocks(table.bind(schema), range(3), OutOfDomain.MISSING)
    ]
    read = [list(row) for block in found for row in zip(*block, strict=True)]
    assert read == [expected[one] for one in order if one in expected]
    if read:
        persons = ByPerson(open_table(path), Persons("first", 1), OutOfDomain.MISSING)
        assert len(persons.strata.of_row) == len(read)


def test_json_lines_lack_what_they_lack(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(
        '{"sex": 1, "age": 41, "town": "Bonn", "born": "1984-02-29", "seen": "2020-01-01 12:30"}\n'
        '\n{"sex": 2.0, "age": "30", "more": {"a": [1]}}\n'
        '{"sex": -9, "age": 7.0, "town": "Köln", "born": "1900-01-01", "seen": "1969-12-31"}\r\n'
        '{"sex": null, "age": 99, "town": "Bonn"}'
    )
    assert codes(tmp_path / "t.jsonl") == EXPECTED
    table = open_table(tmp_path / "t.jsonl")
    assert table.header[-1] == "more"  # type: ignore[attr-defined]
    for line in ("[1]", '{"secret": ', "[" * 100_000):
        (tmp_path / "bad.jsonl").write_text('{"sex": 1}\n' + line)
        with pytest.raises(TableError, match=r"line 2 is no JSON object") as refused:
            codes(tmp_path / "bad.jsonl")
        assert "secret" not in str(refused.value)


def test_databases(tmp_path: Path) -> None:
    import duckdb

    lite, duck = tmp_path / "t.db", tmp_path / "t.duckdb"
    frame = SURVEY.assign(born=SURVEY["born"].astype(str).replace("None", None))
    with closing(sqlite3.connect(lite)) as base:
        frame.astype(object).where(frame.notna(), None).astype({"seen": str}).replace(
            "None", None
        ).to_sql("visits", base, index=False)
    with duckdb.connect(str(duck)) as base:
        base.register("given", pa.Table.from_pandas(SURVEY))
        base.execute(
            "create table visits as select * replace (nullif(town, '') as town) from given"
        )
    for address in (lite, duck, f"sqlite:{lite}#visits", f"duckdb:{duck}#visits",
                    f"sqlite:{lite}#select * from visits;"):  # fmt: skip
        assert codes(address) == EXPECTED
    for address, told in (
        (f"sqlite:{lite}#visit", "no table 'visit'; did you mean 'visits'"),
        (f"duckdb:{duck}#select secret from visits", "cannot read .* run the query in duckdb"),
        (f"sqlite:{lite}#select secret from visits", "cannot read .* run the query in sqlite"),
        ("sqlite:none.db#t", "no such database: 'none.db'"),
    ):
        with pytest.raises(TableError, match=told):
            codes(address)
    with closing(sqlite3.connect(lite)) as base:
        base.execute("create table other (a)")
    with pytest.raises(TableError, match="has 'other', 'visits'; say which one: sqlite:"):
        open_table(lite)


def test_records_of_numpy(tmp_path: Path) -> None:
    records = np.array([(1, "Bonn"), (2, "Köln")], dtype=[("sex", "i4"), ("town", "U9")])
    np.save(tmp_path / "t.npy", records)
    schema = Schema(tuple(SCHEMA[name] for name in ("sex", "town")))
    assert codes(records, schema) == codes(tmp_path / "t.npy", schema) == [[0, 1], [0, 1]]
    np.save(tmp_path / "plain.npy", np.zeros((2, 2)))
    with pytest.raises(TableError, match="holds no records"):
        open_table(tmp_path / "plain.npy")


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1", "windows-1252", "utf-8"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("Größe;town\n1;Köln\n2;Bonn\n".encode(encoding))
    schema = Schema.from_dict({"attributes": {"Größe": {"values": [1, 2]},
                                              "town": {"values": ["Bonn", "Köln"]}}})  # fmt: skip
    assert codes(TableFile(tmp_path / "t.csv", encoding=encoding), schema) == [[0, 1], [1, 0]]
    if encoding != "utf-8":
        with pytest.raises(TableError, match=r"say --encoding (utf-16|windows-1252)"):
            open_table(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("t.rds", r"in R: arrow::write_parquet\(readRDS\('t.rds'\)"),
        ("t.json", "jq -c '.\\[\\]' t.json > TABLE.jsonl"),
        ("t.zip", "unzip t.zip"),
        ("t.xyz", "cannot tell the format .* expected a name that ends in .parquet"),
        ("t.sav", "damaged, or no .sav file"),
        ("t.xlsx", "damaged, locked, or no spreadsheet"),
        ("t.feather", "cannot read"),
        ("t.npy", "no NumPy file"),
    ],
)  # fmt: skip
def test_what_is_not_read_says_what_to_do(name: str, told: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"secret")
    with pytest.raises(TableError, match=told) as refused:
        open_table(tmp_path / name)
    assert "\n" not in str(refused.value)
    assert "secret" not in str(refused.value)


def test_encodings_and_sheets_stand_where_they_mean_something(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    for told, message in (
        (TableFile(tmp_path / "t.csv", sheet="x"), "sheet: .* it is for spreadsheets"),
        (TableFile(tmp_path / "t.csv", encoding="shift-jis"), "'shift-jis' is not known"),
        (TableFile(tmp_path / "t.csv", encoding="rot13"), "'rot13' is not known"),
    ):
        with pytest.raises(TableError, match=message):
            open_table(told)


def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(needed.importlib, "import_module", absent)
    with pytest.raises(UnavailableError, match=r"pip install 'dualquery\[excel\]'"):
        needed.needed("python_calamine", "excel", "a spreadsheet")
    assert issubclass(UnavailableError, DualQueryError)


def test_a_draft_says_that_cells_are_not_utf_8(tmp_path: Path) -> None:
    """The header is plain, so that the file opens."""
    (tmp_path / "t.csv").write_bytes("town,n\nKöln,1\nBonn,2\n".encode("latin-1"))
    told = draft(tmp_path / "t.csv").left_out["town"]
    assert told.endswith("say how it is encoded, such as --encoding windows-1252")
    found = draft(TableFile(tmp_path / "t.csv", encoding="latin-1"))
    assert found.schema["town"].values == ("Bonn", "Köln")
