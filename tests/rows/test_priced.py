"""A schema with a price: what it finds, what it is charged, and that nothing else leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dualquery as dq
from dualquery.base.errors import ParameterError, SchemaError, TableError
from dualquery.domain.declaration import Declaration
from dualquery.privacy import quantiles
from dualquery.privacy.ledger import BudgetExceededError, Ledger, LedgerError
from dualquery.privacy.quantiles import Cumulated
from dualquery.rows import priced
from dualquery.rows.priced import draft_with_price

ROWS = 4000
DECLARED: dict[str, Any] = {
    "age": {"bounds": [0, 120]},
    "cost": {"bounds": [0.0, 10_000.0]},
    "admitted": {"bounds": ["2024-01-01", "2025-01-01"], "type": "date"},
    "rooms": {"bounds": [1, 6]},
    "icd": {"open": True, "missing": ["NA"], "group": "prefix:1"},
    "zone": {"open": True, "type": "whole"},
    "ward": {"values": ["north", "south"]},
    "smoker": {"binary": True},
}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    random = np.random.default_rng(3)
    icd = random.choice(["I10", "I11", "E11", "NA"], ROWS, p=[0.5, 0.3, 0.1, 0.1]).astype(object)
    icd[:20] = [f"Z{i}" for i in range(20)]  # each of them one person's alone
    return pd.DataFrame(
        {
            "who": random.integers(0, 1500, ROWS),
            "age": random.integers(20, 90, ROWS),
            "cost": np.where(random.random(ROWS) < 0.1, np.nan, random.gamma(2.0, 300.0, ROWS)),
            "admitted": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(random.integers(0, 366, ROWS), "D"),
            "rooms": random.integers(1, 7, ROWS),
            "icd": icd,
            "zone": random.choice([7.0, 8.0, np.nan], ROWS),
            "ward": random.choice(["north", "south"], ROWS),
            "smoker": random.integers(0, 2, ROWS),
        }
    )


def draft(source: object, **changed: Any) -> priced.PricedDraft:
    settings: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-6, "seed": 1}
    return draft_with_price(source, DECLARED, **(settings | changed))


def test_edges_and_values_are_found_and_the_rest_is_as_declared(frame: pd.DataFrame) -> None:
    made = draft(frame)
    schema = made.schema
    assert schema.names == tuple(DECLARED)
    for name in ("age", "cost"):
        cells = np.sort(frame[name].dropna())
        edges = np.array(schema[name].edges[1:-1])
        below = np.searchsorted(cells, edges, "left") / len(cells)
        upto = np.searchsorted(cells, edges, "right") / len(cells)
        wanted = np.arange(1, 8) / 8
        assert len(edges) == 7
        assert np.maximum(below - wanted, wanted - upto).max() < 0.03
    assert schema["admitted"].describe() == "dates from 2024-01-01 to 2025-01-01, or missing"
    assert schema["rooms"].values == (1, 2, 3, 4, 5, 6)
    assert set(schema["icd"].values) == {"E11", "I10", "I11"}
    assert schema["icd"].missing_words == ("NA",)
    assert schema["zone"].values == (7, 8)
    assert schema["ward"] == dq.Attribute.categorical("ward", ["north", "south"])
    assert schema["smoker"] == dq.Attribute.binary("smoker")
    assert schema.draft  # seeded: no release takes it
    assert "rooms" not in made.found  # listed for nothing


def test_a_release_takes_the_draft_as_it_is(frame: pd.DataFrame, tmp_path: Path) -> None:
    made = draft_with_price(frame, DECLARED, epsilon=4.0, delta=1e-6)
    made.save(tmp_path / "schema.toml")
    text = (tmp_path / "schema.toml").read_text()
    assert "# Price: ε = " in text
    assert " at δ = 1e-06, replace-one neighbours, for single records." in text
    schema = dq.Schema.load(tmp_path / "schema.toml")
    assert schema == made.schema
    job = dq.DualQuery(1.0, 1e-6, queries=50, seed=1, errors=False, out_of_domain="missing")
    assert job.fit(frame, schema=schema).answer("smoker=1") == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("weigh", ["record", "person"])
def test_persons_are_protected_together(frame: pd.DataFrame, neighbours: str, weigh: str) -> None:
    made = draft(frame, neighbours=neighbours, unit="who", most_records=3, weigh=weigh)
    assert made.plan.unit.persons is not None
    assert "all of one person's at most 3 records together" in "\n".join(made.header())
    alone = draft(frame, neighbours=neighbours)
    if weigh == "record":  # three records together: three times the noise
        assert made.plan.sigma == pytest.approx(3 * alone.plan.sigma)
        assert made.plan.sigmas == pytest.approx([3 * sigma for sigma in alone.plan.sigmas])
    else:
        parts = made.plan.unit.parts
        assert made.plan.sigma == pytest.approx(parts * alone.plan.sigma)
    assert {"I10", "I11"} <= set(made.schema["icd"].values)


def test_a_person_counts_no_more_than_the_cap() -> None:
    table = pd.DataFrame({"who": ["x"] * 500 + ["y", "z"], "icd": ["A"] * 500 + ["B", "B"]})
    declared = {"icd": {"open": True}, "flag": {"binary": True}}
    table["flag"] = 0
    settings = {"epsilon": 60.0, "delta": 0.5, "unit": "who", "most_records": 2, "seed": 1}
    made = draft_with_price(table, declared, **settings)
    assert made.plan.threshold < 500  # without the cap, A would be found
    assert made.left_out == ("icd",)


def test_nothing_but_noisy_counts_leaves_the_table(
    frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is measured is the same, whatever the rows. So two tables that share nothing give the
    # same draft, byte by byte, whatever their values, types and numbers of rows. At a tiny ε no
    # value is found.
    def fixed(within: Cumulated, borders: np.ndarray, contrasts: Any, *rest: Any) -> np.ndarray:
        return within.steps * contrasts.of(np.array([5, 9, 40, 2, 2, 60, 8, 1]))

    monkeypatch.setattr(quantiles, "measure_parts", fixed)
    other = pd.DataFrame({name: ["?"] * 7 for name in frame.columns})
    made = [draft(one, epsilon=1e-4) for one in (frame, other, frame.head(0))]
    assert made[0].header() == made[1].header() == made[2].header()
    assert made[0].schema == made[1].schema == made[2].schema
    assert made[0].left_out == ("icd", "zone")


def test_the_ledger_is_charged_before_anything_is_measured(
    frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = Ledger.create(tmp_path / "l", epsilon=1.0, delta=1e-5)
    settings: dict[str, Any] = {"ledger": tmp_path / "l", "seed": None, "note": "the schema"}
    made = draft(frame, epsilon=0.5, **settings)
    (entry,) = book.account().entries
    assert (entry.note, entry.state) == ("the schema", "spent")
    assert entry.charge.mu_squared == pytest.approx(made.plan.events.mu_squared)
    assert entry.charge.slack == pytest.approx(made.plan.slack)
    assert 0 < made.plan.slack <= 0.5e-6
    # It composes with releases: the same budget again is too much with this one, not without.
    drawn: list[str] = []
    monkeypatch.setattr(priced, "find_quantiles", lambda *given: drawn.append("edges") or [1])
    with pytest.raises(BudgetExceededError, match="together"):
        draft(frame, epsilon=1.1, **settings)
    with pytest.raises(LedgerError, match="NOT PRIVATE"):
        draft(frame, epsilon=0.1, ledger=tmp_path / "l", seed=3)
    with pytest.raises(LedgerError, match="add-remove"):
        draft(frame, epsilon=0.1, neighbours="add-remove", **settings)
    with pytest.raises(BudgetExceededError, match="smaller delta"):
        draft(frame, epsilon=0.01, delta=0.1, **settings)
    assert not drawn
    assert len(book.account().entries) == 1


def test_draft_schema_with_a_price(frame: pd.DataFrame, tmp_path: Path) -> None:
    made = dq.draft_schema(frame, declared=DECLARED, epsilon=2.0, delta=1e-6, seed=5, bins=5)
    assert made["age"].proper_size == 5
    for settings, told in (
        ({"declared": DECLARED}, "declared is for a schema with a price"),
        ({"epsilon": 1.0, "delta": 1e-6}, "needs declared"),
        ({"epsilon": 1.0, "declared": DECLARED}, "needs delta"),
        ({"epsilon": 1.0, "delta": 1e-6, "declared": DECLARED, "exclude": ["age"]}, "columns and"),
    ):
        with pytest.raises(ParameterError, match=told):
            dq.draft_schema(frame, **settings)  # type: ignore[arg-type]  # wrong on purpose


def test_what_cannot_be_declared_is_refused(frame: pd.DataFrame) -> None:
    for entry, told in (
        ({"bounds": [120, 0]}, "bounds are not in rising order"),
        ({"bounds": ["?", "?"]}, "expected two numbers or dates"),
        ({"bounds": [0]}, "expected two numbers or dates"),
        ({"bounds": [0, 1], "values": [1]}, "unknown key 'values' beside bounds"),
        ({"open": "yes"}, "expected true"),
        ({"open": True, "missing": False}, "leave missing out"),
        ({"open": True, "type": "date"}, "for others declare bounds"),
        ({"open": True, "group": {"a": ["b"]}}, "not known yet"),
        ({"open": True, "missing": 3}, "missing = 3"),
        ({"open": True, "group": "prefix:x"}, 'expected "prefix:N"'),
    ):
        with pytest.raises(SchemaError, match=told):
            Declaration.from_dict({"age": entry})
    ruled = {
        "attributes": DECLARED,
        "constraints": [{"forbid": "ward=north & icd=Z9"}],
    }
    with pytest.raises(SchemaError, match=r"no attribute 'icd'.*add others to the schema"):
        Declaration.from_dict(ruled)
    with pytest.raises(SchemaError, match="draft = true"):
        Declaration.from_dict({"draft": True, "attributes": {"age": {"open": True}}})
    with pytest.raises(SchemaError, match=r"no column 'agee'.*did you mean 'age'"):
        draft_with_price(frame, {"agee": {"open": True}}, epsilon=1.0, delta=1e-6)
    with pytest.raises(ParameterError, match="costs nothing"):
        draft_with_price(frame, {"ward": DECLARED["ward"]}, epsilon=1.0, delta=1e-6)
    with pytest.raises(TableError, match="no schema"):
        draft_with_price(frame.head(3), {"icd": {"open": True}}, epsilon=1.0, delta=1e-6)


def test_odd_cells_are_counted_as_a_release_reads_them() -> None:
    words = pa.array(["a", "True", "NA", None] * 300 + [f"v{i}" for i in range(60)])
    coded = words.dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))
    table = pa.table({"text": coded, "number": ["-9", "-9.0", " 7", "x"] * 300 + ["8.5"] * 60})
    declared = {
        "text": {"open": True, "missing": ["NA", 1]},  # 1 stands for True, too
        "number": {"open": True, "type": "whole", "missing": [-9]},
    }
    made = draft_with_price(table, declared, epsilon=8.0, delta=1e-6, seed=1)
    assert made.schema["text"].values == ("a",)
    assert made.schema["number"].values == (7,)


def test_the_grid_is_of_round_numbers() -> None:
    declared = Declaration.from_dict(
        {
            "cost": {"bounds": [0.0, 1e6]},
            "share": {"bounds": [0.1, 0.9]},
            "born": {"bounds": ["1900-01-01", "2026-01-01"], "type": "date"},
            "seen": {"bounds": ["2020-01-01T00:00:00", "2026-01-01T00:00:00"], "type": "timestamp"},
            "many": {"bounds": [0, 10**9]},
        }
    )
    steps = {c.name: float(c.step) for c in declared.columns if not isinstance(c, dq.Attribute)}
    assert steps == {"cost": 50.0, "share": 5e-05, "born": 2.0, "seen": 7200.0, "many": 50_000.0}
