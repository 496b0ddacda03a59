"""A release for persons, from the table to the directory and back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dualquery as dq
from dualquery.base.errors import ParameterError, ReleaseError
from dualquery.privacy.ledger import Ledger, LedgerError
from dualquery.privacy.unit import Persons, Weigh

SCHEMA = dq.Schema(
    (
        dq.Attribute.categorical("ward", ["a", "b", "c"]),
        dq.Attribute.binary("smoker"),
        dq.Attribute.numeric("age", [0, 30, 60, 100]),
    )
)


def visits(persons: int = 3000, seed: int = 5) -> pd.DataFrame:
    """Smokers come often: what is true of visits is not true of persons."""
    random = np.random.default_rng(seed)
    smoker = random.random(persons) < 0.3
    times = np.where(smoker, 6, 1)
    who = np.repeat(np.arange(persons), times)
    return pd.DataFrame(
        {
            "patient": who,
            "ward": random.choice(["a", "b", "c"], len(who), p=[0.5, 0.3, 0.2]),
            "smoker": smoker[who].astype(int),
            "age": random.integers(0, 100, persons)[who],
        }
    )


def job(**changes: object) -> dq.DualQuery:
    settings: dict[str, object] = {
        "epsilon": 2.0,
        "delta": 1e-6,
        "queries": 200,
        "unit": "patient",
        "most_records": 4,
        "seed": 1,
    }
    return dq.DualQuery(**{**settings, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("measure", [True, False])
def test_records_and_persons_are_different_questions(neighbours: str, measure: bool) -> None:
    frame = visits()
    capped = frame.groupby("patient").head(4)
    shares = {}
    for weigh, rows in (("record", len(capped) + 300), ("person", 2900)):
        release = job(
            weigh=weigh, neighbours=neighbours, rows=rows, measure=measure, errors=False
        ).fit(frame, schema=SCHEMA)
        shares[weigh] = release.answer("smoker=1")
        assert release.privacy.epsilon <= 2.0
        assert release.privacy.persons == Persons("patient", 4, Weigh(weigh))
    assert shares["record"] == pytest.approx(capped.smoker.mean(), abs=0.06)
    assert shares["person"] == pytest.approx(0.3, abs=0.06)


def test_the_directory_says_whose_records_are_protected(tmp_path: Path) -> None:
    frame = visits(800)
    told: list[str] = []
    release = job(weigh="person").release(
        frame, tmp_path / "out", schema=SCHEMA, notice=told.append
    )
    again = dq.load(tmp_path / "out")
    assert again.privacy == release.privacy
    assert again.privacy.rows == 800
    text = again.privacy.text()
    assert "all of one person's at most 4 records together (column 'patient')" in text
    assert "the number of persons, 800, is public" in text
    assert "for several persons together" in text
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "all of one person" in page
    assert any(line.startswith("NOT PRIVATE") and "rows are left out" in line for line in told)
    assert "rows are left out" not in page
    assert "rows are left out" not in (tmp_path / "out" / "release.json").read_text("utf-8")
    assert again.answer("smoker=1") == release.answer("smoker=1")
    # The truth that it is measured against weighs persons too: 30 %, not 66 % of the visits.
    asked = dq.Workload.of([dq.parse("smoker=1", SCHEMA)], SCHEMA)
    truth = dq.evaluate(again, frame, asked).truth[0]
    assert truth == pytest.approx(frame.groupby("patient").smoker.mean().mean(), abs=1e-12)


def test_a_release_for_persons_cannot_pose_as_one_for_records(tmp_path: Path) -> None:
    """Without its unit the statement's ε no longer follows from its draws and tables."""
    job(weigh="record", rows=1500).release(visits(500), tmp_path / "out", schema=SCHEMA)
    path = tmp_path / "out" / "release.json"
    content = json.loads(path.read_text("utf-8"))
    content["privacy"]["unit"]["most_records"] = 1
    content["parameters"]["unit"]["most_records"] = 1
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ReleaseError):
        dq.load(tmp_path / "out")


def test_a_ledger_counts_one_unit(tmp_path: Path) -> None:
    by_person = Ledger.create(tmp_path / "p.ledger", epsilon=5, delta=1e-6, unit="patient")
    by_record = Ledger.create(tmp_path / "r.ledger", epsilon=5, delta=1e-6)
    frame = visits(400)
    private = job(weigh="person", seed=None, queries=50, errors=False)
    with pytest.raises(LedgerError, match=r"protects persons of column 'patient'.*single records"):
        private.fit(frame, schema=SCHEMA, ledger=tmp_path / "r.ledger")
    private.fit(frame, schema=SCHEMA, ledger=tmp_path / "p.ledger", note="first month")
    (entry,) = by_person.account().entries
    assert (entry.note, entry.state) == ("first month", "spent")
    assert by_record.account().entries == ()
    assert by_person.account().to_dict()["unit"] == "patient"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"unit": None}, r"most_records speaks of persons; name their column with unit"),
        ({"unit": None, "most_records": None, "weigh": "person"}, r"weigh speaks of persons"),
        ({"most_records": None}, r"unit = 'patient' needs most_records"),
        ({"weigh": "household"}, r"weigh = 'household'"),
        ({"weigh": "record"}, r"weigh = record keeps the number of rows private"),
        ({"most_records": 0, "weigh": "person"}, r"most_records = 0"),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        job(**changes).fit(visits(50), schema=SCHEMA)


def test_pairs_of_persons_hide_who_has_none() -> None:
    from dualquery.rows.long import LongTable

    random = np.random.default_rng(2)
    pairs = pd.DataFrame(
        {"visit": random.integers(0, 900, 3000), "item": random.integers(0, 3, 3000)}
    )
    pairs["patient"] = pairs.visit // 3
    schema = dq.Schema(tuple(dq.Attribute.binary(f"item_{i}") for i in range(3)))
    table = LongTable(pairs, "visit", "item", prefix="item_")
    with pytest.raises(ParameterError, match="pairs do not show persons without items"):
        job(weigh="person").fit(table, schema=schema)
    settings = {"neighbours": "add-remove", "rows": 300, "errors": False, "queries": 6}
    release = job(weigh="person", **settings).fit(table, schema=schema)
    has = pairs.drop_duplicates(["visit", "item"]).groupby("item").visit.nunique() / 900
    assert release.answer("item_0=1") == pytest.approx(has[0], abs=0.08)
