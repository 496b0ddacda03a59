"""Putting a mutant into a copy of the tree and running its tests there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tools.mutants.mutant import Mutant, MutantError

COPIED = ("src", "tests", "tools", "pyproject.toml")
AT_A_TIME = 2
SECONDS = 600
"""After which a mutant's tests are stopped. A test that hangs has not failed."""

SECONDS_WITHOUT = 7200
"""After which the tests of all mutants, run once without any, are stopped."""


@dataclass(frozen=True)
class Outcome:
    """What became of one mutant: the named tests that passed nevertheless, or never ended."""

    mutant: Mutant
    missed: tuple[str, ...]
    seconds: float
    said: str

    @property
    def killed(self) -> bool:
        return not self.missed


class Copy:
    """A copy of the tree in which one mutant at a time is tried.

    A copy is used for many mutants, so that kernels are compiled once and not for every mutant.
    """

    def __init__(self, root: Path, place: Path) -> None:
        self.root = root
        self.place = place
        place.mkdir()
        for name in COPIED:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, place / name)
        self._compiled = compiled_from(place / "src")

    def failures(
        self, tests: Sequence[str], cache: Path, seconds: float = SECONDS
    ) -> tuple[set[str] | None, str]:
        """The ids of the tests that fail here, and all that pytest said; None where it broke."""
        command = [sys.executable, "-m", "pytest", "--tb=line", "-rf", "-p", "no:cacheprovider"]
        # A named test is run whether or not it is slow. One failure of a single test is enough.
        command += ["-m", "slow or not slow", *(["-x"] if len(tests) == 1 else []), *tests]
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.place / "src"),
            # Byte code is told apart by the second it was written in; mutants follow too quickly.
            "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_CACHE_DIR": str(cache),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "COLUMNS": "1000",
        }
        try:
            done = subprocess.run(
                command,
                cwd=self.place,
                env=environment,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None, f"stopped after {seconds} seconds"
        said = done.stdout + done.stderr
        if done.returncode not in (0, 1):
            # Tests that could not be collected have noticed nothing.
            return None, said
        return set(re.findall(r"^FAILED (\S+)", said, re.M)), said

    def run(self, mutant: Mutant) -> Outcome:
        """Put the mutant in, run its tests, and take it out again."""
        begun = time.monotonic()
        file = self.place / mutant.file
        original = file.read_text(encoding="utf-8")
        file.write_text(mutant.applied(original), encoding="utf-8")
        try:
            if mutant.file in self._compiled:
                # numba looks at the kernel's own file alone and would run what it compiled before.
                with tempfile.TemporaryDirectory(dir=self.place) as fresh:
                    failed, said = self.failures(mutant.tests, Path(fresh))
            else:
                failed, said = self.failures(mutant.tests, self.place / "compiled")
        finally:
            file.write_text(original, encoding="utf-8")
        missed = tuple(
            test for test in mutant.tests if not any(_is(test, one) for one in failed or ())
        )
        return Outcome(mutant, missed, time.monotonic() - begun, said)


def run_all(
    mutants: Sequence[Mutant], root: Path, tell: Callable[[Outcome], None] = lambda outcome: None
) -> list[Outcome]:
    """Try every mutant, a few at a time, after seeing that their tests pass without one."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(min(AT_A_TIME, len(mutants))):
            copies.put(Copy(root, Path(scratch) / str(number)))

        def baseline(tests: list[str]) -> tuple[set[str] | None, str]:
            copy = copies.get()
            try:
                return copy.failures(tests, copy.place / "compiled", SECONDS_WITHOUT)
            finally:
                copies.put(copy)

        def trial(mutant: Mutant) -> Outcome:
            copy = copies.get()
            try:
                outcome = copy.run(mutant)
            finally:
                copies.put(copy)
            tell(outcome)
            return outcome

        tests = sorted({test for mutant in mutants for test in mutant.tests})
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            halves = [part for part in (tests[0::2], tests[1::2]) if part]
            for failed, said in pool.map(baseline, halves):
                if failed is None or failed:
                    raise MutantError(f"tests fail without a mutant:\n{said.strip()[-3000:]}")
            return list(pool.map(trial, mutants))


def compiled_from(source: Path) -> set[str]:
    """The files that kernels are compiled from: their own, and those they import from."""
    return {f"src/{path.relative_to(source).as_posix()}" for path in _kernel_sources(source)}


def _kernel_sources(source: Path) -> Iterable[Path]:
    waiting = [path for path in source.rglob("*.py") if path.stem.endswith("_kernels")]
    found: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        if path.stem.endswith("_kernels"):
            waiting.extend(_imported(path, source))
    return found


def _imported(path: Path, source: Path) -> Iterator[Path]:
    text = path.read_text(encoding="utf-8")
    for module in re.findall(r"^from (dualquery[\w.]*) import", text, re.M):
        file = source / f"{module.replace('.', '/')}.py"
        if file.is_file():
            yield file


def _is(test: str, failed: str) -> bool:
    return failed == test or failed.startswith(f"{test}[")
