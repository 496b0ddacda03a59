"""A mutant as a value, and what must hold for the list of them to mean anything."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path


class MutantError(Exception):
    """The list of mutants and the tree do not fit each other."""


@dataclass(frozen=True)
class Mutant:
    """One mistake: a piece of text in one file that is replaced by another.

    Attributes:
        name: what to call it, in words joined by hyphens.
        file: the file, from the root of the repository.
        old: the text that is replaced; it occurs exactly once in the file.
        new: what takes its place.
        tests: ids of pytest, each of which must fail. Without parameters, an id stands for all
            cases of a test, of which one at least must fail.
        why: one sentence that says what the mistake would do.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    why: str

    def applied(self, text: str) -> str:
        """The file's text with the mistake in it."""
        found = text.count(self.old)
        if found != 1:
            raise MutantError(
                f"mutant {self.name}: its old text occurs {found} times in {self.file}, expected "
                "once; change the mutant together with the code"
            )
        return text.replace(self.old, self.new)


def problems(mutants: Iterable[Mutant], root: Path) -> Iterator[str]:
    """Everything that is wrong with a list of mutants for the tree at `root`."""
    seen: set[str] = set()
    known: dict[str, set[str]] = {}
    for mutant in mutants:
        if mutant.name in seen:
            yield f"mutant {mutant.name}: two have this name"
        seen.add(mutant.name)
        if mutant.old == mutant.new:
            yield f"mutant {mutant.name}: it changes nothing"
        if not mutant.tests:
            yield f"mutant {mutant.name}: it names no test"
        try:
            changed = mutant.applied((root / mutant.file).read_text(encoding="utf-8"))
            ast.parse(changed)
        except FileNotFoundError:
            yield f"mutant {mutant.name}: there is no file {mutant.file}"
        except MutantError as error:
            yield str(error)
        except SyntaxError as error:
            # What cannot be imported fails every test, and shows nothing about any of them.
            yield f"mutant {mutant.name}: {mutant.file} is no longer Python ({error.msg})"
        for test in mutant.tests:
            file, _, name = test.partition("[")[0].partition("::")
            if file not in known:
                known[file] = set(_tests_of(root / file))
            if name not in known[file]:
                yield f"mutant {mutant.name}: there is no test {test}"


def _tests_of(file: Path) -> Iterator[str]:
    """The tests of a file as pytest names them, classes included, parameters not."""
    if not file.is_file():
        return
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}::{inner.name}"
