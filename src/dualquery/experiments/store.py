"""Finished runs as rows of a CSV file, written one by one, so that an experiment can resume."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from dualquery.errors import ParameterError

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
"""What tells one run from another."""

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
NUMBERS = tuple(name for name in COLUMNS if name not in TEXTS)


@dataclass(frozen=True)
class Row:
    """One finished run."""

    cells: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.cells[name]

    def number(self, name: str) -> float:
        """A numeric cell; NaN where it is empty."""
        return float(self.cells[name] or "nan")

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(self.cells[name] for name in KEY)


class Store:
    """The rows of one file. A torn last line, left by a kill, is dropped and its run made again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reread()
        if self.rows and not path.read_bytes().endswith(b"\n"):
            lines = [",".join(COLUMNS), *(_line(row) for row in self.rows)]
            write_whole(path, "\n".join(lines) + "\n")

    def reread(self) -> Self:
        """Look again: another process may have added rows. Of equal keys the first row counts."""
        rows: dict[tuple[str, ...], Row] = {}
        if self.path.exists():
            for row in _read(self.path):
                rows.setdefault(row.key, row)
        self.rows = list(rows.values())
        self._keys = set(rows)
        return self

    def __contains__(self, key: Mapping[str, object]) -> bool:
        return key_of(key) in self._keys

    def append(self, cells: Mapping[str, object]) -> None:
        """Add a run, on disk before this returns."""
        row = Row({name: as_text(cells.get(name, "")) for name in COLUMNS})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = not self.path.is_file()
        with self.path.open("a", encoding="utf-8", newline="") as stream:
            if fresh:
                stream.write(",".join(COLUMNS) + "\n")
            stream.write(_line(row) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        self.rows.append(row)
        self._keys.add(row.key)


def key_of(cells: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(as_text(cells[name]) for name in KEY)


def as_text(value: object) -> str:
    """A cell; floats keep six digits, so that a key reads back as itself."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def mean(rows: Sequence[Row], column: str) -> float:
    """The mean of a column; NaN of no rows."""
    return sum(row.number(column) for row in rows) / len(rows) if rows else float("nan")


def fastest(rows: Sequence[Row]) -> float:
    """The least time: the other runs waited for whatever else the machine was doing."""
    return min((row.number("seconds") for row in rows), default=float("nan"))


def where(rows: Sequence[Row], **wanted: object) -> list[Row]:
    """The rows with these cells."""
    texts = {name: as_text(value) for name, value in wanted.items()}
    return [row for row in rows if all(row[name] == text for name, text in texts.items())]


def with_queries(rows: Sequence[Row], *counts: int) -> list[Row]:
    """The rows with the first of these numbers of queries that there are any with, else the most.

    Claims and figures are about one workload; further ones may be stored in the same file.
    """
    stored = sorted({int(row["queries"]) for row in rows}, reverse=True)
    chosen = next((count for count in (*counts, *stored) if count in stored), None)
    return where(rows, queries=chosen)


def of_workload(rows: Sequence[Row], *counts: int) -> dict[str, object]:
    """What selects the rows that `with_queries` gives."""
    found = with_queries(rows, *counts)
    return {"queries": found[0]["queries"]} if found else {}


def write_whole(path: Path, text: str) -> None:
    """Write a file by rename: whoever reads it sees the old text or the new one."""
    waiting = path.with_name(f".{path.name}.{os.getpid()}")
    waiting.write_text(text, encoding="utf-8")
    waiting.replace(path)


def _read(path: Path) -> Iterator[Row]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ParameterError(f"cannot read {str(path)!r} as a file of runs; move it away") from None
    lines = text[: text.rfind("\n") + 1].splitlines()
    if not lines:
        return
    if tuple(lines[0].split(",")) != COLUMNS:
        raise ParameterError(
            f"{str(path)!r} holds other columns than an experiment writes; move it away"
        )
    for number, line in enumerate(lines[1:], start=2):
        cells = line.split(",")
        try:
            row = Row(dict(zip(COLUMNS, cells, strict=True)))
            for name in NUMBERS:
                row.number(name)
        except ValueError:
            raise ParameterError(
                f"{str(path)!r}, line {number}: not the row of a run; delete the line, and the run "
                "is made again"
            ) from None
        yield row


def _line(row: Row) -> str:
    """No cell holds a comma, so none needs quotes."""
    return ",".join(row[name] for name in COLUMNS)
