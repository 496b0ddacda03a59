"""Descriptions of sampled rows: what the published formats require, and that they are true."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv

import dualquery as dq
from dualquery.base.errors import DualQueryError, ParameterError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.release.frames import write_table
from dualquery.release.release import Release
from tests.cli.conftest import run  # noqa: F401 - a fixture
from tests.release.page.releases import HOSTILE, hostile_schema, made_release, with_mixture

ABOUT = {
    "title": "Health Survey 2025",
    "publisher": "The office",
    "date": "2026-11-16",
    "licence": "https://licences.example/by",
    "url": "https://office.example/survey",
    "contact": "data@office.example",
    "description": "What adults said.",
}

SCHEMA = Schema(
    (
        Attribute.categorical("sex", ["female", "male"]),
        Attribute.categorical("grade", [1, 2, 3], missing=True),
        Attribute.numeric("age", [0, 25, 65, 120]),
        Attribute.numeric("rate", [0.0, 0.25, 1.0], missing=True),
        Attribute.numeric("day", [datetime.date(2022, month, 1) for month in (1, 7, 12)]),
        Attribute.numeric("seen", [datetime.datetime(2022, month, 1) for month in (1, 7)]),
        Attribute.numeric("at", [datetime.time(0), datetime.time(12), datetime.time(23)]),
        Attribute.binary("smoker"),
        Attribute.binary("member", type="yes/no"),
        *Attribute.answers("speaks", ["en", "fr"]),
    )
)


@pytest.fixture(scope="module")
def release() -> Release:
    return with_mixture(made_release(SCHEMA), 3, rehearsed=True).with_about(ABOUT)


@pytest.fixture
def rows(release: Release, tmp_path: Path) -> Path:
    write_table(release.sample(200, seed=1, kind="pyarrow"), tmp_path / "rows.csv")
    return tmp_path / "rows.csv"


def read(path: Path) -> dict:
    return json.loads(path.read_text("utf-8"))


def test_a_data_package_has_what_its_profile_requires(release: Release, rows: Path) -> None:
    """Of the profile `tabular-data-package` and of Table Schema, version 1."""
    package = read(release.write_description(rows)["datapackage"])
    assert package["profile"] == "tabular-data-package"
    assert re.fullmatch(r"[-a-z0-9._/]+", package["name"])
    assert package["title"] == "Health Survey 2025"
    assert package["licenses"][0]["path"] == ABOUT["licence"]
    assert package["contributors"] == [
        {"title": "The office", "role": "publisher", "email": "data@office.example"}
    ]
    (resource,) = package["resources"]
    assert resource["profile"] == "tabular-data-resource"
    assert re.fullmatch(r"[-a-z0-9._/]+", resource["name"])
    assert resource["path"] == "rows.csv"  # relative, beside the description
    assert resource["bytes"] == rows.stat().st_size
    assert resource["hash"] == f"sha256:{hashlib.sha256(rows.read_bytes()).hexdigest()}"
    types = {"string", "integer", "number", "boolean", "date", "datetime", "time"}
    for field in resource["schema"]["fields"]:
        assert field["type"] in types
        assert set(field) <= {"name", "type", "format", "description", "constraints"}
        known = {"required", "minimum", "maximum", "enum"}
        assert set(field.get("constraints", {})) <= known


def test_every_cell_is_what_the_table_schema_says(release: Release, rows: Path) -> None:
    schema = read(release.write_description(rows)["datapackage"])["resources"][0]["schema"]
    text = csv.read_csv(
        rows,
        convert_options=csv.ConvertOptions(
            column_types={name: pa.string() for name in SCHEMA.columns}, strings_can_be_null=True
        ),
    )
    assert [field["name"] for field in schema["fields"]] == text.column_names
    for field in schema["fields"]:
        limits = field.get("constraints", {})
        for cell in text.column(field["name"]).to_pylist():
            if cell is None:
                assert not limits.get("required"), field
                continue
            value = CASTS[field["type"]](cell, field)
            if "enum" in limits:
                assert value in limits["enum"], field
            for name, holds in (("minimum", lambda a, b: a >= b), ("maximum", lambda a, b: a <= b)):
                if name in limits:
                    end = limits[name]
                    end = CASTS[field["type"]](end, field) if isinstance(end, str) else end
                    assert holds(value, end), (field, cell)


CASTS = {
    "string": lambda cell, field: cell,
    "integer": lambda cell, field: int(cell),
    "number": lambda cell, field: float(cell),
    "boolean": lambda cell, field: {"true": True, "false": False}[cell],
    "date": lambda cell, field: datetime.date.fromisoformat(cell),
    "datetime": lambda cell, field: datetime.datetime.strptime(cell, field["format"]),
    "time": lambda cell, field: datetime.time.fromisoformat(cell),
}
"""How a reader of a Table Schema turns text into a value."""


def test_croissant_has_its_required_properties(release: Release, rows: Path) -> None:
    """Those of the specification 1.0, for the data set, its file and its fields."""
    made = read(release.write_description(rows)["croissant"])
    assert made["@type"] == "sc:Dataset"
    assert made["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    for name in ("@context", "name", "description", "license", "url", "creator", "datePublished"):
        assert made[name], name
    assert made["creator"]["@type"] == "sc:Organization"
    (file,) = made["distribution"]
    assert file["@type"] == "cr:FileObject"
    assert file["encodingFormat"] == "text/csv"
    assert file["sha256"] == hashlib.sha256(rows.read_bytes()).hexdigest()
    (records,) = made["recordSet"]
    seen = [file["@id"], records["@id"]]
    for field, name in zip(records["field"], SCHEMA.columns, strict=True):
        assert field["@type"] == "cr:Field"
        assert field["source"] == {"fileObject": {"@id": file["@id"]}, "extract": {"column": name}}
        assert field["dataType"].startswith("sc:")
        seen.append(field["@id"])
    assert len(seen) == len(set(seen))
    context = made["@context"]
    prefixes = {"sc", "cr", "dct", "rai"}
    assert prefixes <= set(context)
    used = {"recordSet", "field", "source", "extract", "column", "fileObject", "citeAs"}
    assert used | {"conformsTo", "dataType"} <= set(context)


def test_nothing_is_said_that_nobody_said(release: Release, tmp_path: Path) -> None:
    plain = with_mixture(made_release(SCHEMA, private=False), 3)
    write_table(plain.sample(5, seed=1, kind="pyarrow"), tmp_path / "rows.parquet")
    found = plain.write_description(tmp_path / "rows.parquet")
    made = read(found["croissant"])
    assert not {"license", "url", "creator", "datePublished"} & set(made)
    assert "NOT PRIVATE" in made["description"]
    package = read(found["datapackage"])
    assert package["privacy"] == {"stamp": "seeded: NOT PRIVATE"}
    assert package["resources"][0]["format"] == "parquet"
    assert "NOT PRIVATE" in found["codebook"].read_text("utf-8")[:800]


def test_the_codebook_has_every_column_and_stays_text() -> None:
    from dualquery.release.page.codebook import render_codebook
    from tests.release.page.test_page import read as parsed

    chosen = hostile_schema()
    page = render_codebook(with_mixture(made_release(chosen), 3, rehearsed=True))
    parser = parsed(page)
    assert not any(tag in ("script", "img") for tag, _ in parser.seen)
    text = " ".join(parser.text)
    for name in chosen.names:
        assert name in text
    assert HOSTILE[0] in text
    assert "Mean and quartiles" in text
    sheets = [a for t, a in parser.seen if a.get("class") == "sheet"]
    assert len(sheets) == 1 + sum(not one.is_binary for one in chosen.attributes)


def test_the_command_describes_what_it_writes(
    run,  # noqa: F811 - the fixture
    release: Release,
    tmp_path: Path,
) -> None:
    release.save(tmp_path / "out")
    rows = tmp_path / "r.csv.gz"
    command = ("sample", tmp_path / "out", "--rows", 10, "--out", rows, "--describe")
    told = run(*command, "--json")
    assert told.code == 0
    files = json.loads(told.out)["descriptions"]
    assert sorted(Path(file).name for file in files.values()) == [
        "r.codebook.html", "r.croissant.json", "r.datapackage.json",
    ]  # fmt: skip
    rows.unlink()
    again = run(*command)
    assert again.code == 2
    assert "r.datapackage.json' exists; choose another name or pass --overwrite" in again.err
    assert not rows.exists()
    assert run(*command, "--overwrite").code == 0
    plain = dq.load(tmp_path / "out").with_about({})
    assert plain.about == release.about
    other = run("sample", tmp_path / "out", "--rows", 3, "--out", tmp_path / "x.npz", "--describe")
    assert other.code == 2
    assert "cannot describe 'x.npz'; expected a file of rows" in other.err


def test_what_is_no_file_of_rows_is_refused(release: Release, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"cannot describe 'rows\.txt'"):
        release.write_description(tmp_path / "rows.txt")
    with pytest.raises(DualQueryError, match="cannot read"):
        release.write_description(tmp_path / "none.csv")
