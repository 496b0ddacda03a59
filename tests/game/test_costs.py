"""What a run takes is work times rates; the rates come from one file, which a command writes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from benchmarks import costs

import dualquery as dq
from dualquery.game.costs import RATES, Rates, Work, estimate, foretold
from dualquery.privacy.calibration import Budget

SMALL = costs.SHAPES[0]


def work(**changed: object) -> Work:
    shape = dataclasses.replace(SMALL, **changed)  # type: ignore[arg-type]
    schema = dq.Schema(
        tuple(dq.Attribute.categorical(f"c{i}", range(shape.values)) for i in range(shape.columns))
    )
    return costs.work_of(shape, schema)


def test_every_kind_of_work_has_its_rates() -> None:
    kinds = {field.name for field in dataclasses.fields(Work)}
    assert set(RATES.seconds) == set(RATES.memory_bytes) == kinds
    assert all(rate >= 0.0 for rate in (*RATES.seconds.values(), *RATES.memory_bytes.values()))
    assert RATES.seconds["start"] > 0.5
    assert RATES.memory_bytes["start"] > 1e8


def test_work_follows_rows_queries_and_columns() -> None:
    base = work()
    assert work(rows=4_000).read == 2 * base.read
    assert work(queries=2_000).counted == 2 * base.counted
    assert work(columns=12).read == 2 * base.read
    assert work(values=8).squares == 4 * base.squares
    assert base.found == 0.0 < work(player="record").found
    assert work(player="record").tabulated == 0.0 < base.tabulated
    # Columns that no query can name are not read.
    assert work(columns=500, queries=10).read == 30 * SMALL.rows


def test_an_estimate_is_work_times_rates() -> None:
    schema = dq.Schema((dq.Attribute.binary("a"), dq.Attribute.binary("b")))
    plan = dq.DualQuery(epsilon=1.0, delta=1e-6, queries=4).plan(1_000, schema, None)
    assert isinstance(plan.budget, Budget)
    done = Work.of(plan, schema, 4, 2).to_dict()
    told = estimate(plan, schema, 4, 2)
    assert told.seconds == pytest.approx(sum(RATES.seconds[n] * x for n, x in done.items()))
    assert told.memory_bytes == int(sum(RATES.memory_bytes[n] * x for n, x in done.items()))


def test_rates_are_those_with_which_runs_were_measured(tmp_path: Path, monkeypatch) -> None:
    """From runs that took what known rates say, the command finds rates that foretell the same."""
    true = Rates(
        dict.fromkeys(RATES.seconds, 0.0) | {"start": 3.0, "read": 2e-6, "learnt": 1e-7},
        dict.fromkeys(RATES.seconds, 0.0) | {"start": 3e8, "packed": 0.125, "codes": 4e3},
    )
    random = np.random.default_rng(1)
    figures = []
    for _ in range(30):
        done = Work(1.0, *(10.0 ** random.uniform(2, 7, len(dataclasses.fields(Work)) - 1)))
        told = foretold(done, true)
        figures.append(
            {"work": done.to_dict(), "seconds": told.seconds, "memory_bytes": told.memory_bytes}
        )
    found = costs.fitted(figures)
    for figure in figures:
        again = foretold(Work(**figure["work"]), found)
        assert again.seconds == pytest.approx(figure["seconds"], rel=0.05)
        assert again.memory_bytes == pytest.approx(figure["memory_bytes"], rel=0.05)
    file = tmp_path / "costs.json"
    monkeypatch.setattr(costs, "FILE", file)
    monkeypatch.setattr(costs, "large", list)
    costs.finished([{"shape": "x", **one} for one in figures])
    assert not file.exists()
    monkeypatch.setenv("DUALQUERY_WRITE_COSTS", "1")
    rows = costs.finished([{"shape": "x", **one} for one in figures])
    assert "work" not in rows[0]
    assert rows[0]["seconds_ratio"] == pytest.approx(1.0, rel=0.05)
    assert file.read_text().count(":") == 2 + 2 * len(RATES.seconds)


@pytest.mark.slow
def test_a_small_release_takes_what_was_foretold() -> None:
    found = costs.one(SMALL)
    assert 0.5 < found["seconds_ratio"] < 2.0
    assert 1 / 1.5 < found["memory_ratio"] < 1.5
