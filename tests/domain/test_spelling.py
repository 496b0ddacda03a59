"""How cells are written: decimal commas, thousands, signs, dates, words for yes and no."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from dualquery.base.errors import SchemaError
from dualquery.domain.attributes import Attribute
from dualquery.domain.schema import Schema
from dualquery.domain.spelling import Spelling
from dualquery.domain.types import Type, number_of
from dualquery.rows.cells import CellReader, OutOfDomain
from dualquery.rows.encoding import judge_column

COMMA = Spelling(decimal=",")
GERMAN = Spelling(decimal=",", thousands=".", signs=("€", "%"))
DOLLARS = Spelling(thousands=",", signs=("$", "USD"))
SWISS = Spelling(thousands="'")
FRENCH = Spelling(decimal=",", thousands=" ")


@pytest.mark.parametrize(
    ("spelling", "cell", "number"),
    [
        (COMMA, "3,5", 3.5), (COMMA, "-0,25", -0.25), (COMMA, "1,5e3", 1500), (COMMA, "3.5", 3.5),
        (COMMA, "1.234,5", None), (COMMA, " 7 ", 7), (COMMA, "x", None), (COMMA, ",5", None),
        (GERMAN, "1.234,50 €", 1234.5), (GERMAN, "€ -12", -12), (GERMAN, "-€1.000", -1000),
        (GERMAN, "12 %", 12), (GERMAN, "3.5", None), (GERMAN, "1.23", None),
        (GERMAN, "1.234", 1234),
        (GERMAN, "€", None), (GERMAN, "1234,5", 1234.5), (GERMAN, "\u22124,5", -4.5),
        (DOLLARS, "$1,234.50", 1234.5), (DOLLARS, "1,23", None), (DOLLARS, "USD 5", 5),
        (SWISS, "1’234’567", 1_234_567), (FRENCH, "1\u202f234,5", 1234.5),
        (FRENCH, "1\u00a0234", 1234),
        (DOLLARS, 12.5, 12.5), (GERMAN, True, 1), (DOLLARS, "1_0", None), (DOLLARS, "--5", None),
    ],
)  # fmt: skip
def test_numbers(spelling: Spelling, cell: object, number: float | None) -> None:
    assert spelling.number(Type.DECIMAL, cell) == number


@pytest.mark.parametrize(
    ("kind", "form", "cell", "plain"),
    [
        ("date", "%d/%m/%Y", "03/04/2022", "2022-04-03"),
        ("date", "%d/%m/%Y", "3/4/2022", "2022-04-03"),
        ("date", "%m/%d/%Y", "03/04/2022", "2022-03-04"),
        ("date", "%d.%m.%y", "31.12.68", "2068-12-31"),
        ("date", "%d.%m.%y", "31.12.69", "1969-12-31"), ("date", "%d/%m/%Y", "31/02/2022", None),
        ("date", "%d-%b-%Y", "05-Sept-2022", "2022-09-05"),
        ("date", "%d-%b-%Y", "05-Foo-2022", None),
        ("date", "%Y%m%d", "20220304", "2022-03-04"), ("date", "%Y%m%d", 20220304, "2022-03-04"),
        ("date", "%d/%m/%Y", "2022-04-03", "2022-04-03"),
        ("date", "%Y-%d-%m", "2022-04-03", "2022-03-04"),
        ("date", "%Y-%d-%m", "2022-04-13", None), ("date", "%d/%m/%Y", "03/04/22", None),
        ("time", "%H%M", "0830", "08:30:00"), ("time", "%H%M", "830", "08:30:00"),
        ("time", "%H%M", 5, "00:05:00"),
        ("time", "%H%M", 130.0, "01:30:00"), ("time", "%H%M", "2400", "24:00:00"),
        ("time", "%H%M", "2460", None),
        ("time", "%I:%M %p", "12:05 am", "00:05:00"), ("time", "%I:%M %p", "1:05 p.m.", "13:05:00"),
        ("time", "%I:%M %p", "13:05 pm", None), ("time", "%H.%M", "7.45", "07:45:00"),
        ("timestamp", "%d/%m/%Y %H:%M", "3/4/2022 7:05", "2022-04-03T07:05:00"),
    ],
)  # fmt: skip
def test_dates_and_times(kind: str, form: str, cell: object, plain: str | None) -> None:
    expected = None if plain is None else number_of(Type(kind), plain)
    assert Spelling(format=form).number(Type(kind), cell) == expected


def test_words() -> None:
    words = Spelling(yes=("ja", "J"), no=("nein",))
    found = [
        words.number(Type.YES_NO, cell) for cell in ("Ja", "j", "NEIN", "yes", "0", "oui", True)
    ]
    assert found == [1, 1, 0, 1, 0, None, 1]


DAYS = ["2022-01-01", "2023-01-01"]
ENTRIES = {
    "cost": {"edges": [0, 100, 5000], "type": "decimal", "decimal": ",", "thousands": ".",
             "signs": ["€"], "missing": ["k.A.", "-9,0"]},
    "score": {"values": [1, 2, 3], "decimal": ",", "missing": ["99,0"]},
    "day": {"edges": ["2022-01-01", "2022-06-01", "2023-01-01"], "type": "date",
            "format": "%d/%m/%Y", "missing": True},
    "smokes": {"binary": True, "type": "yes/no", "yes": ["ja"], "no": ["nein"]},
}  # fmt: skip


def test_a_schema_file_keeps_it_and_every_route_reads_it(tmp_path) -> None:
    schema = Schema.from_dict({"attributes": ENTRIES})
    schema.save(tmp_path / "s.toml")
    assert Schema.load(tmp_path / "s.toml") == schema == Schema.from_dict(schema.to_dict())
    cells = ["1.234,50 €", "99", "k.A.", "-9,0", "-9", "99,0", "2,0", "2", "03/07/2022", "ja",
             "Nein", "2022-07-03", "x", None, "inf", "1e999", "3,5"]  # fmt: skip
    for attribute in schema.attributes:
        for treatment in OutOfDomain:
            reader = CellReader(attribute, treatment)
            expected = [reader.code(cell) for cell in cells]
            for column in (pa.array(cells), pa.array(cells).dictionary_encode()):
                assert judge_column(column, attribute, treatment).codes.tolist() == expected
    clamp = {a.name: CellReader(a, OutOfDomain.CLAMP) for a in schema.attributes}
    assert [clamp["cost"].code(c) for c in ("1.234,50 €", "99", "k.A.", "-9,0")] == [1, 0, 2, 2]
    assert [clamp["score"].code(c) for c in ("2,0", "99,0", "99", 3)] == [1, 3, 3, 2]
    assert [clamp["day"].code(c) for c in ("03/07/2022", "07/03/2022", "2022-07-03")] == [1, 0, 1]
    assert [clamp["smokes"].code(c) for c in ("ja", "NEIN", "no")] == [1, 0, 0]


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"values": ["a", "b"], "decimal": ","}, "decimal is for columns of numbers"),
        ({"edges": [0, 1], "format": "%d/%m/%Y"}, "format is for columns of dates"),
        ({"edges": [0, 1], "yes": ["ja"]}, "yes is for columns of yes or no"),
        ({"edges": [0, 1], "decimal": ";"}, "decimal = ';'; expected one of '.', ','"),
        ({"edges": [0, 1], "thousands": "."}, "decimal and thousands are both '.'"),
        ({"edges": [0, 1], "signs": ["5"]}, "signs hold a digit"),
        ({"edges": [0, 1], "decimal": 3}, "decimal = 3; expected text"),
        ({"binary": True, "yes": ["x"], "no": ["X"]}, "'x' is both yes and no"),
        ({"edges": DAYS, "type": "date", "format": "%d/%m"}, "does not say"),
        ({"edges": DAYS, "type": "date", "format": "%d/%m/%Q"}, "expected each"),
        ({"edges": ["08:00", "12:00"], "type": "time", "format": "%I:%M"}, "such as '%H:%M'"),
    ],
)  # fmt: skip
def test_what_is_refused(entry: dict[str, object], told: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(told)):
        Schema.from_dict({"attributes": {"a": entry}})


def test_a_refusal_says_how_cells_are_written() -> None:
    from dualquery.rows.refusals import UNFIT, refusal_text

    schema = Schema.from_dict({"attributes": ENTRIES})
    assert refusal_text(UNFIT, schema["day"]).endswith("written as %d/%m/%Y")
    assert refusal_text(UNFIT, schema["cost"]).endswith("such as 3,5")
    assert Attribute.binary("a").spelling.number(Type.DECIMAL, "1") == 1
