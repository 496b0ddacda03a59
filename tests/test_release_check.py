"""`tools.release_check` tries the package that is installed, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tools import release_check


def test_another_package_is_not_taken_for_the_installed_one(tmp_path: Path) -> None:
    """The checkout, say: then its tests would pass whatever the wheel lacks."""
    with pytest.raises(SystemExit, match="is not the installed package"):
        release_check.check_installed(sys.executable, tmp_path, tmp_path)


def test_no_path_reaches_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "src")
    assert "PYTHONPATH" not in release_check.clean_environment()


def test_the_lines_are_those_of_readme() -> None:
    assert "dq.DualQuery(epsilon=1.0, delta=1e-6)" in release_check.readme_lines()
