"""Runs of other people's methods end within their limits, and say how they ended."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tools.peers import running
from tools.peers.__main__ import left_out
from tools.peers.registry import DRIVERS, ENVIRONMENTS, PEERS, Peer

from dualquery.paper.experiments.store import FinishedRun, as_text
from dualquery.paper.field.methods import Promise
from dualquery.paper.field.runs import LAYOUT, Run
from dualquery.paper.field.settings import Setting

SIZES = np.array([3, 2], dtype=np.int32)
CODES = np.array([[0, 1], [2, 0]], dtype=np.int32)

COPIES = """
import json, sys, numpy as np
asked = json.loads(sys.argv[1])
given = np.load(asked["table"])
assert asked["epsilon"] == 0.5 and given["sizes"].tolist() == [3, 2]
np.save(asked["out"], given["codes"])
print(json.dumps({"seconds": 1.5}))
"""


@dataclass(frozen=True)
class Here:
    """This environment in the place of a peer's."""

    script: Path
    python: Path = Path(sys.executable)


@pytest.fixture
def outcome(monkeypatch, tmp_path: Path):
    table = running.write_table(tmp_path / "table.npz", CODES, SIZES)

    def of(source: str, **environment: Path) -> running.Outcome:
        script = tmp_path / "driver.py"
        script.write_text(source)
        monkeypatch.setitem(PEERS, "mine", Peer("mine", Here(script, **environment)))
        return running.run("mine", table, 0.5, 1e-6, tmp_path)

    return of


def test_a_peer_gets_codes_and_returns_codes(outcome) -> None:
    found = outcome(COPIES)
    assert found.end == ""
    assert np.array_equal(found.codes, CODES)
    assert found.told == {"seconds": 1.5}


def test_how_a_peer_can_end(outcome, tmp_path: Path) -> None:
    assert outcome("raise ValueError('too wide')").end == "died: ValueError: too wide"
    assert outcome("print('{}')").end == "died: without rows"
    assert outcome("", python=tmp_path / "none").end == running.NOT_INSTALLED


def test_every_peer_has_a_driver() -> None:
    assert {peer.environment for peer in PEERS.values()} <= set(ENVIRONMENTS)
    for one in ENVIRONMENTS:
        assert (DRIVERS / one.driver).is_file()
        assert all("==" in package or "<" in package for package in one.packages)


def test_what_need_not_be_tried_says_why() -> None:
    def key(columns: int) -> dict[str, object]:
        setting = Setting("biased", 100, columns, "marginals", 60)
        return Run(setting, "peer mst", Promise(1.0, 1e-6), 0).key

    def past(columns: int, **cells: object) -> FinishedRun:
        made = {**key(columns), **cells}
        return FinishedRun({name: as_text(made.get(name, "")) for name in LAYOUT.columns})

    grown = [past(15, processor_seconds=100.0), past(30, processor_seconds=250.0)]
    assert left_out(key(32), grown) == ""
    assert left_out(key(60), grown).startswith("not run: predicted 625 processor seconds")
    assert left_out(key(60), [past(15, end="died: over 6 GiB")]) == "not run: died at 15 columns"
    assert left_out(key(2_000), []) == "not run: synthetic rows are counted up to 1000 columns"
