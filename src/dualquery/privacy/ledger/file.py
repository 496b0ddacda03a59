"""The file of a ledger: a SQLite database with its links, and those of version 0.2.

SQLite writes all of a transaction or nothing of it, and lets one process write at a time. What the
file says is believed only if the digests of its links are right.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from dualquery.base.errors import ParameterError
from dualquery.base.stored import Json
from dualquery.privacy.ledger.account import Account, Entry
from dualquery.privacy.ledger.chain import LedgerError, Link
from dualquery.privacy.ledger.rule import Charge, Rule
from dualquery.privacy.neighbours import Neighbours

SECONDS_TO_WAIT = 30.0
"""How long a process waits for another one that writes."""

_CHAIN_ID = 0x44514C48  # "DQLH"
_OLDER_ID = 0x44514C47  # "DQLG", up to version 0.2

_TABLES = (
    "CREATE TABLE chain (position INTEGER PRIMARY KEY, content BLOB NOT NULL, "
    "digest BLOB NOT NULL)",
    # Without it, losing the last link would look like a ledger that never had it.
    "CREATE TABLE head (position INTEGER NOT NULL, digest BLOB NOT NULL)",
)

_UNREADABLE = (
    ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, MemoryError,
    RecursionError,
)  # fmt: skip
"""What a damaged file ends in, apart from SQLite's own errors; a bad figure is a ValueError."""


@contextmanager
def transaction(path: Path, *, write: bool = False) -> Iterator[sqlite3.Connection]:
    """One transaction. A writer locks the file before it reads."""
    try:
        with closing(
            sqlite3.connect(path, timeout=SECONDS_TO_WAIT, isolation_level=None)
        ) as connection:
            connection.text_factory = bytes  # a damaged text must not raise an error of its own
            with reading(path):  # SQLite's own messages may hold damaged text
                # EXTRA, because with FULL a loss of power after a transaction can undo it.
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                yield connection
            except BaseException:
                with suppress(sqlite3.Error, ValueError):
                    connection.execute("ROLLBACK")
                raise
            with reading(path):
                connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise LedgerError(f"ledger {path}: {error}") from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever a damaged file causes into one line that says what to do."""
    try:
        yield
    except (LedgerError, sqlite3.Error):
        raise
    except (ParameterError, *_UNREADABLE):
        raise damaged(path) from None


def damaged(path: Path, where: str = "") -> LedgerError:
    return LedgerError(
        f"ledger {path} is damaged, or was edited{where}; nothing was changed: put its newest copy "
        "back"
    )


def begin_chain(connection: sqlite3.Connection, declared: Json) -> None:
    """Write the first link of a ledger."""
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_CHAIN_ID}")
    first = Link.following(b"", declared)
    connection.execute("INSERT INTO chain VALUES (0, ?, ?)", (first.content, first.digest))
    connection.execute("INSERT INTO head VALUES (0, ?)", (first.digest,))


def append(connection: sqlite3.Connection, position: int, link: Link) -> None:
    """Write the next link."""
    connection.execute("INSERT INTO chain VALUES (?, ?, ?)", (position, link.content, link.digest))
    connection.execute("UPDATE head SET position = ?, digest = ?", (position, link.digest))


def links_from(connection: sqlite3.Connection, start: int, path: Path) -> list[Link]:
    """The links from a position on; their digests are still to be computed."""
    made = connection.execute("SELECT sql FROM sqlite_master").fetchall()
    if sorted(made) != sorted((statement.encode(),) for statement in _TABLES):
        # A trigger would change what is written, a view what is read.
        raise damaged(path, ": it holds other things than its two tables")
    head = connection.execute("SELECT position, digest FROM head").fetchall()
    rows = connection.execute(
        "SELECT position, content, digest FROM chain WHERE position >= ? ORDER BY position",
        (start,),
    ).fetchall()
    whole = (
        [position for position, _, _ in rows] == list(range(start, start + len(rows)))
        and all(type(content) is type(digest) is bytes for _, content, digest in rows)
        and rows
        and head == [(rows[-1][0], rows[-1][2])]
    )
    if not whole:
        raise damaged(path, ": links are missing")
    return [Link(content, digest) for _, content, digest in rows]


def check_pages(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse to write into a file whose pages are damaged where no link is."""
    if connection.execute("PRAGMA quick_check").fetchall() != [(b"ok",)]:
        raise damaged(path)


def is_older(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether this is a ledger of version 0.2 or earlier, which has no chain."""
    found = connection.execute("PRAGMA application_id").fetchone()[0]
    if found not in (_CHAIN_ID, _OLDER_ID):
        raise LedgerError(f"{path} is not a dualquery ledger")
    return bool(found == _OLDER_ID)


# Version 0.2


def read_older(connection: sqlite3.Connection) -> Account:
    """The account of a ledger of version 0.2, as that version read it."""
    label, epsilon, delta, neighbours = connection.execute(
        "SELECT label, epsilon, delta, neighbours FROM budget"
    ).fetchone()
    slack = dict(_optional(connection, "slack", "release, slack"))
    drawn = {key: rest for key, *rest in _optional(connection, "drawn", "release, rounds, digest")}
    entries = tuple(
        Entry(
            release.decode(),
            note.decode(),
            Charge(mu_squared, pure, slack.get(release, 0.0)),
            state.decode(),
            reserved_at.decode(),
            None if spent_at is None else spent_at.decode(),
            *((drawn[release][0], drawn[release][1].decode()) if release in drawn else ()),
        )
        for release, note, mu_squared, pure, state, reserved_at, spent_at in connection.execute(
            "SELECT release, note, mu_squared, pure, state, reserved_at, spent_at FROM entries "
            "ORDER BY rowid"
        ).fetchall()
    )
    spent = sum(entry.charge.slack for entry in entries)
    unit = [row[0].decode() for row in _optional(connection, "unit", "person")]
    return Account(
        label.decode(),
        Rule(epsilon, delta, spent),
        Neighbours(neighbours.decode()),
        entries,
        unit[0] if unit else "",
        declared=False,
    )


def fingerprint_of_older(connection: sqlite3.Connection) -> str:
    """What version 0.2 told its ledgers apart by."""
    row = connection.execute("SELECT * FROM budget").fetchone()
    row = tuple(value.decode() if isinstance(value, bytes) else value for value in row)
    unit = [found[0].decode() for found in _optional(connection, "unit", "person")]
    return hashlib.sha256(repr((*row, *unit[:1])).encode()).hexdigest()[:16]


def convert_older(connection: sqlite3.Connection, created: str) -> None:
    """Give a ledger of version 0.2 a chain, whose first link holds its past as it was.

    The old tables go, so that version 0.2 cannot write beside the chain.
    """
    account, fingerprint = read_older(connection), fingerprint_of_older(connection)
    past: list[object] = [
        {
            **entry.to_link(),
            "state": entry.state,
            "spent_at": entry.spent_at,
            "rounds": entry.rounds,
            "digest": entry.digest,
        }
        for entry in account.entries
    ]
    for table in ("budget", "entries", "drawn", "unit", "slack"):
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    begin_chain(
        connection,
        {
            "kind": "declared",
            "label": account.label,
            "epsilon": account.epsilon,
            "delta": account.delta,
            "slack": None,
            "neighbours": str(account.neighbours),
            "unit": account.unit,
            "at": created,
            "fingerprint": fingerprint,
            "past": past,
        },
    )


def _optional(connection: sqlite3.Connection, table: str, columns: str) -> list[tuple[Any, ...]]:
    """The rows of a table that was made when it was first needed."""
    there = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)
    ).fetchone()
    if there is None:
        return []
    return connection.execute(f"SELECT {columns} FROM {table}").fetchall()
