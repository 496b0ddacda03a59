"""Compiled kernels are never older than the sources they are made from."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dualquery
from dualquery.base import compile as _compile

PACKAGE = Path(dualquery.__file__).parent

SCRIPT = """
import numpy as np
from dualquery.privacy import shards
shard = shards.Shard(4)
shard.score(np.array([0, 0, 0, 500]), np.zeros(4), 1000.0, size=500, reference=500)
from dualquery.base.compile import cache_directory
print(shard.tally(shard.largest()).nonzero()[0].tolist())
print(cache_directory())
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    ignore = shutil.ignore_patterns("__pycache__", "assets")
    shutil.copytree(PACKAGE, tmp_path / "dualquery", ignore=ignore)
    return tmp_path


def run(folder: Path, script: str = SCRIPT, **more: str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), **more}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.splitlines()


def test_a_constant_of_another_file_is_seen(copy: Path) -> None:
    """`CLIP` stands in _weights.py; the kernel that reads it stands in _kernels.py."""
    first, where = run(copy)
    assert run(copy)[0] == first
    weights = copy / "dualquery" / "privacy" / "_weights.py"
    text = weights.read_text(encoding="utf-8")
    assert "\nCLIP = -600.0\n" in text
    weights.write_text(text.replace("\nCLIP = -600.0\n", "\nCLIP = -100.0\n"), encoding="utf-8")
    second, elsewhere = run(copy)
    assert second != first
    assert elsewhere != where
    assert Path(where).parent == copy / "dualquery" / "__pycache__"
    assert any(Path(elsewhere).rglob("*.nbi"))


def test_the_sources_are_all_that_kernels_are_made_from() -> None:
    found = {path.relative_to(PACKAGE).as_posix() for path in _compile.sources()}
    assert "privacy/_weights.py" in found
    assert "oracles/core.py" in found
    assert {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*_kernels.py")} <= found
    for path in PACKAGE.rglob("*.py"):  # and nobody goes past it
        text = path.read_text(encoding="utf-8")
        if path.name != "compile.py":
            assert "numba.njit" not in text, path
            assert "numba import njit" not in text, path


def test_what_an_imported_source_imports_is_a_source_too(copy: Path) -> None:
    weights = copy / "dualquery" / "privacy" / "_weights.py"
    with weights.open("a", encoding="utf-8") as file:
        file.write("\nfrom dualquery.base.checks import positive\n")
    script = "from dualquery.base import compile as c; print(*[p.name for p in c.sources()])"
    assert {"checks.py", "errors.py"} <= set(run(copy, script)[0].split())


def test_a_users_own_cache_is_kept_to_and_old_ones_go(copy: Path, tmp_path: Path) -> None:
    home = tmp_path / "cache"
    for age in range(5):
        old = home / f"kernels-{age}"
        old.mkdir(parents=True)
        os.utime(old, (age, age))
    (home / "other").mkdir()
    script = (
        "import numba; from dualquery.base import compile as c; print(c.cache_directory());"
        "print(numba.config.CACHE_DIR)"
    )
    where, left = run(copy, script, NUMBA_CACHE_DIR=str(home))
    assert Path(where).parent == home
    assert left == str(home)  # kernels of other packages are not affected
    names = sorted(folder.name for folder in home.iterdir())
    assert names == sorted([Path(where).name, "kernels-3", "kernels-4", "other"])


EXACT = {"largest_distance"}
"""Kernels whose result does not depend on the order of operations: a maximum is one of them."""


def test_reordered_sums_are_compiled_once() -> None:
    """A seeded run gives the same release whether its kernels were compiled before or not.

    With `fastmath` sums may be reordered. A kernel that another one calls is compiled by itself
    and with its caller, in two orders; an empty cache decides which of them runs.
    """
    for path in PACKAGE.rglob("*_kernels.py"):
        text = path.read_text(encoding="utf-8")
        if "fastmath=True" not in text:
            continue
        functions = [one for one in ast.parse(text).body if isinstance(one, ast.FunctionDef)]
        apart = {
            one.name
            for one in functions
            if any(ast.unparse(decorator) == "_compiled" for decorator in one.decorator_list)
        }
        assert apart  # the name of the decorator is part of this test
        for one in functions:
            called = {
                node.func.id
                for node in ast.walk(one)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            }
            assert not (called & apart) - EXACT, f"{path.name}: {one.name}"


SLOPES = """
import hashlib
import numpy as np
from dualquery.model._measured_kernels import weigh_tables
random = np.random.default_rng(0)
folded = random.random((60, 64), dtype=np.float32)
weights = random.dirichlet(np.ones(64)).astype(np.float32)
first = np.array([[0, 5, 12], [0, 5, 12]])
sizes = np.array([[3, 4, 5], [5, 7, 30]])
start = np.array([0, 60, 1110])
slope, by_weight = np.zeros_like(folded), np.zeros(64, dtype=np.float32)
ones = np.ones(1110, dtype=np.float32)
weigh_tables(folded, weights, first, sizes, start, ones, ones[:2], ones[0], slope, by_weight)
print(hashlib.sha256(slope.tobytes() + by_weight.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_an_empty_cache_changes_no_digit(copy: Path) -> None:
    assert run(copy, SLOPES) == run(copy, SLOPES)
