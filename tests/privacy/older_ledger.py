"""Makes a ledger as version 0.2 wrote it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

_TABLES = """
CREATE TABLE budget (label TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL,
    neighbours TEXT NOT NULL, created TEXT NOT NULL);
CREATE TABLE entries (release TEXT PRIMARY KEY, note TEXT NOT NULL, mu_squared REAL NOT NULL,
    pure REAL NOT NULL, state TEXT NOT NULL CHECK (state IN ('reserved', 'spent')),
    reserved_at TEXT NOT NULL, spent_at TEXT);
CREATE TABLE drawn (release TEXT PRIMARY KEY, rounds INTEGER NOT NULL, digest TEXT NOT NULL);
"""
_WHEN = "2026-11-17T10:00:00+00:00"


def older_ledger(
    path: Path,
    entries: Sequence[tuple[str, float, float, float]],
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    unit: str = "",
) -> None:
    """Write a file with (release, μ², pure ε, slack) per entry."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(_TABLES)
        connection.execute(f"PRAGMA application_id = {0x44514C47}")
        connection.execute(
            "INSERT INTO budget VALUES ('adult', ?, ?, 'replace-one', ?)", (epsilon, delta, _WHEN)
        )
        if unit:
            connection.execute("CREATE TABLE unit (person TEXT NOT NULL)")
            connection.execute("INSERT INTO unit VALUES (?)", (unit,))
        for release, mu_squared, pure, slack in entries:
            connection.execute(
                "INSERT INTO entries VALUES (?, ?, ?, ?, 'spent', ?, ?)",
                (release, f"note of {release}", mu_squared, pure, _WHEN, _WHEN),
            )
            connection.execute("INSERT INTO drawn VALUES (?, 4, 'abc')", (release,))
            if slack:
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS slack (release TEXT PRIMARY KEY, "
                    "slack REAL NOT NULL)"
                )
                connection.execute("INSERT INTO slack VALUES (?, ?)", (release, slack))
        connection.commit()
