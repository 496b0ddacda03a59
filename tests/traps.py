"""Twelve messy tables, one for each trap on the way from a file to a release.

Each writes its file, and says which lines of the draft a curator changes, and how it should look.
"""

from __future__ import annotations

import datetime
import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dualquery.domain.schema import Schema

ROWS = 300


@dataclass(frozen=True)
class Trap:
    """A table and what becomes of it.

    Attributes:
        write: writes the file into a folder.
        looks: fails if the draft is not as it should be; it sees the schema and the whole text.
        edits: lines of the draft, and what they are replaced by; at most five.
        reads: more options for every command that reads the table.
        options: more options for the release.
    """

    write: Callable[[Path, np.random.Generator], object]
    looks: Callable[[Schema, str], None]
    edits: Sequence[tuple[str, str]] = ()
    reads: Sequence[str] = ()
    options: Sequence[object] = ()


def survey(folder: Path, random: np.random.Generator) -> Path:
    """SPSS: labels, user-missing codes, levels."""
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame(
        {
            "mstat": random.choice([1.0, 2.0, 3.0, -9.0], ROWS),
            "trust": random.choice([1.0, 2.0, 3.0, 4.0, 5.0, 99.0], ROWS),
            "age": np.append(random.integers(18, 99, ROWS - 1).astype(float), -9.0),
            "smokes": random.choice([0.0, 1.0], ROWS),
        }
    )
    labels = {
        "mstat": {1: "married", 2: "single", 3: "widowed", 4: "divorced", -9: "refused"},
        "trust": {1: "none", 2: "little", 3: "some", 4: "much", 5: "full", 99: "Don't know"},
        "age": {-9: "refused"},
        "smokes": {0: "no", 1: "yes"},
    }
    pyreadstat.write_sav(
        frame, folder / "survey.sav", variable_value_labels=labels,
        column_labels={"mstat": "Marital status", "age": "Age in years"},
        missing_ranges={"mstat": [{"lo": -9, "hi": -1}], "age": [-9]},
        variable_measure={"mstat": "nominal", "trust": "ordinal", "age": "scale"},
    )  # fmt: skip
    return folder / "survey.sav"


def survey_draft(schema: Schema, text: str) -> None:
    mstat, trust, age, smokes = schema.attributes
    assert (mstat.values, mstat.missing_words, mstat.ordered) == ((1, 2, 3, 4), ("-9",), False)
    assert mstat.heading == "Marital status"
    assert [mstat.words_for(code) for code in range(4)] == [
        "married",
        "single",
        "widowed",
        "divorced",
    ]
    assert (trust.values, trust.missing_words, trust.ordered) == ((1, 2, 3, 4, 5), ("99",), True)
    assert age.is_numeric
    assert age.missing_words == ("-9",)
    assert (smokes.values, smokes.words_for(1)) == ((0, 1), "yes")


def visits(folder: Path, random: np.random.Generator) -> Path:
    """Persons with several rows, whose column nobody names."""
    pd.DataFrame(
        {
            "patient": random.integers(1, 121, ROWS),
            "ward": random.choice(["Surgery", "General"], ROWS),
            "arrived": pd.to_datetime("2025-01-01")
            + pd.to_timedelta(random.integers(0, 365, ROWS), "D"),
        }
    ).to_csv(folder / "visits.csv", index=False)
    return folder / "visits.csv"


def visits_draft(schema: Schema, text: str) -> None:
    assert schema.persons == "patient"
    assert "patient" not in schema.names
    assert "release with --unit patient" in text
    arrived = schema["arrived"].edges
    assert [arrived[1] - arrived[0], len(arrived)] == [31, 13]  # by months


def invoices(folder: Path, random: np.random.Generator) -> Path:
    """Decimal commas, points between thousands, euros and per cent, in Windows-1252."""
    lines = ["Betrag;Rabatt;Kunde zufrieden;Datum"]
    for _ in range(ROWS):
        amount = f"{random.lognormal(7, 1):,.2f}".translate(str.maketrans(",.", ".,"))
        day = datetime.date(2024, 1, 1) + datetime.timedelta(days=int(random.integers(0, 700)))
        discount = f"{random.integers(0, 40) / 2:.1f} %".replace(".", ",")
        lines.append(f"{amount} €;{discount};{random.choice(['ja', 'nein'])};{day:%d.%m.%Y}")
    (folder / "rechnung.csv").write_bytes("\n".join(lines).encode("windows-1252") + b"\n")
    return folder / "rechnung.csv"


def invoices_draft(schema: Schema, text: str) -> None:
    amount, discount, content, day = (one.spelling for one in schema.attributes)
    assert (amount.decimal, amount.thousands, amount.signs) == (",", ".", ("€",))
    assert (discount.decimal, discount.signs) == (",", ("%",))
    assert content.yes[0] == "ja"
    assert day.format == "%d.%m.%Y"
    assert [one.type for one in schema.attributes] == ["decimal", "decimal", "yes/no", "date"]


def american(folder: Path, random: np.random.Generator) -> Path:
    """Dollars with commas, the month first, times such as 1:05 PM, in UTF-16 with tabs."""
    lines = ["wage\tborn\tcalled\tshift_time"]
    for _ in range(ROWS):
        born = datetime.date(1950, 1, 1) + datetime.timedelta(days=int(random.integers(0, 20_000)))
        clock = datetime.time(int(random.integers(0, 24)), int(random.integers(0, 60)))
        lines.append(f"${random.integers(10_000, 90_000):,}\t{born:%m/%d/%Y}\t{clock:%I:%M %p}\t"
                     f"{clock:%H%M}")  # fmt: skip
    (folder / "us.csv").write_bytes(("\r\n".join(lines) + "\r\n").encode("utf-16"))
    return folder / "us.csv"


def american_draft(schema: Schema, text: str) -> None:
    wage, born, called, shift = schema.attributes
    assert (wage.spelling.thousands, wage.spelling.signs, wage.type) == (",", ("$",), "whole")
    assert (born.spelling.format, born.type) == ("%m/%d/%Y", "date")
    assert (called.spelling.format, called.type) == ("%I:%M %p", "time")
    assert (shift.spelling.format, shift.type) == ("%H%M", "time")


def languages(folder: Path, random: np.random.Generator) -> Path:
    """Several answers in a cell, one of which holds the separator, and words for no answer."""
    answers = ["en", "fr", "de", "sign, any"]
    cells = [
        ", ".join(random.choice(answers, random.integers(1, 4), replace=False)) for _ in range(ROWS)
    ]
    cells[:9] = ["NA"] * 9
    ages = random.integers(0, 60, ROWS)
    pd.DataFrame({"speaks": cells, "minute": ages}).to_csv(folder / "talks.csv", index=False)
    return folder / "talks.csv"


def languages_draft(schema: Schema, text: str) -> None:
    answer = schema.attributes[0].answer
    assert answer is not None
    assert (answer.separator, answer.missing_words) == (",", ("NA",))
    assert schema["minute"].edges[-1] == 59


def ledger_of_codes(folder: Path, random: np.random.Generator) -> Path:
    """A column that determines another, thousands of whole numbers, a gap in a score, a weight."""
    region = random.choice(["north", "south", "east"], ROWS)
    score = random.choice([0, 1, 2, 3, 4, 5, 6, 8, 9, 10], ROWS)
    frame = pd.DataFrame(
        {
            "region": region,
            "region_code": pd.Series(region).map({"north": 1, "south": 2, "east": 3}),
            "points": random.integers(0, 5000, ROWS),
            "score": score,
            "day": random.integers(1, 32, ROWS),
            "pweight": np.round(random.lognormal(0, 0.4, ROWS), 3),
        }
    )
    frame.to_json(folder / "codes.jsonl", orient="records", lines=True)
    return folder / "codes.jsonl"


def codes_draft(schema: Schema, text: str) -> None:
    assert schema["points"].is_numeric
    assert schema["points"].proper_size <= 12
    assert schema["score"].values == tuple(range(11))
    assert (schema["day"].edges[0], schema["day"].edges[-1]) == (1, 31)
    assert "region: each value goes with one value of region_code" in text
    assert "release with --weight pweight" in text


def register(folder: Path, random: np.random.Generator) -> str:
    """SQLite: a column of numbers with words in it, days as 20250131, a missing code."""
    days = [
        f"2025{m:02}{d:02}"
        for m, d in zip(random.integers(1, 13, ROWS), random.integers(1, 29, ROWS), strict=True)
    ]
    with closing(sqlite3.connect(folder / "register.db")) as base:
        base.execute("create table people (height, seen integer, town text)")
        for day in days:
            height = "n/a" if random.random() < 0.05 else round(float(random.normal(170, 9)), 1)
            base.execute(
                "insert into people values (?, ?, ?)", [height, int(day), random.choice(["A", "B"])]
            )
        base.commit()
    return f"sqlite:{folder / 'register.db'}#people"


def register_draft(schema: Schema, text: str) -> None:
    assert schema["height"].missing_words == ("n/a",)
    assert schema["height"].decimals == 1
    assert (schema["seen"].type, schema["seen"].spelling.format) == ("date", "%Y%m%d")


def workbook(folder: Path, random: np.random.Generator) -> Path:
    """Excel: two sheets, real dates, a blank row, numbers kept as text."""
    pytest.importorskip("python_calamine")
    book = pytest.importorskip("openpyxl").Workbook()
    book.active.title = "Read me"
    sheet = book.create_sheet("Data")
    sheet.append(["staff", "joined", "grade"])
    for row in range(ROWS):
        joined = datetime.date(2010, 1, 1) + datetime.timedelta(days=int(random.integers(0, 5000)))
        staff = int(random.integers(0, 400))
        sheet.append(
            [str(staff) if row % 7 else staff, joined, str(random.choice(["low", "high", "mid"]))]
        )
        if row == 20:
            sheet.append([])
    book.save(folder / "list.xlsx")
    return folder / "list.xlsx"


def workbook_draft(schema: Schema, text: str) -> None:
    assert [one.type for one in schema.attributes] == ["whole", "date", "text"]


def panel(folder: Path, random: np.random.Generator) -> Path:
    """Stata: labels, a declared day, refusals that only a label tells."""
    pyreadstat = pytest.importorskip("pyreadstat")
    born = pd.to_datetime("1960-01-01") + pd.to_timedelta(random.integers(0, 15_000, ROWS), "D")
    frame = pd.DataFrame(
        {"vote": random.choice([1, 2, 3, 8], ROWS), "born": [day.date() for day in born],
         "kids": random.integers(0, 6, ROWS)}
    )  # fmt: skip
    pyreadstat.write_dta(
        frame, folder / "panel.dta", column_labels={"vote": "Voted for"},
        variable_value_labels={"vote": {1: "left", 2: "right", 3: "other", 8: "Refused"}},
    )  # fmt: skip
    return folder / "panel.dta"


def panel_draft(schema: Schema, text: str) -> None:
    vote, born, kids = schema.attributes
    assert (vote.values, vote.missing_words, vote.heading) == ((1, 2, 3), ("8",), "Voted for")
    assert born.type == "date"
    assert kids.values == (0, 1, 2, 3, 4, 5)


def spellings(folder: Path, random: np.random.Generator) -> Path:
    """Two spellings of one value, and a column of free text."""
    wards = random.choice(["General", "Surgery", "general "], ROWS)
    notes = [f"seen again on day {n} with mild pain" for n in range(ROWS)]
    frame = pd.DataFrame(
        {"ward": wards, "note": notes, "paid": random.choice(["oui", "non"], ROWS)}
    )
    frame.to_csv(folder / "wards.csv.bz2", index=False)
    return folder / "wards.csv.bz2"


def spellings_draft(schema: Schema, text: str) -> None:
    assert "values that differ in blanks or capitals" in text
    assert "note: looks like free text" in text
    assert schema["paid"].spelling.yes[0] == "oui"


def stock(folder: Path, random: np.random.Generator) -> str:
    """DuckDB: decimals, timestamps and holes, through a query."""
    duckdb = pytest.importorskip("duckdb")
    price = [
        None if random.random() < 0.1 else round(float(random.gamma(2, 20)), 2) for _ in range(ROWS)
    ]
    sold = pd.to_datetime("2025-03-01") + pd.to_timedelta(
        random.integers(0, 14 * 86_400, ROWS), "s"
    )
    frame = pd.DataFrame({"price": price, "sold": sold, "secret": range(ROWS)})
    with duckdb.connect(str(folder / "stock.duckdb")) as base:
        base.register("given", frame)
        base.execute(
            "create table sales as select price::decimal(9,2) price, sold, secret from given"
        )
    return f"duckdb:{folder / 'stock.duckdb'}#select price, sold from sales"


def stock_draft(schema: Schema, text: str) -> None:
    assert schema.names == ("price", "sold")
    assert schema["price"].missing
    assert schema["sold"].type == "timestamp"


def lists(folder: Path, random: np.random.Generator) -> Path:
    """JSON lines: keys that are often absent, nested cells, a code with leading zeros."""
    lines = []
    for number in range(ROWS):
        row: dict[str, object] = {"zip": str(random.choice(["04847", "00501", "53111"])),
                                  "tags": [number, "x"]}  # fmt: skip
        if random.random() < 0.5:
            row["visits"] = int(random.integers(0, 900))
        lines.append(json.dumps(row))
    (folder / "lists.jsonl").write_text("\n".join(lines))
    return folder / "lists.jsonl"


def lists_draft(schema: Schema, text: str) -> None:
    assert schema["zip"].values == ("00501", "04847", "53111")
    assert schema["visits"].missing
    assert "tags: looks like" in text


DRAFTED = "draft = true  # remove this line when you have reviewed the schema"
TRAPS = {
    "SPSS survey": Trap(survey, survey_draft),
    "visits of patients": Trap(
        visits, visits_draft, options=("--unit", "patient", "--most-records", 4, "--rows", ROWS)
    ),
    "German invoices": Trap(invoices, invoices_draft, reads=("--encoding", "windows-1252")),
    "American wages": Trap(american, american_draft, reads=("--encoding", "utf-16")),
    "several answers": Trap(
        languages, languages_draft,
        [('["any", "de", "en", "fr", "sign"]', '["de", "en", "fr", "sign, any"]')],
    ),
    "codes": Trap(ledger_of_codes, codes_draft),
    "SQLite": Trap(register, register_draft),
    "Excel": Trap(workbook, workbook_draft, reads=("--sheet", "Data"), edits=[
        ('values = ["high", "low", "mid"]', 'values = ["low", "mid", "high"]\nordered = true'),
    ]),
    "Stata panel": Trap(panel, panel_draft),
    "two spellings": Trap(spellings, spellings_draft, options=("--out-of-domain", "clamp"), edits=[
        ('values = ["General", "Surgery", "general "]', 'values = ["General", "Surgery"]'),
    ]),
    "DuckDB": Trap(stock, stock_draft),
    "JSON lines": Trap(lists, lists_draft),
}  # fmt: skip
