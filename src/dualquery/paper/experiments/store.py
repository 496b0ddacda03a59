"""Finished runs as lines of a CSV file, written one by one, so that an experiment can resume."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from dualquery.base.errors import ParameterError
from dualquery.base.failures import reason
from dualquery.base.files import lock

KEY = (
    "dataset",
    "table_rows",
    "bits",
    "queries",
    "kind",
    "series",
    "epsilon",
    "delta",
    "accountant",
    "run",
)
"""The columns that tell one run from another."""

MEASURED = (
    "eta",
    "samples",
    "rounds",
    "max_error",
    "average_error",
    "seconds",
    "counting_seconds",
    "version",
)

COLUMNS = KEY + MEASURED
TEXTS = ("dataset", "kind", "series", "accountant", "version")


@dataclass(frozen=True)
class Layout:
    """The columns of a file of runs.

    Attributes:
        key: those that tell one run from another.
        measured: those that a run decides.
        texts: those of both that hold no number.
    """

    key: tuple[str, ...]
    measured: tuple[str, ...]
    texts: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.key + self.measured

    @property
    def numbers(self) -> tuple[str, ...]:
        return tuple(name for name in self.columns if name not in self.texts)

    def key_of(self, cells: Mapping[str, object]) -> tuple[str, ...]:
        """The cells that tell a run from others, as texts."""
        return tuple(as_text(cells[name]) for name in self.key)


PAPER = Layout(KEY, MEASURED, TEXTS)
"""The columns of the paper's experiments."""


@dataclass(frozen=True)
class FinishedRun:
    """One finished run."""

    cells: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.cells[name]

    def number(self, name: str) -> float:
        """A numeric cell; NaN where it is empty."""
        return float(self.cells[name] or "nan")


class Store:
    """The runs of one file. If several have the same key, the first counts.

    A kill may leave half a last line. It is not read; writing cuts it off, and its run is made
    again.
    """

    def __init__(self, path: Path, layout: Layout = PAPER) -> None:
        self.path = path
        self.layout = layout
        self._stream: IO[str] | None = None
        self._read()

    def _read(self) -> None:
        runs: dict[tuple[str, ...], FinishedRun] = {}
        if self.path.exists():
            for run in _read(self.path, self.layout):
                runs.setdefault(self.layout.key_of(run.cells), run)
        self.runs = list(runs.values())
        self._keys = set(runs)

    def __contains__(self, key: Mapping[str, object]) -> bool:
        return self.layout.key_of(key) in self._keys

    @contextmanager
    def writing(self) -> Iterator[Self]:
        """Within this context runs may be appended, and by this process alone."""
        with self.path.open("a", encoding="utf-8", newline="") as stream:
            try:
                free = lock(stream)
            except OSError as error:
                raise ParameterError(f"cannot lock {str(self.path)!r}: {reason(error)}") from None
            if not free:
                raise ParameterError(
                    f"another process is writing {str(self.path)!r}; give this one another out"
                )
            self._read()
            text = self.path.read_bytes()
            stream.truncate(text.rfind(b"\n") + 1)
            if b"\n" not in text:
                stream.write(",".join(self.layout.columns) + "\n")
            self._stream = stream
            try:
                yield self
            finally:
                self._stream = None

    def append(self, cells: Mapping[str, object]) -> None:
        """Add a run; it is on disk before this returns."""
        if self._stream is None:
            raise RuntimeError("append within writing()")
        columns = self.layout.columns
        run = FinishedRun({name: as_text(cells.get(name, "")) for name in columns})
        # No cell holds a comma, so none needs quotes.
        self._stream.write(",".join(run[name] for name in columns) + "\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self.runs.append(run)
        self._keys.add(self.layout.key_of(run.cells))


def as_text(value: object) -> str:
    """The text of a cell; floats have six digits, so that a key read back equals itself."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def mean(runs: Sequence[FinishedRun], column: str) -> float:
    """The mean of a column; NaN if there are no runs."""
    return sum(run.number(column) for run in runs) / len(runs) if runs else float("nan")


def fastest(runs: Sequence[FinishedRun]) -> float:
    """The least time, because in the other runs the machine was also doing something else."""
    return min((run.number("seconds") for run in runs), default=float("nan"))


def where(runs: Sequence[FinishedRun], **wanted: object) -> list[FinishedRun]:
    """The runs with these cells."""
    texts = {name: as_text(value) for name, value in wanted.items()}
    return [run for run in runs if all(run[name] == text for name, text in texts.items())]


def distinct(runs: Sequence[FinishedRun], column: str) -> list[int]:
    """The different values of a column of whole numbers, in rising order."""
    return sorted({int(run[column]) for run in runs})


def with_queries(runs: Sequence[FinishedRun], *counts: int) -> list[FinishedRun]:
    """The runs of one workload, chosen by its number of queries.

    Claims and figures are about one workload, while a file may hold several. `counts` are tried in
    order, and the first that occurs is taken. If none of them occurs, it is the largest workload.
    """
    stored = distinct(runs, "queries")[::-1]
    chosen = next((count for count in (*counts, *stored) if count in stored), None)
    return where(runs, queries=chosen)


def of_workload(runs: Sequence[FinishedRun], *counts: int) -> dict[str, object]:
    """The cells that select the runs which `with_queries` gives."""
    found = with_queries(runs, *counts)
    return {"queries": found[0]["queries"]} if found else {}


def _read(path: Path, layout: Layout) -> Iterator[FinishedRun]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ParameterError(f"cannot read {str(path)!r} as a file of runs; move it away") from None
    header = ",".join(layout.columns) + "\n"
    if not text.startswith(header) and not header.startswith(text):
        raise ParameterError(
            f"{str(path)!r} holds other columns than an experiment writes; move it away"
        )
    lines = text[: text.rfind("\n") + 1].splitlines()
    for number, line in enumerate(lines[1:], start=2):
        try:
            run = FinishedRun(dict(zip(layout.columns, line.split(","), strict=True)))
            for name in layout.numbers:
                float(run[name] or ("" if name in layout.key else "nan"))
        except ValueError:
            raise ParameterError(
                f"{str(path)!r}, line {number}: not the row of a run; delete the line, and the run "
                "is made again"
            ) from None
        yield run
