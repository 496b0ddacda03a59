"""A stranger's release: whatever was changed in it, one line, and never a signal or a hang."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from tests.release.fuzzing import Found, campaign, told

SEED, MANY, FEW = 20_261_118, 20_000, 120

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="cases run in forked processes")


def expect_nothing_wrong(found: Found, cases: int) -> None:
    assert not found.wrong, found.wrong
    assert found.refused + found.accepted == cases
    assert found.accepted > cases // 20, "or nothing but the reader was tried"
    assert found.peak < 4 * found.honest


def test_changed_releases_are_refused_or_harmless(tmp_path: Path) -> None:
    expect_nothing_wrong(campaign(SEED, range(FEW), tmp_path), FEW)


@pytest.mark.slow
def test_twenty_thousand_changed_releases(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    begun = time.perf_counter()
    found = campaign(SEED, range(MANY), tmp_path)
    with capsys.disabled():
        sys.stdout.write(told(found, SEED, time.perf_counter() - begun))
    expect_nothing_wrong(found, MANY)
