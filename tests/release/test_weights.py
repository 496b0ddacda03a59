"""A release of weighted rows, from the table to the directory and back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dualquery as dq
from dualquery.base.errors import ParameterError, ReleaseError
from dualquery.privacy.ledger import Ledger
from dualquery.privacy.unit import Weight

SCHEMA = dq.Schema(
    (
        dq.Attribute.categorical("town", ["north", "south"]),
        dq.Attribute.binary("smoker"),
        dq.Attribute.numeric("age", [0, 30, 60, 100]),
    )
)


def survey(rows: int = 4000, seed: int = 5) -> pd.DataFrame:
    """The south was asked four times as often, so its answers weigh a quarter; it smokes less."""
    random = np.random.default_rng(seed)
    south = random.random(rows) < 0.8
    return pd.DataFrame(
        {
            "w": np.where(south, 0.5, 2.0) * random.uniform(0.8, 1.25, rows),
            "town": np.where(south, "south", "north"),
            "smoker": (random.random(rows) < np.where(south, 0.1, 0.5)).astype(int),
            "age": random.integers(0, 100, rows),
        }
    )


def job(**changes: object) -> dq.DualQuery:
    settings: dict[str, object] = {
        "epsilon": 2.0,
        "delta": 1e-6,
        "queries": 200,
        "weight": "w",
        "weight_bound": 2.5,
        "rows": 3000,
        "seed": 1,
    }
    return dq.DualQuery(**{**settings, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("measure", [True, False])
def test_answers_and_rows_are_weighted(neighbours: str, measure: bool) -> None:
    frame = survey()
    release = job(neighbours=neighbours, measure=measure, errors=False).fit(frame, schema=SCHEMA)
    weighted = float(np.average(frame.smoker, weights=frame.w))
    assert abs(weighted - frame.smoker.mean()) > 0.1
    assert release.answer("smoker=1") == pytest.approx(weighted, abs=0.05)
    assert release.sample(2000, seed=1).smoker.mean() == pytest.approx(weighted, abs=0.05)
    assert release.privacy.epsilon <= 2.0
    assert release.privacy.weight == Weight("w", 2.5)


def test_a_larger_bound_costs_more() -> None:
    """A plan for the same ε has noise in proportion to the bound."""
    narrow, wide = (job(weight_bound=bound).plan(3000, SCHEMA) for bound in (1.0, 4.0))
    assert narrow.tables is not None
    assert wide.tables is not None
    scale = [
        one.tables.purse.scale(0.5, 3) / one.budget.unit.parts  # type: ignore[union-attr]
        for one in (narrow, wide)
    ]
    assert scale[1] == pytest.approx(4.0 * scale[0], rel=1e-6)


def test_the_directory_says_what_weighs(tmp_path: Path) -> None:
    frame = survey(1500)
    frame.loc[0, "w"] = 1e9
    told: list[str] = []
    release = job(rows=1200).release(frame, tmp_path / "out", schema=SCHEMA, notice=told.append)
    again = dq.load(tmp_path / "out")
    assert again.privacy == release.privacy
    assert again.parameters == release.parameters
    text = again.privacy.text()
    assert "differ in the content of one record, weights included" in text
    assert "weights of column 'w', at most 2.5 each; larger ones are cut" in text
    assert "the cost is that of a record that counts 2.5" in text
    assert "the sum of weights is not published, scores are divided by the public 1200" in text
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "weights of column" in page
    assert "sum of weights is not published" in page
    assert any(line.startswith("NOT PRIVATE") and "1 weights above 2.5" in line for line in told)
    assert "cut to it" not in page + (tmp_path / "out" / "release.json").read_text("utf-8")
    assert "w" not in again.sample(5).columns
    asked = dq.Workload.of([dq.parse("smoker=1", SCHEMA)], SCHEMA)
    truth = dq.evaluate(again, frame, asked).truth[0]
    weights = np.minimum(frame.w, 2.5)
    assert truth == pytest.approx(float(np.average(frame.smoker, weights=weights)), abs=1e-4)


@pytest.mark.parametrize("where", ["both", "nowhere"])
def test_a_weighted_release_cannot_pose_as_a_cheaper_one(where: str, tmp_path: Path) -> None:
    """With another bound, or without any, the statement's ε does not follow from its transcript."""
    job(errors=False).release(survey(800), tmp_path / "out", schema=SCHEMA)
    path = tmp_path / "out" / "release.json"
    content = json.loads(path.read_text("utf-8"))
    for part in ("privacy", "parameters"):
        if where == "both":
            content[part]["weight"]["bound"] = 1.0
        else:
            del content[part]["weight"]
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ReleaseError):
        dq.load(tmp_path / "out")


def test_the_ledger_says_and_charges_the_weights(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "l.ledger", epsilon=5, delta=1e-6)
    private = job(seed=None, queries=50, errors=False)
    made = private.fit(survey(500), schema=SCHEMA, ledger=tmp_path / "l.ledger", note="wave 1")
    (entry,) = book.account().entries
    assert entry.note == "wave 1 (weights of column 'w', at most 2.5 each)"
    assert entry.state == "spent"
    assert entry.charge.mu_squared == pytest.approx(made.privacy.mu**2, rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weight": None}, r"weight_bound speaks of weights; name their column with weight"),
        ({"weight_bound": None}, r"weight = 'w' needs weight_bound"),
        ({"rows": None}, r"keeps the sum of weights private; give about what they add up to"),
        ({"rows": None, "neighbours": "add-remove"}, r"keeps the sum of weights private"),
        ({"weight_bound": -1}, r"weight_bound = -1"),
        ({"unit": "town", "most_records": 2, "weigh": "person"}, r"nothing for weight = 'w'"),
        ({"unit": "w", "most_records": 2}, r"weight and unit are both 'w'; expected two columns"),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        job(**changes).fit(survey(50), schema=SCHEMA)


def test_pairs_have_no_weights() -> None:
    from dualquery.rows.long import LongTable

    pairs = pd.DataFrame({"visit": [1, 1, 2], "item": [0, 1, 1], "w": [1, 1, 2]})
    schema = dq.Schema(tuple(dq.Attribute.binary(f"item_{i}") for i in range(2)))
    table = LongTable(pairs, "visit", "item", prefix="item_")
    with pytest.raises(ParameterError, match="weight = 'w' needs one row per record; pairs"):
        job(neighbours="add-remove").fit(table, schema=schema)


def test_weights_and_persons_together() -> None:
    """The share among records that are kept, weighted; a person can move as many bounds."""
    frame = survey(3000)
    frame["who"] = np.arange(3000) // 2
    release = job(unit="who", most_records=2, rows=2500, errors=False).fit(frame, schema=SCHEMA)
    assert release.privacy.unit.influence == 2 * Weight("w", 2.5).influence
    weighted = float(np.average(frame.smoker, weights=frame.w))
    assert release.answer("smoker=1") == pytest.approx(weighted, abs=0.08)
    assert "every record has its own weight" in release.privacy.text()
