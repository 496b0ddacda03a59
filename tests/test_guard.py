"""The guard against lost speed: what it compares, and the comparison itself in the slow lane."""

from __future__ import annotations

import json

import pytest
from benchmarks import guard


def test_a_ratio_is_lost_below_two_thirds() -> None:
    stored = {"kept": 9.0, "slower": 9.0, "lost": 9.0}
    ratios = {"kept": 12.0, "slower": 6.1, "lost": 5.9, "unknown": 100.0}
    assert guard.lost(ratios, stored) == ["lost", "unknown"]


def test_what_seems_lost_is_measured_again(capsys: pytest.CaptureFixture[str]) -> None:
    noisy, slow = iter([1.0, 2.0, 9.0]), iter([5.0, 4.0, 5.5, 3.0])
    checks = {"noisy": lambda: next(noisy), "slow": lambda: next(slow), "good": lambda: 9.0}
    failed = guard.guard(checks, {"noisy": 9.0, "slow": 9.0, "good": 9.0})
    assert failed == ["slow: 5.5 times NumPy instead of 9"]
    assert "noisy" in capsys.readouterr().out


def test_every_check_has_a_stored_ratio() -> None:
    stored = json.loads(guard.STORED.read_text(encoding="utf-8"))
    assert list(stored) == list(guard.checks())
    assert all(ratio > 0 for ratio in stored.values())


@pytest.mark.slow
def test_nothing_has_lost_a_third_of_its_speed() -> None:
    stored = json.loads(guard.STORED.read_text(encoding="utf-8"))
    assert guard.guard(guard.checks(), stored) == []
